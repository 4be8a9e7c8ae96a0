//===- Convolution.cpp - lowerings of convolutions and pools --------------===//
//
// The fallback: each element of the result walks its window. A kernel element outside the input reads one inside, and
// its contribution is left out by a select, so that no load is out of bounds.
//
//===----------------------------------------------------------------------===//
#include "Device/Templates.h"
#include "Host/ConvolutionTile.h"
#include "Host/PoolTile.h"

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {
/// A place that may lie outside of its dim.
struct Spot {
  Value place;    ///< clamped
  Value isInside; ///< i1; none: always
};
} // namespace

static Value both(Emitter &e, Value x, Value y) { return !x ? y : !y ? x : e.elements.both(x, y); }

/// Window `window` of a dim, at kernel element `tap`.
static Spot findSpot(Emitter &e, Value window, Value tap, int64_t stride, int64_t pad, int64_t dilation, int64_t extent,
                     bool alwaysInside) {
  PlaceBuilder &p = e.places;
  Value place = p.add(p.add(p.mul(window, stride), p.mul(tap, dilation)), -pad);
  if (alwaysInside)
    return {place, {}};
  Value isInside = e.elements.both(p.isLess(p.number(-1), place), p.isLess(place, extent));
  return {p.clamp(place, 0, extent - 1), isInside};
}

/// `value` where it counts, else nothing (0).
static Value orZero(Emitter &e, Value isInside, Value value) {
  if (!isInside)
    return value;
  return arith::SelectOp::create(e.b, e.loc, isInside, value, e.elements.number(value.getType(), 0));
}

/// The bias of a channel added, and rounded.
static Value finish(Emitter &e, Value sum, Value bias, const Point &point, Type element) {
  if (bias)
    sum = e.elements.add(sum, e.elements.widen(e.eval(bias, {point[1]})));
  return e.elements.narrow(sum, ElementBuilder::getHeldType(element));
}

/// Taps are walked in the order of the weight: channel, then kernel. Integers wrap.
static Value computeConv(Emitter &e, nn::ConvOp op, const Point &point) {
  ArrayRef<int64_t> from = getShape(op.getInput()), weight = getShape(op.getWeight());
  PlaceBuilder &p = e.places;
  Type element = getElementType(op.getResult()), compute = ElementBuilder::getComputeType(element);
  Value group = p.div(point[1].base, weight[0] / op.getGroups());
  Values sum = e.walk(weight.drop_front(), {e.elements.number(compute, 0)}, [&](ArrayRef<Value> taps, Values carried) {
    Point at{point[0], {p.add(p.mul(group, weight[1]), taps[0])}}, in{point[1], {taps[0]}};
    Value isInside;
    for (size_t dim = 2; dim < from.size(); ++dim) {
      size_t s = dim - 2;
      bool isPadded = op.getPadsLow()[s] != 0 || op.getPadsHigh()[s] != 0;
      Spot spot = findSpot(e, point[dim].base, taps[s + 1], op.getStrides()[s], op.getPadsLow()[s],
                           op.getDilations()[s], from[dim], !isPadded);
      at.push_back({spot.place});
      in.push_back({taps[s + 1]});
      isInside = both(e, isInside, spot.isInside);
    }
    Value x = orZero(e, isInside, e.elements.widen(e.eval(op.getInput(), at)));
    return Values{e.elements.fma(x, e.elements.widen(e.eval(op.getWeight(), in)), carried[0])};
  });
  return finish(e, sum[0], op.getBias(), point, element);
}

/// The window that tap `tap` of a transposed convolution brings to `place`: there is one where it is a multiple of the
/// stride.
static Spot findSource(Emitter &e, Value place, Value tap, int64_t stride, int64_t pad, int64_t dilation,
                       int64_t extent) {
  PlaceBuilder &p = e.places;
  Value shifted = p.add(p.add(place, pad), p.mul(p.mul(tap, dilation), -1));
  Value safe = arith::MaxSIOp::create(e.b, e.loc, shifted, p.number(0)), window = p.div(safe, stride);
  Value isFull = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, p.rem(safe, stride), p.number(0));
  Value isIn = e.elements.both(p.isLess(p.number(-1), shifted), p.isLess(window, extent));
  return {p.clamp(window, 0, extent - 1), e.elements.both(isFull, isIn)};
}

