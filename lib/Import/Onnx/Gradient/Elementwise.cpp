//===- Elementwise.cpp - derivatives of elementwise ops -------------------===//
//
// `x` is the operand, `y` the result, `g` its gradient; formulas are those of calculus. Where a function has a kink, or is flat:
//
//   relu, abs, leaky_relu, elu, prelu, hard_*   the slope of the side that the op's own definition counts the kink to; abs has 0
//   max, min                                    of equal elements half to each
//   sign, floor, ceil, round                    nothing
//   pow                                         0 by the exponent where x is 0, as there is no logarithm
//
//===----------------------------------------------------------------------===//
#include "Gradient.h"

#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// The slopes of functions of one variable that have one without attributes; null for others.
static Value getSlope(Derivative &d, Operation *op, Value x, Value y) {
  nn::Composer &f = d.f;
  Value one = d.node.scalarLike(x, 1);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::AbsOp) { return d.node.create<nn::SignOp>(x); })
      .Case([&](nn::SqrtOp) { return f.div(one, f.mul(y, 2)); })
      .Case([&](nn::ReciprocalOp) { return f.neg(f.square(y)); })
      .Case([&](nn::ExpOp) { return y; })
      .Case([&](nn::LogOp) { return f.div(one, x); })
      .Case([&](nn::ErfOp) { return f.mul(f.exp(f.neg(f.square(x))), 2 / std::sqrt(M_PI)); })
      .Case([&](nn::SinOp) { return f.cos(x); })
      .Case([&](nn::CosOp) { return f.neg(d.node.create<nn::SinOp>(x)); })
      .Case([&](nn::TanOp) { return f.add(f.square(y), 1); })
      .Case([&](nn::AsinOp) { return f.div(one, f.sqrt(f.sub(1, f.square(x)))); })
      .Case([&](nn::AcosOp) { return f.neg(f.div(one, f.sqrt(f.sub(1, f.square(x))))); })
      .Case([&](nn::AtanOp) { return f.div(one, f.add(f.square(x), 1)); })
      .Case([&](nn::SinhOp) { return d.node.create<nn::CoshOp>(x); })
      .Case([&](nn::CoshOp) { return d.node.create<nn::SinhOp>(x); })
      .Case([&](nn::TanhOp) { return f.sub(1, f.square(y)); })
      .Case([&](nn::AsinhOp) { return f.div(one, f.sqrt(f.add(f.square(x), 1))); })
      .Case([&](nn::AcoshOp) { return f.div(one, f.sqrt(f.sub(f.square(x), 1))); })
      .Case([&](nn::AtanhOp) { return f.div(one, f.sub(1, f.square(x))); })
      .Case([&](nn::SigmoidOp) { return f.mul(y, f.sub(1, y)); })
      .Case([&](nn::SiluOp) {
        Value s = f.sigmoid(x);
        return f.add(s, f.mul(y, f.sub(1, s)));
      })
      .Case([&](nn::SoftplusOp) { return f.sigmoid(x); })
      .Default(Value());
}

/// gelu(x) = x Phi(x), with slope Phi(x) + x phi(x), or the derivative of its tanh form, `x (1 + t) / 2` with t = tanh(u).
static Value getGeluSlope(Derivative &d, nn::GeluOp gelu, Value x) {
  nn::Composer &f = d.f;
  if (!gelu.getTanh()) {
    Value density = f.mul(f.exp(f.mul(f.square(x), -0.5)), 1 / std::sqrt(2 * M_PI));
    Value share = f.mul(f.add(d.node.create<nn::ErfOp>(f.mul(x, std::sqrt(0.5))), 1), 0.5);
    return f.add(share, f.mul(x, density));
  }
  const double a = std::sqrt(2 / M_PI), b = 0.044715;
  Value square = f.square(x), t = f.tanh(f.mul(f.mul(x, f.add(f.mul(square, b), 1)), a));
  Value inner = f.mul(f.add(f.mul(square, 3 * b), 1), a);
  return f.mul(f.add(f.add(t, 1), f.mul(f.mul(x, f.sub(1, f.square(t))), inner)), 0.5);
}

