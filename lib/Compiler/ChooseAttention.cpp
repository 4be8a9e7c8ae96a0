//===- ChooseAttention.cpp - rings against what was decided ---------------===//
//
// Costs of decisions know no overlap: a block of keys that travels while another is attended to costs nothing, which no
// sum of costs says. So where a program is decided by time, and has attention, it is sharded twice more, with queries held
// where they are and keys and values in rings, and as it would be otherwise; the rings stay if a rank is predicted to take less.
// The same is tried, whatever is decided by, where attention is written out in products and softmax, and a rank takes more memory than
// its device has: exec-form-rings, which does so for attention that is one op, comes when such attention has been decided on in parts.
//
// Both ways attention counts as the one kernel that it becomes, or a ring would win by being one op.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Spmd/IR/AttentionRequest.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/Plan.h"

#include <limits>

using namespace mlir;
using namespace cleave;

namespace {
struct Attentions {
  bool areOps = false, mayBeWrittenOut = false;
};
} // namespace

static Attentions findAttentions(ModuleOp module) {
  int64_t products = 0, softmaxes = 0, attentions = 0;
  module.walk([&](Operation *op) {
    attentions += isa<nn::AttentionOp>(op);
    softmaxes += isa<nn::SoftmaxOp>(op);
    products += isa<nn::EinsumOp>(op);
  });
  return {attentions > 0, softmaxes > 0 && products > 1};
}

void Compilation::State::chooseAttention() {
  ShardOptions &sharding = options.sharding;
  bool isAsked = spmd::getAttentionRequest(*module, sharding.attention) != spmd::AttentionMethod::Auto;
  bool isByTime = sharding.optimize == spmd::Optimize::Time;
  int64_t memory = sharding.cluster ? sharding.cluster->device.memoryBytes : 0;
  if (isAsked || (!isByTime && !memory) || !mayCompare())
    return;
  Attentions attentions = findAttentions(*module);
  if (!attentions.mayBeWrittenOut && !(isByTime && attentions.areOps))
    return;
  Telling telling(onProgress, "attention");
  Prediction decided = predict(handed.plan, sharding, Trial::WithAttention);
  bool isTooLarge = memory && attentions.mayBeWrittenOut && decided.peakBytes > memory;
  if (decided.ns == std::numeric_limits<double>::infinity() || (!isByTime && !isTooLarge))
    return;
  ShardOptions inRings = sharding;
  inRings.attention = spmd::AttentionMethod::Ring;
  Prediction ring = predict(handed.plan, inRings, Trial::WithAttention);
  bool isSmaller = isTooLarge && ring.peakBytes < decided.peakBytes, isFaster = isByTime && ring.ns < decided.ns;
  if (!ring.hasRings || ring.ns == std::numeric_limits<double>::infinity() || !(isSmaller || isFaster))
    return;
  sharding.attention = spmd::AttentionMethod::Ring;
  Location where = FileLineColLoc::get(context.get(), options.model, 0, 0);
  if (isFaster) {
    emitRemark(where) << "keys and values of attention use ring attention: predicted " << formatTime(ring.ns)
                      << " per rank, " << formatTime(decided.ns) << " without";
    return;
  }
  emitRemark(where) << "keys and values of attention use ring attention: without it a rank has a peak of "
                    << decided.peakBytes << " bytes, and a device of " << sharding.cluster->name << " has " << memory
                    << "; with it " << ring.peakBytes << ", and " << formatTime(std::abs(ring.ns - decided.ns))
                    << (ring.ns > decided.ns ? " more" : " less");
}
