//===- Tile.h - blocks of sums in registers ---------------------*- C++ -*-===//
//
// What contractions, convolutions and attention have in common: a block of rows x vectors of sums stays in registers while the
// depth is walked; a step loads the vectors of one operand once and multiplies them by one number a row of the other.
//
//               vectors of B at k
//               b0    b1    b2
//   a0 (A) ┌─ sum00 sum01 sum02
//   a1     │  sum10 sum11 sum12       sum[r][v] += a[r] * b[v], in the order of k
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_TILE_H
#define CLEAVE_LIB_CODEGEN_TILE_H

#include "View.h"

namespace cleave::codegen {

/// So many sums in registers.
struct TileShape {
  int64_t rows, vectors;
  int64_t cost = 0; ///< of the whole product, in half cycles per step of the depth
};

/// A product as blocks see it.
struct TileExtents {
  int64_t rows, vectors;
  int64_t vectorBytes; ///< of a vector of columns, along all of the depth
};

/// The cheapest block, `most` rows tall: more would read too many streams.
TileShape chooseTile(int64_t registers, TileExtents all, int64_t most = 12);

/// A place of the form `base + constant`: what neighbors in a block share, and how far apart they are.
struct OffsetPlace {
  mlir::Value base;
  int64_t constant = 0;
};

/// An operand that tiles load from by themselves.
class Operand {
public:
  Operand(Emitter &e, mlir::Value value);

  const ViewDim &getDim(int64_t dim) const { return view.dims[dim]; }
  /// What index `at + offset` of a dim adds to the place of an element.
  OffsetPlace along(const ViewDim &dim, mlir::Value at, int64_t offset = 0) const;
  mlir::Value getOrigin() const;
  mlir::Value getBuffer() const { return buffer; }
  /// What lies at `place`, in the compute type: as many neighbors as there are lanes, so far apart.
  mlir::Value load(mlir::Value place, int64_t apart = 1) const;
  /// Asks for the line of memory at `place`, which may lie behind the last element, up to a cache.
  void prefetch(mlir::Value place, unsigned cache = kSecondCache) const;

private:
  Emitter &e;
  View view;
  mlir::Value buffer;
  mlir::Type element;
};

/// Walks `depth`; sums are row by row. `scalar(row, k)` gives a number, `vector(v, k)` a vector, in the compute type.
Values sumTile(Emitter &e, TileShape shape, llvm::ArrayRef<int64_t> depth, Values sums,
               llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> scalar,
               llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> vector);

/// The same of `none`, zeros, in parts of a few hundred steps, whose sums are added up: a sum of n terms one by one is off by as much as
/// n roundings, in parts by as much as those of one part and of as many as there are (Higham 1993).
Values sumDeepTile(Emitter &e, TileShape shape, llvm::ArrayRef<int64_t> depth, const Values &none,
                   llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> scalar,
                   llvm::function_ref<mlir::Value(int64_t, llvm::ArrayRef<mlir::Value>)> vector);

/// As many vectors as they have lanes, turned.
Values transposeBlock(Emitter &e, mlir::ValueRange vectors);

/// Calls `body` for blocks of `step` of `count`, in a loop, then for what is left.
void overBlocks(Emitter &e, int64_t count, int64_t step, llvm::function_ref<void(mlir::Value, int64_t)> body);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_TILE_H