/// Gathers what the evaluator scatters: of each tap the one window that would bring something here.
static Value computeConvTranspose(Emitter &e, nn::ConvTransposeOp op, const Point &point) {
  ArrayRef<int64_t> from = getShape(op.getInput()), weight = getShape(op.getWeight());
  PlaceBuilder &p = e.places;
  Type element = getElementType(op.getResult()), compute = ElementBuilder::getComputeType(element);
  int64_t channels = weight[0] / int64_t(op.getGroups());
  Value group = p.div(point[1].base, weight[1]), output = p.rem(point[1].base, weight[1]);
  SmallVector<int64_t> extents(weight.drop_front());
  extents[0] = channels;
  Values sum = e.walk(extents, {e.elements.number(compute, 0)}, [&](ArrayRef<Value> taps, Values carried) {
    Value channel = p.add(p.mul(group, channels), taps[0]);
    Point at{point[0], {channel}}, in{{channel}, {output}};
    Value isInside;
    for (size_t dim = 2; dim < from.size(); ++dim) {
      size_t s = dim - 2;
      Spot spot = findSource(e, point[dim].base, taps[s + 1], op.getStrides()[s], op.getPadsLow()[s],
                             op.getDilations()[s], from[dim]);
      at.push_back({spot.place});
      in.push_back({taps[s + 1]});
      isInside = both(e, isInside, spot.isInside);
    }
    Value x = orZero(e, isInside, e.elements.widen(e.eval(op.getInput(), at)));
    return Values{e.elements.fma(x, e.elements.widen(e.eval(op.getWeight(), in)), carried[0])};
  });
  return finish(e, sum[0], op.getBias(), point, element);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// What an element contributes to a pool, and what nothing does.
static Value liftPool(Emitter &e, nn::PoolOp op, Value x, Type carried) {
  if (op.getKind() == nn::PoolKind::Max)
    return e.elements.widen(x);
  x = e.elements.convert(x, getElementType(op.getInput()), carried);
  if (op.getKind() == nn::PoolKind::Lp)
    return e.elements.power(e.elements.abs(x), e.elements.like(x, double(op.getP())), false);
  return x;
}

/// What padding counts as in a maximum.
static Value getLowest(Emitter &e, Type element) {
  Type type = ElementBuilder::getComputeType(element);
  if (isa<FloatType>(element))
    return e.elements.number(type, -INFINITY);
  bool isUnsigned = element.isUnsignedInteger();
  return e.elements.integer(type, isUnsigned ? 0 : int64_t(~uint64_t(0) << (element.getIntOrFloatBitWidth() - 1)));
}

/// The result of a window, given what it adds up to and how many elements count.
static Value finishPool(Emitter &e, nn::PoolOp op, Value sum, Value counted) {
  Type element = getElementType(op.getResult()), carried = getElementTypeOrSelf(sum);
  if (op.getKind() == nn::PoolKind::Max)
    return e.elements.narrow(sum, ElementBuilder::getHeldType(element));
  if (op.getKind() == nn::PoolKind::Average)
    sum = e.elements.divide(sum, e.elements.convert(e.splat(counted), e.b.getI64Type(), carried), false);
  else
    sum = e.elements.power(sum, e.elements.like(sum, 1.0 / double(op.getP())), false);
  return e.elements.convert(sum, carried, element);
}

/// Sums are f64, as the evaluator's, so that averages of integers come out alike; an element outside leaves what is carried
/// as it is. Lanes have one window.
static Value computePool(Emitter &e, nn::PoolOp op, const Point &point) {
  ArrayRef<int64_t> from = getShape(op.getInput());
  PlaceBuilder &p = e.places;
  Type element = getElementType(op.getInput()), i64 = e.b.getI64Type();
  bool isMax = op.getKind() == nn::PoolKind::Max;
  Type carried = isMax ? ElementBuilder::getComputeType(element) : Type(e.b.getF64Type());
  Value lowest = isMax ? getLowest(e, element) : e.elements.number(carried, 0);
  Value zero = e.elements.integer(i64, 0), one = e.elements.integer(i64, 1);
  Values sum = e.walk(op.getKernel(), {e.splat(lowest), zero}, [&](ArrayRef<Value> taps, Values carry) {
    Point at{point[0], point[1]};
    Value isInside, isCounted;
    for (size_t dim = 2; dim < from.size(); ++dim) {
      size_t s = dim - 2;
      int64_t stride = op.getStrides()[s], pad = op.getPadsLow()[s], dilation = op.getDilations()[s];
      Spot spot = findSpot(e, point[dim].base, taps[s], stride, pad, dilation, from[dim], false);
      at.push_back({spot.place});
      isInside = both(e, isInside, spot.isInside);
      Value place = p.add(p.mul(point[dim].base, stride), p.mul(taps[s], dilation));
      isCounted = both(e, isCounted, p.isLess(place, from[dim] + pad + op.getPadsHigh()[s]));
    }
    Value x = liftPool(e, op, e.eval(op.getInput(), at), carried);
    Value with =
        isMax ? e.elements.extremum(true, carry[0], x, element.isUnsignedInteger()) : e.elements.add(carry[0], x);
    Value counts = op.getCountPads() ? isCounted : isInside;
    return Values{e.elements.select(isInside, with, carry[0]),
                  e.elements.add(carry[1], e.elements.select(counts, one, zero))};
  });
  return finishPool(e, op, sum[0], sum[1]);
}

/// Element by element: windows of neighboring lanes leave the input at different taps.
template <typename OpT> static auto each(Value (*compute)(Emitter &, OpT, const Point &)) {
  return [compute](Emitter &e, OpT op, ValueRange buffers) {
    ArrayRef<int64_t> shape = getShape(op.getResult());
    e.overAll(shape, [&](const Point &point) {
      e.store(buffers[0], compute(e, op, point), e.places.linearize(point, shape));
    });
  };
}

/// Likewise as a pull, for threads.
template <typename OpT> static auto single(Value (*compute)(Emitter &, OpT, const Point &)) {
  return [compute](Emitter &e, OpT op, const Point &point) {
    Type held = ElementBuilder::getHeldType(getElementType(op.getResult()));
    return e.perLane(held, point, [&](const Point &at) { return compute(e, op, at); });
  };
}

/// With channels last lanes are channels of one window; powers have no vectors.
static Value pullPool(Emitter &e, nn::PoolOp op, const Point &point) {
  bool areChannels = isUniform(Point(point.begin() + 2, point.end())) && op.getKind() != nn::PoolKind::Lp;
  return areChannels ? computePool(e, op, point) : single(computePool)(e, op, point);
}

void cleave::codegen::registerConvolution(LoweringTable &table) {
  table.addFill<nn::ConvOp>(each(computeConv));
  table.addPull<nn::ConvOp>(single(computeConv));
  table.addPull<nn::ConvTransposeOp>(single(computeConvTranspose));
  table.addPull<nn::PoolOp>(pullPool);
  table.addTile<nn::ConvOp>(
      {[](Operation *op) { return canTileConvolution(cast<nn::ConvOp>(op)); },
       [](Emitter &e, Operation *op, TileSink sink) { runConvolution(e, cast<nn::ConvOp>(op), sink); }});
  table.addDeviceTile<nn::ConvOp>(
      {[](Operation *op) { return canRunDeviceConvolution(cast<nn::ConvOp>(op)); },
       [](Emitter &e, Operation *op, TileSink sink) { runDeviceConvolution(e, cast<nn::ConvOp>(op), sink); }});
  table.addFill<nn::ConvTransposeOp>(each(computeConvTranspose));
  table.addFill<nn::PoolOp>(each(computePool));
  table.addTile<nn::PoolOp>({[](Operation *op) { return canTilePool(cast<nn::PoolOp>(op)); },
                             [](Emitter &e, Operation *op, TileSink sink) { runPool(e, cast<nn::PoolOp>(op), sink); }});
}
