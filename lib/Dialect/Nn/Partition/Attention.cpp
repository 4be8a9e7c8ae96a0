//===- Attention.cpp - attention over cut sequences -----------------------===//
//
// Batch, heads and value size cut: the same op on local shapes. Causal with a cut query sequence: the same op too, with
// a mask from global positions. With a cut key sequence each rank has a part of every softmax, and the op is taken
// apart, with one dim for the key/value head k and one for the query head g of its group:
//
//   scores [b, k, g, s, t] = q k^T scale, masked by global positions
//   m = max_t scores, e = exp(scores - m), result = sum_t(e v) / sum_t(e)
//
// The maximum, the sum and the weighted values are all-reduced over the axes that cut the key sequence. Where queries see windows of
// keys, and both are cut by the same axes, a rank gets the keys that its queries see from those who have them:
//
//   queries   |0 0 0 0|1 1 1 1|2 2 2 2|        left 2, causal: rank 1 sees keys 2 to 7
//   keys      |0 0 0 0|1 1 1 1|2 2 2 2|
//                  [0 0 1 1 1 1]
//
// and the op is itself again, with places counted from the first of these keys, and a mask for those that lie beyond all keys.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/GlobalBand.h"
#include "cleave/Dialect/Nn/IR/GradientOf.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

namespace {
struct LocalAttention {
  LocalAttention(AttentionOp op, PartitionContext &context)
      : op(op), context(context), build(context), queryAxes(context.getOperandSplits(0, 2)),
        keyAxes(context.getOperandSplits(1, 2)), query(getShape(context.operands[0])),
        key(getShape(context.operands[1])) {}

  bool isKeySequenceSplit() const { return !keyAxes.empty(); }
  bool isQuerySequenceSplit() const { return !queryAxes.empty(); }
  ArrayRef<AxisAttr> getQueryAxes() const { return queryAxes; }
  /// Both are cut, over the same axes.
  bool areSplitTogether() const { return isKeySequenceSplit() && queryAxes == keyAxes; }
  /// The op on the rank's queries and all keys, causality as a mask.
  Value computeWithMask();
  /// The op on a part of the keys.
  Value computeWithStatistics();
  /// The op on the rank's queries and the keys that they see.
  Value computeInWindow();

private:
  Value getVisibility();
  Value computeScores();
  Value applyMask(Value scores);
  Value hideUnseen(Value scores);
  Value addToMask(Value isSeen);
  DimWindow getWindow();
  Value findKeys(const DimWindow &window);
  Value number(double value) { return build.scalar(getElementType(wideQuery), value); }
  Value minusInfinity() { return number(-std::numeric_limits<double>::infinity()); }

  AttentionOp op;
  PartitionContext &context;
  LocalBuilder build;
  SmallVector<AxisAttr> queryAxes, keyAxes;
  Shape query, key;
  Value wideQuery;
};
} // namespace

Value LocalAttention::computeScores() {
  wideQuery = build.widen(context.operands[0]);
  Value grouped = build.reshape(wideQuery, {query[0], key[1], query[1] / key[1], query[2], query[3]});
  Value scores = build.einsum({grouped, build.widen(context.operands[1])}, "bkgsd,bktd->bkgst");
  scores = build.mul(scores, op.getScale().convertToDouble());
  double softcap = op.getSoftcap().convertToDouble();
  if (softcap > 0) {
    scores = build.mul(build.tanh(build.div(scores, softcap)), softcap);
  }
  return scores;
}

Value LocalAttention::applyMask(Value scores) {
  if (!op.getMask())
    return scores;
  Value mask = context.operands[3];
  SmallVector<int64_t> shape(4 - getShape(mask).size(), 1);
  llvm::append_range(shape, getShape(mask));
  // The head dim becomes [key/value head, query head of the group].
  bool isPerHead = shape[1] != 1 || query[1] == 1;
  SmallVector<int64_t> grouped = {shape[0], isPerHead ? key[1] : 1, isPerHead ? query[1] / key[1] : 1, shape[2],
                                  shape[3]};
  mask = build.reshape(mask, grouped);
  if (getElementType(mask).isInteger(1))
    return build.select(mask, scores, minusInfinity());
  return build.add(scores, build.cast(mask, getElementType(scores)));
}

/// Query position i sees the key positions of its band, both counted over all ranks. Precondition: there is a bound.
Value LocalAttention::getVisibility() {
  assert(!op.getBand().isEmpty() && "every key is seen");
  Value queries = build.globalPositions(queryAxes, query[2], 2, 0);
  Value keys = build.globalPositions(keyAxes, key[2], 2, 1);
  return compareToBand(context.builder, context.loc, queries, keys, op.getBand());
}

Value LocalAttention::hideUnseen(Value scores) {
  return op.getBand().isEmpty() ? scores : build.select(getVisibility(), scores, minusInfinity());
}

/// The mask that there is, and nothing where `isSeen` is false.
Value LocalAttention::addToMask(Value isSeen) {
  if (!op.getMask())
    return isSeen;
  Value given = context.operands[3];
  if (getElementType(given).isInteger(1))
    return build.both(given, isSeen);
  Value wide = build.widen(given);
  double infinity = std::numeric_limits<double>::infinity();
  return build.select(isSeen, wide, -infinity);
}