/// Functions that are put together of pieces: the gradient of x.
static Value bend(Derivative &d, Operation *op, Value x, Value y, Value g) {
  nn::Composer &f = d.f;
  Value zero = d.node.scalarLike(x, 0);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](nn::ReluOp) { return f.select(f.gt(x, 0), g, zero); })
      .Case([&](nn::LeakyReluOp relu) { return f.select(f.gt(x, 0), g, f.mul(g, relu.getAlpha().convertToDouble())); })
      .Case(
          [&](nn::EluOp elu) { return f.select(f.gt(x, 0), g, f.mul(g, f.add(y, elu.getAlpha().convertToDouble()))); })
      .Case([&](nn::HardSigmoidOp hard) {
        Value isInside = f.both(f.gt(y, 0), f.lt(y, 1));
        return f.select(isInside, f.mul(g, hard.getAlpha().convertToDouble()), zero);
      })
      .Case([&](nn::HardSwishOp) {
        Value middle = f.mul(g, f.div(f.add(f.mul(x, 2), 3), 6));
        return f.select(f.le(x, -3), zero, f.select(f.ge(x, 3), g, middle));
      })
      .Default(Value());
}

/// x ^ y; where the exponent is 0, so is the slope, though x ^ -1 may be infinite.
static void differentiatePow(Derivative &d, Value x, Value y) {
  nn::Composer &f = d.f;
  Value g = d.gradient();
  if (d.wants(x)) {
    Value slope = f.mul(y, f.pow(x, f.sub(y, 1)));
    d.give(x, f.mul(g, f.select(f.eq(y, 0), d.node.scalarLike(x, 0), slope)));
  }
  if (d.wants(y))
    d.give(y, f.mul(g, f.select(f.eq(x, 0), d.node.scalarLike(x, 0), f.mul(d.result(), f.log(x)))));
}

/// The larger one takes all. `wins` is gt for max, lt for min.
template <typename WinsOp> static void differentiateChoice(Derivative &d, Value x, Value y) {
  nn::Composer &f = d.f;
  Value g = d.gradient(), half = f.select(f.eq(x, y), f.mul(g, 0.5), d.node.scalarLike(g, 0));
  d.give(x, f.select(d.node.create<WinsOp>(x, y), g, half));
  d.give(y, f.select(d.node.create<WinsOp>(y, x), g, half));
}

static bool differentiateBinary(Derivative &d, Operation *op) {
  if (op->getNumOperands() != 2)
    return false;
  nn::Composer &f = d.f;
  Value g = d.gradient(), x = d.operand(0), y = d.operand(1);
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::AddOp) { return d.give(x, g), d.give(y, g), true; })
      .Case([&](nn::SubOp) { return d.give(x, g), d.give(y, d.wants(y) ? f.neg(g) : g), true; })
      .Case([&](nn::MulOp) {
        if (d.wants(x))
          d.give(x, f.mul(g, y));
        if (d.wants(y))
          d.give(y, f.mul(g, x));
        return true;
      })
      .Case([&](nn::DivOp) {
        Value share = f.div(g, y);
        d.give(x, share);
        if (d.wants(y))
          d.give(y, f.neg(f.mul(share, d.result())));
        return true;
      })
      .Case([&](nn::PowOp) { return differentiatePow(d, x, y), true; })
      .Case([&](nn::MaxOp) { return differentiateChoice<nn::GtOp>(d, x, y), true; })
      .Case([&](nn::MinOp) { return differentiateChoice<nn::LtOp>(d, x, y), true; })
      .Case([&](nn::PreluOp) {
        Value isLinear = f.ge(x, 0);
        d.give(x, f.select(isLinear, g, f.mul(g, y)));
        d.give(y, f.select(isLinear, d.node.scalarLike(g, 0), f.mul(g, x)));
        return true;
      })
      .Default(false);
}

bool cleave::onnx::differentiateElementwise(Derivative &d, Operation *op) {
  nn::Composer &f = d.f;
  Value g = d.gradient();
  if (cast<nn::SlopeOpInterface>(op).getSlope() == nn::Slope::Zero)
    return true;
  if (isa<nn::NegOp>(op))
    return d.give(0, f.neg(g)), true;
  // Between floats; where bits are reinterpreted, or what is cast are integers, nothing is to be differentiated.
  if (auto cast = dyn_cast<nn::CastOp>(op))
    return !cast.getBits() && (d.give(0, g), true);
  if (auto choice = dyn_cast<nn::SelectOp>(op)) {
    d.give(1, f.select(choice.getCondition(), g, d.node.scalarLike(g, 0)));
    d.give(2, f.select(choice.getCondition(), d.node.scalarLike(g, 0), g));
    return true;
  }
  if (differentiateBinary(d, op))
    return true;
  if (op->getNumOperands() != 1)
    return false;
  Value x = d.operand(0);
  if (auto gelu = dyn_cast<nn::GeluOp>(op))
    return d.give(0, f.mul(g, getGeluSlope(d, gelu, x))), true;
  if (Value bent = bend(d, op, x, d.result(), g))
    return d.give(0, bent), true;
  Value slope = getSlope(d, op, x, d.result());
  if (slope)
    d.give(0, f.mul(g, slope));
  return slope != nullptr || d.node.failed();
}
