//===- Elements.cpp - arithmetic on elements of kernels -------------------===//
//
// Division, shifts and conversions guard what is undefined in LLVM: an operand that must not be is replaced before the
// instruction, so that lanes that nobody reads cannot trap either.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave::codegen;

Type ElementBuilder::typeLike(Value like, Type type) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? VectorType::get(vector.getShape(), type) : type;
}

Value ElementBuilder::constant(TypedAttr attr) {
  Value &value = constants[attr];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    value = arith::ConstantOp::create(b, loc, attr);
  }
  return value;
}

Value ElementBuilder::integer(Type type, int64_t number) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  TypedAttr attr = IntegerAttr::get(element, APInt(element.getWidth(), uint64_t(number), false, true));
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return constant(attr);
}

Value ElementBuilder::number(Type type, double number) {
  Type element = getElementTypeOrSelf(type);
  if (!isa<FloatType>(element))
    return integer(type, int64_t(number));
  TypedAttr attr = FloatAttr::get(element, number);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return constant(attr);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value ElementBuilder::add(Value x, Value y) {
  return isFloat(x) ? Value(arith::AddFOp::create(b, loc, x, y)) : arith::AddIOp::create(b, loc, x, y);
}
Value ElementBuilder::sub(Value x, Value y) {
  return isFloat(x) ? Value(arith::SubFOp::create(b, loc, x, y)) : arith::SubIOp::create(b, loc, x, y);
}
Value ElementBuilder::mul(Value x, Value y) {
  return isFloat(x) ? Value(arith::MulFOp::create(b, loc, x, y)) : arith::MulIOp::create(b, loc, x, y);
}
/// On processors without it the C library would be called, one element at a time: a product and a sum are what can be had.
Value ElementBuilder::fma(Value x, Value y, Value z) {
  return isFloat(x) && hasFma ? Value(math::FmaOp::create(b, loc, x, y, z)) : add(mul(x, y), z);
}
Value ElementBuilder::negate(Value x) {
  return isFloat(x) ? Value(arith::NegFOp::create(b, loc, x)) : sub(integer(x.getType(), 0), x);
}
Value ElementBuilder::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value ElementBuilder::either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value ElementBuilder::exclusive(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
Value ElementBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}
Value ElementBuilder::isNan(Value x) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x); }

/// Ordered but for `Ne`: NaN differs from everything, itself too, and is neither less nor greater.
Value ElementBuilder::compare(Relation relation, Value x, Value y, bool isUnsigned) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static constexpr F floats[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  static constexpr I signedIntegers[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  static constexpr I unsignedIntegers[] = {I::eq, I::ne, I::ult, I::ule, I::ugt, I::uge};
  size_t row = size_t(relation);
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, floats[row], x, y);
  return arith::CmpIOp::create(b, loc, isUnsigned ? unsignedIntegers[row] : signedIntegers[row], x, y);
}

// A lane that nobody reads may hold a 0, and x86 traps on it; so it does on the smallest integer over -1, which LLVM
// leaves undefined in every width.
Value ElementBuilder::divide(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return arith::DivFOp::create(b, loc, x, y);
  Value one = integer(x.getType(), 1);
  y = select(compare(Relation::Eq, y, 0.0), one, y);
  if (isUnsigned)
    return arith::DivUIOp::create(b, loc, x, y);
  Value isMinusOne = compare(Relation::Eq, y, integer(y.getType(), -1));
  return select(isMinusOne, negate(x), arith::DivSIOp::create(b, loc, x, select(isMinusOne, one, y)));
}

// Source: Markstein, IBM Journal of R&D 34 (1990): with 1 / y rounded, one step from `x * (1 / y)` gives the rounded quotient. What is
// not finite stays as it is.
Value ElementBuilder::divideBy(Value x, int64_t number, bool isUnsigned) {
  Value divisor = like(x, double(number));
  if (!hasApproximations || !getElementTypeOrSelf(x).isF32() || llvm::isPowerOf2_64(number))
    return divide(x, divisor, isUnsigned);
  Value inverse = like(x, 1.0 / double(float(number))), quotient = mul(x, inverse);
  Value rest = fma(negate(quotient), divisor, x);
  return select(compare(Relation::Lt, abs(quotient), INFINITY), fma(rest, inverse, quotient), quotient);
}

