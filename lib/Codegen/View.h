//===- View.h - how a value lies in memory ----------------------*- C++ -*-===//
//
// A chain of movements over a value that is in memory is that memory, read in another way:
//
//   transpose (reshape %x : 8x96 -> 8x3x32)      base %x, strides (32, 96, 1) for some permutation
//
// A cast that `widen` does is such a movement, too: of f16 or bf16 in memory, seen as f32.
//
// Templates that choose their own loads (contractions, attention, convolutions) look at operands so, and thus need no copy
// of what only changed its order.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_VIEW_H
#define CLEAVE_LIB_CODEGEN_VIEW_H

#include "Lowerings.h"

namespace cleave::codegen {

/// An element at index i lies `i * stride` behind the first, or in panels of `width`: `i / width * panel + i % width * stride`.
struct ViewDim {
  int64_t stride = 0, width = 0, panel = 0;
};

struct View {
  /// Row-major in memory; everything else is relative to it.
  mlir::Value base;
  int64_t offset = 0;
  llvm::SmallVector<ViewDim, 4> dims;

  static View get(mlir::Value value);
};

/// Dims of two shapes with as many elements that hold the same elements: `[6, 8] -> [2, 3, 8]` are `6 -> 2, 3` and `8 -> 8`.
struct DimGroup {
  int64_t from, fromEnd, to, toEnd;
  bool isSame() const { return fromEnd - from == 1 && toEnd - to == 1; }
};
llvm::SmallVector<DimGroup> matchDims(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// True if the shapes of both differ in dims of size 1 at most.
bool isOnesApart(mlir::Value x, mlir::Value y);

/// True for a value that elementwise ops and a transpose to channels last make of it, whichever way is taken.
bool leavesChannelsLast(mlir::Value value);

/// The point of a tensor reshaped to `to` that is `point` in `from`; nothing where lanes may fall apart.
std::optional<Point> reshapePoint(Emitter &e, const Point &point, llvm::ArrayRef<int64_t> from,
                                  llvm::ArrayRef<int64_t> to);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_VIEW_H
