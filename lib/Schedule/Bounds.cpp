//===- Bounds.cpp - what no schedule of a pipeline can beat ---------------===//
//
// Paths through the stages are longest paths over channels, in the order of stages (channels lead forward). The terms
// per rank are those of Bounds.h:
//
//   way down   from the start of a microbatch's F on the rank's first stage to its F on the last, and back by I to the
//              rank: until then the rank has nothing but F. Those that fit into memory fill the time; the rest is lost
//   tail       after its last I on the rank a microbatch goes on to a first stage, whose W comes after that
//
// All of it holds for any order: a bound that a schedule beats is a bug, and tests hold it against exact search.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Bounds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace cleave::schedule;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Longest paths between stages.
struct Paths {
  /// Until a microbatch's F on a stage starts; from there to the end of its last F (its own included).
  std::vector<double> head, down;
  /// From the start of its first I to the start of its I on a stage; from the end of that to the end of everything, and
  /// in a chain to the end of its W on stage 0.
  std::vector<double> back, tail, home;
};

/// A rank's share.
struct Share {
  std::vector<int32_t> stages;
  double forward = 0, inputGrad = 0, weightGrad = 0;
  double getWork() const { return forward + inputGrad + weightGrad; }
};

class Bounder {
public:
  Bounder(const Schedule &schedule, const Costs &costs)
      : schedule(schedule), costs(costs), placement(schedule.replicas[0].placement),
        isChain(schedule.channels.size() + 1 == static_cast<size_t>(schedule.numStages)) {
    for (auto [index, channel] : llvm::enumerate(schedule.channels))
      isChain &= channel.to == channel.from + 1 && channel.from == static_cast<int32_t>(index);
  }

  LowerBound run() {
    findPaths();
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      addRank(rank, getShare(rank));
    return std::move(bound);
  }

private:
  double getDelay(const Channel &channel) const {
    if (placement[channel.from] == placement[channel.to])
      return 0;
    return costs.getHop(channel);
  }

  void findPaths() {
    size_t stages = schedule.numStages;
    paths.head.assign(stages, 0);
    paths.back.assign(stages, 0);
    paths.down = costs.forward;
    paths.home.assign(stages, costs.weightGrad[0]);
    for (size_t stage = 0; stage < stages; ++stage)
      paths.tail.push_back(costs.weightGrad[stage]);
    // By (to, from): what leads into a stage is complete before the stage is read.
    for (const Channel &channel : schedule.channels) {
      double delay = getDelay(channel);
      raise(paths.head[channel.to], paths.head[channel.from] + costs.forward[channel.from] + delay);
      raise(paths.tail[channel.to], paths.tail[channel.from] + costs.inputGrad[channel.from] + delay);
      paths.home[channel.to] = paths.home[channel.from] + costs.inputGrad[channel.from] + delay;
    }
    for (const Channel &channel : llvm::reverse(schedule.channels)) {
      double delay = getDelay(channel);
      raise(paths.down[channel.from], paths.down[channel.to] + costs.forward[channel.from] + delay);
      raise(paths.back[channel.from], paths.back[channel.to] + costs.inputGrad[channel.to] + delay);
    }
  }
  static void raise(double &value, double to) { value = std::max(value, to); }

  Share getShare(int32_t rank) const {
    Share share;
    for (const Replica &replica : schedule.replicas)
      for (auto [stage, place] : llvm::enumerate(replica.placement)) {
        if (place != rank)
          continue;
        auto times = static_cast<double>(replica.microbatches.size());
        if (&replica == &schedule.replicas.front())
          share.stages.push_back(static_cast<int32_t>(stage));
        share.forward += times * costs.forward[stage];
        if (!schedule.isForwardOnly) {
          share.inputGrad += times * costs.inputGrad[stage];
          share.weightGrad += times * costs.weightGrad[stage];
        }
      }
    return share;
  }

  /// The most time of the actions, `microbatches` of each stage, that `memory` holds at once.
  double getTimeThatFits(llvm::ArrayRef<int32_t> stages, llvm::ArrayRef<double> times,
                         llvm::function_ref<double(int32_t)> getMemory, double memory) const {
    auto density = [&](int32_t stage) {
      double each = getMemory(stage);
      return each > 0 ? times[stage] / each : kInfinity;
    };
    std::vector<int32_t> order(stages.begin(), stages.end());
    llvm::sort(order, [&](int32_t left, int32_t right) {
      return density(left) != density(right) ? density(left) > density(right) : left < right;
    });
    bool areEqual = llvm::all_of(order, [&](int32_t stage) { return getMemory(stage) == getMemory(order[0]); });
    double total = 0;
    for (int32_t stage : order) {
      double each = getMemory(stage), count = schedule.numMicrobatches;
      if (each > 0) {
        // Whole actions if all take as much; otherwise parts of them, which is more than can be.
        double fit = memory / each;
        count = std::min(count, areEqual ? std::floor(fit) : fit);
      }
      count = std::max(count, 0.0);
      total += count * times[stage];
      memory -= count * std::max(each, 0.0);
    }
    return total;
  }

