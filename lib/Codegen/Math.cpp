//===- Math.cpp - functions of one float ----------------------------------===//
//
// In f32 by polynomials on vectors; in f64 by math ops that end as calls of the C library. Errors of the f32 forms, in
// units of the last place against the exact value: exp 1, log 1, erf 1, tanh 2, sigmoid 3 (MathTest measures
// 0.83, 0.83, 0.91, 1.25, 2.3).
//
//   exp   x = n ln 2 + r, |r| <= ln 2 / 2;  2^n is multiplied in two steps, so that denormals and overflow come out
//   log   x = 2^n m, m in [0.7, 1.4];       log m = f + f^2 p(f), f = m - 1
//   erf   a polynomial in x^2 below 0.93, else 1 - exp(-q(|x|))
//   tanh  a polynomial in x^2 below 0.6, else 1 - 2 / (exp(2 |x|) + 1)
//   sigmoid  1 / (1 + exp(-x)), and 0 where it would be below 2^-125
//
// A GPU has 2^x, 1 / x and 1 / sqrt x as instructions, each right to 2 units. They take the place of the polynomial of r and of
// quotients whose divisor is a sum of positive numbers; ranges are reduced as above, or an error near 0 would grow with x. Where only
// the absolute error counts (`expOfNegative`), ranges are not reduced either.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave::codegen;

Value ElementBuilder::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value ElementBuilder::floor(Value x) { return math::FloorOp::create(b, loc, x); }
Value ElementBuilder::abs(Value x) {
  if (isFloat(x))
    return math::AbsFOp::create(b, loc, x);
  return select(compare(Relation::Gt, x, 0.0), x, negate(x));
}

/// An instruction of one float, lane by lane. What it gives of denormals is 0.
Value ElementBuilder::approximate(StringRef intrinsic, Value x) {
  auto one = [&](Value lane) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(), b.getStringAttr(intrinsic), lane).getResult(0);
  };
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return one(x);
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    lanes.push_back(one(vector::ExtractOp::create(b, loc, x, lane)));
  return vector::FromElementsOp::create(b, loc, type, lanes);
}
static constexpr llvm::StringLiteral kPowerOfTwo = "llvm.nvvm.ex2.approx.ftz.f32",
                                     kReciprocal = "llvm.nvvm.rcp.approx.ftz.f",
                                     kReciprocalRoot = "llvm.nvvm.rsqrt.approx.ftz.f";

Value ElementBuilder::reciprocal(Value x) {
  auto root = x.getDefiningOp<math::SqrtOp>();
  if (root && hasApproximations && getElementTypeOrSelf(x).isF32())
    return approximate(kReciprocalRoot, root.getOperand());
  return divide(like(x, 1), x, false);
}

