//===- Attention.cpp - attention over cut sequences -----------------------===//
//
// Batch, heads and value size cut: the same op on local shapes. Causal with a cut query sequence: the same op too, with
// a mask from global positions. With a cut key sequence each rank has a part of every softmax, and the op is taken
// apart, with one dim for the key/value head k and one for the query head g of its group:
//
//   scores [b, k, g, s, t] = q k^T scale, masked by global positions
//   m = max_t scores, e = exp(scores - m), result = sum_t(e v) / sum_t(e)
//
// The maximum, the sum and the weighted values are all-reduced over the axes that cut the key sequence.
//
//===----------------------------------------------------------------------===//
#include "LocalBuilder.h"

#include <limits>

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

namespace {
struct LocalAttention {
  LocalAttention(AttentionOp op, PartitionContext &context)
      : op(op), context(context), build(context), queryAxes(context.getOperandCuts(0, 2)),
        keyAxes(context.getOperandCuts(1, 2)), query(LocalBuilder::getShape(context.operands[0])),
        key(LocalBuilder::getShape(context.operands[1])) {}

  bool isKeySequenceCut() const { return !keyAxes.empty(); }
  bool isQuerySequenceCut() const { return !queryAxes.empty(); }
  /// The op on the rank's queries and all keys, causality as a mask.
  Value computeWithMask();
  /// The op on a part of the keys.
  Value computeWithStatistics();

private:
  Value getVisibility();
  Value computeScores();
  Value applyMask(Value scores);
  Value applyCausality(Value scores);
  Value number(double value) { return build.constant(value, LocalBuilder::getElementType(wideQuery)); }
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
  Value scores = build.einsum(grouped, build.widen(context.operands[1]), "bkgsd,bktd->bkgst");
  scores = build.mul(scores, number(op.getScale().convertToDouble()));
  double softcap = op.getSoftcap().convertToDouble();
  if (softcap > 0) {
    Value bounded = TanhOp::create(context.builder, context.loc, build.div(scores, number(softcap)));
    scores = build.mul(bounded, number(softcap));
  }
  return scores;
}

Value LocalAttention::applyMask(Value scores) {
  if (!op.getMask())
    return scores;
  Value mask = context.operands[3];
  SmallVector<int64_t> shape(4 - LocalBuilder::getShape(mask).size(), 1);
  llvm::append_range(shape, LocalBuilder::getShape(mask));
  // The head dim becomes [key/value head, query head of the group].
  bool isPerHead = shape[1] != 1 || query[1] == 1;
  SmallVector<int64_t> grouped = {shape[0], isPerHead ? key[1] : 1, isPerHead ? query[1] / key[1] : 1, shape[2],
                                  shape[3]};
  mask = build.reshape(mask, grouped);
  if (LocalBuilder::getElementType(mask).isInteger(1))
    return build.select(mask, scores, minusInfinity());
  return build.add(scores, build.convert(mask, LocalBuilder::getElementType(scores)));
}

/// Query position i sees key positions up to i + causalOffset, both counted over all ranks.
Value LocalAttention::getVisibility() {
  Value queries = build.globalPositions(queryAxes, query[2], 2, 0);
  Value keys = build.globalPositions(keyAxes, key[2], 2, 1);
  return build.isAtMost(keys, build.add(queries, build.position(op.getCausalOffset())));
}

Value LocalAttention::applyCausality(Value scores) {
  return op.getCausal() ? build.select(getVisibility(), scores, minusInfinity()) : scores;
}

Value LocalAttention::computeWithMask() {
  Value mask = getVisibility();
  if (op.getMask()) {
    Value given = context.operands[3];
    if (LocalBuilder::getElementType(given).isInteger(1)) {
      mask = build.both(given, mask);
    } else {
      Value wide = build.widen(given);
      double infinity = std::numeric_limits<double>::infinity();
      mask = build.select(mask, wide, build.constant(-infinity, LocalBuilder::getElementType(wide)));
    }
  }
  ArrayRef<Value> in(context.operands);
  return AttentionOp::create(context.builder, context.loc, context.resultTypes.front(), in[0], in[1], in[2], mask,
                             op.getScaleAttr(), /*causal=*/UnitAttr(), /*causalOffset=*/IntegerAttr(),
                             op.getSoftcapAttr());
}

Value LocalAttention::computeWithStatistics() {
  int64_t keys = build.getGlobalExtent(1, 2);
  Value scores = applyCausality(applyMask(computeScores()));
  scores = build.maskPadding(scores, 4, keyAxes, keys, ReduceKind::Max);
  Value maximum = build.reduceAcross(ReduceKind::Max, scores, 4, keyAxes);
  // A query that sees nothing on any rank: exp(-inf - 0) = 0 everywhere, and 0 / 1 = 0.
  maximum = build.select(build.isEqual(maximum, minusInfinity()), number(0), maximum);
  Value weights = build.exp(build.sub(scores, maximum));
  Value sum = build.reduceAcross(ReduceKind::Sum, weights, 4, keyAxes);
  // Weights of padding are 0, which times NaN is NaN.
  Value values = build.maskPadding(context.operands[2], 2, keyAxes, keys, ReduceKind::Sum);
  Value weighted = build.einsum(weights, build.widen(values), "bkgst,bktv->bkgsv");
  weighted = context.allReduce(weighted, ReductionKind::Sum, keyAxes);
  sum = build.select(build.isEqual(sum, number(0)), number(1), sum);
  RankedTensorType type = context.resultTypes.front();
  return build.convert(build.reshape(build.div(weighted, sum), type.getShape()), type.getElementType());
}

LogicalResult AttentionOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalAttention attention(*this, context);
  if (attention.isKeySequenceCut())
    results.push_back(attention.computeWithStatistics());
  else if (getCausal() && attention.isQuerySequenceCut())
    results.push_back(attention.computeWithMask());
  else
    return partitionByCloning(*this, context, results);
  return success();
}
