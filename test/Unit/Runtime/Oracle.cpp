//===- Oracle.cpp - what elements are, once more --------------------------===//
//
// Slow and plain on purpose.
//
//===----------------------------------------------------------------------===//
#include "Oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace cleave::runtime;
using namespace cleave::runtime::test;

uint64_t test::scramble(uint64_t x, uint64_t y) {
  uint64_t z = x * 0x9E3779B97F4A7C15ull + y + 0x632BE59BD9B4E019ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

//===----------------------------------------------------------------------===//
// Narrow floats: a sign, `5 or 8` bits of exponent, `10 or 7` of fraction
//===----------------------------------------------------------------------===//

static int getFraction(ElementType type) { return type == ElementType::F16 ? 10 : 7; }
static int getBias(ElementType type) { return type == ElementType::F16 ? 15 : 127; }

long double test::decodeNarrow(ElementType type, uint64_t bits) {
  int fraction = getFraction(type), exponent = int(bits >> fraction) & (2 * getBias(type) + 1);
  long double mantissa = bits & ((1u << fraction) - 1), sign = bits >> 15 ? -1 : 1;
  if (exponent == 2 * getBias(type) + 1)
    return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent > 0)
    mantissa += 1 << fraction;
  return sign * std::ldexp(mantissa, std::max(exponent, 1) - getBias(type) - fraction);
}

uint64_t test::encodeNarrow(ElementType type, long double value) {
  int fraction = getFraction(type), bias = getBias(type);
  uint64_t sign = std::signbit(value) ? 0x8000 : 0, infinity = uint64_t(2 * bias + 1) << fraction;
  if (std::isnan(value))
    return infinity | uint64_t(1) << (fraction - 1);
  if (value == 0)
    return sign;
  long double magnitude = std::fabs(value);
  int exponent = std::isinf(value) ? bias + 1 : std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias)
    return sign | infinity;
  // In units of the last place: 2^fraction and more is normal; one carry more is the next exponent.
  uint64_t units = uint64_t(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  uint64_t one = uint64_t(1) << fraction;
  return sign | (units < one ? units : uint64_t(exponent + bias) * one + (units - one));
}

//===----------------------------------------------------------------------===//
// All elements
//===----------------------------------------------------------------------===//

static bool isNarrow(ElementType type) { return type == ElementType::F16 || type == ElementType::BF16; }
static bool isSigned(ElementType type) { return type >= ElementType::I8 && type <= ElementType::I64; }

template <typename T> static T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
template <typename T> static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

static uint64_t truncate(ElementType type, uint64_t bits) {
  return getElementBytes(type) == 8 ? bits : bits & ((uint64_t(1) << 8 * getElementBytes(type)) - 1);
}

uint64_t test::makeElement(ElementType type, Reduction reduction, uint64_t seed) {
  static constexpr double kFactors[] = {1, -1, 2, 0.5, 1.5};
  if (!isNarrow(type) && type != ElementType::F32 && type != ElementType::F64)
    return type == ElementType::I1 ? seed >> 7 & 1 : truncate(type, seed);
  double value = reduction == Reduction::Prod ? kFactors[seed % 5]
                 : type == ElementType::F16   ? double(seed % 2048) / 64 - 16
                 : type == ElementType::BF16  ? double(seed % 256) / 8 - 16
                                              : double(int64_t(seed)) / 0x1p60;
  if (isNarrow(type))
    return encodeNarrow(type, value);
  return type == ElementType::F32 ? bitsOf(float(value)) : bitsOf(value);
}

/// Where all operations are exact, or rounded as `T` rounds.
template <typename T> static T combineNumbers(Reduction reduction, T x, T y) {
  switch (reduction) {
  case Reduction::None:
    break;
  case Reduction::Sum:
    return x + y;
  case Reduction::Prod:
    return x * y;
  case Reduction::Max:
    return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
  case Reduction::Min:
    break;
  }
  return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
}

static uint64_t combineIntegers(ElementType type, Reduction reduction, uint64_t x, uint64_t y) {
  if (reduction == Reduction::Sum || reduction == Reduction::Prod)
    return truncate(type, reduction == Reduction::Sum ? x + y : x * y);
  // The sign bit turned over makes signed order that of unsigned numbers.
  uint64_t flip = isSigned(type) ? uint64_t(1) << (8 * getElementBytes(type) - 1) : 0;
  bool first = reduction == Reduction::Max ? (x ^ flip) >= (y ^ flip) : (x ^ flip) <= (y ^ flip);
  return first ? x : y;
}

uint64_t test::combineElements(ElementType type, Reduction reduction, const std::vector<uint64_t> &terms) {
  uint64_t bits = terms[0];
  long double exact = isNarrow(type) ? decodeNarrow(type, bits) : 0;
  for (size_t i = 1; i < terms.size(); ++i) {
    if (isNarrow(type))
      exact = combineNumbers<long double>(reduction, exact, decodeNarrow(type, terms[i]));
    else if (type == ElementType::F32)
      bits = bitsOf(combineNumbers(reduction, as<float>(bits), as<float>(terms[i])));
    else if (type == ElementType::F64)
      bits = bitsOf(combineNumbers(reduction, as<double>(bits), as<double>(terms[i])));
    else
      bits = combineIntegers(type, reduction, bits, terms[i]);
  }
  return isNarrow(type) ? encodeNarrow(type, exact) : bits;
}

uint64_t test::readElement(const char *at, ElementType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, getElementBytes(type));
  return bits;
}

void test::writeElement(char *at, ElementType type, uint64_t bits) { std::memcpy(at, &bits, getElementBytes(type)); }
