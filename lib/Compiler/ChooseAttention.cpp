//===- ChooseAttention.cpp - by time, rings against what was decided ------===//
//
// Prices of decisions know no overlap: a block of keys that travels while another is attended to costs nothing, which no
// sum of prices says. So where a program is decided by time, and has attention, it is sharded twice more, with queries held
// where they are and keys and values in rings, and as it would be otherwise; the rings stay if a rank is predicted to take less.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/Transforms/AttentionWish.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/Plan.h"

#include <limits>

using namespace mlir;
using namespace cleave;

/// Larger programs are not sharded for the sake of a comparison.
static constexpr int64_t kMostOps = 5000;

/// One that is written out in products has no rings that would be compared on equal terms: it is one op in them alone.
static bool hasAttention(ModuleOp module) {
  int64_t ops = 0, attentions = 0;
  module.walk([&](Operation *op) {
    ++ops;
    attentions += isa<nn::AttentionOp>(op);
  });
  return attentions > 0 && ops < kMostOps;
}

void Compilation::State::chooseAttention() {
  ShardOptions &sharding = options.sharding;
  bool isAsked = spmd::getAttentionWish(*module, sharding.attention) != spmd::AttentionForm::Auto;
  if (sharding.optimize != spmd::Optimize::Time || isAsked || cleave::getPhase(*module) >= Phase::Propagated ||
      isPipelined() || !hasMesh() || !hasAttention(*module))
    return;
  Telling telling(onProgress, "attention");
  ShardOptions inRings = sharding;
  inRings.attention = spmd::AttentionForm::Ring;
  double decided = predict(handed.plan, sharding), ring = predict(handed.plan, inRings);
  if (ring >= decided || decided == std::numeric_limits<double>::infinity())
    return;
  sharding.attention = spmd::AttentionForm::Ring;
  emitRemark(FileLineColLoc::get(context.get(), options.model, 0, 0))
      << "keys and values of attention go round in rings: a rank takes " << formatTime(ring) << " as predicted, and "
      << formatTime(decided) << " as decided without";
}
