//===- Arithmetic.h - sums, products, extrema of compute types --*- C++ -*-===//
#ifndef CLEAVE_LIB_REFERENCE_ARITHMETIC_H
#define CLEAVE_LIB_REFERENCE_ARITHMETIC_H

#include "mlir/IR/Types.h"
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cleave::reference {

/// Signed integers wrap when computed as unsigned ones.
template <typename C> using Wrapping = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, C>;

template <typename C> C addWrapping(C x, C y) { return C(Wrapping<C>(x) + Wrapping<C>(y)); }
template <typename C> C subtractWrapping(C x, C y) { return C(Wrapping<C>(x) - Wrapping<C>(y)); }
template <typename C> C multiplyWrapping(C x, C y) { return C(Wrapping<C>(x) * Wrapping<C>(y)); }
template <typename C> bool isNan(C x) {
  if constexpr (std::is_floating_point_v<C>)
    return std::isnan(x);
  else
    return false;
}
/// NaN wins.
template <typename C> C smaller(C x, C y) { return x < y || isNan(x) ? x : y; }
template <typename C> C larger(C x, C y) { return x > y || isNan(x) ? x : y; }

/// The value that any other one beats.
template <typename C> C getWorst(bool isMax, mlir::Type elementType) {
  if constexpr (std::is_floating_point_v<C>)
    return isMax ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::infinity();
  if (elementType.isInteger(1))
    return isMax ? C(0) : C(1);
  unsigned width = elementType.getIntOrFloatBitWidth();
  if constexpr (std::is_same_v<C, uint64_t>)
    return isMax ? 0 : ~uint64_t(0) >> (64 - width);
  int64_t largest = int64_t(~uint64_t(0) >> (65 - width));
  return C(isMax ? -largest - 1 : largest);
}

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_ARITHMETIC_H
