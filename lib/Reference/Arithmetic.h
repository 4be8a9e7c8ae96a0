//===- Arithmetic.h - sums, products, extrema of compute types --*- C++ -*-===//
#ifndef CLEAVE_LIB_REFERENCE_ARITHMETIC_H
#define CLEAVE_LIB_REFERENCE_ARITHMETIC_H

#include <cstdint>
#include <type_traits>

namespace cleave::reference {

/// Signed integers wrap when computed as unsigned ones.
template <typename C> using Wrapping = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, C>;

template <typename C> C addWrapping(C x, C y) { return C(Wrapping<C>(x) + Wrapping<C>(y)); }
template <typename C> C subtractWrapping(C x, C y) { return C(Wrapping<C>(x) - Wrapping<C>(y)); }
template <typename C> C multiplyWrapping(C x, C y) { return C(Wrapping<C>(x) * Wrapping<C>(y)); }
/// NaN wins.
template <typename C> C smaller(C x, C y) { return x < y || x != x ? x : y; }
template <typename C> C larger(C x, C y) { return x > y || x != x ? x : y; }

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_ARITHMETIC_H