/// Coefficients from the highest power down.
Value ElementBuilder::horner(Value x, ArrayRef<double> coefficients) {
  Value sum = like(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = fma(sum, x, like(x, coefficient));
  return sum;
}

/// The exponential is `polynomial * 2^power`. The sum with 1.5 * 2^23 leaves the nearest integer in the low bits.
ElementBuilder::Reduced ElementBuilder::reduceExp(Value x) {
  Value magic = like(x, 0x1.8p23), shifted = fma(x, like(x, 1.44269504088896341), magic);
  Value n = sub(shifted, magic);
  Type i32 = b.getI32Type();
  Value power = sub(bitcast(shifted, i32), bitcast(magic, i32));
  if (hasApproximations) { // log2 e in two parts
    Value f = fma(x, like(x, 0x1.715476p0), negate(n));
    return {approximate(kPowerOfTwo, fma(x, like(x, 0x1.4ae0cp-26), f)), power};
  }
  Value r = fma(n, like(x, -0x1.62e4p-1), x); // ln 2 in two parts: n times the first is exact
  r = fma(n, like(x, -0x1.7f7d1cp-20), r);
  return {horner(r, {1.37805939e-3, 8.37312452e-3, 4.16695364e-2, 1.66664720e-1, 4.99999851e-1, 1.0, 1.0}), power};
}

/// `value * 2^power`, for powers of normal numbers.
Value ElementBuilder::scaleBy(Value value, Value power) {
  Type type = power.getType();
  Value bits = arith::ShLIOp::create(b, loc, add(power, integer(type, 127)), integer(type, 23));
  return mul(value, bitcast(bits, b.getF32Type()));
}

// NaN fails both comparisons and goes through.
Value ElementBuilder::exp(Value x) {
  if (!getElementTypeOrSelf(x).isF32())
    return math::ExpOp::create(b, loc, x);
  x = select(compare(Relation::Gt, x, 89.0), like(x, 89), x);
  x = select(compare(Relation::Lt, x, -104.0), like(x, -104), x);
  auto [p, power] = reduceExp(x);
  Value half = arith::ShRSIOp::create(b, loc, power, integer(power.getType(), 1));
  return scaleBy(scaleBy(p, half), sub(power, half));
}

/// For x of at most 0, where what is below 10^-37 does not count.
Value ElementBuilder::expOfNegative(Value x) {
  if (hasApproximations)
    return approximate(kPowerOfTwo, mul(x, 1.44269504088896341));
  auto [p, power] = reduceExp(select(compare(Relation::Lt, x, -87.0), like(x, -87), x));
  return scaleBy(p, power);
}

// Denormals are brought up by 2^23 first. What is below 0 is NaN; 0 and infinity are chosen at the end, since the
// polynomial does not know them.
Value ElementBuilder::log(Value x) {
  if (!getElementTypeOrSelf(x).isF32())
    return math::LogOp::create(b, loc, x);
  Type i32 = b.getI32Type();
  Value isSmall = compare(Relation::Lt, x, 0x1p-126);
  Value normal = select(isSmall, mul(x, 0x1p23), x), bits = bitcast(normal, i32);
  Type type = bits.getType();
  // The exponent of x / (2/3): what remains lies in [2/3, 4/3).
  Value above = arith::SubIOp::create(b, loc, bits, integer(type, 0x3f2aaaab));
  Value power = both(above, integer(type, int64_t(int32_t(0xff800000))));
  Value m = bitcast(sub(bits, power), b.getF32Type());
  Value n = mul(Value(arith::SIToFPOp::create(b, loc, x.getType(), power)), 0x1p-23);
  n = add(n, select(isSmall, like(x, -23), like(x, 0)));
  Value f = add(m, -1.0), s = mul(f, f);
  Value p = horner(f, {-0.130310059, 0.140869141, -0.121483803, 0.139814854, -0.166846126, 0.200120345, -0.249996200,
                       0.333331972, -0.5});
  Value result = fma(n, like(x, 0.693147182), fma(p, s, f));
  result = select(compare(Relation::Eq, x, like(x, INFINITY)), x, result);
  result = select(compare(Relation::Eq, x, 0.0), like(x, -INFINITY), result);
  return select(compare(Relation::Ge, x, 0.0), result, like(x, NAN));
}

// Both sides are computed and one is chosen: lanes of one vector fall on both. Beyond 4 the exponential is so small that
// the result is 1.
Value ElementBuilder::erf(Value x) {
  if (!getElementTypeOrSelf(x).isF32())
    return math::ErfOp::create(b, loc, x);
  Value t = abs(x), s = mul(x, x);
  Value u = horner(t, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1,
                       -1.28717512e-1});
  Value large = sub(like(x, 1), expOfNegative(fma(u, t, negate(t))));
  large = math::CopySignOp::create(b, loc, large, x);
  Value p = horner(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  return select(compare(Relation::Gt, t, 0.927734375), large, fma(p, x, x));
}

// For large x the exponential is infinite, and the quotient 0. The coefficients below 0.625 are those of Cephes' tanhf.
Value ElementBuilder::tanh(Value x) {
  if (!getElementTypeOrSelf(x).isF32())
    return math::TanhOp::create(b, loc, x);
  Value t = abs(x), s = mul(x, x), one = like(x, 1);
  Value p = horner(s, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value small = fma(mul(p, s), x, x);
  Value large;
  if (hasApproximations) {
    Value e = expOfNegative(mul(t, -2.0));
    large = fma(mul(e, -2.0), approximate(kReciprocal, add(e, one)), one);
  } else {
    large = sub(one, divide(like(x, 2), add(exp(mul(t, 2.0)), one), false));
  }
  large = math::CopySignOp::create(b, loc, large, x);
  return select(compare(Relation::Lt, t, 0.625), small, large);
}

/// Where neither exp(x) nor its reciprocal is infinite: 2^y (1 + ln 2 rest), with y and rest as x log2 e.
Value ElementBuilder::addExp(Value to, Value x) {
  Value scale = like(x, 0x1.715476p0), y = mul(x, scale);
  Value rest = fma(x, like(x, 0x1.4ae0cp-26), fma(x, scale, negate(y))), power = approximate(kPowerOfTwo, y);
  return fma(power, fma(rest, like(x, 0.693147180559945309), like(x, 1)), to);
}

/// In f32 far below 0 the result is 0 rather than a denormal number: those slow down all that is computed with them, by ten times in
/// what follows a `silu`. Vectors are divided by an estimate that is brought to 24 bits, since no divisor is infinite.
Value ElementBuilder::sigmoid(Value x) {
  Value one = like(x, 1);
  if (!getElementTypeOrSelf(x).isF32()) {
    Value e = exp(negate(abs(x)));
    return divide(select(compare(Relation::Ge, x, 0.0), one, e), add(one, e), false);
  }
  if (hasApproximations) {
    Value within = select(compare(Relation::Gt, x, 88.0), like(x, 88), x);
    within = select(compare(Relation::Lt, within, -88.0), like(x, -88), within);
    return approximate(kReciprocal, addExp(one, negate(within)));
  }
  Value n = negate(x);
  n = select(compare(Relation::Lt, n, -87.0), like(x, -87), n);
  n = select(compare(Relation::Gt, n, 87.0), like(x, 87), n);
  auto [p, power] = reduceExp(n);
  Value sum = add(one, scaleBy(p, power));
  Value result = arith::DivFOp::create(b, loc, one, sum, arith::FastMathFlags::arcp);
  return select(compare(Relation::Lt, x, -87.0), like(x, 0), result);
}
