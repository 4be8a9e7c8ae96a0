//===- VShape.cpp - down the ranks and back -------------------------------===//
//
// Rank r has stages r and 2p - 1 - r, so that the last stage sits where the first does and every rank holds as much:
//
//   rank 0    0       7
//   rank 1     1     6        ZBV      no waiting at all with the memory of 1F1B's first rank on all ranks
//   rank 2      2   5         V-Half   about half of it
//   rank 3       3 4          V-Min    about a third of it
//
// Qi et al., Zero Bubble Pipeline Parallelism, 2024; Qi et al., Pipeline Parallelism with Controllable Memory, 2024. The
// latter two repeat a block of six slots per microbatch: one for F and I of each stage at offsets that depend on the
// rank, two left for W. Then W fill what is free, and slots without work are squeezed out within the blocks' memory.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"
#include "llvm/ADT/STLExtras.h"
#include <array>

using namespace cleave::schedule;

static void writeZeroBubbleVRank(Schedule &schedule, int32_t rank) {
  constexpr ActionKind F = ActionKind::F, I = ActionKind::I, W = ActionKind::W;
  int32_t left = schedule.numRanks - rank;
  RankWriter writer(schedule, rank);
  writer.add(F, 0, 2 * left - 1);
  for (int32_t turn = 0; turn < rank; ++turn)
    writer.add(F, 1), writer.add(F, 0);
  for (int32_t turn = 0; turn < left; ++turn)
    writer.add(F, 1), writer.add(I, 1), writer.add(W, 1);
  while (writer.getNumForwardLeft(1) > 0) {
    writer.add(F, 0), writer.add(I, 0), writer.add(W, 0);
    writer.add(F, 1), writer.add(I, 1), writer.add(W, 1);
  }
  for (int32_t turn = 0; turn < rank; ++turn)
    writer.add(I, 0), writer.add(I, 1);
  for (int32_t turn = 0; turn < left; ++turn)
    writer.add(I, 0), writer.add(W, 0);
  writer.add(W, 1, schedule.numMicrobatches);
  writer.add(W, 0, schedule.numMicrobatches);
}

