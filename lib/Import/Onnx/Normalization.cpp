//===- Normalization.cpp - norms over dims, channels and groups -----------===//
//
// What has an op stays one op, whatever its decomposition in the standard: a norm of one piece can be split, fused and
// lowered as such. Statistics that a model asks for as further outputs are computed beside it. Training mode is spelled
// out, as it updates statistics.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "Families.h"
#include "Graph/GraphImporter.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Ints spatialDims(int64_t rank) { return llvm::to_vector(llvm::seq<int64_t>(2, rank)); }

/// A vector of channels as [channels, 1, ...], which broadcasts along dim 1 of a tensor of `rank` dims.
static Value alongChannels(NodeContext &node, Value vector, int64_t rank) {
  if (!vector || node.failed())
    return {};
  Ints shape(std::max<int64_t>(rank - 1, 1), 1);
  shape[0] = NodeContext::shape(vector).empty() ? 1 : NodeContext::shape(vector)[0];
  return node.reshape(vector, shape);
}

//===----------------------------------------------------------------------===//
// LayerNormalization, RMSNormalization
//===----------------------------------------------------------------------===//

namespace {
/// The trailing dims that are normalized. The scale may be shorter: it broadcasts to them.
struct TrailingNorm {
  explicit TrailingNorm(NodeContext &node) : node(node), x(node.operand(0)), type(NodeContext::elementType(x)) {
    rank = NodeContext::rank(x);
    axis = node.axis(node.intAttr("axis", -1), rank);
    epsilon = node.floatAttr("epsilon", 1e-5f);
    int64_t stash = node.intAttr("stash_type", 1);
    node.check(stash == 1 || isa_and_present<Float64Type>(type), "attribute 'stash_type' must be 1");
  }

  /// A scale that fits into the normalized dims can stand on the op, any other is multiplied afterwards.
  bool isFitting(Value scale) const {
    if (!scale || node.failed())
      return false;
    Shape inner = NodeContext::shape(x).drop_front(axis);
    auto joined = nn::getBroadcastShape({NodeContext::shape(scale), inner});
    return joined && Shape(*joined) == inner && NodeContext::elementType(scale) == type;
  }

  /// Multiplies or adds what does not stand on the op. The result keeps the input's shape.
  template <typename OpTy> Value apply(Value value, Value operand) const {
    value = node.create<OpTy>(value, node.cast(operand, type));
    node.check(!value || NodeContext::shape(value) == NodeContext::shape(x),
               "scale or bias does not broadcast to the input");
    return value;
  }

  NodeContext &node;
  Value x;
  Type type;
  int64_t rank, axis;
  double epsilon;
};
} // namespace

/// Mean and 1 / sqrt(variance + epsilon), for who asks for them; in f32, or f64 of f64.
static void addMoments(NodeContext &node, const TrailingNorm &norm) {
  Type wide = isa<Float64Type>(norm.type) ? norm.type : Type(node.getBuilder().getF32Type());
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(norm.axis, norm.rank));
  auto mean = [&](Value value) { return node.create<nn::ReduceOp>(nn::ReduceKind::Mean, value, dims, true); };
  Value x = node.cast(norm.x, wide), center = mean(x);
  if (node.wantsResult(1))
    node.result(1, center);
  if (!node.wantsResult(2) || !center)
    return;
  Value difference = node.create<nn::SubOp>(x, center);
  Value variance = mean(node.create<nn::MulOp>(difference, difference));
  Value shifted = node.create<nn::AddOp>(variance, node.scalar(wide, norm.epsilon));
  node.result(2, node.create<nn::ReciprocalOp>(node.create<nn::SqrtOp>(shifted)));
}

/// Scale and bias stand on the op both or not at all: a bias is added after a scale that is multiplied behind it.
static void importLayerNormalization(NodeContext &node) {
  TrailingNorm norm(node);
  Value scale = node.operand(1), bias = node.operand(2);
  bool isFull = norm.isFitting(scale) && (!bias || norm.isFitting(bias));
  Value y = node.create<nn::LayerNormOp>(norm.x, isFull ? scale : Value(), isFull ? bias : Value(), norm.axis,
                                         APFloat(norm.epsilon));
  if (!isFull) {
    y = norm.apply<nn::MulOp>(y, scale);
    y = bias ? norm.apply<nn::AddOp>(y, bias) : y;
  }
  node.result(0, y);
  if (!node.failed() && (node.wantsResult(1) || node.wantsResult(2)))
    addMoments(node, norm);
}

