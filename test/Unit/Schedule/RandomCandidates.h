//===- RandomCandidates.h - placements with random costs --------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_SCHEDULE_RANDOMCANDIDATES_H
#define CLEAVE_TEST_UNIT_SCHEDULE_RANDOMCANDIDATES_H

#include "cleave/Schedule/Search.h"
#include <random>

namespace cleave::schedule {

/// Small whole costs per stage, a latency, and memory limits from the least that works (`tightness` 0) up to enough for
/// all microbatches (1).
inline SearchCandidate makeRandomCandidate(std::mt19937 &random, Placement placement, int32_t ranks, int32_t chunks,
                                           int32_t microbatches, double tightness) {
  auto draw = [&](uint32_t below) { return static_cast<double>(random() % below); };
  SearchCandidate candidate{makeSchedule("auto", placeStages(placement, ranks, chunks), ranks, microbatches), {}};
  int32_t stages = ranks * chunks;
  Costs &costs = candidate.costs = Costs::uniform(stages, 1);
  for (int32_t stage = 0; stage < stages; ++stage) {
    costs.forward[stage] = 1 + draw(4);
    costs.inputGrad[stage] = 1 + draw(4);
    costs.weightGrad[stage] = draw(4);
    costs.memoryForward[stage] = 2 + draw(3);
    costs.memoryInputGrad[stage] = -draw(2);
    costs.memoryWeightGrad[stage] = -costs.memoryForward[stage] - costs.memoryInputGrad[stage];
  }
  costs.memoryLimit.assign(ranks, 0);
  for (int32_t stage = 0; stage < stages; ++stage)
    costs.memoryLimit[candidate.schedule.replicas[0].placement[stage]] +=
        costs.memoryForward[stage] * (1 + tightness * (microbatches - 1));
  double latency = draw(3);
  for (Channel &channel : candidate.schedule.channels)
    channel.latency = latency;
  return candidate;
}

} // namespace cleave::schedule

#endif // CLEAVE_TEST_UNIT_SCHEDULE_RANDOMCANDIDATES_H