/// Fewer than 2p microbatches have no steady state: the table of 2p, without the microbatches that are too many.
void cleave::schedule::writeZeroBubbleV(Schedule &schedule) {
  int32_t microbatches = schedule.numMicrobatches, ranks = schedule.numRanks;
  Schedule full = makeSchedule("", schedule.replicas[0].placement, ranks, std::max(microbatches, 2 * ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    writeZeroBubbleVRank(full, rank);
    llvm::copy_if(full.programs[rank], std::back_inserter(schedule.programs[rank]),
                  [&](const Action &action) { return action.microbatch < microbatches; });
  }
}

namespace {
/// The lanes of a block, in the order of its offsets: F of the first stage, F and I of the second, I of the first.
constexpr std::array<ActionKind, 4> kKinds = {ActionKind::F, ActionKind::F, ActionKind::I, ActionKind::I};
constexpr std::array<int32_t, 4> kLanes = {0, 1, 1, 0};
constexpr int32_t kPeriod = 6;

/// Squeezes repeated blocks: in slots of equal length, a rank takes the action whose slot in the blocks is earliest,
/// among those that can run and lie no more than `ahead` slots after its first that has not; otherwise a W.
struct Blocks {
  /// Slots of microbatch 0 on each rank.
  std::vector<std::array<int32_t, 4>> offsets;
  int32_t ahead = 0;
  /// Stages whose F is done and W is not, on each rank.
  int32_t memory = 0;
};

class BlockRun {
public:
  BlockRun(Schedule &schedule, const Blocks &blocks)
      : schedule(schedule), blocks(blocks), taken(schedule.numRanks), held(schedule.numRanks, 0), memory(blocks.memory),
        stages(schedule.numStages) {
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      writers.emplace_back(schedule, rank);
  }

  void run() {
    size_t left = size_t(3) * schedule.numStages * schedule.numMicrobatches;
    for (int32_t now = 0; left > 0; ++now) {
      size_t before = left;
      for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
        left -= takeFrom(rank, now);
      // Few microbatches on few ranks may ask for more than the blocks hold.
      if (left == before)
        ++memory;
    }
  }

private:
  using Ends = std::vector<int32_t>;
  /// When F, and I, of a stage's microbatches have ended.
  struct StageEnds {
    Ends forward, inputGrad;
  };

  /// An I waits for the next stage's, which came after F of its own; at the last stage it waits for that F.
  bool isReady(int32_t rank, size_t lane, int32_t now) const {
    int32_t stage = getStage(rank, lane), last = schedule.numStages - 1;
    size_t next = taken[rank][lane];
    if (kKinds[lane] == ActionKind::F)
      return held[rank] < memory && (stage == 0 || hasEnded(stages[stage - 1].forward, next, now));
    return hasEnded(stage == last ? stages[stage].forward : stages[stage + 1].inputGrad, next, now);
  }
  static bool hasEnded(const Ends &list, size_t index, int32_t now) {
    return index < list.size() && list[index] <= now;
  }

  int32_t getStage(int32_t rank, size_t lane) const { return kLanes[lane] == 0 ? rank : schedule.numStages - 1 - rank; }

  /// Whether the rank did anything in this slot.
  bool takeFrom(int32_t rank, int32_t now) {
    auto slotOf = [&](size_t lane) { return blocks.offsets[rank][lane] + kPeriod * taken[rank][lane]; };
    std::optional<int32_t> first, slot;
    size_t best = 0;
    for (size_t lane = 0; lane < kLanes.size(); ++lane)
      if (taken[rank][lane] < schedule.numMicrobatches && (!first || slotOf(lane) < *first))
        first = slotOf(lane);
    for (size_t lane = 0; lane < kLanes.size(); ++lane)
      if (taken[rank][lane] < schedule.numMicrobatches && slotOf(lane) <= *first + blocks.ahead &&
          (!slot || slotOf(lane) < *slot) && isReady(rank, lane, now))
        slot = slotOf(lane), best = lane;
    if (!slot) {
      bool isFilled = writers[rank].addOldestWeightGrad();
      held[rank] -= isFilled;
      return isFilled;
    }
    bool isForward = kKinds[best] == ActionKind::F;
    StageEnds &stage = stages[getStage(rank, best)];
    (isForward ? stage.forward : stage.inputGrad).push_back(now + 1);
    ++taken[rank][best];
    held[rank] += isForward;
    writers[rank].add(kKinds[best], kLanes[best]);
    return true;
  }

  Schedule &schedule;
  const Blocks &blocks;
  /// Per rank and lane, how many were taken.
  std::vector<std::array<int32_t, 4>> taken;
  std::vector<int32_t> held;
  int32_t memory;
  std::vector<StageEnds> stages;
  std::vector<RankWriter> writers;
};
} // namespace

void cleave::schedule::writeVHalf(Schedule &schedule) {
  Blocks blocks;
  int32_t p = schedule.numRanks, d = p % 2 ? 0 : 3;
  for (int32_t r = 0; r < p; ++r)
    blocks.offsets.push_back({2 * r, 3 * p - 2 - r, 3 * p + d + 2 * r - 1, 6 * p + d - 2 - r});
  // One block ahead fills the way in; offsets that lie apart for odd p leave nothing to gain.
  blocks.ahead = p % 2 ? 0 : kPeriod;
  blocks.memory = p + 2;
  BlockRun(schedule, blocks).run();
}

void cleave::schedule::writeVMin(Schedule &schedule) {
  Blocks blocks;
  int32_t p = schedule.numRanks, d = p % 3 ? 0 : 2;
  for (int32_t r = 0; r < p; ++r)
    blocks.offsets.push_back({r, 2 * p - 1 - r, 2 * p + d + r, 4 * p + d - 1 - r});
  // Where blocks were shifted to keep their slots apart, the shift is squeezed out again.
  blocks.ahead = d;
  blocks.memory = 2 * ((p + 4) / 3);
  BlockRun(schedule, blocks).run();
}
