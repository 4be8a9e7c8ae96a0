//===- ChooseObjective.cpp - by time, whoever decides it ------------------===//
//
// A search by time foresees kernels by a few rules (lib/Solver/Launches.h), and is the best along each axis, not of all. So what the other
// objectives decide for the same machine is looked at as well, with kernels formed, for only then it is known what stays in one; the
// least predicted time counts. Rings are left alone: kernels do not say what travels meanwhile (ChooseAttention.cpp).
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/Plan.h"

#include <limits>

using namespace mlir;
using namespace cleave;

/// Larger programs are not sharded for the sake of a comparison.
static constexpr int64_t kMostOps = 5000;
/// What others decide has reasons in other units: it is taken where it saves a hundredth.
static constexpr double kWorthwhile = 0.99;

bool Compilation::State::mayCompare() {
  if (cleave::getPhase(*module) >= Phase::Propagated || isPipelined() || !hasMesh())
    return false;
  int64_t numOps = 0;
  module->walk([&](Operation *) { ++numOps; });
  return numOps < kMostOps;
}

void Compilation::State::chooseObjective() {
  ShardOptions &sharding = options.sharding;
  if (sharding.optimize != spmd::Optimize::Time || !mayCompare())
    return;
  Telling telling(onProgress, "objective");
  Prediction byTime = predict(handed.plan, sharding, Trial::WithKernels);
  if (byTime.hasRings || byTime.ns == std::numeric_limits<double>::infinity())
    return;
  double least = kWorthwhile * byTime.ns;
  for (spmd::Optimize other : {spmd::Optimize::Balanced, spmd::Optimize::Bytes}) {
    ShardOptions trial = sharding;
    trial.deciding = {other, makeCosts(other)};
    if (Prediction taken = predict(handed.plan, trial, Trial::WithKernels); !taken.hasRings && taken.ns < least) {
      least = taken.ns;
      sharding.deciding = trial.deciding;
    }
  }
  if (sharding.deciding)
    emitRemark(FileLineColLoc::get(context.get(), options.model, 0, 0))
        << "decided as by '" << spmd::kOptimizeWords[static_cast<int>(sharding.deciding->optimize)]
        << "': with kernels formed a rank takes " << formatTime(least) << " as predicted, and " << formatTime(byTime.ns)
        << " as decided by time";
}