static void importRmsNormalization(NodeContext &node) {
  TrailingNorm norm(node);
  Value scale = node.operand(1);
  bool isFull = norm.isFitting(scale);
  Value y = node.create<nn::RmsNormOp>(norm.x, isFull ? scale : Value(), norm.axis, APFloat(norm.epsilon));
  node.result(0, isFull ? y : norm.apply<nn::MulOp>(y, scale));
}

/// `x / norm(x)` along an axis, and 0 where the norm is 0.
static void importLpNormalization(NodeContext &node) {
  Value x = node.operand(0);
  int64_t p = node.intAttr("p", 2), axis = node.axis(node.intAttr("axis", -1), NodeContext::rank(x));
  if (!node.check(p == 1 || p == 2, "attribute 'p' is " + Twine(p) + ", expected 1 or 2"))
    return;
  Value size = p == 1 ? node.create<nn::AbsOp>(x) : node.create<nn::MulOp>(x, x);
  size = node.create<nn::ReduceOp>(nn::ReduceKind::Sum, size, Ints{axis}, true);
  if (p == 2)
    size = node.create<nn::SqrtOp>(size);
  if (!size)
    return;
  Value zero = node.scalarLike(x, 0);
  Value quotient = node.create<nn::DivOp>(x, size);
  node.result(0, node.create<nn::SelectOp>(node.create<nn::EqOp>(size, zero), zero, quotient));
}

//===----------------------------------------------------------------------===//
// Over channels
//===----------------------------------------------------------------------===//

/// Training mode: statistics of the batch, and running ones `running * momentum + batch * (1 - momentum)`.
static void trainBatchNorm(NodeContext &node, double epsilon, double momentum) {
  Value x = node.operand(0);
  int64_t rank = NodeContext::rank(x);
  Ints dims{0};
  llvm::append_range(dims, spatialDims(rank));
  auto mean = [&](Value value) { return node.create<nn::ReduceOp>(nn::ReduceKind::Mean, value, dims, false); };
  Value batchMean = mean(x);
  if (!batchMean)
    return;
  Value difference = node.create<nn::SubOp>(x, alongChannels(node, batchMean, rank));
  Value batchVariance = mean(node.create<nn::MulOp>(difference, difference));
  node.result(
      0, node.create<nn::BatchNormOp>(x, node.operand(1), node.operand(2), batchMean, batchVariance, APFloat(epsilon)));
  auto run = [&](Value running, Value batch) {
    if (!running || !batch)
      return Value();
    Value old = node.create<nn::MulOp>(running, node.scalarLike(running, momentum));
    Value fresh = node.create<nn::MulOp>(node.cast(batch, NodeContext::elementType(running)),
                                         node.scalarLike(running, 1 - momentum));
    return Value(node.create<nn::AddOp>(old, fresh));
  };
  node.result(1, run(node.operand(3), batchMean));
  node.result(2, run(node.operand(4), batchVariance));
}

/// Since opset 14 `training_mode` says what it is; before, more than one output means training.
static void importBatchNormalization(NodeContext &node) {
  double epsilon = node.floatAttr("epsilon", 1e-5f), momentum = node.floatAttr("momentum", 0.9f);
  bool isTraining = node.getOpset() >= 14 ? node.boolAttr("training_mode", false) : false;
  if (node.getOpset() < 7)
    node.ignoreAttr("is_test"); // With one output there is nothing else.
  if (node.getOpset() < 9)
    node.check(node.boolAttr("spatial", true), "statistics per element are not supported");
  for (unsigned i = 1; i < node.getNumResults(); ++i)
    if (!node.check(isTraining || !node.wantsResult(i), "running statistics are outputs of training mode only"))
      return;
  if (node.failed() || !node.check(NodeContext::rank(node.operand(0)) >= 2, "the input has no channels"))
    return;
  if (isTraining)
    return trainBatchNorm(node, epsilon, momentum);
  Type type = NodeContext::elementType(node.operand(0));
  SmallVector<Value> parts;
  for (unsigned i = 1; i < 5; ++i)
    parts.push_back(node.cast(node.operand(i), type));
  Value norm = node.create<nn::BatchNormOp>(node.operand(0), parts[0], parts[1], parts[2], parts[3], APFloat(epsilon));
  // Who trains with statistics of the batch needs it.
  Operation *made = norm && node.getImporter().getOptions().keepsWeights ? norm.getDefiningOp() : nullptr;
  if (made)
    made->setDiscardableAttr(spmd::kMomentumAttr, node.getBuilder().getF64FloatAttr(momentum));
  node.result(0, norm);
}

