//===- Elementwise.cpp - gradients of elementwise ops ---------------------===//
//
// `x` is the operand, `y` the result, `g.of()` its gradient; formulas are those of calculus. Where a function has a kink, or is flat:
//
//   relu, abs, leaky_relu, elu, prelu, hard_*   the slope of the side that the op's own definition counts the kink to; abs has 0
//   max, min                                    of equal elements half to each
//   sign, floor, ceil, round                    nothing
//   pow                                         0 by the exponent where x is 0, as there is no logarithm
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

#include <cmath>

using namespace mlir;
using namespace cleave::nn;

//===----------------------------------------------------------------------===//
// Functions of one variable with a slope
//===----------------------------------------------------------------------===//

/// The chain rule, of a slope at x.
static LogicalResult multiply(GradientBuilder &g, Value slope) { return g.add(0, g.f.mul(g.of(), slope)); }

LogicalResult AbsOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.create<SignOp>(g.operand(0))); }
LogicalResult SqrtOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.div(g.f.scalarLike(g.result(), 0.5), g.result()));
}
LogicalResult ReciprocalOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.neg(g.f.square(g.result()))); }
LogicalResult ExpOp::differentiate(GradientBuilder &g) { return multiply(g, g.result()); }
LogicalResult LogOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.reciprocal(g.operand(0))); }
LogicalResult ErfOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.mul(g.f.exp(g.f.neg(g.f.square(g.operand(0)))), 2 / std::sqrt(M_PI)));
}
LogicalResult SinOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.cos(g.operand(0))); }
LogicalResult CosOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.neg(g.f.create<SinOp>(g.operand(0)))); }
LogicalResult TanOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.add(g.f.square(g.result()), 1)); }
LogicalResult AsinOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.reciprocal(g.f.sqrt(g.f.sub(1, g.f.square(g.operand(0))))));
}
LogicalResult AcosOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.neg(g.f.reciprocal(g.f.sqrt(g.f.sub(1, g.f.square(g.operand(0)))))));
}
LogicalResult AtanOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.reciprocal(g.f.add(g.f.square(g.operand(0)), 1)));
}
LogicalResult SinhOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.create<CoshOp>(g.operand(0))); }
LogicalResult CoshOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.create<SinhOp>(g.operand(0))); }
LogicalResult TanhOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.sub(1, g.f.square(g.result()))); }
LogicalResult AsinhOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.reciprocal(g.f.sqrt(g.f.add(g.f.square(g.operand(0)), 1))));
}
LogicalResult AcoshOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.reciprocal(g.f.sqrt(g.f.sub(g.f.square(g.operand(0)), 1))));
}
LogicalResult AtanhOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.reciprocal(g.f.sub(1, g.f.square(g.operand(0)))));
}
LogicalResult SigmoidOp::differentiate(GradientBuilder &g) {
  return multiply(g, g.f.mul(g.result(), g.f.sub(1, g.result())));
}
LogicalResult SiluOp::differentiate(GradientBuilder &g) {
  Value s = g.f.sigmoid(g.operand(0));
  return multiply(g, g.f.add(s, g.f.mul(g.result(), g.f.sub(1, s))));
}
LogicalResult SoftplusOp::differentiate(GradientBuilder &g) { return multiply(g, g.f.sigmoid(g.operand(0))); }
/// gelu(x) = x Phi(x), with slope Phi(x) + x phi(x), or the derivative of its tanh form, `x (1 + t) / 2` with t = tanh(u).
LogicalResult GeluOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = g.operand(0);
  if (!getTanh()) {
    Value density = f.mul(f.exp(f.mul(f.square(x), -0.5)), 1 / std::sqrt(2 * M_PI));
    Value share = f.mul(f.add(f.create<ErfOp>(f.mul(x, std::sqrt(0.5))), 1), 0.5);
    return multiply(g, f.add(share, f.mul(x, density)));
  }
  const double a = std::sqrt(2 / M_PI), b = 0.044715;
  Value square = f.square(x), t = f.tanh(f.mul(f.mul(x, f.add(f.mul(square, b), 1)), a));
  Value inner = f.mul(f.add(f.mul(square, 3 * b), 1), a);
  return multiply(g, f.mul(f.add(f.add(t, 1), f.mul(f.mul(x, f.sub(1, f.square(t))), inner)), 0.5));
}

//===----------------------------------------------------------------------===//
// Functions that are put together of pieces
//===----------------------------------------------------------------------===//

/// By its result, which is kept anyway where the next op reads it.
LogicalResult ReluOp::differentiate(GradientBuilder &g) {
  return g.add(0, g.f.select(g.f.gt(g.result(), 0), g.of(), 0));
}

LogicalResult LeakyReluOp::differentiate(GradientBuilder &g) {
  return g.add(0, g.f.select(g.f.gt(g.operand(0), 0), g.of(), g.f.mul(g.of(), getAlpha().convertToDouble())));
}

