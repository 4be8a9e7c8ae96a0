//===- Place.h - stages where somebody wants them ---------------*- C++ -*-===//
//
// A schedule has its own placement, and only ranks have other numbers where somebody wants that. A schedule that takes any
// placement (`circular`) gets the one that is wanted, and an order for it:
//
//   zb-v      stages 0 1 2 3 on ranks 0 1 1 0    rank 1 for stage 0 makes it 1 0 0 1
//   circular  stages 0 1 2 3 on ranks 0 1 0 1    placement v makes it 0 1 1 0, ranks 0, 0, 1, 1 those
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_PLACE_H
#define CLEAVE_SCHEDULE_PLACE_H

#include "cleave/Schedule/Generate.h"

namespace cleave::schedule {

/// Where stages are wanted; of what nothing is said, where the schedule has them.
struct PlacementRequest {
  std::optional<Placement> placement;
  /// By stage, -1: anywhere. Empty: nobody says how many stages there are, else as many.
  std::vector<int32_t> ranks;

  /// Every stage is wanted on a rank.
  bool isOfAll() const;
};

/// As `generate`; a schedule that takes any placement has the one that is wanted, but for the numbers of its ranks where
/// they alone are others (`numberRanks`). Error: a rank without a stage.
llvm::Expected<Schedule> generatePlaced(llvm::StringRef name, Shape shape, const PlacementRequest &request);

/// Gives ranks of `table` the numbers that are wanted; those that nobody names keep theirs where that is free.
/// Error: another placement or number of stages is wanted than the schedule has, or numbers that no order of its ranks
/// gives; all with what is legal.
llvm::Error numberRanks(Schedule &table, const PlacementRequest &request);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_PLACE_H