/// The op wants a spatial dim; one of size 1 changes nothing.
static Value groupNorm(NodeContext &node, Value scale, Value bias, int64_t groups, double epsilon) {
  Value x = node.operand(0);
  Ints shape(NodeContext::shape(x));
  Value wide = shape.size() == 2 ? node.unsqueeze(x, {2}) : x;
  return node.reshape(node.create<nn::GroupNormOp>(wide, scale, bias, groups, APFloat(epsilon)), shape);
}

/// A group of one channel each.
static void importInstanceNormalization(NodeContext &node) {
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  if (!node.check(NodeContext::rank(node.operand(0)) >= 2, "the input has no channels"))
    return;
  if (NodeContext::shape(node.operand(0))[1] == 0)
    node.result(0, node.operand(0));
  else
    node.result(0, groupNorm(node, node.operand(1), node.operand(2), NodeContext::shape(node.operand(0))[1], epsilon));
}

/// In opset 18 scale and bias are per group, since 21 per channel.
static void importGroupNormalization(NodeContext &node) {
  int64_t groups = node.intAttr("num_groups");
  double epsilon = node.floatAttr("epsilon", 1e-5f);
  if (node.getOpset() >= 21)
    node.ignoreAttr("stash_type"); // Moments are computed in f32 or wider in any case.
  if (node.failed() || !node.check(NodeContext::rank(node.operand(0)) >= 2, "the input has no channels"))
    return;
  int64_t channels = NodeContext::shape(node.operand(0))[1];
  if (!node.check(groups > 0 && channels % groups == 0, "attribute 'num_groups' is " + Twine(groups) +
                                                            ", which does not divide " + Twine(channels) + " channels"))
    return;
  auto perChannel = [&](Value value) {
    if (node.getOpset() >= 21)
      return value;
    if (!node.check(NodeContext::shape(value) == Shape({groups}), "scale and bias must have one element per group"))
      return Value();
    return node.reshape(node.broadcast(node.reshape(value, {groups, 1}), {groups, channels / groups}), {channels});
  };
  Value scale = perChannel(node.operand(1)), bias = perChannel(node.operand(2));
  node.result(0, groupNorm(node, scale, bias, groups, epsilon));
}

static void importLrn(NodeContext &node) {
  double alpha = node.floatAttr("alpha", 1e-4f), beta = node.floatAttr("beta", 0.75),
         bias = node.floatAttr("bias", 1.0);
  int64_t size = node.intAttr("size");
  node.result(0, node.create<nn::LrnOp>(node.operand(0), size, APFloat(alpha), APFloat(beta), APFloat(bias)));
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

/// Samples, if they are not normalized over.
static std::optional<int64_t> findRowsOfNorm(NodeContext &node, unsigned operand, int64_t dim) {
  bool isFirst = node.axis(node.intAttr("axis", -1), NodeContext::rank(node.operand(0))) == 0;
  return isFirst ? std::nullopt : findSamples(node, operand, dim);
}

void cleave::onnx::registerNormalization(Registry &registry) {
  registry.add("BatchNormalization", 6, {5, 5, 5}, importBatchNormalization).follow(findSamples);
  registry.add("BatchNormalization", 14, {5, 5, 3}, importBatchNormalization).follow(findSamples);
  registry.add("GroupNormalization", 18, {3, 3}, importGroupNormalization);
  registry.add("InstanceNormalization", 6, {3, 3}, importInstanceNormalization);
  registry.add("LRN", 1, {1, 1}, importLrn);
  registry.add("LayerNormalization", 17, {2, 3, 3}, importLayerNormalization).follow(findRowsOfNorm);
  registry.add("LpNormalization", 1, {1, 1}, importLpNormalization);
  registry.add("RMSNormalization", 23, {2, 2}, importRmsNormalization);
}
