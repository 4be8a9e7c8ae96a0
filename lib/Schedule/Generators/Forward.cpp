//===- Forward.cpp - inference --------------------------------------------===//
//
// Without gradients there is nothing to hold back: each rank takes microbatches as they come. `circular` has several
// stages per rank and takes them round by round, as interleaved schedules do, so that a round of p or more microbatches
// is back at the first rank when that is done with it: m * v + p - 1 slots.
//
// Stages anywhere are put in order in time: in each slot a rank takes, of the F that are ready, that of the last stage, so
// that a microbatch leaves before another one enters:
//
//   ranks 0 1 1 0    rank 0   0F0 0F1 0F2 3F0 0F3 3F1 ..         2 (m + p - 1) slots down the ranks and back, which is the
//                    rank 1       1F0 2F0 1F1 2F1 1F2 ..         least: the last rank's work, its first F, and the way back
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

void cleave::schedule::writeForward(Schedule &schedule) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
    RankWriter(schedule, rank).add(ActionKind::F, 0, schedule.numMicrobatches);
}

void cleave::schedule::writeCircular(Schedule &schedule) {
  int32_t chunks = getNumChunks(schedule);
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    for (int32_t round : getRounds(schedule.numRanks, schedule.numMicrobatches))
      for (int32_t chunk = 0; chunk < chunks; ++chunk)
        writer.add(ActionKind::F, chunk, round);
  }
}

// A stage takes microbatches in order, so that a number says how far it is. In a slot all see what was done before it.
void cleave::schedule::writeInTime(Schedule &schedule) {
  llvm::ArrayRef<int32_t> placement = schedule.replicas.front().placement;
  std::vector<std::vector<int32_t>> stagesOf(schedule.numRanks);
  for (int32_t stage = schedule.numStages - 1; stage >= 0; --stage)
    stagesOf[placement[stage]].push_back(stage);
  std::vector<int32_t> next(schedule.numStages);
  while (next.back() < schedule.numMicrobatches) {
    std::vector<int32_t> done = next;
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      for (int32_t stage : stagesOf[rank]) {
        int32_t ready = stage ? done[stage - 1] : schedule.numMicrobatches;
        if (next[stage] == ready)
          continue;
        Action action;
        action.stage = stage;
        action.microbatch = next[stage]++;
        schedule.programs[rank].push_back(action);
        break;
      }
  }
}