LogicalResult EluOp::differentiate(GradientBuilder &g) {
  Value slope = g.f.add(g.result(), getAlpha().convertToDouble());
  return g.add(0, g.f.select(g.f.gt(g.operand(0), 0), g.of(), g.f.mul(g.of(), slope)));
}

LogicalResult HardSigmoidOp::differentiate(GradientBuilder &g) {
  Value isInside = g.f.both(g.f.gt(g.result(), 0), g.f.lt(g.result(), 1));
  return g.add(0, g.f.select(isInside, g.f.mul(g.of(), getAlpha().convertToDouble()), 0));
}

/// x (x + 3) / 6 between -3 and 3.
LogicalResult HardSwishOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = g.operand(0), middle = f.mul(g.of(), f.div(f.add(f.mul(x, 2), 3), 6));
  return g.add(0, f.select(f.le(x, -3), f.scalarLike(x, 0), f.select(f.ge(x, 3), g.of(), middle)));
}

//===----------------------------------------------------------------------===//
// Of two variables
//===----------------------------------------------------------------------===//

LogicalResult NegOp::differentiate(GradientBuilder &g) { return g.add(0, g.f.neg(g.of())); }

LogicalResult AddOp::differentiate(GradientBuilder &g) {
  return success(succeeded(g.add(0, g.of())) && succeeded(g.add(1, g.of())));
}

LogicalResult SubOp::differentiate(GradientBuilder &g) {
  return success(succeeded(g.add(0, g.of())) && succeeded(g.addBy(1, [&] { return g.f.neg(g.of()); })));
}

LogicalResult MulOp::differentiate(GradientBuilder &g) {
  return success(succeeded(g.addBy(0u, [&] { return g.f.mul(g.of(), g.operand(1)); })) &&
                 succeeded(g.addBy(1, [&] { return g.f.mul(g.of(), g.operand(0)); })));
}

/// d(x / y) = dx / y - (x / y) dy / y
LogicalResult DivOp::differentiate(GradientBuilder &g) {
  Value share = g.f.div(g.of(), g.operand(1));
  return success(succeeded(g.add(0, share)) &&
                 succeeded(g.addBy(1, [&] { return g.f.neg(g.f.mul(share, g.result())); })));
}

/// x ^ y; where the exponent is 0, so is the slope, though x ^ -1 may be infinite.
LogicalResult PowOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = g.operand(0), y = g.operand(1);
  auto byBase = [&] {
    Value slope = f.mul(y, f.pow(x, f.sub(y, 1)));
    return f.mul(g.of(), f.select(f.eq(y, 0), f.scalarLike(x, 0), slope));
  };
  auto byExponent = [&] {
    return f.mul(g.of(), f.select(f.eq(x, 0), f.scalarLike(x, 0), f.mul(g.result(), f.log(x))));
  };
  return success(succeeded(g.addBy(0u, byBase)) && succeeded(g.addBy(1, byExponent)));
}

/// `x - y * n` with n = floor(x / y), or what is left of it toward zero.
LogicalResult ModOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  auto byDivisor = [&] { return f.mul(g.of(), f.div(f.sub(g.result(), g.operand(0)), g.operand(1))); };
  return success(succeeded(g.add(0, g.of())) && succeeded(g.addBy(1, byDivisor)));
}

/// The one that wins takes all.
template <typename WinsOp> static LogicalResult differentiateChoice(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = g.operand(0), y = g.operand(1), half = f.select(f.eq(x, y), f.mul(g.of(), 0.5), 0);
  return success(succeeded(g.addBy(0u, [&] { return f.select(f.create<WinsOp>(x, y), g.of(), half); })) &&
                 succeeded(g.addBy(1, [&] { return f.select(f.create<WinsOp>(y, x), g.of(), half); })));
}
LogicalResult MaxOp::differentiate(GradientBuilder &g) { return differentiateChoice<GtOp>(g); }
LogicalResult MinOp::differentiate(GradientBuilder &g) { return differentiateChoice<LtOp>(g); }

LogicalResult PreluOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value x = g.operand(0), isLinear = f.ge(x, 0);
  return success(succeeded(g.addBy(0u, [&] { return f.select(isLinear, g.of(), f.mul(g.of(), g.operand(1))); })) &&
                 succeeded(g.addBy(1, [&] { return f.select(isLinear, f.scalarLike(x, 0), f.mul(g.of(), x)); })));
}

/// Each side where it was taken.
LogicalResult SelectOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value zero = f.scalarLike(g.of(), 0);
  return success(succeeded(g.addBy(1, [&] { return f.select(getCondition(), g.of(), zero); })) &&
                 succeeded(g.addBy(2, [&] { return f.select(getCondition(), zero, g.of()); })));
}
