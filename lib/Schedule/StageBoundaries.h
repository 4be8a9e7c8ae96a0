//===- StageBoundaries.h - where a row of blocks is best split ---*- C++ -*-===//
//
// Blocks stand in a row; boundaries lie between them:
//
//   block      0 | 1 | 2 | 3
//   position   0   1   2   3   4        a stage is the blocks [i, j)
//
// best(s, j), the best way to make s stages of the blocks before j, is the best over i of best(s - 1, i) and the stage
// [i, j). A stage only grows as i goes down, so the walk ends where its time or memory is over what is allowed, or no
// better than what was found: about O(S * B^2 / S) steps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_STAGEBOUNDARIES_H
#define CLEAVE_LIB_SCHEDULE_STAGEBOUNDARIES_H

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace cleave::schedule {

/// Units between two neighboring positions.
struct BoundaryBlock {
  int64_t ns = 0, savedBytes = 0, temporaryBytes = 0;
  /// Parameters used here: the next block that uses each (or the number of blocks), and its bytes.
  std::vector<std::pair<uint32_t, int64_t>> parameters;
  /// Stages that it may be in; empty: all.
  std::vector<bool> allowed;
};

struct BoundaryProblem {
  std::vector<BoundaryBlock> blocks;
  /// Per position: bytes made before and used behind, and the time of a link that carries them.
  std::vector<int64_t> crossingBytes, linkNs;
  /// Per stage, as the next two; as many as stages are wanted.
  std::vector<int64_t> inFlight;
  bool overlapsSends = true;
  /// What the rank of a stage does in a time, and may hold.
  std::vector<double> speeds;
  std::vector<int64_t> memoryLimits;
};

/// What is made small: the largest time of a stage or link, the largest memory, or a sum over the boundaries.
enum class BoundaryWeight { Time, Memory, CrossingBytes, LinkNs };

struct BoundaryAnswer {
  int64_t weight = 0;
  /// S - 1 positions, rising.
  std::vector<uint32_t> positions;
};

/// The boundaries of least weight whose stages and links take at most `timeLimit`, and, unless memory is the weight, no more
/// memory than allowed. Of equal sums, the one whose last boundaries are earliest. Nothing if there are none.
std::optional<BoundaryAnswer> findBoundaries(const BoundaryProblem &problem, BoundaryWeight weight,
                                             int64_t timeLimit = std::numeric_limits<int64_t>::max());

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_STAGEBOUNDARIES_H
