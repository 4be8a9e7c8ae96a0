//===- Gemm.cpp - blocked matrix products ---------------------------------===//
//
// The usual scheme: a block of `b` (kDepth x kColumns) is packed into panels as wide as a tile, then blocks of `a`
// (kRows x kDepth) into panels as high as a tile, and a micro kernel keeps one tile of the result in registers while it
// runs down the depth:
//
//            n                     kDepth           kColumns
//        +-------+            m  +--------+      +---+---+---+
//      m |  to   |     =   kRows |########|   x  |   |   |   | kDepth
//        +-------+               +--------+      +---+---+---+
//                                 panels of       panels of
//                                 tile rows       tile columns
//
// The micro kernel is compiled for AVX-512, AVX2 and the baseline, and chosen when the program starts. Products that
// are too thin for tiles to pay (a vector times a matrix) are done directly.
//
//===----------------------------------------------------------------------===//
#include "Gemm.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Parallel.h"
#include <algorithm>
#include <cstring>
#include <vector>

using namespace cleave::reference;

static constexpr int64_t kDepth = 256, kColumns = 2048, kRowTiles = 12;
/// Products above this many multiplications use several threads.
static constexpr int64_t kParallelWork = 1 << 22;

//===----------------------------------------------------------------------===//
// Micro kernels
//===----------------------------------------------------------------------===//

/// tile[Rows][Vectors * Lanes] = sum over p of a[p][row] * b[p][column]; both packed.
template <typename T, int Rows, int Vectors, int Lanes>
__attribute__((always_inline)) static inline void computeTile(int64_t depth, const T *a, const T *b, T *tile) {
  typedef T Vector __attribute__((vector_size(Lanes * sizeof(T))));
  Vector sums[Rows][Vectors] = {};
  for (int64_t p = 0; p < depth; ++p, a += Rows, b += Vectors * Lanes) {
    Vector columns[Vectors];
    std::memcpy(&columns, b, sizeof(columns));
    for (int row = 0; row < Rows; ++row)
      for (int v = 0; v < Vectors; ++v)
        sums[row][v] += a[row] * columns[v];
  }
  std::memcpy(tile, &sums, sizeof(sums));
}

namespace {
template <typename T> struct TileKernel {
  int rows, columns;
  void (*compute)(int64_t depth, const T *a, const T *b, T *tile);
};
} // namespace

template <typename T> static void computeTileBaseline(int64_t depth, const T *a, const T *b, T *tile) {
  computeTile<T, 4, 2, 16 / sizeof(T)>(depth, a, b, tile);
}

#if defined(__x86_64__)
template <typename T>
__attribute__((target("avx2,fma"))) static void computeTileAvx2(int64_t depth, const T *a, const T *b, T *tile) {
  computeTile<T, 6, 2, 32 / sizeof(T)>(depth, a, b, tile);
}
template <typename T>
__attribute__((target("avx512f"))) static void computeTileAvx512(int64_t depth, const T *a, const T *b, T *tile) {
  computeTile<T, 12, 2, 64 / sizeof(T)>(depth, a, b, tile);
}
#endif

template <typename T> static TileKernel<T> chooseKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return {12, int(128 / sizeof(T)), computeTileAvx512<T>};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {6, int(64 / sizeof(T)), computeTileAvx2<T>};
#endif
  return {4, int(32 / sizeof(T)), computeTileBaseline<T>};
}

static constexpr int kMaxTileBytes = 12 * 128;

//===----------------------------------------------------------------------===//
// Packing and blocks
//===----------------------------------------------------------------------===//

/// Packs `count` lines of `depth` elements into panels of `width` lines, the lines of a panel interleaved and the last
/// panel filled up with zeros. Element (line, p) is at `from[line * lineStride + p * depthStride]`.
template <typename T>
static void packPanels(int64_t count, int64_t depth, int width, const T *from, int64_t lineStride, int64_t depthStride,
                       T *to) {
  for (int64_t first = 0; first < count; first += width) {
    int64_t lines = std::min<int64_t>(width, count - first);
    for (int64_t p = 0; p < depth; ++p, to += width) {
      const T *source = from + first * lineStride + p * depthStride;
      for (int64_t line = 0; line < lines; ++line)
        to[line] = source[line * lineStride];
      std::fill(to + lines, to + width, T(0));
    }
  }
}

/// Adds the valid part of a tile to the result, or writes it where this is the first block of the sum.
template <typename T>
static void writeTile(const T *tile, int tileColumns, int64_t rows, int64_t columns, bool isFirst, T *to,
                      int64_t toStride) {
  for (int64_t row = 0; row < rows; ++row, to += toStride, tile += tileColumns)
    for (int64_t column = 0; column < columns; ++column)
      to[column] = isFirst ? tile[column] : to[column] + tile[column];
}