Value ElementBuilder::modulo(Value x, Value y, bool truncated, bool isUnsigned) {
  Value rest;
  if (isFloat(x)) {
    rest = arith::RemFOp::create(b, loc, x, y);
  } else {
    Value one = integer(x.getType(), 1);
    y = select(compare(Relation::Eq, y, 0.0), one, y);
    if (isUnsigned)
      return arith::RemUIOp::create(b, loc, x, y);
    Value isMinusOne = compare(Relation::Eq, y, integer(y.getType(), -1));
    rest = arith::RemSIOp::create(b, loc, x, select(isMinusOne, one, y)); // of -1 nothing rests, as of 1
  }
  if (truncated)
    return rest;
  Value differs = exclusive(compare(Relation::Lt, rest, 0.0), compare(Relation::Lt, y, 0.0));
  return select(both(compare(Relation::Ne, rest, 0.0), differs), add(rest, y), rest);
}

// Three instructions on x86, whose own maximum takes the second operand where one is NaN: only a NaN in the first needs
// care.
Value ElementBuilder::extremum(bool isMax, Value x, Value y, bool isUnsigned) {
  // Of bools (one bit, which signed would be -1) the larger is that which is set.
  isUnsigned |= getElementTypeOrSelf(x).isInteger(1);
  Value better = select(compare(isMax ? Relation::Gt : Relation::Lt, x, y, isUnsigned), x, y);
  return isFloat(x) ? select(isNan(x), x, better) : better;
}

/// Square and multiply, over the bits of the exponent.
Value ElementBuilder::integerPower(Value x, Value y, bool isUnsigned) {
  Type type = x.getType();
  auto width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value one = integer(type, 1), result = one, square = x;
  for (unsigned bit = 0; bit < width; ++bit) {
    Value isSet = compare(Relation::Ne, both(y, integer(type, int64_t(uint64_t(1) << bit))), 0.0);
    result = select(isSet, mul(result, square), result);
    square = mul(square, square);
  }
  if (isUnsigned)
    return result;
  Value minusOne = integer(type, -1);
  Value ofMinusOne = select(compare(Relation::Eq, both(y, one), 0.0), one, minusOne);
  Value root = select(compare(Relation::Eq, x, one), one,
                      select(compare(Relation::Eq, x, minusOne), ofMinusOne, integer(type, 0)));
  return select(compare(Relation::Lt, y, 0.0), root, result);
}

Value ElementBuilder::power(Value x, Value y, bool isUnsigned) {
  return isFloat(x) ? Value(math::PowFOp::create(b, loc, x, y)) : integerPower(x, y, isUnsigned);
}

