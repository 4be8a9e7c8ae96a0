//===- Convolution.cpp - the same window, on a piece ----------------------===//
//
// A cut group factor leaves fewer groups on each rank; their number follows from the local shapes. Sums over channels
// in are partial, and so is the bias then: it arrives on one rank only.
//
// Along a cut spatial dim a rank first gets all that its part of the result is made of: with the edges of its neighbors,
// and beyond the ends of the picture what padding means to the op. So the local op has no padding there, and is the same
// on all ranks. An average does not count the padding; then a rank divides by the share of each window that counts.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// `values`, those of the dims of `read` replaced. Spatial dims begin at dim 2.
template <typename Function>
static SmallVector<int64_t> replace(ArrayRef<int64_t> values, ArrayRef<LocalBuilder::ReadDim> read, Function get) {
  SmallVector<int64_t> list(values);
  for (const LocalBuilder::ReadDim &at : read)
    list[at.dim - 2] = get(at);
  return list;
}

/// What was padding has been read.
template <typename OpT> static void dropPads(OpT op, ArrayRef<LocalBuilder::ReadDim> read) {
  auto none = [](const LocalBuilder::ReadDim &) { return 0; };
  op.setPadsLow(replace(op.getPadsLow(), read, none));
  op.setPadsHigh(replace(op.getPadsHigh(), read, none));
}

/// Channels that are summed over: padding of the weight and of the input counts as 0. Those are dim 1 of the input, and
/// `weightDim` of the weight.
static void maskChannels(PartitionContext &context, int64_t weightDim) {
  LocalBuilder build(context);
  const DimFactors &channels = context.rule.operands[1][weightDim];
  if (channels.empty() || !context.rule.isReduction(channels.back()) || context.splits[channels.back()].empty())
    return;
  context.operands[0] = build.maskOperand(context.operands[0], 0, 1, ReduceKind::Sum);
  context.operands[1] = build.maskOperand(context.operands[1], 1, weightDim, ReduceKind::Sum);
}

LogicalResult ConvOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  maskChannels(context, 1);
  auto read = LocalBuilder(context).readWindows(context.builder.getZeroAttr(getInput().getType().getElementType()));
  auto clone = cast<ConvOp>(cloneLocal(*this, context));
  dropPads(clone, read);
  Shape input = getShape(clone.getInput()), weight = getShape(clone.getWeight());
  if (weight[1] > 0)
    clone.setGroups(input[1] / weight[1]);
  results.push_back(clone);
  return success();
}

/// What a rank reads begins with position `low` of the input, which adds to positions of the result from `low * stride -
/// padding` on; what lies in front of its part, or behind it, is cropped.
LogicalResult ConvTransposeOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  maskChannels(context, 0);
  auto read = LocalBuilder(context).readWindows(context.builder.getZeroAttr(getInput().getType().getElementType()));
  auto clone = cast<ConvTransposeOp>(cloneLocal(*this, context));
  Shape weight = getShape(clone.getWeight()), made = context.resultTypes.front().getShape();
  auto getLow = [&](const LocalBuilder::ReadDim &at) {
    return getPadsLow()[at.dim - 2] - at.window.low * getStrides()[at.dim - 2];
  };
  // Positions that are made behind this rank's part; missing ones if negative.
  auto getExcess = [&](const LocalBuilder::ReadDim &at) {
    int64_t span = (weight[at.dim] - 1) * getDilations()[at.dim - 2] + 1;
    int64_t whole = getStrides()[at.dim - 2] * (at.window.high - at.window.low - 1) + span;
    return whole - getLow(at) - made[at.dim];
  };
  clone.setPadsLow(replace(getPadsLow(), read, getLow));
  clone.setPadsHigh(replace(getPadsHigh(), read, [&](auto &at) { return std::max<int64_t>(0, getExcess(at)); }));
  clone.setOutputPads(replace(getOutputPads(), read, [&](auto &at) { return std::max<int64_t>(0, -getExcess(at)); }));
  if (weight[1] > 0)
    clone.setGroups(made[1] / weight[1]);
  results.push_back(clone);
  return success();
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// What never wins a maximum, and adds nothing.
static TypedAttr getPadding(PoolKind kind, Type type) {
  return getIdentity(kind == PoolKind::Max ? ReductionKind::Max : ReductionKind::Sum, type);
}

/// Of each window of this rank along a dim, the share that an average counts: positions of the picture, with its padding if
/// `countPads`. The average of 1 where a position counts and 0 elsewhere; null if all of all windows count on all ranks.
static Value getCounted(LocalBuilder &build, PoolOp op, const LocalBuilder::ReadDim &at) {
  const DimWindow &window = at.window;
  unsigned spatial = at.dim - 2;
  int64_t rank = op.getInput().getType().getRank(), size = window.high - window.low, whole = window.size();
  int64_t first = op.getCountPads() ? -op.getPadsLow()[spatial] : 0;
  int64_t end = op.getCountPads() ? whole + op.getPadsHigh()[spatial] : whole;
  if (window.low >= first && std::min((window.pieces - 1) * window.step + window.high, window.end) <= end)
    return {};
  Type element = op.getInput().getType().getElementType();
  Value positions =
      build.add(build.positions(size, window.low, 1, rank, at.dim), build.shardOffset(at.axes, window.step));
  Value counts = build.both(build.ge(positions, build.position(first)), build.lt(positions, build.position(end)));
  Value mask = build.select(counts, build.scalar(element, 1), build.scalar(element, 0));
  SmallVector<int64_t> ones(rank - 2, 1), zeros(rank - 2, 0), kernel(ones), strides(ones), dilations(ones);
  kernel[spatial] = op.getKernel()[spatial];
  strides[spatial] = op.getStrides()[spatial];
  dilations[spatial] = op.getDilations()[spatial];
  return PoolOp::create(build.context.builder, build.context.loc, PoolKind::Average, mask, kernel, strides, zeros,
                        zeros, dilations, /*countPads=*/true, /*ceil=*/false, /*p=*/2);
}

LogicalResult PoolOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  auto read = build.readWindows(getPadding(getKind(), getInput().getType().getElementType()));
  auto clone = cast<PoolOp>(cloneLocal(*this, context));
  dropPads(clone, read);
  Value result = clone;
  for (const LocalBuilder::ReadDim &at : read)
    if (Value counted = getKind() == PoolKind::Average ? getCounted(build, *this, at) : Value())
      result = build.div(result, counted);
  results.push_back(result);
  return success();
}
