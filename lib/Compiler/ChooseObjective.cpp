//===- ChooseObjective.cpp - by time, whoever decides it ------------------===//
//
// A search by time foresees kernels by a few rules (lib/Solver/Launches.h), and is the best along each axis, not of all. So what the other
// objectives decide for the same machine is looked at as well, with kernels formed, for only then it is known what stays in one; the
// least predicted time counts. Rings are left alone: kernels do not say what travels meanwhile (ChooseAttention.cpp).
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Plan/Plan.h"

#include <limits>

using namespace mlir;
using namespace cleave;

/// What others decide is explained in their units, so it must save something: a hundredth.
static constexpr double kSaving = 1.01;

static StringRef getWord(spmd::Optimize optimize) { return spmd::kOptimizeWords[static_cast<int>(optimize)]; }

StringRef Compilation::State::compareObjectives(const std::shared_ptr<const spmd::Plan> &candidate,
                                                ShardOptions &sharding,
                                                llvm::function_ref<spmd::CostModel(spmd::Optimize)> makeModel,
                                                Prediction &best) {
  if (best.hasRings || best.ns == std::numeric_limits<double>::infinity())
    return "";
  // No more than the device has, or, where what time decides does not fit either, no more than that.
  int64_t memory = sharding.cluster ? sharding.cluster->device.memoryBytes : 0;
  int64_t most = memory ? std::max(memory, best.peakBytes) : std::numeric_limits<int64_t>::max();
  double least = best.ns / kSaving;
  StringRef chosen;
  for (spmd::Optimize other : {spmd::Optimize::Balanced, spmd::Optimize::Bytes}) {
    ShardOptions trial = sharding;
    trial.decidingCosts = makeModel(other);
    Prediction taken = predict(candidate, trial, Trial::WithKernels);
    if (taken.hasRings || taken.peakBytes > most || taken.ns >= least)
      continue;
    best = taken;
    least = taken.ns;
    sharding.decidingCosts = trial.decidingCosts;
    chosen = getWord(other);
  }
  return chosen;
}

std::optional<Compilation::State::Prediction> Compilation::State::chooseObjective() {
  ShardOptions &sharding = options.sharding;
  if (sharding.optimize != spmd::Optimize::Time || !mayCompare())
    return std::nullopt;
  Telling telling(onProgress, "objective");
  sharding.decidingCosts.reset();
  Prediction byTime = predict(handed.plan, sharding, Trial::WithKernels), best = byTime;
  StringRef chosen =
      compareObjectives(handed.plan, sharding, [&](spmd::Optimize optimize) { return makeCosts(optimize); }, best);
  if (chosen.empty())
    return best;
  emitRemark(FileLineColLoc::get(context.get(), options.model, 0, 0))
      << "used the sharding of --optimize=" << chosen << ": predicted " << formatTime(best.ns)
      << " per rank after fusion, " << formatTime(byTime.ns) << " with --optimize=time";
  return best;
}