// LLVM leaves shifts by the width or more undefined. Negative numbers of bits are such, read without a sign.
Value ElementBuilder::shift(Value x, Value y, bool right, bool isUnsigned) {
  Type type = x.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value zero = integer(type, 0);
  Value isAll = compare(Relation::Ge, y, integer(type, width), /*isUnsigned=*/true);
  Value by = select(isAll, zero, y);
  if (!right)
    return select(isAll, zero, arith::ShLIOp::create(b, loc, x, by));
  if (isUnsigned)
    return select(isAll, zero, arith::ShRUIOp::create(b, loc, x, by));
  // All bits are the sign then.
  return arith::ShRSIOp::create(b, loc, x, select(isAll, integer(type, width - 1), y));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Type ElementBuilder::getHeldType(Type type) {
  if (isSmall(type))
    return IntegerType::get(type.getContext(), 8);
  return type.isInteger() ? IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth()) : type;
}
Type ElementBuilder::getStoredType(Type type) {
  if (type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  return type.isBF16() ? Type(IntegerType::get(type.getContext(), 16)) : getHeldType(type);
}
Type ElementBuilder::getComputeType(Type type) {
  return isHalf(type) ? Float32Type::get(type.getContext()) : getHeldType(type);
}

Value ElementBuilder::widen(Value value) {
  Type type = getElementTypeOrSelf(value), wide = getComputeType(type);
  return wide == type ? value : Value(arith::ExtFOp::create(b, loc, typeLike(value, wide), value));
}

Value ElementBuilder::bitcast(Value value, Type element) {
  return arith::BitcastOp::create(b, loc, typeLike(value, element), value);
}

/// An f64 as an f32 whose last bit is set where something was cut off: rounding that to f16 or bf16 rounds once.
Value ElementBuilder::roundToOdd(Value value) {
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  Value nearest = arith::TruncFOp::create(b, loc, typeLike(value, f32), value);
  Value back = arith::ExtFOp::create(b, loc, value.getType(), nearest);
  Value bits = bitcast(nearest, i32), one = integer(bits.getType(), 1);
  Value beyond = compare(Relation::Gt, abs(back), abs(value));
  bits = select(beyond, sub(bits, one), bits);
  Value odd = bitcast(either(bits, one), f32);
  Value isExact = either(compare(Relation::Eq, back, value), isNan(value));
  return select(isExact, nearest, odd);
}

Value ElementBuilder::narrow(Value value, Type type) {
  Type from = getElementTypeOrSelf(value);
  if (from == type)
    return value;
  if (from.isF64() && !type.isF32())
    value = roundToOdd(value);
  return arith::TruncFOp::create(b, loc, typeLike(value, type), value);
}

/// A float as an integer, as x86 converts: out of range gives the smallest i32 or i64, whose low bits narrower types keep.
Value ElementBuilder::toInteger(Value value, Type to, bool isUnsigned) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isShort = width < 32 || (width == 32 && !isUnsigned);
  Type wide = b.getIntegerType(isShort ? 32 : 64);
  if (!getElementTypeOrSelf(value).isF64())
    value = arith::ExtFOp::create(b, loc, typeLike(value, b.getF64Type()), value);
  double limit = isShort ? 0x1p31 : 0x1p63;
  Value isInside = both(compare(Relation::Gt, value, like(value, isShort ? -limit - 1 : -0x1.0000000000001p63)),
                        compare(Relation::Lt, value, like(value, limit)));
  Value safe = select(isInside, value, like(value, 0));
  Type wideType = typeLike(value, wide);
  Value whole = arith::FPToSIOp::create(b, loc, wideType, safe);
  whole = select(isInside, whole, integer(wideType, isShort ? INT32_MIN : INT64_MIN));
  if (width == 64 && isUnsigned) { // the upper half
    Value isUpper =
        both(compare(Relation::Ge, value, like(value, 0x1p63)), compare(Relation::Lt, value, like(value, 0x1p64)));
    Value upper = select(isUpper, value, like(value, 0x1p63));
    whole = select(isUpper, arith::FPToUIOp::create(b, loc, wideType, upper), whole);
  }
  Type type = typeLike(value, to);
  return whole.getType() == type ? whole : Value(arith::TruncIOp::create(b, loc, type, whole));
}

Value ElementBuilder::convert(Value value, Type from, Type to) {
  if (from == to)
    return value;
  if (isSmall(from))
    std::tie(value, from) = fromSmall(value, from);
  if (!isSmall(to))
    return convertPlain(value, from, to);
  if (isa<FloatType>(to))
    return toSmallFloat(toSingle(value, from), to);
  Type byte = to.isUnsignedInteger() ? b.getIntegerType(8, /*isSigned=*/false) : Type(b.getI8Type());
  return takeBits(convertPlain(value, from, byte), to.getIntOrFloatBitWidth());
}

