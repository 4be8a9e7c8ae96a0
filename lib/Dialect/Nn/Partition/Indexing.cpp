//===- Indexing.cpp - lookups and updates in what a rank holds ------------===//
//
// Gather from a cut dim: indices relative to the shard; those outside read element 0, and are replaced by zero after
// (selected, never multiplied: what was read may be NaN). The zeros make the result a partial sum. An index that no rank holds stays
// out of range: it is an error wherever it is looked up, as it is of the whole table.
//
// Scatter into a cut dim: updates outside the shard go to a dummy element added at its end, which is dropped after; so
// every kind of update, in its order, stays what it is.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// Of all ranks together; what a rank has is in the types of `LocalBuilder`.
static Shape getGlobalShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// `shape` followed by `count` dims of size 1.
static SmallVector<int64_t> withTrailingOnes(Shape shape, size_t count) {
  SmallVector<int64_t> result(shape);
  result.append(count, 1);
  return result;
}

/// Indices, operand 1, with 0 where shards are padded: what stands there may be no index.
static Value maskIndices(LocalBuilder &build) {
  Value indices = build.context.operands[1];
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, getShape(indices).size()));
  return build.maskOperand(indices, 1, all, ReduceKind::Sum);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[1] = maskIndices(build);
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  Value table = context.operands[0];
  Shape shape = getShape(table);
  LocalIndices local(build, context.operands[1], getGlobalShape(getInput())[dim], shape[dim], axes, /*outside=*/0,
                     shape[dim]);
  Value found = build.gather(table, local.indices, dim);
  SmallVector<int64_t> mask = withTrailingOnes(getShape(local.isInside), shape.size() - dim - 1);
  results.push_back(build.select(build.reshape(local.isInside, mask), found, 0));
  return success();
}

LogicalResult GatherElementsOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[1] = maskIndices(build);
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  Value table = context.operands[0];
  LocalIndices local(build, context.operands[1], getGlobalShape(getInput())[dim], getShape(table)[dim], axes,
                     /*outside=*/0, getShape(table)[dim]);
  Value found = build.create<GatherElementsOp>(table, local.indices, dim);
  results.push_back(build.select(local.isInside, found, 0));
  return success();
}

namespace {
/// Tuples of indices for the dims `firstDim`, `firstDim + 1`, ... of operand 0, made relative to the rank's shard.
struct LocalTuples {
  /// Tuples in i64; components outside the shard of a cut dim are 0, or the dim's local extent with `redirect`.
  Value indices;
  /// Per tuple: all components are inside; null if no dim is cut.
  Value isInside;

  LocalTuples(LocalBuilder &build, Value tuples, Shape globalShape, unsigned firstDim, bool redirect) {
    int64_t last = getShape(tuples).size() - 1, length = getShape(tuples)[last];
    Shape localShape = getShape(build.context.operands[0]);
    Value wide = build.cast(tuples, build.context.builder.getI64Type());
    SmallVector<Value> components;
    for (int64_t i = 0; i < length; ++i) {
      Value component = build.sliceDim(wide, last, i, 1);
      unsigned dim = firstDim + i;
      SmallVector<AxisAttr> axes = build.context.getOperandSplits(0, dim);
      if (!axes.empty()) {
        int64_t outside = redirect ? localShape[dim] : 0;
        LocalIndices local(build, component, globalShape[dim], localShape[dim], axes, outside,
                           localShape[dim] + (redirect ? 1 : 0));
        component = local.indices;
        isInside = isInside ? build.both(isInside, local.isInside) : local.isInside;
      }
      components.push_back(component);
    }
    indices = build.concat(components, last);
  }
};
} // namespace

/// Axes that cut any of `count` dims of operand 0 from `first` on.
static bool isAnySplit(PartitionContext &context, unsigned first, int64_t count) {
  for (unsigned dim = first; dim < first + count; ++dim)
    if (!context.getOperandSplits(0, dim).empty())
      return true;
  return false;
}

