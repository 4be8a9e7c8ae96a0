//===- SplitTile.h - products of f32 by tiles of bf16 -----------*- C++ -*-===//
//
// A number of f32 is nearly the sum of two of bf16, a high and a low one, of 8 bits each. Of the four products of two such sums
// three are computed, in tiles (PairTile.h): what is left out, and what the low one lacks, is about 2^-16 of a product.
//
//   a b  =  high(a) high(b) + high(a) low(b) + low(a) high(b)
//
// Both operands are split on their way into memory of the kernel's own: rows of A once a block of rows, a panel of B once a
// block, too. A number that is not finite, or close to the largest one, gives NaN.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_SPLITTILE_H
#define CLEAVE_LIB_CODEGEN_HOST_SPLITTILE_H

#include "../Tile.h"

namespace cleave::codegen {

/// A block of rows and a panel of vectors, split.
class SplitTile {
public:
  /// For so many rows and vectors at the most. Precondition: `canTile` of the last dim of `depth`.
  SplitTile(Emitter &e, llvm::ArrayRef<int64_t> depth, int64_t rows, int64_t vectors);

  /// `load(row, k)` gives 16 neighbors along the depth, from k on.
  void setNumbers(int64_t rows, llvm::function_ref<mlir::Value(mlir::Value, llvm::ArrayRef<mlir::Value>)> load);
  /// `load(v, k)` gives 16 neighboring columns.
  void setVectors(int64_t vectors, llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> load);
  /// Sums of the rows from `row` on, as multiplyPairs puts them.
  void multiply(TileShape shape, int64_t allRows, mlir::Value row, mlir::Value out, mlir::Value place,
                int64_t outApart);

private:
  /// The two parts, 16 integers of 16 bits each.
  std::pair<mlir::Value, mlir::Value> split(mlir::Value vector);

  Emitter &e;
  llvm::SmallVector<int64_t> depth;
  int64_t size, numbersPart, pairsPart; ///< numbers along the depth; of the low part the first element
  mlir::Value numbers, pairs;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_SPLITTILE_H
