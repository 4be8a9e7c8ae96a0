//===- SearchProblem.h - a placement and its costs, densely -----*- C++ -*-===//
//
// Times are whole ticks, so that what is ready at the same time is ready at the same time: decimal costs are exact.
// Microbatches of a stage are alike, and by exchange their k-th F, I and W may be taken to be of microbatch k: an action
// is a kind, a stage and a number.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_SEARCHPROBLEM_H
#define CLEAVE_LIB_SCHEDULE_SEARCHPROBLEM_H

#include "cleave/Schedule/Search.h"
#include <array>

namespace cleave::schedule {

using Ticks = int64_t;
/// When nobody knows yet.
inline constexpr Ticks kUnknown = -1;
enum StepKind : uint8_t { kForward, kInputGrad, kWeightGrad };

struct Step {
  /// stage * microbatches + microbatch.
  int32_t index;
  int32_t stage;
  StepKind kind;
};
/// Rank -> its steps in order.
using Orders = std::vector<std::vector<Step>>;

/// A stage that another waits for, or that waits for it, and the delay of the hop.
struct Link {
  int32_t stage;
  Ticks delay;
};

struct SearchProblem {
  explicit SearchProblem(const SearchCandidate &candidate);

  Schedule getSchedule(const Orders &orders) const;
  /// I for B, W right after it; none if a rank would do something elsewhere placed.
  std::optional<Orders> getOrders(const Schedule &schedule) const;
  Step makeStep(StepKind kind, int32_t stage, int32_t microbatch) const {
    return {stage * microbatches + microbatch, stage, kind};
  }
  Ticks getCost(const Step &step) const { return costs[step.kind][step.stage]; }
  /// What a step leaves behind, or releases. Without gradients nothing is kept.
  double getMemory(const Step &step) const { return numKinds == 1 ? 0 : memory[step.kind][step.stage]; }
  /// Whether a step may be done with `held` in memory.
  bool fits(int32_t rank, double held, const Step &step) const {
    double more = memory[step.kind][step.stage];
    return more <= 0 || held + more <= limits[rank];
  }
  /// When the operands of a step are there, given by `Step::index` when F and I have ended; unknown if one has not. W
  /// waits for I of its own stage alone, I for F of its own stage and what later stages hand back.
  Ticks getReady(const Step &step, llvm::ArrayRef<Ticks> forwardEnds, llvm::ArrayRef<Ticks> gradEnds) const {
    if (step.kind == kWeightGrad)
      return gradEnds[step.index];
    bool isForward = step.kind == kForward;
    int32_t microbatch = step.index - step.stage * microbatches;
    Ticks ready = isForward ? 0 : forwardEnds[step.index];
    for (const Link &link : (isForward ? sources : sinks)[step.stage]) {
      Ticks end = (isForward ? forwardEnds : gradEnds)[link.stage * microbatches + microbatch];
      if (end == kUnknown || ready == kUnknown)
        return kUnknown;
      ready = std::max(ready, end + link.delay);
    }
    return ready;
  }
  bool fitsMemory(int32_t rank, llvm::ArrayRef<Step> order) const;
  double toUnits(Ticks ticks) const { return static_cast<double>(ticks) / ticksPerUnit; }

  const Schedule &empty;
  int32_t ranks, stages, microbatches;
  /// Kinds per stage and microbatch: 1 or 3.
  int32_t numKinds;
  double ticksPerUnit = 1;
  llvm::ArrayRef<int32_t> rankOf;
  std::vector<std::vector<int32_t>> stagesOf;
  std::array<std::vector<Ticks>, 3> costs;
  std::array<std::vector<double>, 3> memory;
  /// As `Costs::getMemoryLimit`.
  std::vector<double> limits;
  /// Of each stage: whose F it waits for; whose I it waits for.
  std::vector<std::vector<Link>> sources, sinks;
  /// Of each rank, and of all of them.
  std::vector<Ticks> work;
  size_t numSteps = 0;
};

/// Worst span first; the sum of what ranks wait breaks ties, and leads a search across plateaus.
struct Evaluation {
  Ticks span = 0;
  std::vector<Ticks> spans;
  double score = 0;
  bool isBetterThan(const Evaluation &that) const { return span != that.span ? span < that.span : score < that.score; }
};

/// Runs orders in time.
class Evaluator {
public:
  explicit Evaluator(const SearchProblem &problem);

  /// False if they lock.
  bool run(const Orders &orders, Evaluation &evaluation);
  /// When the steps of the last run started.
  llvm::ArrayRef<Ticks> getStarts(int32_t rank) const { return starts[rank]; }
  /// When an F or I of the last run ended.
  Ticks getEnd(const Step &step) const { return (step.kind == kForward ? forwardEnds : gradEnds)[step.index]; }

private:
  bool advance(int32_t rank, llvm::ArrayRef<Step> order);

  const SearchProblem &problem;
  std::vector<Ticks> forwardEnds, gradEnds, freeAt;
  std::vector<std::vector<Ticks>> starts;
  std::vector<int32_t> queue;
  std::vector<uint8_t> isQueued;
};

/// Random numbers that are the same everywhere (SplitMix64, Steele et al. 2014).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t bits = state += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }
  /// Below `bound`, which is at least 1.
  int32_t below(int64_t bound) { return static_cast<int32_t>(next() % static_cast<uint64_t>(bound)); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_SEARCHPROBLEM_H
