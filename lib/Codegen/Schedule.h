//===- Schedule.h - what a kernel computes when -----------------*- C++ -*-===//
//
// A kernel goes through three steps: what must lie in memory is put there (*filled*); the blocks of one
// contraction are computed and stored, with what is computed of them (*anchor*); rows are swept, where there are rows, or the
// other results are mapped. Emission follows this, and so do questions about a kernel that is not there yet. A device has no first
// step: what would be filled there is a kernel of its own.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_SCHEDULE_H
#define CLEAVE_LIB_CODEGEN_SCHEDULE_H

#include "Lowerings.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::codegen {

/// Rows of `shape` along `dim`, and the reductions that are swept along them.
struct Rows {
  llvm::SmallVector<mlir::Operation *> swept;
  llvm::SmallVector<int64_t> shape;
  int64_t dim = 0;

  bool isSwept(mlir::Operation *op) const { return llvm::is_contained(swept, op); }
  /// The rows' shape, with one element a row.
  llvm::SmallVector<int64_t> getKeptShape() const;
  /// True if `value` has the rows' shape, or one element a row.
  bool fits(mlir::Value value) const;
};

/// An op whose blocks (Form::tile) need not be in memory before results are computed of them, element by element. What is
/// transposed or reshaped on the way lies at another point: each *space* has points of its own.
struct Anchor {
  /// One that `move` makes of another; number 0 is the anchor's own.
  struct Space {
    unsigned from;
    mlir::Operation *move;
  };

  mlir::Operation *op = nullptr;
  llvm::SmallVector<Space> spaces;
  llvm::DenseMap<mlir::Value, unsigned> spaceOf;
  llvm::SmallVector<mlir::Operation *> moves; ///< in the order of the program

  explicit operator bool() const { return op; }
  bool has(mlir::Value value) const { return spaceOf.contains(value); }
  /// Follows what is computed of `op`; false if some of it is needed and is no matter of elements.
  bool follow(mlir::Operation *op, llvm::ArrayRef<mlir::Value> results);

private:
  std::optional<unsigned> findSpace(mlir::Operation *user);
};

/// Of a region in simple ops (Expand.h).
struct Schedule {
  explicit Schedule(mlir::func::FuncOp region, Processor processor = Processor::Host);

  bool isFilled(mlir::Value value) const { return llvm::is_contained(filled, value.getDefiningOp()); }
  /// What result `index` is a reshape of; reshapes change no byte.
  mlir::Value getResult(unsigned index) const { return results[index]; }

  llvm::SmallVector<mlir::Value> results;
  /// Ops whose results go to memory first, in the order of the program.
  llvm::SmallVector<mlir::Operation *> filled;
  Anchor anchor;
  /// No reductions: every result is a map.
  Rows rows;
  Processor processor;

private:
  void findRows(mlir::Block &block);
  void findFilled(mlir::Block &block);
  void findAnchor(mlir::Block &block);
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_SCHEDULE_H
