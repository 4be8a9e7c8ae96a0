//===- Normalization.cpp - per-device norms -------------------------------===//
//
// Where normalized dims are cut, each moment is a local sum, all-reduced: first the mean, then the mean of the squared
// distance from it (two passes, as precise as the whole op). In f32 (f64 for f64), converted back at the end.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

namespace {
/// The dims that a norm is over: their numbers, what cuts each, their positions and elements on all ranks.
struct NormDims {
  NormDims(LocalBuilder &build, Value local, int64_t first) {
    for (int64_t dim = first, rank = getShape(local).size(); dim < rank; ++dim)
      add(dim, build.context.getOperandSplits(0, dim), build.getGlobalExtent(0, dim));
  }
  void add(int64_t dim, ArrayRef<AxisAttr> splits, int64_t extent) {
    dims.push_back(dim);
    splitsOfDims.emplace_back(splits);
    llvm::append_range(axes, splits);
    extents.push_back(extent);
    elements *= extent;
  }
  SmallVector<int64_t> dims, extents;
  SmallVector<SmallVector<AxisAttr>> splitsOfDims;
  SmallVector<AxisAttr> axes;
  int64_t elements = 1;
};
} // namespace

/// Over what there is: padding of shards counts as 0.
static Value computeMean(LocalBuilder &build, Value value, const NormDims &over) {
  for (auto [dim, axes, extent] : llvm::zip_equal(over.dims, over.splitsOfDims, over.extents))
    value = build.maskPadding(value, dim, axes, extent, ReduceKind::Sum);
  Value sum = build.reduceAcross(ReduceKind::Sum, value, over.dims, over.axes);
  return build.div(sum, over.elements);
}

/// `value / sqrt(moment + epsilon)`
static Value scaleByMoment(LocalBuilder &build, Value value, Value moment, double epsilon) {
  Value shifted = build.add(moment, epsilon);
  return build.div(value, build.sqrt(shifted));
}

/// Minus the mean, over the root of the mean square of that. Both means are over all ranks that split `over`.
static Value normalize(LocalBuilder &build, Value value, const NormDims &over, double epsilon) {
  Value centered = build.sub(value, computeMean(build, value, over));
  return scaleByMoment(build, centered, computeMean(build, build.mul(centered, centered), over), epsilon);
}

LogicalResult LayerNormOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  Value input = context.operands[0];
  LocalBuilder build(context);
  NormDims over(build, input, getDim());
  if (over.axes.empty())
    return partitionByCloning(*this, context, results);
  Value result = normalize(build, build.widen(input), over, getEpsilon().convertToDouble());
  ValueRange rest = ValueRange(context.operands).drop_front();
  if (getScale())
    result = build.mul(result, build.widen(rest.front()));
  if (getBias())
    result = build.add(result, build.widen(rest.back()));
  results.push_back(build.cast(result, getElementType(input)));
  return success();
}

LogicalResult RmsNormOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  Value input = context.operands[0];
  LocalBuilder build(context);
  NormDims over(build, input, getDim());
  if (over.axes.empty())
    return partitionByCloning(*this, context, results);
  Value wide = build.widen(input);
  Value result =
      scaleByMoment(build, wide, computeMean(build, build.mul(wide, wide), over), getEpsilon().convertToDouble());
  if (getScale())
    result = build.mul(result, build.widen(context.operands[1]));
  results.push_back(build.cast(result, getElementType(input)));
  return success();
}

// Whole groups on each rank: the same op with fewer groups. Cut groups: [batch, group, channel of the group,
// spatial...].
LogicalResult GroupNormOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  Value input = context.operands[0];
  Shape shape = getShape(input);
  ArrayRef<FactorId> channels = context.rule.operands[0][1];
  SmallVector<AxisAttr> groupAxes, channelAxes;
  if (getGroups() > 1) {
    llvm::append_range(groupAxes, context.splits[channels.front()]);
    channels = channels.drop_front();
  }
  for (FactorId factor : channels)
    llvm::append_range(channelAxes, context.splits[factor]);
  int64_t groups = llvm::divideCeil(getGroups(), context.getExtent(groupAxes));
  LocalBuilder build(context);
  NormDims over(build, input, /*first=*/shape.size());
  over.add(2, channelAxes, getInput().getType().getDimSize(1) / getGroups());
  for (unsigned dim = 2; dim < shape.size(); ++dim)
    over.add(dim + 1, context.getOperandSplits(0, dim), build.getGlobalExtent(0, dim));
  if (over.axes.empty()) {
    auto clone = cast<GroupNormOp>(cloneLocal(*this, context));
    clone.setGroups(groups);
    results.push_back(clone);
    return success();
  }
  SmallVector<int64_t> grouped = {shape[0], groups, shape[1] / groups};
  llvm::append_range(grouped, shape.drop_front(2));
  Value wide = build.reshape(build.widen(input), grouped);
  Value result = build.reshape(normalize(build, wide, over, getEpsilon().convertToDouble()), shape);
  SmallVector<int64_t> perChannel(shape.size() - 1, 1);
  perChannel[0] = shape[1];
  result = build.mul(result, build.widen(build.reshape(context.operands[1], perChannel)));
  result = build.add(result, build.widen(build.reshape(context.operands[2], perChannel)));
  results.push_back(build.cast(result, getElementType(input)));
  return success();
}

// With the channels around a rank's own; what these become is dropped. Zeros beyond the first and the last add nothing.
LogicalResult LrnOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  auto read = build.readWindows(context.builder.getZeroAttr(getInput().getType().getElementType()));
  auto clone = cast<LrnOp>(cloneLocal(*this, context));
  clone.getResult().setType(cast<RankedTensorType>(clone.getInput().getType()));
  Value result = clone;
  for (const LocalBuilder::ReadDim &at : read)
    result = build.sliceDim(result, at.dim, -at.window.low, context.resultTypes.front().getDimSize(at.dim));
  results.push_back(result);
  return success();
}
