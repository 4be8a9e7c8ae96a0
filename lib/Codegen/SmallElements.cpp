//===- SmallElements.cpp - floats of 8 and 4 bits, integers of 4 and 2 ----===//
//
// In memory and in registers they are bytes, of which the low bits count. Nothing is computed in them: they become f32 or integers
// of 8 bits, and are made of these. A float with M bits of fraction, shifted to where f32 has its own, is right but for the exponent's
// bias; those without a leading 1 are whole multiples of the least one. The other way round as f16 is rounded in the evaluator: adding
// half a unit less one, and the last bit that stays; small ones by adding a number whose last bit is the least one's.
//
//   f8E4M3FN    s eeee mmm   to 448, 7f NaN            f8E4M3FNUZ   to 240, 80 NaN, no -0
//   f8E5M2      s eeeee mm   to 57344, 7c infinity     f8E5M2FNUZ   to 57344, 80 NaN, no -0
//   f8E8M0FNU   eeeeeeee     2^-127 to 2^127, ff NaN   f4E2M1FN     s ee m, to 6, nothing else
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {
struct SmallFormat {
  unsigned bits, fraction;
  int bias;
  /// Without sign: the largest number, what is larger becomes, and NaN.
  int64_t largest, beyond, nan;
  bool hasInfinity = false, hasMinusZero = true;
};
} // namespace

static SmallFormat getFormat(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return {8, 3, 7, 0x7e, 0x7f, 0x7f};
  if (isa<Float8E4M3FNUZType>(type))
    return {8, 3, 8, 0x7f, 0x80, 0x80, false, false};
  if (isa<Float8E5M2Type>(type))
    return {8, 2, 15, 0x7b, 0x7c, 0x7e, true};
  if (isa<Float8E5M2FNUZType>(type))
    return {8, 2, 16, 0x7f, 0x80, 0x80, false, false};
  return {4, 1, 1, 7, 7, 8};
}

bool ElementBuilder::isSmall(Type type) {
  if (!type.isIntOrFloat())
    return false;
  unsigned width = type.getIntOrFloatBitWidth();
  return isa<FloatType>(type) ? width <= 8 : width == 2 || width == 4;
}

Value ElementBuilder::takeBits(Value value, unsigned width) {
  return width == 8 ? value : both(value, integer(value.getType(), (1 << width) - 1));
}

Value ElementBuilder::toByte(Value word) {
  return arith::TruncIOp::create(b, loc, typeLike(word, b.getI8Type()), word);
}

/// Anything as f32, rounded such that rounding it further rounds once.
Value ElementBuilder::toSingle(Value value, Type from) {
  if (from.isInteger()) {
    value = convertPlain(value, from, b.getF64Type());
    from = b.getF64Type();
  }
  return from.isF64() ? roundToOdd(value) : widen(value);
}

//===----------------------------------------------------------------------===//
// From bytes
//===----------------------------------------------------------------------===//

std::pair<Value, Type> ElementBuilder::fromSmall(Value value, Type from) {
  if (isa<FloatType>(from))
    return {widenSmallFloat(value, from), b.getF32Type()};
  if (from.isUnsignedInteger())
    return {value, b.getIntegerType(8, /*isSigned=*/false)};
  // The sign is brought to the top bit and back.
  Value by = integer(value.getType(), 8 - from.getIntOrFloatBitWidth());
  Value top = arith::ShLIOp::create(b, loc, value, by);
  return {arith::ShRSIOp::create(b, loc, top, by), b.getI8Type()};
}

Value ElementBuilder::widenPower(Value byte) {
  Type words = typeLike(byte, b.getI32Type());
  Value word = arith::ExtUIOp::create(b, loc, words, byte);
  Value bits = arith::ShLIOp::create(b, loc, word, integer(words, 23));
  bits = select(compare(Relation::Eq, word, 0.0), integer(words, 0x400000), bits);
  bits = select(compare(Relation::Eq, word, 255.0), integer(words, 0x7fc00000), bits);
  return bitcast(bits, b.getF32Type());
}

Value ElementBuilder::widenSmallFloat(Value byte, Type from) {
  if (isa<Float8E8M0FNUType>(from))
    return widenPower(byte);
  SmallFormat format = getFormat(from);
  Type words = typeLike(byte, b.getI32Type());
  Value word = arith::ExtUIOp::create(b, loc, words, byte);
  Value size = both(word, integer(words, (1 << (format.bits - 1)) - 1));
  Value shifted = arith::ShLIOp::create(b, loc, size, integer(words, 23 - format.fraction));
  Value normal = add(shifted, integer(words, int64_t(127 - format.bias) << 23));
  Value count = arith::SIToFPOp::create(b, loc, typeLike(byte, b.getF32Type()), size);
  Value small =
      bitcast(mul(count, like(count, std::ldexp(1.0, 1 - format.bias - int(format.fraction)))), b.getI32Type());
  Value bits = select(compare(Relation::Lt, size, double(1 << format.fraction)), small, normal);
  if (format.hasInfinity)
    bits = select(compare(Relation::Eq, size, double(format.beyond)), integer(words, 0x7f800000), bits);
  if (format.bits == 8) {
    Value isNan = compare(Relation::Ge, format.hasMinusZero ? size : word, double(format.beyond + format.hasInfinity));
    if (!format.hasMinusZero)
      isNan = compare(Relation::Eq, word, double(format.nan));
    bits = select(isNan, integer(words, 0x7fc00000), bits);
  }
  Value sign = arith::ShLIOp::create(b, loc, arith::ShRUIOp::create(b, loc, word, integer(words, format.bits - 1)),
                                     integer(words, 31));
  return bitcast(either(bits, sign), b.getF32Type());
}