  /// Joined pairs may cost less than their parts: what all of them could save.
  double getSaving(const Share &share) const {
    if (costs.overlap < 0 || schedule.isForwardOnly)
      return 0;
    double worst = 0, forward = 0;
    for (int32_t stage = 0; stage < schedule.numStages; ++stage) {
      raise(worst, costs.inputGrad[stage] + costs.weightGrad[stage]);
      raise(forward, costs.forward[stage]);
    }
    double pairs = static_cast<double>(share.stages.size()) * schedule.numMicrobatches;
    return std::min(share.getWork(), pairs * std::max(0.0, worst + forward - costs.overlap));
  }

  /// Time between the first F and the first possible I that F cannot fill.
  double getWait(int32_t rank, const Share &share) const {
    if (schedule.isForwardOnly || schedule.replicas.size() > 1 || !isChain)
      return 0;
    double back = kInfinity;
    for (int32_t stage : share.stages)
      back = std::min(back, paths.back[stage]);
    auto memory = [&](int32_t stage) { return costs.memoryForward[stage]; };
    double filled = getTimeThatFits(share.stages, costs.forward, memory, costs.getMemoryLimit(rank));
    return std::max(0.0, paths.down[share.stages.front()] + back - filled);
  }

  /// W that stand before the last I: what is held from I to W has no more room.
  double getEarlyWeightGrad(int32_t rank, const Share &share) const {
    auto memory = [&](int32_t stage) { return costs.memoryForward[stage] + costs.memoryInputGrad[stage]; };
    double later = getTimeThatFits(share.stages, costs.weightGrad, memory, costs.getMemoryLimit(rank));
    return std::max(0.0, share.weightGrad - later);
  }

  /// Idle time before the first I cannot be made up for: a rank's span is its work and that, however late others are.
  /// What goes through the rank and back to stage 0 does not end before the rank has done all its F and I.
  void addRank(int32_t rank, const Share &share) {
    if (share.stages.empty())
      return;
    double head = kInfinity, tail = kInfinity, home = kInfinity;
    for (int32_t stage : share.stages) {
      head = std::min(head, paths.head[stage]);
      tail = std::min(tail, schedule.isForwardOnly ? paths.down[stage] - costs.forward[stage] : paths.tail[stage]);
      home = std::min(home, paths.home[stage]);
    }
    if (schedule.replicas.size() > 1)
      head = 0;
    double wait = getWait(rank, share), work = share.getWork() - getSaving(share);
    raise(bound.makespan, head + work + wait);
    std::string text = llvm::formatv("rank {0} has work for {1:f4}", rank, work);
    if (wait > 0)
      text += llvm::formatv(" and waits {0:f4} for its first gradient, with no more F than memory takes", wait);
    raiseSpan(work + wait, std::move(text));
    if (schedule.replicas.size() > 1)
      return;
    if (schedule.isForwardOnly) {
      raise(bound.makespan, head + share.forward + tail);
      return;
    }
    double toLast = head + wait + share.forward + share.inputGrad - getSaving(share) + getEarlyWeightGrad(rank, share);
    raise(bound.makespan, toLast + tail);
    if (isChain)
      raiseSpan(toLast + home,
                llvm::formatv("rank {0} waits for what goes through rank {1} and back", placement[0], rank));
  }

  void raiseSpan(double span, std::string why) {
    if (span <= bound.span)
      return;
    bound.span = span;
    bound.why = std::move(why);
  }

  const Schedule &schedule;
  const Costs &costs;
  llvm::ArrayRef<int32_t> placement;
  /// Every stage hands to the next, and to no other.
  bool isChain;
  Paths paths;
  LowerBound bound;
};
} // namespace

LowerBound cleave::schedule::computeLowerBound(const Schedule &schedule, const Costs &costs) {
  assert(costs.forward.size() == size_t(schedule.numStages) && "one entry per stage");
  return Bounder(schedule, costs).run();
}
