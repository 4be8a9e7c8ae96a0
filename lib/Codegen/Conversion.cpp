//===- Conversion.cpp - lowerings of cast, quantize, dequantize -----------===//
//
// Casts convert between held types themselves; quantization computes in f32, or f64 where the evaluator does.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Of the operand as it is computed with: f16 and bf16 have become f32.
static Value castElement(ElementBuilder &e, Operation *op, ValueRange in) {
  Type from = getElementType(op->getOperand(0)), to = getElementType(op->getResult(0));
  auto conversion = cast<nn::CastOp>(op);
  if (conversion.getBits())
    return e.takeBits(in[0], to.getIntOrFloatBitWidth());
  if (ElementBuilder::isHalf(from))
    from = ElementBuilder::getComputeType(from);
  if (isa<Float8E8M0FNUType>(to) && from != to)
    return e.toPower(in[0], from, conversion.getRounding(), conversion.getSaturate());
  return conversion.getSaturate() ? e.saturate(in[0], from, to) : e.convert(in[0], from, to);
}

/// Of the operand as it is held, so that what is no number keeps its bits, too.
static Value pullBitcast(Emitter &e, nn::BitcastOp op, const Point &point) {
  Value x = e.eval(op.getInput(), point);
  Type from = ElementBuilder::getHeldType(getElementType(op.getInput()));
  Type to = ElementBuilder::getHeldType(getElementType(op.getResult()));
  if (from == to)
    return x;
  if (to.isInteger(1))
    return e.elements.compare(ElementBuilder::Relation::Ne, e.elements.bitcast(x, e.b.getI8Type()), 0.0);
  if (from.isInteger(1))
    x = arith::ExtUIOp::create(e.b, e.loc, ElementBuilder::typeLike(x, e.b.getI8Type()), x);
  return e.elements.bitcast(x, to);
}

/// Elements for blocks along `dim`, at a point of the whole. Lanes that may lie in several blocks go one by one.
static Value pullBlocks(Emitter &e, Value blocks, int64_t dim, int64_t block, const Point &point) {
  auto locate = [&](const Point &of) {
    Point at = of;
    at[dim] = {e.places.div(of[dim].base, block)};
    return at;
  };
  int64_t lanes = e.getLanes();
  const Index &index = point[dim];
  bool isInOne =
      index.lane == 0 || (index.lane == 1 && block % lanes == 0 && PlaceBuilder::getDivisor(index.base) % lanes == 0);
  if (isInOne)
    return e.eval(blocks, locate(point));
  return e.perLane(ElementBuilder::getHeldType(getElementType(blocks)), point,
                   [&](const Point &at) { return e.eval(blocks, locate(at)); });
}

/// A scale or zero point of `op`, at a point of the whole, in type `as`.
template <typename Op> static Value pullAlong(Emitter &e, Op op, Value scale, const Point &point, Type as) {
  int64_t dim = op.getDim();
  if (op.getBlock())
    return e.elements.convert(pullBlocks(e, scale, dim, op.getBlock(), point), getElementType(scale), as);
  Point at;
  if (!getShape(scale).empty())
    at.push_back(getShape(scale)[0] == 1 ? Index{e.places.number(0)} : point[dim]);
  return e.elements.convert(e.eval(scale, at), getElementType(scale), as);
}

/// Divided in f32 where the input is that or narrower, as models were calibrated; the sum with the zero point is exact in f64.
static Value pullQuantize(Emitter &e, nn::QuantizeOp op, const Point &point) {
  Type from = getElementType(op.getInput()), to = getElementType(op.getResult()), f64 = e.b.getF64Type();
  Type compute = isa<FloatType>(from) && !from.isF64() ? Type(e.b.getF32Type()) : f64;
  Value x = e.elements.convert(e.eval(op.getInput(), point), from, compute);
  Value scaled = e.elements.divide(x, pullAlong(e, op, op.getScale(), point, compute), false);
  Value steps = isa<FloatType>(to) ? scaled : e.elements.call<math::RoundEvenOp>(scaled);
  Value rounded = e.elements.convert(steps, compute, f64);
  if (op.getZeroPoint())
    rounded = e.elements.add(rounded, pullAlong(e, op, op.getZeroPoint(), point, f64));
  return op.getOverflow() ? e.elements.convert(rounded, f64, to) : e.elements.saturate(rounded, f64, to);
}

/// Differences of integers are exact in f64; one rounding to the compute type, one by the product.
static Value pullDequantize(Emitter &e, nn::DequantizeOp op, const Point &point) {
  Type from = getElementType(op.getInput()), to = getElementType(op.getResult()), f64 = e.b.getF64Type();
  Type compute = ElementBuilder::getComputeType(to);
  Value x = e.elements.convert(e.eval(op.getInput(), point), from, f64);
  if (op.getZeroPoint())
    x = e.elements.sub(x, pullAlong(e, op, op.getZeroPoint(), point, f64));
  x = e.elements.convert(x, f64, compute);
  return e.elements.narrow(e.elements.mul(x, pullAlong(e, op, op.getScale(), point, compute)), to);
}

void cleave::codegen::registerConversion(LoweringTable &table) {
  table.addElement<nn::CastOp>(castElement);
  table.addPull<nn::BitcastOp>(pullBitcast);
  table.addPull<nn::QuantizeOp>(pullQuantize);
  table.addPull<nn::DequantizeOp>(pullDequantize);
}
