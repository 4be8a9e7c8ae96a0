//===- Numbers.h - elements in memory, and as numbers -----------*- C++ -*-===//
//
// Narrow floats are kept as bits, and computed with as floats: `load` is exact, `store` rounds to nearest, ties to even.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_NUMBERS_H
#define CLEAVE_LIB_RUNTIME_NUMBERS_H

#include <cstdint>
#include <cstring>

namespace cleave::runtime {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename T> T load(T value) { return value; }
inline float load(BFloat value) { return bitCast<float>(uint32_t(value.bits) << 16); }
inline float load(Half value) {
  // The exponent is rebiased by a product, which makes subnormals normal; infinity and NaN keep theirs.
  uint32_t magnitude = value.bits & 0x7fffu, sign = uint32_t(value.bits & 0x8000u) << 16;
  uint32_t finite = bitCast<uint32_t>(bitCast<float>(magnitude << 13) * 0x1p112f);
  return bitCast<float>(sign | (magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : finite));
}

template <typename T, typename C> void store(T &to, C value) { to = T(value); }
/// To nearest, ties to even.
inline void store(BFloat &to, float value) {
  uint32_t bits = bitCast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  to.bits = uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
inline void store(Half &to, float value) {
  uint32_t bits = bitCast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the sum with 0.5 rounds to the places that a subnormal has; above, rounding carries into the exponent.
  uint32_t subnormal = bitCast<uint32_t>(bitCast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  to.bits = uint16_t(bits >> 16 & 0x8000u) | uint16_t(magnitude >= 0x47800000u ? special : result);
}

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_NUMBERS_H
