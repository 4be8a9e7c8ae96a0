//===- Fragments.h - products that a warp makes together --------*- C++ -*-===//
//
// mma.sync.m16n8: the lanes of a warp hold a part each (*fragment*) of 16 rows x depth of one operand, of depth x 8 columns
// of the other and of the 16 x 8 sums. Lane 4 g + t holds
//
//   sums     (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
//   rows     (g, d) (g + 8, d) (g, d + half) (g + 8, d + half)          d: two halves at 2t, or one number of tf32 at t
//   columns  (d, g) (d + half, g)                                       two such are loaded at once, for 16 columns
//
// Operands lie in shared memory, either way round: ldmatrix takes 8 x 16 bytes as they lie or, of 16 bits, turned.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_FRAGMENTS_H
#define CLEAVE_LIB_CODEGEN_DEVICE_FRAGMENTS_H

#include "Emitter.h"

namespace cleave::codegen {

/// An operand in shared memory: element (outer, depth) lies at `outer * pitch + depth`, or at `depth * pitch + outer`. Rows
/// of memory begin at multiples of 16 bytes.
struct FragmentTile {
  mlir::Value memory;
  int64_t pitch;
  bool alongDepth; ///< else along rows or columns
  bool isColumns;
  bool inOrderOfSums =
      false; ///< the depth is, of what is multiplied with `Fragments::toRows`. Precondition: not alongDepth

  /// How far apart elements are.
  int64_t at(int64_t outer, int64_t depth) const { return alongDepth ? outer * pitch + depth : depth * pitch + outer; }
};

class Fragments {
public:
  /// \param element f16, bf16, or f32, of which 10 bits of fraction count (tf32). Sums are f32. Precondition: canMultiply.
  Fragments(DeviceEmitter &e, mlir::Type element);
  static bool canMultiply(mlir::Type element) { return element.isF16() || element.isBF16() || element.isF32(); }
  static constexpr int64_t kRows = 16, kColumns = 8, kSums = 4;
  /// Of one product.
  int64_t getDepth() const { return 2 * unit; }

  /// What this lane adds to the place of a fragment's first element.
  mlir::Value getLanePlace(const FragmentTile &tile) const;
  /// 16 rows or columns x getDepth() from the element at `place` on, which has this lane's place added: four words.
  Values load(const FragmentTile &tile, mlir::Value place);
  /// Adds to four sums. `columns`: the first or second two words that were loaded of 16.
  void multiply(mlir::ValueRange rows, mlir::ValueRange columns, llvm::MutableArrayRef<mlir::Value> sums);
  /// Sums of as many columns as a product is deep, rounded, as rows of a next product.
  Values toRows(mlir::ValueRange sums);

  // Of a sum: its row in 16, with +8 for the third and fourth; the column of the first and third in 8.
  mlir::Value getRow() const { return group; }
  mlir::Value getColumn() const { return column; }

private:
  mlir::Value toWord(mlir::Value piece);
  mlir::Value round(mlir::Value number);
  mlir::Value pack(mlir::Value low, mlir::Value high);

  DeviceEmitter &e;
  mlir::Type element;
  int64_t unit; ///< elements of 16 bytes
  mlir::Value lane, group, inGroup, column;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_FRAGMENTS_H
