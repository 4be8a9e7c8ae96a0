//===- Interleaved.cpp - several stages per rank, in turns ----------------===//
//
// Rank r has stages r, p + r, 2p + r, ..: a microbatch comes by v times, and a bubble costs 1 / v of what it did. A rank
// takes a *round* of about p microbatches through its first stage, then through its second, and so on; gradients the
// other way round:
//
//   rank 0 of 2, v = 2   0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3       in this order, but from the w-th F on with a B between:
//                        2B0 2B1 0B0 0B1 2B2 2B3 0B2 0B3       w = 2 (p - 1 - r) + (v - 1) * (size of a round)
//
// Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, where p divides m. Any m has
// rounds as even as possible. Breadth-first (Lamy-Poirier, 2023) has one round: w is then all that there is.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

/// The lanes in the order of a rank's F; with `isBackward` of its B.
static std::vector<int32_t> orderLanes(llvm::ArrayRef<int32_t> rounds, int32_t chunks, bool isBackward) {
  std::vector<int32_t> lanes;
  for (int32_t round : rounds)
    for (int32_t chunk = 0; chunk < chunks; ++chunk)
      lanes.insert(lanes.end(), round, isBackward ? chunks - 1 - chunk : chunk);
  return lanes;
}

void cleave::schedule::writeInterleaved(Schedule &schedule) {
  int32_t ranks = schedule.numRanks, chunks = getNumChunks(schedule);
  std::vector<int32_t> rounds = getRounds(ranks, schedule.numMicrobatches);
  std::vector<int32_t> forward = orderLanes(rounds, chunks, false), backward = orderLanes(rounds, chunks, true);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    RankWriter writer(schedule, rank);
    // The first B is that of the last stage's first microbatch; each rank further up has the way of two more. Larger
    // rounds come first, so that none needs a longer warm-up than they do.
    size_t warmUp = size_t(2) * (ranks - 1 - rank) + size_t(chunks - 1) * rounds.front(), next = 0;
    for (size_t index = 0; index < forward.size(); ++index) {
      writer.add(ActionKind::F, forward[index]);
      if (index >= warmUp)
        writer.add(ActionKind::B, backward[next++]);
    }
    while (next < backward.size())
      writer.add(ActionKind::B, backward[next++]);
  }
}

void cleave::schedule::writeBreadthFirst(Schedule &schedule) {
  int32_t chunks = getNumChunks(schedule);
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    for (int32_t chunk = 0; chunk < chunks; ++chunk)
      writer.add(ActionKind::F, chunk, schedule.numMicrobatches);
    for (int32_t chunk = chunks; chunk-- > 0;)
      writer.add(ActionKind::B, chunk, schedule.numMicrobatches);
  }
}
