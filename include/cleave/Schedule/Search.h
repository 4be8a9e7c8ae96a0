//===- Search.h - the schedule `auto` ---------------------------*- C++ -*-===//
//
// Given where stages stand, what they cost and what ranks can hold, finds the order of everybody's actions: the least
// span (the longest time from a rank's first action to its last), then the least sum of spans. Several placements may
// be given; the best answer wins.
//
//   1. every named schedule of the placement, with its W put anew where they fit the costs
//   2. list scheduling in time under exact memory, and hill climbing over what it prefers on each rank
//   3. local search over the orders of the best (annealing from a low temperature)
//   4. few ranks and microbatches: branch and bound, which proves its answer
//
// Each answer stands beside a lower bound. Work is counted in actions that were placed, not in seconds, and random
// numbers are ours: the same input has the same answer on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_SEARCH_H
#define CLEAVE_SCHEDULE_SEARCH_H

#include "cleave/Schedule/Bounds.h"
#include "llvm/Support/Error.h"

namespace cleave::schedule {

/// Actions that are placed: `normal` may place ten times as many as `quick`, `thorough` six times as many as `normal`.
enum class Effort : uint8_t { Quick, Normal, Thorough };
inline constexpr llvm::StringLiteral kEffortWords[] = {"quick", "normal", "thorough"};
llvm::StringRef getWord(Effort effort);
std::optional<Effort> parseEffort(llvm::StringRef word);

/// A placement to try: a schedule with one replica, whose programs do not matter, and the costs of its stages.
struct SearchCandidate {
  Schedule schedule;
  Costs costs;
};

struct SearchOptions {
  uint64_t seed = 1;
  Effort effort = Effort::Normal;
};

/// How a run looks for the order of stages whose ranks are settled, and who shows what runs.
inline constexpr SearchOptions kSearchOfRun{0, Effort::Quick};

struct SearchResult {
  /// Named `auto`, compute-only.
  Schedule schedule;
  /// Which candidate it is of.
  size_t candidate = 0;
  double span = 0;
  /// The least over all candidates; `why` of the one it is from.
  LowerBound bound;
  /// The bound is reached, or branch and bound has looked at all that could be better.
  bool isOptimal = false;
  /// Schedules that were listed, and changes that were tried in local search.
  int64_t tables = 0, moves = 0;
};

/// The placements that `auto` tries, as schedules without programs: `placement` (each if none) with each number of chunks
/// that suits it up to 4 (`chunks` if not 0).
std::vector<Schedule> getPlacements(int32_t ranks, int32_t microbatches, std::optional<Placement> placement,
                                    int32_t chunks);

/// Precondition: candidates have one replica each, whose microbatches are all.
/// Error: no candidate, or memory that does not even hold one microbatch: the least limit that would do.
llvm::Expected<SearchResult> search(llvm::ArrayRef<SearchCandidate> candidates, const SearchOptions &options);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_SEARCH_H
