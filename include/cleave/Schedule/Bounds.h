//===- Bounds.h - what no schedule of a pipeline can beat -------*- C++ -*-===//
//
// For a placement, costs and memory, whatever the order. Per rank r, with n_r = what waits there at least:
//
//   span      >= work_r + n_r                                           n_r: from the first F to the first possible I
//   makespan  >= head_r + work_r + n_r                                  a rank has only F to do, and no more of them
//   makespan  >= head_r + n_r + F_r + I_r + (W that must be             than memory takes
//                done by then, for memory) + tail_r                     head_r, tail_r: the way to its first F, and from
//                                                                       its last I to the end
//
// In a chain of stages the first rank waits for the last tail: the third line then bounds its span too.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_BOUNDS_H
#define CLEAVE_SCHEDULE_BOUNDS_H

#include "cleave/Schedule/Simulate.h"

namespace cleave::schedule {

struct LowerBound {
  double makespan = 0, span = 0;
  /// Where the bound of the span comes from: `rank 0 has work for 24.0000 and waits 3.0000 for its first gradient, with no
  /// more F than memory takes`.
  std::string why;
};

/// Of all schedules with the replicas and channels of `schedule`; its programs do not matter. With two replicas, what
/// ranks have to do and the way to their first F. Precondition: `costs` has an entry per stage.
LowerBound computeLowerBound(const Schedule &schedule, const Costs &costs);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_BOUNDS_H