/// One packed block of rows times one packed block of columns.
template <typename T>
static void multiplyBlock(const TileKernel<T> &kernel, int64_t rows, int64_t columns, int64_t depth, const T *a,
                          const T *b, bool isFirst, T *to, int64_t toStride) {
  alignas(64) T tile[kMaxTileBytes / sizeof(T)];
  for (int64_t column = 0; column < columns; column += kernel.columns)
    for (int64_t row = 0; row < rows; row += kernel.rows) {
      kernel.compute(depth, a + row * depth, b + column * depth, tile);
      writeTile(tile, kernel.columns, std::min<int64_t>(kernel.rows, rows - row),
                std::min<int64_t>(kernel.columns, columns - column), isFirst, to + row * toStride + column, toStride);
    }
}

/// Calls `fn(0)` to `fn(count - 1)`, on several threads where the work is worth it.
template <typename Fn> static void forEachBlock(int64_t count, int64_t work, Fn fn) {
  if (count > 1 && work > kParallelWork)
    return llvm::parallelFor(0, count, [&](size_t i) { fn(int64_t(i)); });
  for (int64_t i = 0; i < count; ++i)
    fn(i);
}

static int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

template <typename T>
static void multiplyBlocked(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T *to,
                            int64_t toStride) {
  static const TileKernel<T> kernel = chooseKernel<T>();
  int64_t blockRows = kRowTiles * kernel.rows, numRowBlocks = (m + blockRows - 1) / blockRows;
  std::vector<T> packedB(std::min(kDepth, k) * roundUp(std::min(kColumns, n), kernel.columns));
  for (int64_t column = 0; column < n; column += kColumns)
    for (int64_t p = 0; p < k; p += kDepth) {
      int64_t columns = std::min(kColumns, n - column), depth = std::min(kDepth, k - p);
      packPanels(columns, depth, kernel.columns, b.data + p * b.rowStride + column * b.columnStride, b.columnStride,
                 b.rowStride, packedB.data());
      forEachBlock(numRowBlocks, m * columns * depth, [&](int64_t block) {
        int64_t row = block * blockRows, rows = std::min(blockRows, m - row);
        std::vector<T> packedA(depth * roundUp(rows, kernel.rows));
        packPanels(rows, depth, kernel.rows, a.data + row * a.rowStride + p * a.columnStride, a.rowStride,
                   a.columnStride, packedA.data());
        multiplyBlock(kernel, rows, columns, depth, packedA.data(), packedB.data(), p == 0,
                      to + row * toStride + column, toStride);
      });
    }
}

//===----------------------------------------------------------------------===//
// Thin products
//===----------------------------------------------------------------------===//

/// Sum of products of two lines.
template <typename T> static T dot(int64_t count, const T *a, int64_t aStride, const T *b, int64_t bStride) {
  // Eight sums that the compiler can keep in one register.
  T sums[8] = {};
  int64_t p = 0;
  if (aStride == 1 && bStride == 1)
    for (; p + 8 <= count; p += 8)
      for (int lane = 0; lane < 8; ++lane)
        sums[lane] += a[p + lane] * b[p + lane];
  for (; p < count; ++p)
    sums[p % 8] += a[p * aStride] * b[p * bStride];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <typename T>
static void multiplyThin(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T *to, int64_t toStride) {
  for (int64_t row = 0; row < m; ++row, to += toStride) {
    const T *line = a.data + row * a.rowStride;
    if (b.columnStride != 1) {
      for (int64_t column = 0; column < n; ++column)
        to[column] = dot(k, line, a.columnStride, b.data + column * b.columnStride, b.rowStride);
      continue;
    }
    std::fill(to, to + n, T(0));
    for (int64_t p = 0; p < k; ++p) {
      T factor = line[p * a.columnStride];
      const T *source = b.data + p * b.rowStride;
      for (int64_t column = 0; column < n; ++column)
        to[column] += factor * source[column];
    }
  }
}

template <typename T>
void cleave::reference::multiply(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T *to,
                                 int64_t toStride) {
  if (k == 0)
    for (int64_t row = 0; row < m; ++row)
      std::fill(to + row * toStride, to + row * toStride + n, T(0));
  else if (m < 4 || n < 4 || m * n * k < 2048)
    multiplyThin(m, n, k, a, b, to, toStride);
  else
    multiplyBlocked(m, n, k, a, b, to, toStride);
}

template void cleave::reference::multiply<float>(int64_t, int64_t, int64_t, MatrixView<float>, MatrixView<float>,
                                                 float *, int64_t);
template void cleave::reference::multiply<double>(int64_t, int64_t, int64_t, MatrixView<double>, MatrixView<double>,
                                                  double *, int64_t);
template void cleave::reference::multiply<uint64_t>(int64_t, int64_t, int64_t, MatrixView<uint64_t>,
                                                    MatrixView<uint64_t>, uint64_t *, int64_t);
