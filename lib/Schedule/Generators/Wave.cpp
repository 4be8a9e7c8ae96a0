//===- Wave.cpp - Hanayo: v after v -----------------------------------------===//
//
// Stages go down the ranks and back, several times; the turns need no message, and a rank that has little to do early on
// a wave has the next stage soon:
//
//   rank 0    0     5 6     11
//   rank 1     1   4   7   10        Liu et al., Hanayo, 2023: two directions of Chimera folded into one, so that the
//   rank 2      2 3     8 9          parameters stand once
//
// The order is that of running it: with F of one slot and B of two, a rank that is free takes the B that has come
// furthest, otherwise the F that has. No more than 2p microbatches are under way, which bounds what a rank holds: with p
// of them, which are work for all ranks if nobody ever waits for another, a batch of more would run in bursts.
//
//===----------------------------------------------------------------------===//
#include "Generators.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::schedule;

namespace {
/// Time in slots; per stage, how many F and B were begun, and when each ends.
class WaveRun {
public:
  explicit WaveRun(Schedule &schedule)
      : schedule(schedule), stagesOf(schedule.numRanks), forward(schedule.numStages), backward(schedule.numStages),
        freeAt(schedule.numRanks, 0) {
    for (auto [stage, rank] : llvm::enumerate(schedule.replicas[0].placement))
      stagesOf[rank].push_back(static_cast<int32_t>(stage));
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      writers.emplace_back(schedule, rank);
  }

  void run() {
    size_t left = size_t(2) * schedule.numStages * schedule.numMicrobatches;
    for (int32_t now = 0; left > 0; ++now)
      for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
        left -= freeAt[rank] <= now && (takeBackward(rank, now) || takeForward(rank, now));
  }

private:
  using Ends = std::vector<std::vector<int32_t>>;

  /// Whether the next of `ends[stage]` can begin: that of `source` has ended.
  static bool isReady(const Ends &ends, int32_t stage, const Ends &sources, int32_t source, int32_t now) {
    size_t next = ends[stage].size();
    return next < sources[source].size() && sources[source][next] <= now;
  }

  void take(ActionKind kind, Ends &ends, int32_t rank, size_t lane, int32_t end) {
    ends[stagesOf[rank][lane]].push_back(end);
    freeAt[rank] = end;
    writers[rank].add(kind, static_cast<int32_t>(lane));
  }

  bool takeBackward(int32_t rank, int32_t now) {
    int32_t last = schedule.numStages - 1;
    for (auto [lane, stage] : llvm::enumerate(stagesOf[rank]))
      if (isReady(backward, stage, stage == last ? forward : backward, stage == last ? stage : stage + 1, now)) {
        take(ActionKind::B, backward, rank, lane, now + 2);
        return true;
      }
    return false;
  }

  bool takeForward(int32_t rank, int32_t now) {
    for (size_t lane = stagesOf[rank].size(); lane-- > 0;)
      if (int32_t stage = stagesOf[rank][lane];
          stage > 0 ? isReady(forward, stage, forward, stage - 1, now) : mayEnter(now)) {
        take(ActionKind::F, forward, rank, lane, now + 1);
        return true;
      }
    return false;
  }

  bool mayEnter(int32_t now) const {
    size_t entered = forward[0].size(), bound = size_t(2) * schedule.numRanks;
    if (entered == static_cast<size_t>(schedule.numMicrobatches))
      return false;
    return entered < bound || (backward[0].size() > entered - bound && backward[0][entered - bound] <= now);
  }

  Schedule &schedule;
  /// Rank -> its stages, rising: lanes of its writer.
  std::vector<std::vector<int32_t>> stagesOf;
  Ends forward, backward;
  std::vector<int32_t> freeAt;
  std::vector<RankWriter> writers;
};
} // namespace

void cleave::schedule::writeHanayo(Schedule &schedule) { WaveRun(schedule).run(); }
