// Stages and microbatches that are looked at, and the least that they take.
#include "cleave/Search/StageCells.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <numeric>
#include <random>

using namespace cleave::spmd;

TEST(StageCellsTest, StagesDivideDevicesAndMicrobatchesTheBatch) {
  std::vector<StageCell> cells = listStageCells(6, 4, {1, 8}, {1, 16});
  std::vector<StageCell> expected{{1, 1}};
  for (int64_t stages : {2, 3, 6})
    for (int64_t microbatches : {1, 2, 4})
      expected.push_back({stages, microbatches});
  EXPECT_EQ(cells, expected);
}

TEST(StageCellsTest, KeepsToItsBounds) {
  EXPECT_EQ(listStageCells(8, 8, {1, 1}, {1, 16}), (std::vector<StageCell>{{1, 1}}));
  EXPECT_EQ(listStageCells(8, 8, {2, 4}, {4, 4}), (std::vector<StageCell>{{2, 4}, {4, 4}}));
  EXPECT_TRUE(listStageCells(7, 8, {2, 6}, {1, 16}).empty());
  EXPECT_TRUE(listStageCells(8, 1, {2, 8}, {2, 16}).empty());
}

/// The time of a pipeline whose stages take times that sum up to `total`, worked through slot by slot.
static std::pair<double, double> run(const std::vector<double> &stages, int64_t microbatches) {
  std::vector<double> ends(stages.size(), 0);
  double firstEnd = 0;
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    double ready = 0;
    for (size_t stage = 0; stage < stages.size(); ++stage)
      ready = ends[stage] = std::max(ready, ends[stage]) + stages[stage];
    firstEnd = microbatch == 0 ? ready : firstEnd;
  }
  return {ends.back(), *std::max_element(stages.begin(), stages.end()) * static_cast<double>(microbatches)};
}

TEST(StageCellsTest, NoPipelineTakesLessThanTheBound) {
  int compared = 0;
  for (int64_t count : {1, 2, 3, 5})
    for (int64_t microbatches : {1, 2, 7})
      for (int skew = 0; skew < 6; ++skew) {
        std::vector<double> stages(count, 6.0 / static_cast<double>(count));
        stages.front() += skew;
        double total = 6.0 + skew;
        StageCell cell{count, microbatches};
        auto [call, span] = run(stages, microbatches);
        EXPECT_LE(cell.boundCall(total, 0), call + 1e-9);
        EXPECT_LE(cell.boundSpan(total), span + 1e-9);
        if (skew == 0) { // Even stages take just that.
          EXPECT_NEAR(cell.boundCall(total, 0), call, 1e-9);
          EXPECT_NEAR(cell.boundSpan(total), span, 1e-9);
        }
        ++compared;
      }
  EXPECT_EQ(compared, 4 * 3 * 6);
}

/// Calls `body` with the time of each stage, for all ways to cut a row of ops into so many stages.
template <typename Body>
static void forEachSplit(const std::vector<double> &ops, size_t first, std::vector<double> stages, size_t count,
                         const Body &body) {
  if (count == 1) {
    stages.push_back(std::accumulate(ops.begin() + first, ops.end(), 0.0));
    return body(stages);
  }
  for (size_t end = first + 1; end + count - 1 <= ops.size(); ++end) {
    stages.push_back(std::accumulate(ops.begin() + first, ops.begin() + end, 0.0));
    forEachSplit(ops, end, stages, count - 1, body);
    stages.pop_back();
  }
}

/// However ops are cut: no stage has less than the mean and the largest op in it. Where one op is most of all, only that makes the bound
/// what the best cuts take.
TEST(StageCellsTest, NoSplitIsBelowTheBound) {
  std::mt19937 random(7);
  int tight = 0, below = 0;
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<double> ops;
    for (unsigned op = 0; op < 6; ++op)
      ops.push_back(1.0 + random() % (draw % 2 ? 4 : 40));
    double total = std::accumulate(ops.begin(), ops.end(), 0.0), largest = *std::max_element(ops.begin(), ops.end());
    for (int64_t count : {2, 3, 4})
      for (int64_t microbatches : {1, 3, 8}) {
        StageCell cell{count, microbatches};
        double bestCall = 1e9, bestSpan = 1e9;
        forEachSplit(ops, 0, {}, count, [&](const std::vector<double> &stages) {
          auto [call, span] = run(stages, microbatches);
          bestCall = std::min(bestCall, call);
          bestSpan = std::min(bestSpan, span);
        });
        EXPECT_LE(cell.boundCall(total, 0, largest), bestCall + 1e-9);
        EXPECT_LE(cell.boundSpan(total, largest), bestSpan + 1e-9);
        EXPECT_GE(cell.boundCall(total, 0, largest), cell.boundCall(total, 0));
        tight += cell.boundSpan(total, largest) > bestSpan - 1e-9;
        below += cell.boundSpan(total) > bestSpan - 1e-9;
      }
  }
  EXPECT_GT(tight, below + 100);
}
