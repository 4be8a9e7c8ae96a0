//===- Reduction.cpp - per-device reductions, searches and scans ----------===//
//
// Where the dim that an op runs along is cut, every rank does its part first and then as little as possible is sent:
// one extremum, one sum, one total, or k candidates per line. Sums and exponentials are kept in f32, f64 for f64,
// across ranks, as the whole op keeps them inside.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "../ShardingRules/Rules.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

// The mean over all ranks is the mean of theirs, each with the share that its elements are of all: 1 / ranks, or of microbatches
// of two sizes what they have.
LogicalResult ReduceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  context.operands[0] = build.maskOperand(context.operands[0], 0, getDims(), getKind());
  if (failed(partitionByCloning(*this, context, results)))
    return failure();
  if (getKind() != ReduceKind::Mean)
    return success();
  double own = 1, all = 1;
  for (int64_t dim : getDims()) {
    own *= static_cast<double>(getShape(context.operands[0])[dim]);
    all *= static_cast<double>(getInput().getType().getDimSize(dim));
  }
  if (own == all)
    return success();
  results[0] = build.mul(results[0], own / all);
  return success();
}

/// True where a rank's extremum is the one of all ranks. NaN wins over everything, and equals nothing.
static Value isWinner(LocalBuilder &build, Value mine, Value best) {
  Value isBest = build.eq(mine, best);
  if (!isa<FloatType>(getElementType(mine)))
    return isBest;
  return build.either(isBest, build.create<IsNanOp>(mine));
}

// Ranks whose extremum is the best one bid with its global index, others with one that cannot win; the first (or last)
// index is the smallest (largest) bid.
LogicalResult ArgReduceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value input = build.maskOperand(context.operands[0], 0, dim, getKind());
  RankedTensorType type = context.resultTypes.front();
  int64_t extent = getShape(input)[dim];
  Value mine = build.reduce(getKind(), input, dim, /*keepDims=*/true);
  Value best = context.allReduce(mine, getKind() == ReduceKind::Max ? ReductionKind::Max : ReductionKind::Min, axes);
  auto localType = RankedTensorType::get(getShape(mine), build.i64());
  Value index = build.createTyped<ArgReduceOp>(localType, getKind(), input, dim, /*keepDims=*/true, getLast());
  index = build.add(index, build.shardOffset(axes, extent));
  // Padding is no better than any element, so it is found last of equal ones only.
  if (getLast() && build.isPadded(0, dim))
    index = build.min(index, build.position(build.getGlobalExtent(0, dim) - 1));
  Value loser = build.position(getLast() ? -1 : extent * context.getExtent(axes));
  // Places travel in the fewest bytes that hold them (the sharding rule counts on it).
  Type sent = context.builder.getIntegerType(8 * getSentIndexBytes(*this));
  Value bid = build.cast(build.select(isWinner(build, mine, best), index, loser), sent);
  bid = context.allReduce(bid, getLast() ? ReductionKind::Max : ReductionKind::Min, axes);
  results.push_back(build.reshape(build.cast(bid, type.getElementType()), type.getShape()));
  return success();
}

/// Softmax and its logarithm: `finish` makes the result of `x - max` and the sum of its exponentials, both over all
/// ranks.
static LogicalResult partitionSoftmax(Operation *op, int64_t dim, PartitionContext &context,
                                      SmallVectorImpl<Value> &results,
                                      llvm::function_ref<Value(LocalBuilder &, Value shifted, Value sum)> finish) {
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(op, context, results);
  LocalBuilder build(context);
  Value input = context.operands[0], wide = build.maskOperand(build.widen(input), 0, dim, ReduceKind::Max);
  Value shifted = build.sub(wide, build.reduceAcross(ReduceKind::Max, wide, dim, axes));
  Value sum = build.reduceAcross(ReduceKind::Sum, build.exp(shifted), dim, axes);
  results.push_back(build.cast(finish(build, shifted, sum), getElementType(input)));
  return success();
}

