//===- Ranges.h - which bytes a view is ------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANGES_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANGES_H

#include "cleave/Dialect/Exec/IR/Exec.h"

namespace cleave::exec {

/// Bytes of a buffer, from the first element of a view to behind its last one.
struct Range {
  unsigned buffer = 0;
  int64_t begin = 0, end = 0;

  bool overlaps(const Range &other) const {
    return buffer == other.buffer && begin < other.end && other.begin < end && begin < end && other.begin < other.end;
  }
};

/// What commands refer to, looked up once: the buffers of a module by number, the bytes of views in them, kernels by name.
class Ranges {
public:
  explicit Ranges(mlir::ModuleOp module);

  /// On one rank.
  Range get(mlir::Value view, int64_t rank) const;
  /// From the lowest to the highest on any rank.
  Range getOnAll(mlir::Value view);
  /// True if the view lies in its buffer on all ranks, aligned to its elements.
  bool fits(ViewOp view);
  llvm::ArrayRef<BufferOp> getBuffers() const { return buffers; }
  BufferOp getBuffer(mlir::Value view) const { return buffers[getNumber(view.getDefiningOp<ViewOp>())]; }
  KernelOp getKernel(RunOp op) const { return kernels.lookup(op.getKernelAttr().getAttr()); }
  PiecesOp getPieces(ExchangeOp op) const { return pieces.lookup(op.getPiecesAttr().getAttr()); }

private:
  struct Column {
    int64_t least, most, divisor;
  };
  unsigned getNumber(ViewOp view) const { return numbers.find(view.getBufferAttr().getAttr())->second; }
  const Column &getColumn(ViewOp view);

  llvm::SmallVector<BufferOp> buffers;
  llvm::DenseMap<mlir::StringAttr, unsigned> numbers;
  llvm::DenseMap<mlir::StringAttr, KernelOp> kernels;
  llvm::DenseMap<mlir::StringAttr, PiecesOp> pieces;
  llvm::DenseMap<llvm::StringRef, Column> columns;
};

/// True if one of `source` and `target` is row number `index` of the other, as an all_gather or reduce_scatter of rows
/// among `size` ranks asks for in place.
bool isOwnRow(CollectiveOp op, const Range &source, const Range &target, int64_t index, int64_t size);

/// True if no piece that any rank gets lies in the bytes of `source`, on a rank where the views are `source` and `target`.
bool getsBeside(ExchangeOp op, PiecesOp pieces, const Range &source, const Range &target);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_RANGES_H
