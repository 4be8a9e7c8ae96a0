//===- MatrixProduct.h - the product of two matrices ------------*- C++ -*-===//
//
// Three loops, for some rows at a time on each thread. The inner one runs along a row of the result and a row of `b`,
// so that the compiler makes vectors of it; rows of `b` are taken in pieces that stay in the cache while every row of
// `a` meets them:
//
//               n                  p                  n
//          +---------+         +---+-+---+       +---------+
//        i |#########|    +=   |   |x|   |   x   |         |
//          |         |         |   | |   |     p |#########|   one factor x, one row of `b`, one row of the result
//          +---------+         +---+-+---+       +---------+
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_MATRIXPRODUCT_H
#define CLEAVE_LIB_REFERENCE_MATRIXPRODUCT_H

#include "Loops.h"

namespace cleave::reference {

/// A matrix with the elements of a row side by side, unless `columnStride` says otherwise; strides in elements.
template <typename T> struct Matrix {
  T *data;
  int64_t rowStride, columnStride = 1;
};

/// `to[i, j] += sum over p of a[i, p] * b[p, j]`, for i < m, j < n, p < k.
///
/// Terms are added in the order of p, in T, whatever the number of threads; integers wrap. Rows of `b` and `to` must be
/// side by side, and `to` must not overlap the others. T is float, double or uint64_t.
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> to) {
  constexpr int64_t kRows = 32, kDepth = 64;
  forEachTask((m + kRows - 1) / kRows, double(m) * n * k, [=](int64_t task) {
    for (int64_t first = 0; first < k; first += kDepth)
      for (int64_t i = task * kRows, end = std::min(i + kRows, m); i < end; ++i)
        for (int64_t p = first, last = std::min(first + kDepth, k); p < last; ++p) {
          T factor = a.data[i * a.rowStride + p * a.columnStride];
          const T *row = b.data + p * b.rowStride;
          T *__restrict sums = to.data + i * to.rowStride;
          for (int64_t j = 0; j < n; ++j)
            sums[j] += factor * row[j];
        }
  });
}

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_MATRIXPRODUCT_H
