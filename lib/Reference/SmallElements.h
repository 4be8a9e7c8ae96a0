//===- SmallElements.h - kinds of elements, and those of few bits -*- C++ -*-===//
//
// Floats of 8 and 4 bits, and integers of 4 and 2, lie in a byte each: which they are is in their type. The compiler of kernels converts
// them by arithmetic of its own (lib/Codegen/SmallElements.cpp), so that each checks the other.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_SMALLELEMENTS_H
#define CLEAVE_LIB_REFERENCE_SMALLELEMENTS_H

#include <cstdint>

namespace cleave::reference {

enum class ElementKind {
  F32,
  F16,
  BF16,
  F64,
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  I4,
  U4,
  I2,
  U2,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0FNU,
  F4E2M1FN
};
/// A byte that holds a float of 8 or 4 bits.
template <ElementKind kind> struct SmallFloat {
  uint8_t bits;
};
/// A byte that holds an integer of `width` bits.
template <unsigned width, bool isSigned> struct SmallInteger {
  uint8_t bits;
};

/// Exact.
float widenSmallFloat(ElementKind kind, uint8_t bits);
/// Rounded to nearest even; overflow gives infinity, or NaN where there is none, or the largest number where there is neither.
uint8_t toSmallFloat(ElementKind kind, float value);

template <typename T> constexpr bool isSmallFloat = false;
template <ElementKind kind> constexpr bool isSmallFloat<SmallFloat<kind>> = true;
template <typename T> constexpr bool isSmallInteger = false;
template <unsigned width, bool isSigned> constexpr bool isSmallInteger<SmallInteger<width, isSigned>> = true;
template <typename T> constexpr ElementKind smallKind = ElementKind::F32;
template <ElementKind kind> constexpr ElementKind smallKind<SmallFloat<kind>> = kind;
template <typename T> constexpr unsigned smallWidth = 0;
template <unsigned width, bool isSigned> constexpr unsigned smallWidth<SmallInteger<width, isSigned>> = width;
template <typename T> constexpr bool isSmallSigned = false;
template <unsigned width> constexpr bool isSmallSigned<SmallInteger<width, true>> = true;

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_SMALLELEMENTS_H
