//===- Conversion.cpp - forms of cast, quantize, dequantize ---------------===//
//
// Casts convert between held types themselves; quantisation computes in f32, or f64 where the evaluator does.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Of the operand as it is computed with: f16 and bf16 have become f32.
static Value castElement(ElementBuilder &e, Operation *op, ValueRange in) {
  Type from = getElement(op->getOperand(0)), to = getElement(op->getResult(0));
  if (isa<FloatType>(from))
    from = ElementBuilder::getComputeType(from);
  return cast<nn::CastOp>(op).getSaturate() ? e.saturate(in[0], from, to) : e.convert(in[0], from, to);
}

/// A scalar, or a vector along `dim`, at a point of the whole, in type `as`.
static Value pullAlong(Emitter &e, Value vector, int64_t dim, const Point &point, Type as) {
  Point at;
  if (!getShape(vector).empty())
    at.push_back(getShape(vector)[0] == 1 ? Index{e.places.number(0)} : point[dim]);
  return e.elements.convert(e.eval(vector, at), getElement(vector), as);
}

/// Divided in f32 where the input is that or narrower, as models were calibrated; the sum with the zero point is exact in f64.
static Value pullQuantize(Emitter &e, nn::QuantizeOp op, const Point &point) {
  Type from = getElement(op.getInput()), to = getElement(op.getResult()), f64 = e.b.getF64Type();
  Type compute = isa<FloatType>(from) && !from.isF64() ? Type(e.b.getF32Type()) : f64;
  Value x = e.elements.convert(e.eval(op.getInput(), point), from, compute);
  Value scaled = e.elements.divide(x, pullAlong(e, op.getScale(), op.getDim(), point, compute), false);
  Value rounded = e.elements.convert(e.elements.call<math::RoundEvenOp>(scaled), compute, f64);
  if (op.getZeroPoint())
    rounded = e.elements.add(rounded, pullAlong(e, op.getZeroPoint(), op.getDim(), point, f64));
  return e.elements.saturate(rounded, f64, to);
}

/// Differences of integers are exact in f64; one rounding to the compute type, one by the product.
static Value pullDequantize(Emitter &e, nn::DequantizeOp op, const Point &point) {
  Type from = getElement(op.getInput()), to = getElement(op.getResult()), f64 = e.b.getF64Type();
  Type compute = ElementBuilder::getComputeType(to);
  Value x = e.elements.convert(e.eval(op.getInput(), point), from, f64);
  if (op.getZeroPoint())
    x = e.elements.sub(x, pullAlong(e, op.getZeroPoint(), op.getDim(), point, f64));
  x = e.elements.convert(x, f64, compute);
  return e.elements.narrow(e.elements.mul(x, pullAlong(e, op.getScale(), op.getDim(), point, compute)), to);
}

void cleave::codegen::registerConversion(FormTable &table) {
  table.addElement<nn::CastOp>(castElement);
  table.addPull<nn::QuantizeOp>(pullQuantize);
  table.addPull<nn::DequantizeOp>(pullDequantize);
}