LogicalResult GatherNdOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[1] = maskIndices(build);
  int64_t first = getBatchDims(), length = getGlobalShape(getIndices()).back();
  if (!isAnySplit(context, first, length))
    return partitionByCloning(*this, context, results);
  Value table = context.operands[0];
  LocalTuples local(build, context.operands[1], getGlobalShape(getInput()), first, /*redirect=*/false);
  Value found = build.create<GatherNdOp>(table, local.indices, first);
  Shape tuples = getShape(local.isInside).drop_back();
  SmallVector<int64_t> mask = withTrailingOnes(tuples, getShape(found).size() - tuples.size());
  results.push_back(build.select(build.reshape(local.isInside, mask), found, 0));
  return success();
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// Updates, operand 2, with 0 where they are padding of dims that are split up among ranks: only sums are.
static Value maskUpdates(LocalBuilder &build) {
  const ShardingRule &rule = build.context.rule;
  Value updates = build.context.operands[2];
  for (auto [dim, factors] : llvm::enumerate(rule.operands[2]))
    if (!factors.empty() && rule.isReduction(factors.front()))
      updates = build.maskOperand(updates, 2, int64_t(dim), ReduceKind::Sum);
  return updates;
}

/// One dummy element at the end of each of `dims`.
static Value appendDummies(LocalBuilder &build, Value value, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> low(getShape(value).size(), 0), high(low);
  for (int64_t dim : dims)
    high[dim] = 1;
  return build.create<PadOp>(PadMode::Constant, value, /*value=*/Value(), low, high);
}

/// The first elements along each dim: what was added behind them is left out.
static Value dropDummies(LocalBuilder &build, Value value, Shape shape) {
  return build.slice(value, SmallVector<int64_t>(shape.size(), 0), shape, SmallVector<int64_t>(shape.size(), 1));
}

LogicalResult ScatterElementsOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[1] = maskIndices(build);
  context.operands[2] = maskUpdates(build);
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  Value input = context.operands[0];
  Shape shape = getShape(input);
  LocalIndices local(build, context.operands[1], getGlobalShape(getInput())[dim], shape[dim], axes, shape[dim],
                     shape[dim] + 1);
  Value scattered = build.create<ScatterElementsOp>(getKind(), appendDummies(build, input, dim), local.indices,
                                                    context.operands[2], dim);
  results.push_back(dropDummies(build, scattered, shape));
  return success();
}

LogicalResult ScatterNdOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[1] = maskIndices(build);
  context.operands[2] = maskUpdates(build);
  int64_t length = getGlobalShape(getIndices()).back();
  if (!isAnySplit(context, 0, length))
    return partitionByCloning(*this, context, results);
  Value input = context.operands[0];
  SmallVector<int64_t> splitDims;
  for (int64_t dim = 0; dim < length; ++dim)
    if (!context.getOperandSplits(0, dim).empty())
      splitDims.push_back(dim);
  LocalTuples local(build, context.operands[1], getGlobalShape(getInput()), 0, /*redirect=*/true);
  Value scattered =
      build.create<ScatterNdOp>(getKind(), appendDummies(build, input, splitDims), local.indices, context.operands[2]);
  results.push_back(dropDummies(build, scattered, getShape(input)));
  return success();
}

//===----------------------------------------------------------------------===//
// One-hot
//===----------------------------------------------------------------------===//

// Each rank compares with the global positions of its part of the depth.
LogicalResult OneHotOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getResultSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Shape result = context.resultTypes.front().getShape();
  Value index = build.cast(context.operands[0], context.builder.getI64Type());
  Value isNegative = build.lt(index, build.position(0));
  index = build.select(isNegative, build.add(index, build.position(getDepth())), index);
  SmallVector<int64_t> shape(result);
  shape[dim] = 1;
  Value isHot = build.eq(build.reshape(index, shape), build.globalPositions(axes, result[dim], result.size(), dim));
  Value off = build.reshape(build.sliceDim(context.operands[1], 0, 0, 1), {});
  Value on = build.reshape(build.sliceDim(context.operands[1], 0, 1, 1), {});
  results.push_back(build.select(isHot, on, off));
  return success();
}