/// Whoever takes the keys block by block needs no mask for most blocks, and finds here what it was made of.
Value LocalAttention::computeWithMask() {
  ArrayRef<Value> in(context.operands);
  auto local = AttentionOp::create(context.builder, context.loc, context.resultTypes.front(), in[0], in[1], in[2],
                                   addToMask(getVisibility()), op.getScaleAttr(), /*causal=*/UnitAttr(),
                                   /*causalOffset=*/IntegerAttr(), op.getSoftcapAttr(), /*left=*/IntegerAttr(),
                                   /*right=*/IntegerAttr());
  GlobalBand{op.getBand(), queryAxes, static_cast<bool>(op.getMask())}.setOn(local);
  if (Attribute number = op->getAttr(kGradientOfAttr))
    local->setAttr(kGradientOfAttr, number);
  return local;
}

/// Who gives whom which keys.
DimWindow LocalAttention::getWindow() {
  const InnerCost *exchange =
      llvm::find_if(context.rule.inner, [](const InnerCost &cost) { return cost.kind == InnerCost::Kind::Exchange; });
  return *exchange->slides.front().getWindow(build.getGlobalExtent(1, 2), build.getGlobalExtent(0, 2),
                                             context.getExtent(keyAxes));
}

/// Where in the window keys are; null if everywhere on all ranks. Beyond the first and the last one there is nothing to see, and where
/// shards are uneven what no query needs may be anything.
Value LocalAttention::findKeys(const DimWindow &window) {
  int64_t end = std::min(window.size(), window.end);
  Value places = build.positions(window.high - window.low, window.low, 1, 1, 0), isKey;
  places = build.add(places, build.shardOffset(keyAxes, window.step));
  if (window.low < 0)
    isKey = build.ge(places, build.position(0));
  if ((window.pieces - 1) * window.step + window.high > end) {
    Value isBefore = build.lt(places, build.position(end));
    isKey = isKey ? build.both(isKey, isBefore) : isBefore;
  }
  return isKey;
}

/// In a window the first query sees from the first key on, whatever the rank.
Value LocalAttention::computeInWindow() {
  DimWindow window = getWindow();
  for (auto [operand, value] : llvm::enumerate(MutableArrayRef<Value>(context.operands))) {
    unsigned dim = getShape(value).size() - (operand == 3 ? 1 : 2);
    if (operand > 0 && !context.getOperandSplits(operand, dim).empty())
      value = build.window(value, LocalBuilder::ReadDim{dim, keyAxes, window},
                           cast<TypedAttr>(context.builder.getZeroAttr(getElementType(value))));
  }
  MutableArrayRef<Value> in(context.operands);
  Value isKey = findKeys(window);
  // A weight of 0 times what is there instead of a value is not 0 where that is NaN.
  if (isKey && window.end != DimWindow{}.end)
    in[2] = build.select(build.reshape(isKey, {window.high - window.low, 1}), in[2], build.zeroLike(in[2]));
  Value mask = isKey ? addToMask(isKey) : op.getMask() ? in[3] : Value();
  IntegerAttr reach = context.builder.getI64IntegerAttr(window.high - window.low - window.step);
  return AttentionOp::create(context.builder, context.loc, context.resultTypes.front(), in[0], in[1], in[2], mask,
                             op.getScaleAttr(), /*causal=*/context.builder.getUnitAttr(), /*causalOffset=*/reach,
                             op.getSoftcapAttr(), /*left=*/reach, /*right=*/IntegerAttr());
}

Value LocalAttention::computeWithStatistics() {
  int64_t keys = build.getGlobalExtent(1, 2);
  Value scores = hideUnseen(applyMask(computeScores()));
  scores = build.maskPadding(scores, 4, keyAxes, keys, ReduceKind::Max);
  Value maximum = build.reduceAcross(ReduceKind::Max, scores, 4, keyAxes);
  // A query that sees nothing on any rank: exp(-inf - 0) = 0 everywhere, and 0 / 1 = 0.
  maximum = build.select(build.eq(maximum, minusInfinity()), number(0), maximum);
  Value weights = build.exp(build.sub(scores, maximum));
  Value sum = build.reduceAcross(ReduceKind::Sum, weights, 4, keyAxes);
  // Weights of padding are 0, which times NaN is NaN.
  Value values = build.maskPadding(context.operands[2], 2, keyAxes, keys, ReduceKind::Sum);
  Value weighted = build.einsum({weights, build.widen(values)}, "bkgst,bktv->bkgsv");
  weighted = context.allReduce(weighted, ReductionKind::Sum, keyAxes);
  sum = build.select(build.eq(sum, number(0)), number(1), sum);
  RankedTensorType type = context.resultTypes.front();
  return build.cast(build.reshape(build.div(weighted, sum), type.getShape()), type.getElementType());
}

/// Each query sees what it would, so the op is itself. Whose queries a rank has is remembered, for rings.
static LogicalResult partitionReplicated(const LocalAttention &attention, AttentionOp op, PartitionContext &context,
                                         SmallVectorImpl<Value> &results) {
  if (failed(partitionByCloning(op, context, results)))
    return failure();
  if (attention.isQuerySequenceSplit())
    GlobalBand{KeyBand(), llvm::to_vector(attention.getQueryAxes()), /*isMasked=*/false}.setOn(
        results.front().getDefiningOp<AttentionOp>());
  return success();
}

LogicalResult AttentionOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalAttention attention(*this, context);
  if (attention.isKeySequenceSplit())
    results.push_back(attention.areSplitTogether() ? attention.computeInWindow() : attention.computeWithStatistics());
  else if (!getBand().isEmpty() && attention.isQuerySequenceSplit())
    results.push_back(attention.computeWithMask());
  else
    return partitionReplicated(attention, *this, context, results);
  return success();
}
