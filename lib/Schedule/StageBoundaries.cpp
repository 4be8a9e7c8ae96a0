//===- StageBoundaries.cpp - where a row of blocks is best split -----------===//
//
// The dynamic programming of StageBoundaries.h. One recurrence serves all weights: the largest of the stages', or their sum.
// Least bytes among the fastest splits need a second run under the time found by the first: (largest, sum) pairs have
// no optimal substructure, since a slower beginning with fewer bytes may lie under a slow end.
//
//===----------------------------------------------------------------------===//
#include "StageBoundaries.h"
#include "StageDescribe.h"

#include <algorithm>

using namespace cleave::schedule;

static constexpr int64_t kNoSplit = std::numeric_limits<int64_t>::max();

namespace {
class BoundaryFinder {
public:
  BoundaryFinder(const BoundaryProblem &problem, BoundaryWeight weight, int64_t timeLimit)
      : problem(problem), weight(weight), timeLimit(timeLimit), numStages(problem.inFlight.size()),
        numBlocks(problem.blocks.size()), best((numStages + 1) * (numBlocks + 1), kNoSplit), from(best.size(), 0) {}

  std::optional<BoundaryAnswer> run() {
    if (numStages == 0 || numStages > numBlocks)
      return std::nullopt;
    best[at(0, 0)] = 0;
    for (size_t stage = 1; stage <= numStages; ++stage)
      // Each of the other stages takes at least one block.
      for (size_t end = stage; end + numStages <= numBlocks + stage; ++end)
        if (stage < numStages || end == numBlocks)
          extend(stage, end);
    if (best[at(numStages, numBlocks)] == kNoSplit)
      return std::nullopt;
    return makeAnswer();
  }

private:
  size_t at(size_t stages, size_t position) const { return stages * (numBlocks + 1) + position; }
  bool isSum() const { return weight == BoundaryWeight::CrossingBytes || weight == BoundaryWeight::LinkNs; }
  int64_t getLink(size_t end) const { return end < numBlocks ? problem.linkNs[end] : 0; }

  /// What the stage [.., end) adds to the weight.
  int64_t getWeight(int64_t ns, int64_t memory, size_t end) const {
    switch (weight) {
    case BoundaryWeight::Time:
      return std::max(ns, getLink(end));
    case BoundaryWeight::Memory:
      return memory;
    case BoundaryWeight::CrossingBytes:
      return end < numBlocks ? problem.crossingBytes[end] : 0;
    case BoundaryWeight::LinkNs:
      return getLink(end);
    }
    return 0;
  }

  /// All beginnings of stage number `stage` (from 1) that ends at `end`.
  void extend(size_t stage, size_t end) {
    if (getLink(end) > timeLimit)
      return;
    int64_t link = problem.overlapsSends ? 0 : getLink(end), sum = 0, saved = 0, temporary = 0, parameters = 0;
    int64_t &least = best[at(stage, end)];
    for (size_t begin = end; begin-- > stage - 1;) {
      const BoundaryBlock &block = problem.blocks[begin];
      if (!block.allowed.empty() && !block.allowed[stage - 1])
        return;
      sum += block.ns;
      int64_t ns = link + scaleNs(problem.speeds[stage - 1], sum);
      saved += block.savedBytes;
      temporary = std::max(temporary, block.temporaryBytes);
      // A parameter used twice in the stage was counted where it is used last.
      for (auto [next, bytes] : block.parameters)
        parameters += next >= end ? bytes : 0;
      int64_t memory = parameters + saved * problem.inFlight[stage - 1] + temporary;
      if (ns > timeLimit || (weight != BoundaryWeight::Memory && memory > problem.memoryLimits[stage - 1]))
        return;
      int64_t own = getWeight(ns, memory, end), before = best[at(stage - 1, begin)];
      if (!isSum() && own >= least)
        return;
      if (before == kNoSplit)
        continue;
      int64_t total = isSum() ? before + own : std::max(before, own);
      if (total <= least) {
        least = total;
        from[at(stage, end)] = static_cast<uint32_t>(begin);
      }
    }
  }

  BoundaryAnswer makeAnswer() const {
    BoundaryAnswer answer;
    answer.weight = best[at(numStages, numBlocks)];
    size_t end = numBlocks;
    for (size_t stage = numStages; stage > 1; --stage)
      answer.positions.push_back(static_cast<uint32_t>(end = from[at(stage, end)]));
    std::reverse(answer.positions.begin(), answer.positions.end());
    return answer;
  }

  const BoundaryProblem &problem;
  BoundaryWeight weight;
  int64_t timeLimit;
  size_t numStages, numBlocks;
  /// Weight of the best way, and where its last stage begins, by (stages, position).
  std::vector<int64_t> best;
  std::vector<uint32_t> from;
};
} // namespace

std::optional<BoundaryAnswer> cleave::schedule::findBoundaries(const BoundaryProblem &problem, BoundaryWeight weight,
                                                               int64_t timeLimit) {
  return BoundaryFinder(problem, weight, timeLimit).run();
}
