//===- Product.h - a batch of matrix products -------------------*- C++ -*-===//
//
// The dims of two operands by what they are to their product, as loops want them: neighbors that lie one behind another are
// one *axis*. The operand whose columns lie side by side in memory gives the vectors.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_HOST_PRODUCT_H
#define CLEAVE_LIB_CODEGEN_HOST_PRODUCT_H

#include "../Tile.h"

namespace cleave::codegen {

/// One loop: dims of the result (row-major, if several), and how it moves in the operand that gives numbers (`a`) and in the
/// one that gives vectors (`b`).
struct Axis {
  int64_t extent = 1;
  ViewDim a, b;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 2> parts; ///< dim of the result, extent
};

struct Product {
  mlir::Value a, b, result;
  llvm::SmallVector<Axis> batch, rows, columns, depth;
  /// Vectors of the last axis of columns do not lie side by side: they are put so, block by block.
  bool mustPack = false;
  /// Both operands lie in memory as bf16, the depth in pairs: PairTile.h.
  bool isPaired = false;

  /// Of an einsum of two operands; nothing if it is no matrix product.
  static std::optional<Product> get(mlir::Operation *op, int64_t lanes);
  bool isEmpty() const { return countElements(getShape(result)) == 0; }
};

/// Computes it, and hands each vector of the result to `sink`.
void runProduct(Emitter &e, const Product &product, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_HOST_PRODUCT_H
