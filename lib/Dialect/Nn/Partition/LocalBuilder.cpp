//===- LocalBuilder.cpp - builds per-device forms -------------------------===//
//
// Thin wrappers around `create` that compute result types: the per-device forms then read like formulas. Positions are
// i64 whatever the op's own indices are, so that a global position fits before it is made local.
//
//===----------------------------------------------------------------------===//
#include "LocalBuilder.h"
#include "../ShardingRules/Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value LocalBuilder::constant(double value, Type elementType) {
  auto type = RankedTensorType::get({}, elementType);
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    APFloat number(value);
    bool losesInfo;
    if (isa<Float8E8M0FNUType>(floatType)) // which has no 0
      number = APFloat(std::max(value, 0x1p-127));
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, number));
  }
  APInt number(elementType.getIntOrFloatBitWidth(), static_cast<uint64_t>(static_cast<int64_t>(value)),
               /*isSigned=*/true, /*implicitTrunc=*/true);
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, number));
}

Value LocalBuilder::position(int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, value));
}

//===----------------------------------------------------------------------===//
// Shapes and types
//===----------------------------------------------------------------------===//

Value LocalBuilder::convert(Value value, Type elementType) {
  if (getElementType(value) == elementType)
    return value;
  return CastOp::create(builder, loc, RankedTensorType::get(getShape(value), elementType), value);
}

Value LocalBuilder::widen(Value value) {
  return getElementType(value).isF64() ? value : convert(value, builder.getF32Type());
}

Value LocalBuilder::reshape(Value value, Shape shape) {
  if (getShape(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, getElementType(value)), value);
}

Value LocalBuilder::broadcast(Value value, Shape shape) {
  if (getShape(value) == shape)
    return value;
  return BroadcastOp::create(builder, loc, RankedTensorType::get(shape, getElementType(value)), value);
}

Value LocalBuilder::reduce(ReduceKind kind, Value value, ArrayRef<int64_t> dims) {
  return ReduceOp::create(builder, loc, kind, value, dims, /*keepDims=*/true);
}

Value LocalBuilder::einsum(Value lhs, Value rhs, StringRef equation) {
  return EinsumOp::create(builder, loc, ValueRange{lhs, rhs}, equation);
}

Value LocalBuilder::slice(Value value, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> sizes(getShape(value)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  starts[dim] = start;
  sizes[dim] = size;
  return SliceOp::create(builder, loc, value, starts, sizes, steps);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Value LocalBuilder::positions(int64_t size, int64_t start, int64_t step, int64_t rank, int64_t dim) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = size;
  return IotaOp::create(builder, loc, RankedTensorType::get(shape, builder.getI64Type()), dim, start, step);
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
  Value index = build.convert(global, positionType);
  Value none = build.position(0);
  index = build.select(build.isLess(index, none), build.add(index, build.position(globalExtent)), index);
  Value relative = build.sub(index, build.shardOffset(axes, localExtent));
  isInside = build.both(build.isAtLeast(relative, none), build.isLess(relative, build.position(localExtent)));
  Value elsewhere = build.position(outside);
  if (places) {
    // What is nowhere must not be taken for what another rank has: it stays what it is, which is out of range here, too.
    Value isKnown = build.both(build.isAtLeast(index, none), build.isLess(index, build.position(globalExtent)));
    bool isOut = *places <= globalExtent;
    elsewhere =
        build.select(isKnown, elsewhere,
                     isOut ? build.convert(global, positionType) : build.position(std::numeric_limits<int64_t>::min()));
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
  bool isMax = kind == ReduceKind::Max;
  if (!isMax && kind != ReduceKind::Min)
    return constant(kind == ReduceKind::Prod ? 1 : 0, elementType);
  auto type = RankedTensorType::get({}, elementType);
  if (auto floatType = dyn_cast<FloatType>(elementType))
    return ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, APFloat::getInf(floatType.getFloatSemantics(), /*Negative=*/isMax)));
  unsigned width = elementType.getIntOrFloatBitWidth();
  bool isUnsigned = elementType.isUnsignedInteger() || width == 1;
  APInt least = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  APInt greatest = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, isMax ? least : greatest));
}

Value LocalBuilder::maskPadding(Value value, int64_t dim, ArrayRef<AxisAttr> axes, int64_t globalExtent, Value fill) {
  if (!context.isPadded(globalExtent, axes))
    return value;
  Shape shape = getShape(value);
  Value positions = globalPositions(axes, shape[dim], static_cast<int64_t>(shape.size()), dim);
  return select(isLess(positions, position(globalExtent)), value, fill);
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
  return context.isPadded(getGlobalExtent(operand, dim), context.getOperandCuts(operand, dim));
}

Value LocalBuilder::maskOperand(Value value, unsigned operand, ArrayRef<int64_t> dims, ReduceKind kind) {
  for (int64_t dim : dims)
    value = maskPadding(value, dim, context.getOperandCuts(operand, dim), getGlobalExtent(operand, dim), kind);
  return value;
}

//===----------------------------------------------------------------------===//
// Across ranks
//===----------------------------------------------------------------------===//

Value LocalBuilder::reduceAcross(ReduceKind kind, Value value, ArrayRef<int64_t> dims, ArrayRef<AxisAttr> axes) {
  return context.allReduce(reduce(kind, value, dims), getReductionKind(kind), axes);
}

/// Dims of an operand are found by their factors: those of slides whose result is cut.
SmallVector<LocalBuilder::ReadDim, 2> LocalBuilder::readWindows(TypedAttr fill, unsigned operand) {
  SmallVector<ReadDim, 2> read;
  // A factor stands in one dim of one operand.
  for (const InnerCost &cost : context.rule.inner)
    for (const SlidingDim &slide : cost.slides)
      for (auto [dim, factors] : llvm::enumerate(context.rule.operands[operand])) {
        if (!llvm::is_contained(factors, slide.input) || context.cuts[slide.result].empty())
          continue;
        SmallVector<AxisAttr> axes = llvm::to_vector(context.cuts[slide.input]);
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
    return ConstantOp::create(builder, loc, whole.resizeSplat(type));
  SmallVector<Attribute> entries(whole.getValues<Attribute>());
  entries.resize(size * pieces, entries.back());
  whole = DenseElementsAttr::get(RankedTensorType::get({size * pieces}, whole.getElementType()), entries);
  Attribute list = builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  return LocalSliceOp::create(builder, loc, type, ConstantOp::create(builder, loc, whole), builder.getArrayAttr(list));
}

Value LocalBuilder::allGather(Value value, int64_t dim, ArrayRef<AxisAttr> axes) {
  SmallVector<int64_t> shape(getShape(value));
  SmallVector<Attribute> dims(shape.size(), builder.getArrayAttr({}));
  dims[dim] = builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  shape[dim] *= context.getExtent(axes);
  auto type = RankedTensorType::get(shape, getElementType(value));
  return AllGatherOp::create(builder, loc, type, value, builder.getArrayAttr(dims), /*cause=*/StringAttr());
}