//===----------------------------------------------------------------------===//
// To bytes
//===----------------------------------------------------------------------===//

/// \param single f32.
Value ElementBuilder::toSmallFloat(Value single, Type to) {
  if (isa<Float8E8M0FNUType>(to))
    return toPower(single, b.getF32Type(), nn::Rounding::Nearest, /*saturates=*/false);
  SmallFormat format = getFormat(to);
  Type words = typeLike(single, b.getI32Type());
  Value bits = bitcast(single, b.getI32Type()), size = both(bits, integer(words, 0x7fffffff));
  unsigned shift = 23 - format.fraction;
  Value last = both(arith::ShRUIOp::create(b, loc, size, integer(words, shift)), integer(words, 1));
  Value rounded = add(add(size, integer(words, (1 << (shift - 1)) - 1)), last);
  Value normal = sub(arith::ShRUIOp::create(b, loc, rounded, integer(words, shift)),
                     integer(words, int64_t(127 - format.bias) << format.fraction));
  Value unit = like(single, std::ldexp(1.0, 24 - format.bias - int(format.fraction)));
  Value small = sub(bitcast(add(bitcast(size, b.getF32Type()), unit), b.getI32Type()), bitcast(unit, b.getI32Type()));
  Value least = integer(words, int64_t(128 - format.bias) << 23); // the least with a leading 1
  Value code = select(compare(Relation::Lt, size, least), small, normal);
  code = select(compare(Relation::Gt, code, double(format.largest)), integer(words, format.beyond), code);
  code = select(isNan(single), integer(words, format.nan), code);
  Value sign = arith::ShRUIOp::create(b, loc, bits, integer(words, 31));
  Value signBit = arith::ShLIOp::create(b, loc, sign, integer(words, format.bits - 1));
  if (!format.hasMinusZero)
    signBit = select(compare(Relation::Eq, code, 0.0), integer(words, 0), signBit);
  return toByte(either(code, signBit));
}

Value ElementBuilder::toPower(Value value, Type from, nn::Rounding rounding, bool saturates) {
  if (isSmall(from))
    std::tie(value, from) = fromSmall(value, from);
  // ONNX rounds to f32 first.
  value = convertPlain(value, from, b.getF32Type());
  Type words = typeLike(value, b.getI32Type());
  Value size = both(bitcast(value, b.getI32Type()), integer(words, 0x7fffffff)), rounded = size;
  if (rounding == nn::Rounding::Up)
    rounded = add(size, integer(words, 0x7fffff));
  if (rounding == nn::Rounding::Nearest) { // a half goes up but for that of the least
    Value isLeast = compare(Relation::Lt, size, double(0x800000));
    rounded = add(size, select(isLeast, integer(words, 0x3fffff), integer(words, 0x400000)));
  }
  Value exponent = arith::ShRUIOp::create(b, loc, rounded, integer(words, 23));
  if (saturates)
    exponent = extremum(false, exponent, integer(words, 0xfe), true);
  Value isSpecial = compare(Relation::Ge, size, double(0x7f800000));
  return toByte(select(isSpecial, integer(words, 0xff), exponent));
}

/// Infinities, too, become the largest number; NaN stays one where there is any.
Value ElementBuilder::saturateSmall(Value value, Type from, Type to) {
  if (isa<Float8E8M0FNUType>(to))
    return toPower(value, from, nn::Rounding::Nearest, /*saturates=*/true);
  if (isa<FloatType>(to)) {
    Value single = toSingle(value, from);
    double largest = APFloat::getLargest(cast<FloatType>(to).getFloatSemantics()).convertToDouble();
    Value bound = like(single, largest), isBeyond = compare(Relation::Gt, abs(single), bound);
    return toSmallFloat(select(isBeyond, math::CopySignOp::create(b, loc, bound, single), single), to);
  }
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  Type byte = isUnsigned ? b.getIntegerType(8, /*isSigned=*/false) : Type(b.getI8Type());
  value = saturate(value, from, byte);
  int64_t most = (1 << (isUnsigned ? width : width - 1)) - 1;
  value = extremum(false, value, integer(value.getType(), most), isUnsigned);
  if (!isUnsigned)
    value = extremum(true, value, integer(value.getType(), -most - 1), false);
  return takeBits(value, width);
}
