//===- ZeroBubble.cpp - gradients of weights fill the bubbles -------------===//
//
// Only the gradient of the inputs (I) is waited for by other ranks; that of the weights (W) can be done whenever there is
// nothing else (Qi et al., Zero Bubble Pipeline Parallelism, 2024).
//
//   H1   1F1B with I for B; the W of rank r start r microbatches late, and end where 1F1B would wait: as much memory
//   H2   2 (p - r) - 1 F before the first I, so that no rank waits between its first action and its last
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

void cleave::schedule::writeZeroBubbleH1(Schedule &schedule) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    writer.add(ActionKind::F, 0, schedule.numRanks - 1 - rank);
    int32_t numGradients = 0;
    do {
      writer.add(ActionKind::F, 0);
      if (!writer.add(ActionKind::I, 0))
        break;
      if (++numGradients > rank)
        writer.add(ActionKind::W, 0);
    } while (true);
    writer.add(ActionKind::W, 0, schedule.numMicrobatches);
  }
}

void cleave::schedule::writeZeroBubbleH2(Schedule &schedule) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    writer.add(ActionKind::F, 0, 2 * (schedule.numRanks - rank) - 1);
    int32_t numGradients = 0;
    while (writer.add(ActionKind::I, 0)) {
      if (++numGradients > 2 * rank)
        writer.add(ActionKind::W, 0);
      writer.add(ActionKind::F, 0);
    }
    writer.add(ActionKind::W, 0, schedule.numMicrobatches);
  }
}
