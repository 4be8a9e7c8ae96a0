//===- Bidirectional.cpp - Chimera: two pipelines in opposite directions --===//
//
// Half of the microbatches go down the ranks, half up, each rank with a copy of both stages that are its own. In units
// of p microbatches, with slots of equal length for F and B, the i-th microbatch that goes down (four slots apart from
// one unit's p / 2 to the next, two within) has on rank r
//
//   F in slot t + r,  B in slot t + 2p - 1 - r,  t = 2p * (i div p/2) + 2 * (i mod p/2)
//
// F stands in slots of the parity of r, B in the others; what goes up has it the other way round, as p is even. So no
// two meet in a slot, units join without a gap, and p - 2 slots of 2m + p - 2 are empty (Li and Hoefler, Chimera, 2021).
//
//===----------------------------------------------------------------------===//
#include "Generators.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::schedule;

void cleave::schedule::writeChimera(Schedule &schedule) {
  struct Slot {
    int32_t time, lane;
    ActionKind kind;
  };
  int32_t ranks = schedule.numRanks, half = ranks / 2;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Slot> slots;
    for (int32_t lane = 0; lane < 2; ++lane) {
      int32_t distance = lane == 0 ? rank : ranks - 1 - rank;
      for (int32_t index = 0; index < schedule.numMicrobatches / 2; ++index) {
        int32_t time = 2 * ranks * (index / half) + 2 * (index % half);
        slots.push_back({time + distance, lane, ActionKind::F});
        slots.push_back({time + 2 * ranks - 1 - distance, lane, ActionKind::B});
      }
    }
    llvm::sort(slots, [](const Slot &left, const Slot &right) { return left.time < right.time; });
    RankWriter writer(schedule, rank);
    for (const Slot &slot : slots)
      writer.add(slot.kind, slot.lane);
  }
}
