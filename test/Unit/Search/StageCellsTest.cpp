// Stages and microbatches that are looked at, and the least that they take.
#include "cleave/Search/StageCells.h"
#include "gtest/gtest.h"
#include <algorithm>

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