LogicalResult SoftmaxOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  return partitionSoftmax(*this, getDim(), context, results, [](LocalBuilder &build, Value shifted, Value sum) {
    return build.div(build.exp(shifted), sum);
  });
}

LogicalResult LogSoftmaxOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  return partitionSoftmax(*this, getDim(), context, results, [](LocalBuilder &build, Value shifted, Value sum) {
    return build.sub(shifted, build.log(sum));
  });
}

//===----------------------------------------------------------------------===//
// Running sums, largest elements
//===----------------------------------------------------------------------===//

// The running sum of the shard, plus the totals of all shards before it (behind it, where reversed).
LogicalResult CumsumOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Type elementType = context.resultTypes.front().getElementType();
  Value input = build.maskOperand(context.operands[0], 0, dim, ReduceKind::Sum);
  input = isa<FloatType>(elementType) ? build.widen(input) : input;
  Value sums = build.create<CumsumOp>(input, dim, getExclusive(), getReverse());
  Value totals = build.allGather(build.sum(input, dim, /*keepDims=*/true), dim, axes);
  Value ranks = build.positions(context.getExtent(axes), 0, 1, getShape(input).size(), dim);
  Value mine = context.axisIndex(axes);
  Value counts = getReverse() ? build.lt(mine, ranks) : build.lt(ranks, mine);
  Value before = build.sum(build.select(counts, totals, 0), dim, /*keepDims=*/true);
  results.push_back(build.cast(build.add(sums, before), elementType));
  return success();
}

/// The candidates of all ranks: `value` has `count` of them along `dim`; exactly `k` are sent, so that what is sent
/// does not depend on the size of shards. What fills them up is cut off again.
static Value gatherCandidates(LocalBuilder &build, Value value, int64_t dim, int64_t k, ArrayRef<AxisAttr> axes) {
  SmallVector<int64_t> shape(getShape(value));
  int64_t count = shape[dim], ranks = build.context.getExtent(axes);
  if (count == k)
    return build.allGather(value, dim, axes);
  SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
  high[dim] = k - count;
  value = build.create<PadOp>(PadMode::Constant, value, Value(), low, high);
  value = build.allGather(value, dim, axes);
  SmallVector<int64_t> perRank(shape), together(shape);
  perRank[dim] = k;
  perRank.insert(perRank.begin() + dim, ranks);
  together[dim] = ranks * count;
  return build.reshape(build.sliceDim(build.reshape(value, perRank), dim + 1, 0, count), together);
}

/// What no element is behind in the order of `op`, in which NaN is the largest.
static Value getLastChosen(LocalBuilder &build, TopKOp op, Type elementType) {
  if (!op.getSmallest())
    return build.identity(ReduceKind::Max, elementType);
  if (isa<FloatType>(elementType))
    return build.scalar(elementType, std::numeric_limits<double>::quiet_NaN());
  return build.identity(ReduceKind::Min, elementType);
}

// Candidates stand in the order of ranks, and in each rank by value, then position; so of equal ones the first is still
// the one with the lowest position.
LogicalResult TopKOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim(), k = getK();
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value input = context.operands[0];
  // Behind all elements, also in the order of positions: there are k others.
  if (build.isPadded(0, dim))
    input = build.maskPadding(input, dim, axes, build.getGlobalExtent(0, dim),
                              getLastChosen(build, *this, getElementType(input)));
  int64_t extent = getShape(input)[dim];
  auto mine = TopKOp::create(context.builder, context.loc, input, std::min(k, extent), dim, getSmallest());
  Value position = build.add(mine.getIndices(), build.shardOffset(axes, extent));
  position = build.cast(position, context.builder.getI32Type());
  Value values = gatherCandidates(build, mine.getValues(), dim, k, axes);
  Value positions = gatherCandidates(build, position, dim, k, axes);
  auto best = TopKOp::create(context.builder, context.loc, values, k, dim, getSmallest());
  Value chosen = build.create<GatherElementsOp>(positions, best.getIndices(), dim);
  results.push_back(best.getValues());
  results.push_back(build.cast(chosen, context.resultTypes[1].getElementType()));
  return success();
}
