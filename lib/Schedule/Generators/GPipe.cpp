//===- GPipe.cpp - all forward, then all backward -------------------------===//
//
//   rank 0   F0 F1 F2 .  .  B0 B1 B2       Huang et al., GPipe, 2019; what each rank holds grows with the microbatches
//   rank 1      F0 F1 F2 B0 B1 B2
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

void cleave::schedule::writeGPipe(Schedule &schedule) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    writer.add(ActionKind::F, 0, schedule.numMicrobatches);
    writer.add(ActionKind::B, 0, schedule.numMicrobatches);
  }
}
