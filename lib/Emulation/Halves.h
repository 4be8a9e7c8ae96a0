//===- Halves.h - f16 and bf16 as bits --------------------------*- C++ -*-===//
//
// Written out, as not every compiler and processor has them: conversions to f32 are exact, those from it round to nearest even.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_HALVES_H
#define CLEAVE_LIB_EMULATION_HALVES_H

#include <cstdint>
#include <cstring>

namespace cleave::emulation {

inline float asFloat(uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t asBits(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// f16. Denormals are multiples of 2^-24.
inline float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
  if (exponent == 31)
    return asFloat(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0)
    return asFloat(sign | 0x3f800000) * (float(fraction) * 0x1p-24f);
  return asFloat(sign | (exponent + 112) << 23 | fraction << 13);
}

/// f16. Where it has fewer bits than a normal number, adding and taking away 0.5 lets the f32 adder round.
inline uint16_t floatToHalf(float value) {
  uint32_t bits = asBits(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000)
    return uint16_t(sign | 0x7e00);
  if (size >= 0x477ff000) // rounds to 2^16 or more
    return uint16_t(sign | 0x7c00);
  if (size < 0x38800000) // below 2^-14
    return uint16_t(sign | (asBits(asFloat(size) + 0.5f) - asBits(0.5f)));
  uint32_t rounded = size + 0xfff + (size >> 13 & 1);
  return uint16_t(sign | ((rounded >> 13) - (112u << 10)));
}

inline float bf16ToFloat(uint16_t half) { return asFloat(uint32_t(half) << 16); }
inline uint16_t floatToBf16(float value) {
  uint32_t bits = asBits(value);
  return uint16_t(value != value ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace cleave::emulation

#endif // CLEAVE_LIB_EMULATION_HALVES_H
