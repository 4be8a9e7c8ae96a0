//===- Elementwise.cpp - lowerings of elementwise ops ---------------------===//
//
// One line an op: what it does with one element of each operand. The order of operations is the evaluator's, so that
// what is exact here and there is equal.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "Lowerings.h"

#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;
using E = ElementBuilder;

/// Held types have no sign; the tensor's has.
static bool isUnsigned(Operation *op) { return getElementType(op->getOperand(0)).isUnsignedInteger(); }

/// An op of one operand.
template <typename OpT> static void addUnary(LoweringTable &table, Value (*fn)(E &, Value)) {
  table.addElement<OpT>([fn](E &e, Operation *, ValueRange in) { return fn(e, in[0]); });
}
template <typename OpT> static void addUnary(LoweringTable &table, Value (*fn)(E &, OpT, Value)) {
  table.addElement<OpT>([fn](E &e, Operation *op, ValueRange in) { return fn(e, cast<OpT>(op), in[0]); });
}
/// An op of two operands; `fn` is told whether they are unsigned.
template <typename OpT> static void addBinary(LoweringTable &table, Value (*fn)(E &, Value, Value, bool)) {
  table.addElement<OpT>([fn](E &e, Operation *op, ValueRange in) { return fn(e, in[0], in[1], isUnsigned(op)); });
}
template <typename OpT> static void addCompare(LoweringTable &table, Relation relation) {
  table.addElement<OpT>([relation](E &e, Operation *op, ValueRange in) {
    bool isBool = getElementType(op->getOperand(0)).isInteger(1);
    return e.compare(relation, in[0], in[1], isBool || isUnsigned(op));
  });
}
/// A function that math has an op for.
template <typename OpT, typename MathOp> static void addMath(LoweringTable &table) {
  addUnary<OpT>(table, [](E &e, Value x) { return e.call<MathOp>(x); });
}

/// `x` limited to [0, 1]; NaN stays.
static Value clampToUnit(E &e, Value x) {
  Value zero = e.like(x, 0), one = e.like(x, 1);
  return e.select(e.compare(Relation::Lt, x, zero), zero, e.select(e.compare(Relation::Gt, x, one), one, x));
}

/// With the error function, or in the approximation by tanh (Hendrycks and Gimpel, arXiv:1606.08415).
static Value gelu(E &e, nn::GeluOp op, Value x) {
  Value inner;
  if (op.getTanh()) {
    Value cubic = e.mul(e.mul(e.mul(x, 0.044715), x), x);
    inner = e.tanh(e.mul(e.add(x, cubic), 0.79788456080286535588)); // sqrt(2 / pi)
  } else {
    inner = e.erf(e.mul(x, 0.70710678118654752440));
  }
  return e.mul(x, e.fma(inner, e.like(x, 0.5), e.like(x, 0.5)));
}

/// NaN and zeros of floats stay.
static Value sign(E &e, Value x, bool isUnsigned) {
  Value zero = e.like(x, 0), one = e.like(x, 1);
  Value below = e.isFloat(x) ? e.select(e.compare(Relation::Lt, x, zero), e.like(x, -1), x)
                             : e.select(e.compare(Relation::Lt, x, zero), e.like(x, -1), zero);
  return e.select(e.compare(Relation::Gt, x, zero, isUnsigned), one, isUnsigned ? zero : below);
}

static void registerMath(LoweringTable &table) {
  addUnary<nn::SqrtOp>(table, [](E &e, Value x) { return e.sqrt(x); });
  addUnary<nn::ReciprocalOp>(table, [](E &e, Value x) { return e.reciprocal(x); });
  addUnary<nn::ExpOp>(table, [](E &e, Value x) { return e.exp(x); });
  addUnary<nn::LogOp>(table, [](E &e, Value x) { return e.log(x); });
  addUnary<nn::ErfOp>(table, [](E &e, Value x) { return e.erf(x); });
  addUnary<nn::TanhOp>(table, [](E &e, Value x) { return e.tanh(x); });
  addUnary<nn::FloorOp>(table, [](E &e, Value x) { return e.floor(x); });
  addMath<nn::SinOp, math::SinOp>(table);
  addMath<nn::CosOp, math::CosOp>(table);
  addMath<nn::TanOp, math::TanOp>(table);
  addMath<nn::AsinOp, math::AsinOp>(table);
  addMath<nn::AcosOp, math::AcosOp>(table);
  addMath<nn::AtanOp, math::AtanOp>(table);
  addMath<nn::SinhOp, math::SinhOp>(table);
  addMath<nn::CoshOp, math::CoshOp>(table);
  addMath<nn::AsinhOp, math::AsinhOp>(table);
  addMath<nn::AcoshOp, math::AcoshOp>(table);
  addMath<nn::AtanhOp, math::AtanhOp>(table);
  addMath<nn::CeilOp, math::CeilOp>(table);
  addMath<nn::RoundOp, math::RoundEvenOp>(table);
}