// Each pair of kinds has one way: floats to floats widen or round, floats to integers truncate, integers to integers keep
// low bits or extend by their sign, and anything is a true bool that is not 0.
Value ElementBuilder::convertPlain(Value value, Type from, Type to) {
  if (from == to)
    return value;
  Type held = getHeldType(to), type = typeLike(value, held);
  bool isUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (to.isInteger(1)) {
    value = widen(value);
    return compare(Relation::Ne, value, 0.0);
  }
  if (isa<FloatType>(from)) {
    value = widen(value);
    if (to.isInteger())
      return toInteger(value, held, to.isUnsignedInteger());
    if (held.getIntOrFloatBitWidth() > getElementTypeOrSelf(value).getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, loc, type, value);
    return narrow(value, held);
  }
  if (to.isInteger()) {
    unsigned has = from.getIntOrFloatBitWidth(), wants = to.getIntOrFloatBitWidth();
    if (has > wants)
      return arith::TruncIOp::create(b, loc, type, value);
    if (has == wants)
      return value;
    return isUnsigned ? Value(arith::ExtUIOp::create(b, loc, type, value))
                      : arith::ExtSIOp::create(b, loc, type, value);
  }
  // Integers to f16 and bf16 by way of f64, so that they round once.
  Type wide = held.isF32() ? held : Type(b.getF64Type()), wideType = typeLike(value, wide);
  value = isUnsigned ? Value(arith::UIToFPOp::create(b, loc, wideType, value))
                     : arith::SIToFPOp::create(b, loc, wideType, value);
  return narrow(value, held);
}

/// Only the ends that the operand can pass are compared with: an i8 fits an i16, and nothing unsigned is below 0.
Value ElementBuilder::saturateInteger(Value value, Type from, Type to) {
  unsigned has = from.getIntOrFloatBitWidth(), wants = to.getIntOrFloatBitWidth();
  bool fromUnsigned = from.isUnsignedInteger(), toUnsigned = to.isUnsignedInteger();
  Type type = value.getType();
  if (!fromUnsigned && toUnsigned)
    value = extremum(true, value, integer(type, 0), false);
  if (!fromUnsigned && !toUnsigned && has > wants)
    value = extremum(true, value, integer(type, -(int64_t(1) << (wants - 1))), false);
  unsigned hasBits = has - !fromUnsigned, wantsBits = wants - !toUnsigned;
  if (hasBits > wantsBits)
    value = extremum(false, value, integer(type, int64_t(~uint64_t(0) >> (64 - wantsBits))), fromUnsigned);
  return convert(value, from, to);
}

/// To integers; `value` has a compute type.
Value ElementBuilder::saturateFloat(Value value, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  if (!getElementTypeOrSelf(value).isF64())
    value = arith::ExtFOp::create(b, loc, typeLike(value, b.getF64Type()), value);
  double high = std::ldexp(1.0, width - !isUnsigned), low = isUnsigned ? 0 : -high;
  Value isLow = compare(Relation::Le, value, like(value, low)),
        isHigh = compare(Relation::Ge, value, like(value, high));
  Value safe = select(either(either(isLow, isHigh), isNan(value)), like(value, 0), value);
  Value whole = convert(safe, b.getF64Type(), to);
  uint64_t most = ~uint64_t(0) >> (64 - width + !isUnsigned);
  whole = select(isHigh, integer(whole.getType(), int64_t(most)), whole);
  return select(isLow, integer(whole.getType(), isUnsigned ? 0 : -int64_t(most) - 1), whole);
}

/// Infinities stay infinite in floats; finite numbers stop at the largest of the result's type.
Value ElementBuilder::saturate(Value value, Type from, Type to) {
  if (to.isInteger(1) || from == to || from.isInteger(1))
    return convert(value, from, to);
  if (isSmall(from))
    std::tie(value, from) = fromSmall(value, from);
  if (isSmall(to))
    return saturateSmall(value, from, to);
  if (from.isInteger())
    return to.isInteger() ? saturateInteger(value, from, to) : convert(value, from, to);
  value = widen(value);
  if (to.isInteger())
    return saturateFloat(value, to);
  Type compute = getElementTypeOrSelf(value);
  double largest = APFloat::getLargest(cast<FloatType>(to).getFloatSemantics()).convertToDouble();
  if (to.getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth()) {
    Value size = abs(value), bound = like(value, largest);
    Value isBeyond = both(compare(Relation::Gt, size, bound), compare(Relation::Ne, size, like(value, INFINITY)));
    value = select(isBeyond, math::CopySignOp::create(b, loc, bound, value), value);
  }
  return convert(value, compute, to);
}
