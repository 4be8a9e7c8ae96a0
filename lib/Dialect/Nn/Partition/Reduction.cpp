//===- Reduction.cpp - per-device means and softmax -----------------------===//
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

// No choice cuts the dim of the index.
LogicalResult ArgReduceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  return partitionByCloning(*this, context, results);
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
