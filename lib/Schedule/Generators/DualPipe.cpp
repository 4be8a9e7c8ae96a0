//===- DualPipe.cpp - two directions, forward and backward as one ---------===//
//
// Microbatches come in from both ends (DualPipe), or go down and back on the same ranks (DualPipe-V, "cut in half"), so
// that in the steady state a rank always has an F of one direction and a B of the other, and hides the messages of each
// behind the work of the other (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024; eight sections of each rank's program
// as in its reference implementation):
//
//   nF0   n(F0 F1)   n(I1 W F1)   n(F0&B1 F1&B0)   n(B1 F1&B0)   n(B1 B0)   n(W I0)   nW
//
// From the middle of the sixth section on, B is split, so that its W fill the way out.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"

using namespace cleave::schedule;

namespace {
/// Lane 0 comes to this rank first, lane 1 on its way back (or from the other end).
struct Sections {
  /// The rank's distance from the end where lane 0 enters, of `ranks`.
  int32_t rank, ranks;
  /// Microbatches of a lane.
  int32_t microbatches;
  int32_t nearLane, farLane;
};
} // namespace

static void writeSixthSection(RankWriter &writer, const Sections &shape) {
  int32_t turns = shape.rank + 1, middle = turns / 2;
  bool isSplit = false;
  for (int32_t turn = 0; turn < turns; ++turn) {
    isSplit |= turn == middle && shape.rank % 2 == 1;
    writer.add(isSplit ? ActionKind::I : ActionKind::B, shape.farLane);
    isSplit |= turn == middle && shape.rank % 2 == 0;
    writer.add(isSplit ? ActionKind::I : ActionKind::B, shape.nearLane);
  }
}

static void writeSections(RankWriter &writer, const Sections &shape) {
  int32_t near = shape.nearLane, far = shape.farLane;
  int32_t beyond = shape.ranks - 1 - shape.rank;
  writer.add(ActionKind::F, near, 2 * beyond);
  for (int32_t turn = 0; turn <= shape.rank; ++turn)
    writer.add(ActionKind::F, near), writer.add(ActionKind::F, far);
  for (int32_t turn = 0; turn < beyond; ++turn) {
    writer.add(ActionKind::I, far);
    writer.addOldestWeightGrad();
    writer.add(ActionKind::F, far);
  }
  int32_t steady = shape.microbatches - 2 * shape.ranks + shape.rank + 1;
  for (int32_t turn = 0; turn < steady; ++turn) {
    // On the turning rank, the first B is of the microbatch whose F it would wait for.
    if (turn == 0 && beyond == 0)
      writer.add(ActionKind::F, near), writer.add(ActionKind::B, far);
    else
      writer.addJoined(near, far);
    writer.addJoined(far, near);
  }
  for (int32_t turn = 0; turn < beyond; ++turn) {
    writer.add(ActionKind::B, far);
    writer.addJoined(far, near);
  }
  writeSixthSection(writer, shape);
  for (int32_t turn = 0; turn < beyond; ++turn) {
    writer.addOldestWeightGrad();
    writer.add(ActionKind::I, near);
  }
  for (int32_t turn = 0; turn <= shape.rank; ++turn)
    writer.addOldestWeightGrad();
}

/// Each half of the ranks meets its own direction first: the halves mirror each other.
void cleave::schedule::writeDualPipe(Schedule &schedule) {
  int32_t ranks = schedule.numRanks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    RankWriter writer(schedule, rank);
    bool isLower = rank < ranks / 2;
    writeSections(writer, {isLower ? rank : ranks - 1 - rank, ranks / 2, schedule.numMicrobatches / 2, isLower ? 0 : 1,
                           isLower ? 1 : 0});
  }
}

void cleave::schedule::writeDualPipeV(Schedule &schedule) {
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    RankWriter writer(schedule, rank);
    writeSections(writer, {rank, schedule.numRanks, schedule.numMicrobatches, 0, 1});
  }
}
