//===- Bars.h - what pictures of schedules show -----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_SCHEDULE_BARS_H
#define CLEAVE_LIB_SCHEDULE_BARS_H

#include "cleave/Schedule/Simulate.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::schedule {

/// A computation, or two that run as one; or the update of a stage.
struct Bar {
  llvm::ArrayRef<Action> actions;
  Interval time;

  /// `0F1`, `0F1;3B0`.
  std::string getText() const;
  bool isUpdate() const { return actions.front().kind == ActionKind::Update; }
};

/// Calls `visit` for each bar of a rank, in its order.
void visitBars(const Schedule &schedule, const Simulation &simulation, int32_t rank,
               llvm::function_ref<void(const Bar &)> visit);

/// What a rank holds over time, in steps, in the order of its program: (time, memory from then on). Starts with (0, 0).
std::vector<std::pair<double, double>> getMemoryCurve(const Schedule &schedule, const Costs &costs,
                                                      const Simulation &simulation, int32_t rank);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_BARS_H
