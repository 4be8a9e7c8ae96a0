//===- Elements.h - numbers of devices as numbers of this machine -*- C++ -*-===//
//
// For libraries that compute: what lies in memory is widened, and what was computed is rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_ELEMENTS_H
#define CLEAVE_LIB_EMULATION_CUDA_ELEMENTS_H

#include "../Halves.h"

namespace cleave::emulation {

/// What CUDA's libraries have types of their own for, each its own numbers.
enum class FloatKind { F64, F32, F16, BF16 };

/// Of one element.
inline uint64_t getBytes(FloatKind kind) { return kind == FloatKind::F64 ? 8 : kind == FloatKind::F32 ? 4 : 2; }

/// Every kind fits f64 exactly.
inline double loadFloat(const char *at, FloatKind kind) {
  uint16_t half = 0;
  float single = 0;
  double wide = 0;
  switch (kind) {
  case FloatKind::F64:
    memcpy(&wide, at, sizeof wide);
    return wide;
  case FloatKind::F16:
    memcpy(&half, at, sizeof half);
    return halfToFloat(half);
  case FloatKind::BF16:
    memcpy(&half, at, sizeof half);
    return bf16ToFloat(half);
  case FloatKind::F32:
    break;
  }
  memcpy(&single, at, sizeof single);
  return single;
}

/// Rounds once, from what was summed.
inline void storeFloat(char *at, FloatKind kind, double value) {
  auto single = float(value);
  uint16_t half = kind == FloatKind::F16 ? floatToHalf(single) : floatToBf16(single);
  if (kind == FloatKind::F64)
    memcpy(at, &value, sizeof value);
  else if (kind == FloatKind::F32)
    memcpy(at, &single, sizeof single);
  else
    memcpy(at, &half, sizeof half);
}

/// To the 10 bits of fraction that TF32 has.
inline float roundToTf32(float value) { return asFloat((asBits(value) + 0x1000) & 0xffffe000); }

} // namespace cleave::emulation

#endif // CLEAVE_LIB_EMULATION_CUDA_ELEMENTS_H
