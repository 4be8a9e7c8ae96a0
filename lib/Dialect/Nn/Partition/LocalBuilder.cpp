//===- LocalBuilder.cpp - builds per-device forms -------------------------===//
//
// Per-device forms read like formulas (Composer.h). Positions are i64 whatever the op's own indices are, so that a global position fits
// before it is made local.
//
//===----------------------------------------------------------------------===//
#include "LocalBuilder.h"
#include "../ShardingRules/Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Value LocalBuilder::positions(int64_t size, int64_t start, int64_t step, int64_t rank, int64_t dim) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = size;
  return iota(shape, dim, i64(), start, step);
}

Value LocalBuilder::shardOffset(ArrayRef<AxisAttr> axes, int64_t localExtent) {
  if (axes.empty())
    return position(0);
  return mul(context.axisIndex(axes), position(localExtent));
}

Value LocalBuilder::globalPositions(ArrayRef<AxisAttr> axes, int64_t localExtent, int64_t rank, int64_t dim) {
  Value local = positions(localExtent, 0, 1, rank, dim);
  return axes.empty() ? local : add(local, shardOffset(axes, localExtent));
}

LocalIndices::LocalIndices(LocalBuilder &build, Value global, int64_t globalExtent, int64_t localExtent,
                           ArrayRef<AxisAttr> axes, int64_t outside, std::optional<int64_t> places) {
  Type positionType = build.context.builder.getI64Type();
  Value index = build.cast(global, positionType);
  Value none = build.position(0);
  index = build.select(build.lt(index, none), build.add(index, build.position(globalExtent)), index);
  Value relative = build.sub(index, build.shardOffset(axes, localExtent));
  isInside = build.both(build.ge(relative, none), build.lt(relative, build.position(localExtent)));
  Value elsewhere = build.position(outside);
  if (places) {
    // What is nowhere must not be taken for what another rank has: it stays what it is, which is out of range here, too.
    Value isKnown = build.both(build.ge(index, none), build.lt(index, build.position(globalExtent)));
    bool isOut = *places <= globalExtent;
    elsewhere =
        build.select(isKnown, elsewhere,
                     isOut ? build.cast(global, positionType) : build.position(std::numeric_limits<int64_t>::min()));
    // Beyond the end of the dim there may be padding.
    if (localExtent * build.context.getExtent(axes) != globalExtent)
      isInside = build.both(isInside, isKnown);
  }
  indices = build.select(isInside, relative, elsewhere);
}

//===----------------------------------------------------------------------===//
// Padding of shards
//===----------------------------------------------------------------------===//

Value LocalBuilder::identity(ReduceKind kind, Type elementType) {
  return Composer::identity(getReductionKind(kind), elementType);
}

Value LocalBuilder::maskPadding(Value value, int64_t dim, ArrayRef<AxisAttr> axes, int64_t globalExtent, Value fill) {
  if (!context.isPadded(globalExtent, axes))
    return value;
  Shape shape = getShape(value);
  Value positions = globalPositions(axes, shape[dim], static_cast<int64_t>(shape.size()), dim);
  return select(lt(positions, position(globalExtent)), value, fill);
}

Value LocalBuilder::maskPadding(Value value, int64_t dim, ArrayRef<AxisAttr> axes, int64_t globalExtent,
                                ReduceKind kind) {
  if (!context.isPadded(globalExtent, axes))
    return value;
  return maskPadding(value, dim, axes, globalExtent, identity(kind, getElementType(value)));
}

int64_t LocalBuilder::getGlobalExtent(unsigned operand, int64_t dim) const {
  int64_t extent = 1;
  for (FactorId factor : context.rule.operands[operand][dim])
    extent *= context.rule.factorSizes[factor];
  return extent;
}

bool LocalBuilder::isPadded(unsigned operand, int64_t dim) const {
  return context.isPadded(getGlobalExtent(operand, dim), context.getOperandSplits(operand, dim));
}

Value LocalBuilder::maskOperand(Value value, unsigned operand, ArrayRef<int64_t> dims, ReduceKind kind) {
  for (int64_t dim : dims)
    value = maskPadding(value, dim, context.getOperandSplits(operand, dim), getGlobalExtent(operand, dim), kind);
  return value;
}

//===----------------------------------------------------------------------===//
// Across ranks
//===----------------------------------------------------------------------===//

Value LocalBuilder::reduceAcross(ReduceKind kind, Value value, ArrayRef<int64_t> dims, ArrayRef<AxisAttr> axes) {
  return context.allReduce(reduce(kind, value, dims, /*keepDims=*/true), getReductionKind(kind), axes);
}

