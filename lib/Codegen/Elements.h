//===- Elements.h - arithmetic on elements of kernels -----------*- C++ -*-===//
//
// Writes arith and math ops on scalars and on vectors alike: a value's type says which. Elements have the signless types
// of arith; whether an integer is signed is said where it matters. What LLVM leaves open (a division by zero, a shift by
// more than the width, a float that fits no integer) is given the evaluator's meaning, or at least a harmless one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_ELEMENTS_H
#define CLEAVE_LIB_CODEGEN_ELEMENTS_H

#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::codegen {

class ElementBuilder {
public:
  /// Where the target has no fused multiply-add, `fma` is a product and a sum.
  ElementBuilder(mlir::OpBuilder &builder, mlir::Location location, const Target &target)
      : b(builder), loc(location), hasFma(target.hasFma()), hasApproximations(target.hasApproximations()) {}
  /// Constants are made once, at the start of `block`.
  void startAt(mlir::Block *block) { entry = block; }

  /// `type`, or a vector of it where `like` is a vector.
  static mlir::Type typeLike(mlir::Value like, mlir::Type type);
  mlir::Value constant(mlir::TypedAttr attr);
  /// `number` in the type of `like`, rounded to it; or in `type`, a scalar or vector type.
  mlir::Value number(mlir::Type type, double number);
  mlir::Value like(mlir::Value like, double value) { return number(like.getType(), value); }
  mlir::Value integer(mlir::Type type, int64_t number);

  // Floats and integers; integers wrap.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, double y) { return add(x, like(x, y)); }
  mlir::Value mul(mlir::Value x, double y) { return mul(x, like(x, y)); }
  /// `x * y + z`, rounded once where the target can. Integers wrap.
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value negate(mlir::Value x);
  /// Integers: a divisor of 0 counts as 1, the smallest integer over -1 wraps.
  mlir::Value divide(mlir::Value x, mlir::Value y, bool isUnsigned);
  /// The same quotient by products, where the target divides slowly.
  mlir::Value divideBy(mlir::Value x, int64_t number, bool isUnsigned);
  /// 1 / x, rounded; of a square root on targets with approximations within 2 units of the last place.
  mlir::Value reciprocal(mlir::Value x);
  /// Remainder with the sign of `y`, or of `x` where `truncated`.
  mlir::Value modulo(mlir::Value x, mlir::Value y, bool truncated, bool isUnsigned);
  /// The larger or smaller; NaN wins.
  mlir::Value extremum(bool isMax, mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value power(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value shift(mlir::Value x, mlir::Value y, bool right, bool isUnsigned);

  // Bools.
  enum class Relation { Eq, Ne, Lt, Le, Gt, Ge };
  mlir::Value compare(Relation relation, mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value compare(Relation relation, mlir::Value x, double y) { return compare(relation, x, like(x, y)); }
  mlir::Value isNan(mlir::Value x);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value either(mlir::Value x, mlir::Value y);
  mlir::Value exclusive(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  // Conversions.
  static bool isFloat(mlir::Value value) { return mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value)); }
  static bool isHalf(mlir::Type type) { return type.isF16() || type.isBF16(); }
  /// Floats of 8 bits, and all of 4 and 2: a byte each, of which nothing is known but how to convert it.
  static bool isSmall(mlir::Type type);
  /// The type in which elements of `type` are computed: f32 for f16 and bf16, else the type itself without a sign.
  static mlir::Type getComputeType(mlir::Type type);
  /// The type in which elements of `type` are held: without a sign; small ones as bytes.
  static mlir::Type getHeldType(mlir::Type type);
  /// The type in which elements of `type` lie in memory: bools as bytes, and bf16 as 16 bits, for processors that know no
  /// bf16 are given calls of the C library for everything that is done with one.
  static mlir::Type getStoredType(mlir::Type type);
  /// f16 and bf16 as f32; others as they are.
  mlir::Value widen(mlir::Value value);
  /// A value of a compute type as `type`, rounded once.
  mlir::Value narrow(mlir::Value value, mlir::Type type);
  /// From nn element type to nn element type, as nn.cast.
  mlir::Value convert(mlir::Value value, mlir::Type from, mlir::Type to);
  /// Likewise, but what is out of range takes the nearest value in range, and NaN 0.
  mlir::Value saturate(mlir::Value value, mlir::Type from, mlir::Type to);
  /// A float as f8E8M0FNU: as a power of two.
  mlir::Value toPower(mlir::Value value, mlir::Type from, nn::Rounding rounding, bool saturates);
  /// Low bits of bytes.
  mlir::Value takeBits(mlir::Value value, unsigned width);
  /// Bits of one type as another of the same width.
  mlir::Value bitcast(mlir::Value value, mlir::Type element);

  // Functions of one float. f32 is computed by polynomials, f64 by the C library.
  mlir::Value exp(mlir::Value x);
  /// Of x of at most 0, in f32, where what is below 10^-37 does not count.
  mlir::Value expOfNegative(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value floor(mlir::Value x);

  /// An op of `math` with one operand.
  template <typename MathOp> mlir::Value call(mlir::Value x) { return MathOp::create(b, loc, x); }

private:
  struct Reduced {
    mlir::Value polynomial, power;
  };
  Reduced reduceExp(mlir::Value x);
  mlir::Value addExp(mlir::Value to, mlir::Value x);
  mlir::Value scaleBy(mlir::Value value, mlir::Value power);
  mlir::Value approximate(llvm::StringRef intrinsic, mlir::Value x);
  mlir::Value horner(mlir::Value x, llvm::ArrayRef<double> coefficients);
  mlir::Value toInteger(mlir::Value value, mlir::Type to, bool isUnsigned);
  mlir::Value roundToOdd(mlir::Value value);
  mlir::Value integerPower(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value saturateFloat(mlir::Value value, mlir::Type to);
  mlir::Value saturateInteger(mlir::Value value, mlir::Type from, mlir::Type to);
  mlir::Value convertPlain(mlir::Value value, mlir::Type from, mlir::Type to);
  mlir::Value toSingle(mlir::Value value, mlir::Type from);
  std::pair<mlir::Value, mlir::Type> fromSmall(mlir::Value value, mlir::Type from);
  mlir::Value widenSmallFloat(mlir::Value byte, mlir::Type from);
  mlir::Value widenPower(mlir::Value byte);
  mlir::Value toSmallFloat(mlir::Value single, mlir::Type to);
  mlir::Value saturateSmall(mlir::Value value, mlir::Type from, mlir::Type to);
  mlir::Value toByte(mlir::Value word);

  mlir::OpBuilder &b;
  mlir::Location loc;
  bool hasFma, hasApproximations;
  mlir::Block *entry = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_ELEMENTS_H
