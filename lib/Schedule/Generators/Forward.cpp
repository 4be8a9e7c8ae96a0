//===- Forward.cpp - inference --------------------------------------------===//
//
// Without gradients there is nothing to hold back: each rank takes microbatches as they come. `circular` has several
// stages per rank and takes them round by round, as interleaved schedules do, so that a round of p or more microbatches
// is back at the first rank when that is done with it: m * v + p - 1 slots.
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
