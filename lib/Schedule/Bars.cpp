//===- Bars.cpp - what pictures of schedules show -------------------------===//
//
// A bar is a computation, or two that run as one, or an update that takes time; messages and reductions have none. Memory changes at the ends of bars:
// what a bar takes it has from its start, what it releases is gone at its end, as in the simulation.
//
//===----------------------------------------------------------------------===//
#include "Bars.h"

#include "Operands.h"

#include <utility>

using namespace cleave::schedule;

std::string Bar::getText() const {
  std::string text;
  for (const Action &action : actions)
    text += (text.empty() ? "" : ";") + cleave::schedule::getText(action);
  return text;
}

void cleave::schedule::visitBars(const Schedule &schedule, const Simulation &simulation, int32_t rank,
                                 llvm::function_ref<void(const Bar &)> visit) {
  llvm::ArrayRef<Action> program = schedule.programs[rank];
  for (size_t i = 0; i < program.size(); ++i) {
    const Interval &time = simulation.times[rank][i];
    if (!isCompute(program[i].kind) && (program[i].kind != ActionKind::Update || time.end <= time.start))
      continue;
    size_t count = program[i].isJoined ? 2 : 1;
    visit({program.slice(i, count), simulation.times[rank][i]});
    i += count - 1;
  }
}

std::vector<std::pair<double, double>> cleave::schedule::getMemoryCurve(const Schedule &schedule, const Costs &costs,
                                                                        const Simulation &simulation, int32_t rank) {
  std::vector<std::pair<double, double>> curve = {{0, 0}};
  // Changes at one time are one step.
  double memory = 0;
  auto change = [&](double time, double by) {
    if (by == 0)
      return;
    memory += by;
    if (curve.back().first == time)
      curve.back().second = memory;
    else
      curve.push_back({time, memory});
  };
  Operands operands(schedule);
  llvm::ArrayRef<Action> program = schedule.programs[rank];
  bool hasMessages = !schedule.isComputeOnly();
  for (size_t i = 0, count = 1; i < program.size(); i += std::exchange(count, 1)) {
    const Interval &time = simulation.times[rank][i];
    if (program[i].kind == ActionKind::RecvF && schedule.isForwardOnly)
      change(time.end, operands.getWaiting(schedule, costs, program[i]));
    if (!isCompute(program[i].kind))
      continue;
    count = program[i].isJoined ? 2 : 1;
    double taken = 0, released = 0;
    for (const Action &action : program.slice(i, count)) {
      double by = costs.getMemoryChange(action);
      (by > 0 ? taken : released) += by;
      // Nothing is kept without gradients.
      if (schedule.isForwardOnly)
        released = -taken - (hasMessages ? operands.getWaiting(schedule, costs, action) : 0);
    }
    change(time.start, taken);
    change(time.end, released);
  }
  return curve;
}