/// Dims of an operand are found by their factors: those of slides whose result is cut.
SmallVector<LocalBuilder::ReadDim, 2> LocalBuilder::readWindows(TypedAttr fill, unsigned operand) {
  SmallVector<ReadDim, 2> read;
  // A factor stands in one dim of one operand.
  for (const InnerCost &cost : context.rule.inner)
    for (const SlidingDim &slide : cost.slides)
      for (auto [dim, factors] : llvm::enumerate(context.rule.operands[operand])) {
        if (!llvm::is_contained(factors, slide.input) || context.splits[slide.result].empty())
          continue;
        SmallVector<AxisAttr> axes = llvm::to_vector(context.splits[slide.input]);
        std::optional<DimWindow> window = slide.getWindow(
            context.rule.factorSizes[slide.input], context.rule.factorSizes[slide.result], context.getExtent(axes));
        read.push_back({unsigned(dim), axes, *window});
      }
  if (!read.empty())
    context.operands[operand] = window(context.operands[operand], read, fill);
  return read;
}

/// Dims that nobody reads otherwise are wanted as they are: an interval of all of them, at no distance from rank to rank. Of dims
/// that divide nothing more is said, so that programs without uneven shards are what they were.
Value LocalBuilder::window(Value input, ArrayRef<ReadDim> read, TypedAttr fill) {
  SmallVector<int64_t> shape(getShape(input)), steps(shape.size(), 0), lows(shape.size(), 0), highs(shape);
  SmallVector<int64_t> missing(shape.size(), 0), firsts(missing), ends(missing), takers(missing);
  SmallVector<Attribute> dims(shape.size(), builder.getArrayAttr({}));
  bool wraps = false, reflects = false, isUneven = false;
  for (const auto &[dim, axes, window] : read) {
    dims[dim] = builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
    steps[dim] = window.step;
    lows[dim] = window.low;
    highs[dim] = window.high;
    shape[dim] = window.high - window.low;
    wraps |= window.beyond == Beyond::Wrap;
    reflects |= window.beyond == Beyond::Reflect;
    // What is needed is said of all dims, and is all of it where shards divide.
    missing[dim] = window.missing;
    firsts[dim] = std::max(window.first, window.low + std::min<int64_t>((window.pieces - 1) * window.step, 0));
    ends[dim] = std::min(window.end, window.high + std::max<int64_t>((window.pieces - 1) * window.step, 0));
    takers[dim] = std::min(window.takers, window.pieces);
    isUneven |= window.end != DimWindow{}.end;
  }
  auto type = RankedTensorType::get(shape, getElementType(input));
  auto list = [&](ArrayRef<int64_t> numbers) { return isUneven ? builder.getDenseI64ArrayAttr(numbers) : nullptr; };
  return builder.createOrFold<WindowOp>(loc, type, input, builder.getArrayAttr(dims), steps, lows, highs, fill, wraps,
                                        reflects, /*cause=*/StringAttr(), list(missing), list(firsts), list(ends),
                                        list(takers));
}

/// Where the positions do not divide, the last entries stand for padding, and are any.
Value LocalBuilder::ownPart(DenseElementsAttr whole, ArrayRef<AxisAttr> axes) {
  int64_t pieces = context.getExtent(axes), size = llvm::divideCeil(whole.getNumElements(), pieces);
  auto type = RankedTensorType::get({size}, whole.getElementType());
  if (whole.isSplat())
    return literal(whole.resizeSplat(type));
  SmallVector<Attribute> entries(whole.getValues<Attribute>());
  entries.resize(size * pieces, entries.back());
  whole = DenseElementsAttr::get(RankedTensorType::get({size * pieces}, whole.getElementType()), entries);
  Attribute list = builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  return LocalSliceOp::create(builder, loc, type, literal(whole), builder.getArrayAttr(list));
}

Value LocalBuilder::allGather(Value value, int64_t dim, ArrayRef<AxisAttr> axes) {
  SmallVector<int64_t> shape(getShape(value));
  SmallVector<Attribute> dims(shape.size(), builder.getArrayAttr({}));
  dims[dim] = builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  shape[dim] *= context.getExtent(axes);
  auto type = RankedTensorType::get(shape, getElementType(value));
  return AllGatherOp::create(builder, loc, type, value, builder.getArrayAttr(dims), /*cause=*/StringAttr());
}