/// Formulas that overflow or lose digits as in textbooks are written so that they do not.
static void registerActivations(LoweringTable &table) {
  table.addElement<nn::ReluOp>([](E &e, Operation *op, ValueRange in) {
    return isUnsigned(op) ? in[0] : e.select(e.compare(Relation::Lt, in[0], 0.0), e.like(in[0], 0), in[0]);
  });
  addUnary<nn::SigmoidOp>(table, [](E &e, Value x) { return e.sigmoid(x); });
  addUnary<nn::SiluOp>(table, [](E &e, Value x) { return e.mul(x, e.sigmoid(x)); });
  addUnary<nn::SoftplusOp>(table, [](E &e, Value x) {
    Value top = e.select(e.compare(Relation::Gt, x, 0.0), x, e.like(x, 0));
    return e.add(top, e.call<math::Log1pOp>(e.exp(e.negate(e.abs(x)))));
  });
  addUnary<nn::HardSwishOp>(
      table, [](E &e, Value x) { return e.mul(x, clampToUnit(e, e.add(e.divide(x, e.like(x, 6), false), 0.5))); });
  addUnary<nn::GeluOp>(table, gelu);
  addUnary<nn::LeakyReluOp>(table, [](E &e, nn::LeakyReluOp op, Value x) {
    return e.select(e.compare(Relation::Lt, x, 0.0), e.mul(x, op.getAlpha().convertToDouble()), x);
  });
  addUnary<nn::EluOp>(table, [](E &e, nn::EluOp op, Value x) {
    Value below = e.mul(e.call<math::ExpM1Op>(x), op.getAlpha().convertToDouble());
    return e.select(e.compare(Relation::Lt, x, 0.0), below, x);
  });
  addUnary<nn::HardSigmoidOp>(table, [](E &e, nn::HardSigmoidOp op, Value x) {
    return clampToUnit(e, e.add(e.mul(x, op.getAlpha().convertToDouble()), op.getBeta().convertToDouble()));
  });
}

static void registerUnary(LoweringTable &table) {
  addUnary<nn::NegOp>(table, [](E &e, Value x) { return e.negate(x); });
  table.addElement<nn::AbsOp>([](E &e, Operation *op, ValueRange in) { return isUnsigned(op) ? in[0] : e.abs(in[0]); });
  table.addElement<nn::SignOp>([](E &e, Operation *op, ValueRange in) { return sign(e, in[0], isUnsigned(op)); });
  addUnary<nn::BitwiseNotOp>(table, [](E &e, Value x) { return e.exclusive(x, e.integer(x.getType(), -1)); });
  addUnary<nn::NotOp>(table, [](E &e, Value x) { return e.compare(Relation::Eq, x, 0.0); });
  addUnary<nn::IsNanOp>(table, [](E &e, Value x) { return e.isNan(x); });
  addUnary<nn::IsInfOp>(table, [](E &e, nn::IsInfOp op, Value x) {
    Value above = e.compare(Relation::Eq, x, op.getPositive() ? INFINITY : NAN);
    return e.either(above, e.compare(Relation::Eq, x, op.getNegative() ? -INFINITY : NAN));
  });
}

static void registerBinary(LoweringTable &table) {
  addBinary<nn::AddOp>(table, [](E &e, Value x, Value y, bool) { return e.add(x, y); });
  addBinary<nn::SubOp>(table, [](E &e, Value x, Value y, bool) { return e.sub(x, y); });
  addBinary<nn::MulOp>(table, [](E &e, Value x, Value y, bool) { return e.mul(x, y); });
  addBinary<nn::DivOp>(table, [](E &e, Value x, Value y, bool u) { return e.divide(x, y, u); });
  addBinary<nn::PowOp>(table, [](E &e, Value x, Value y, bool u) { return e.power(x, y, u); });
  addBinary<nn::MinOp>(table, [](E &e, Value x, Value y, bool u) { return e.extremum(false, x, y, u); });
  addBinary<nn::MaxOp>(table, [](E &e, Value x, Value y, bool u) { return e.extremum(true, x, y, u); });
  addBinary<nn::PreluOp>(table, [](E &e, Value x, Value y, bool u) {
    return u ? x : e.select(e.compare(Relation::Lt, x, 0.0), e.mul(x, y), x);
  });
  addBinary<nn::BitwiseAndOp>(table, [](E &e, Value x, Value y, bool) { return e.both(x, y); });
  addBinary<nn::BitwiseOrOp>(table, [](E &e, Value x, Value y, bool) { return e.either(x, y); });
  addBinary<nn::BitwiseXorOp>(table, [](E &e, Value x, Value y, bool) { return e.exclusive(x, y); });
  addBinary<nn::AndOp>(table, [](E &e, Value x, Value y, bool) { return e.both(x, y); });
  addBinary<nn::OrOp>(table, [](E &e, Value x, Value y, bool) { return e.either(x, y); });
  addBinary<nn::XorOp>(table, [](E &e, Value x, Value y, bool) { return e.exclusive(x, y); });
  addCompare<nn::EqOp>(table, Relation::Eq);
  addCompare<nn::LtOp>(table, Relation::Lt);
  addCompare<nn::LeOp>(table, Relation::Le);
  addCompare<nn::GtOp>(table, Relation::Gt);
  addCompare<nn::GeOp>(table, Relation::Ge);
  table.addElement<nn::ModOp>([](E &e, Operation *op, ValueRange in) {
    return e.modulo(in[0], in[1], cast<nn::ModOp>(op).getTruncated(), isUnsigned(op));
  });
  table.addElement<nn::ShiftOp>([](E &e, Operation *op, ValueRange in) {
    return e.shift(in[0], in[1], cast<nn::ShiftOp>(op).getRight(), isUnsigned(op));
  });
}

void cleave::codegen::registerElementwise(LoweringTable &table) {
  registerMath(table);
  registerActivations(table);
  registerUnary(table);
  registerBinary(table);
  table.addElement<nn::SelectOp>([](E &e, Operation *, ValueRange in) { return e.select(in[0], in[1], in[2]); });
}
