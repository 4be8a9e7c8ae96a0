//===- OneFOneB.cpp - one forward, one backward ---------------------------===//
//
// After w forwards of warm-up a rank takes F and B in turn, so that it holds w + 1 microbatches however many there are:
//
//   rank 0   F0 F1 .  .  .  B0 F2 B1 ...       w = p - 1 - r: the microbatches that are on their way down and back
//   rank 1      F0 B0 F1 B1 ...
//
// PipeDream-Flush, DAPPLE and Megatron (Narayanan et al., 2019, 2021; Fan et al., 2021). `eager` doubles w, to hide
// messages behind work. PipeDream itself runs on from batch to batch: the same order over the microbatches of all steps.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

static void writeInTurn(Schedule &schedule, int32_t warmUpPerRank) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    writer.add(ActionKind::F, 0, warmUpPerRank * (schedule.numRanks - 1 - rank));
    while (writer.add(ActionKind::F, 0))
      writer.add(ActionKind::B, 0);
    writer.add(ActionKind::B, 0, schedule.numMicrobatches);
  }
}

void cleave::schedule::writeOneFOneB(Schedule &schedule) { writeInTurn(schedule, 1); }
void cleave::schedule::writeEagerOneFOneB(Schedule &schedule) { writeInTurn(schedule, 2); }
