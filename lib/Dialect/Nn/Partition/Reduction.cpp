//===- Reduction.cpp - per-device means, searches, softmax ----------------===//
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

// The mean over all ranks is the mean of their means: each contributes 1 / ranks of it.
LogicalResult ReduceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  if (failed(partitionByCloning(*this, context, results)))
    return failure();
  if (getKind() != ReduceKind::Mean)
    return success();
  int64_t ranks = 1;
  for (int64_t dim : getDims())
    ranks *= context.getExtent(context.getOperandCuts(0, dim));
  if (ranks == 1)
    return success();
  LocalBuilder build(context);
  Value share = build.constant(1.0 / ranks, LocalBuilder::getElementType(results[0]));
  results[0] = build.mul(results[0], share);
  return success();
}

/// True where a rank's extremum is the one of all ranks. NaN wins over everything, and equals nothing.
static Value isWinner(LocalBuilder &build, Value mine, Value best) {
  Value isBest = build.isEqual(mine, best);
  if (!isa<FloatType>(LocalBuilder::getElementType(mine)))
    return isBest;
  Value isNan = IsNanOp::create(build.context.builder, build.context.loc, mine);
  return OrOp::create(build.context.builder, build.context.loc, isBest, isNan);
}

// Ranks whose extremum is the best one bid with its global index, others with one that cannot win; the first (or last)
// index is the smallest (largest) bid.
LogicalResult ArgReduceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandCuts(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value input = context.operands[0];
  RankedTensorType type = context.resultTypes.front();
  int64_t extent = LocalBuilder::getShape(input)[dim];
  Value mine = build.reduce(getKind(), input, dim);
  Value best = context.allReduce(mine, getKind() == ReduceKind::Max ? ReductionKind::Max : ReductionKind::Min, axes);
  auto localType = RankedTensorType::get(LocalBuilder::getShape(mine), context.builder.getI64Type());
  Value index =
      ArgReduceOp::create(context.builder, context.loc, localType, getKind(), input, dim, /*keepDims=*/true, getLast());
  index = build.add(index, build.shardOffset(axes, extent));
  Value loser = build.position(getLast() ? -1 : extent * context.getExtent(axes));
  Value bid = build.convert(build.select(isWinner(build, mine, best), index, loser), type.getElementType());
  bid = context.allReduce(bid, getLast() ? ReductionKind::Max : ReductionKind::Min, axes);
  results.push_back(build.reshape(bid, type.getShape()));
  return success();
}

/// `x - max` and the sum of its exponentials, both over all ranks.
static std::pair<Value, Value> computeSoftmaxTerms(LocalBuilder &build, Value input, int64_t dim,
                                                   ArrayRef<AxisAttr> axes) {
  Value wide = build.widen(input);
  Value shifted = build.sub(wide, build.reduceAcross(ReduceKind::Max, wide, dim, axes));
  return {shifted, build.reduceAcross(ReduceKind::Sum, build.exp(shifted), dim, axes)};
}

LogicalResult SoftmaxOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<AxisAttr> axes = context.getOperandCuts(0, getDim());
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value input = context.operands[0];
  auto [shifted, sum] = computeSoftmaxTerms(build, input, getDim(), axes);
  results.push_back(build.convert(build.div(build.exp(shifted), sum), LocalBuilder::getElementType(input)));
  return success();
}

LogicalResult LogSoftmaxOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<AxisAttr> axes = context.getOperandCuts(0, getDim());
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value input = context.operands[0];
  auto [shifted, sum] = computeSoftmaxTerms(build, input, getDim(), axes);
  Value logarithm = LogOp::create(context.builder, context.loc, sum);
  results.push_back(build.convert(build.sub(shifted, logarithm), LocalBuilder::getElementType(input)));
  return success();
}
