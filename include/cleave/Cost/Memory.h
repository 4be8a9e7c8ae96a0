//===- Memory.h - the bytes that a rank's program needs at once -*- C++ -*-===//
#ifndef CLEAVE_COST_MEMORY_H
#define CLEAVE_COST_MEMORY_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::cost {

/// The most bytes that are live at one time: parameters always, an argument until its last use, a value from its op to its last use,
/// results to the end. Once memory is planned, the bytes of all buffers. A stage of a pipeline is called once per microbatch, and counted
/// once. `symbols` are those of the module.
int64_t countPeakBytes(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);
int64_t countPeakBytes(mlir::func::FuncOp func);

/// Bytes of `countPeakBytes` and what they are of.
struct HeldBytes {
  int64_t bytes = 0;
  /// A value, or a view once memory is planned; null for what no value has: what a loop or a stage holds of its own, gaps of an arena.
  mlir::Value value;
  /// Where memory is planned, what it is in.
  exec::BufferOp buffer;
};
/// What is held where most is: it adds up to `countPeakBytes`. Of an arena it is the command at which most of that is in use, on the first
/// rank; what values in place share counts for the one that is written last.
llvm::SmallVector<HeldBytes> listPeakBytes(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

/// What is held, from a step to a step, both included.
struct LiveBytes : HeldBytes {
  int64_t first = 0, last = 0;
};
/// All that is held at any time, before memory is planned; a step is an op of the function's block.
llvm::SmallVector<LiveBytes> listLiveBytes(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

/// The buffers of a function: those that its views see where it is that of a rank of a pipeline, else all of the module.
llvm::SmallVector<exec::BufferOp> getBuffers(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

} // namespace cleave::cost

#endif // CLEAVE_COST_MEMORY_H
