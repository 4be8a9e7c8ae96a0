//===- Gemm.h - blocked matrix products -------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_REFERENCE_GEMM_H
#define CLEAVE_LIB_REFERENCE_GEMM_H

#include <cstdint>

namespace cleave::reference {

/// A matrix to read, with any strides in elements.
template <typename T> struct MatrixView {
  const T *data;
  int64_t rowStride, columnStride;
};

/// `to[i * toStride + j] = sum over p of a[i, p] * b[p, j]`, for i < m, j < n, p < k.
///
/// The order of the sum depends on k alone, not on the number of threads. Sums are in T; integers wrap. `to` must not
/// overlap `a` or `b`. T is float, double or uint64_t.
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T *to, int64_t toStride);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_GEMM_H
