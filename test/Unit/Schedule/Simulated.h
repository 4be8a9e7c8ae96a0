//===- Simulated.h - schedules by name, simulated ---------------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_SCHEDULE_SIMULATED_H
#define CLEAVE_TEST_UNIT_SCHEDULE_SIMULATED_H

#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Simulate.h"
#include "gtest/gtest.h"

namespace cleave::schedule {

/// F, I and W of a rank's whole share, and what a hop between ranks and a joined pair of stages take.
struct TestCosts {
  double forward = 1, inputGrad = 1, weightGrad = 1;
  double latency = 0, overlap = -1;
};

/// The named schedule; the test fails if there is none of this shape.
inline Schedule generated(llvm::StringRef name, Shape shape) {
  llvm::Expected<Schedule> schedule = generate(name, shape);
  if (schedule)
    return *schedule;
  ADD_FAILURE() << name.str() << ": " << llvm::toString(schedule.takeError());
  return makeSchedule(name, placeStages(Placement::Linear, shape.ranks, 1), shape.ranks, shape.microbatches);
}

inline Simulation simulated(Schedule schedule, const TestCosts &test = {}) {
  for (Channel &channel : schedule.channels)
    channel.latency = test.latency;
  Costs costs = Costs::uniform(schedule.numStages, schedule.numStages / schedule.numRanks, test.forward, test.inputGrad,
                               test.weightGrad);
  costs.overlap = test.overlap;
  llvm::Expected<Simulation> simulation = simulate(schedule, costs);
  if (simulation)
    return *simulation;
  ADD_FAILURE() << schedule.name << ": " << llvm::toString(simulation.takeError());
  return {};
}

inline Simulation simulated(llvm::StringRef name, Shape shape, const TestCosts &test = {}) {
  return simulated(generated(name, shape), test);
}

/// Time that `rank` waits until everything has ended.
inline double getIdle(const Simulation &simulation, size_t rank) { return simulation.makespan - simulation.busy[rank]; }

} // namespace cleave::schedule

#endif // CLEAVE_TEST_UNIT_SCHEDULE_SIMULATED_H
