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

/// The buffers of a function: those that its views see where it is that of a rank of a pipeline, else all of the module.
llvm::SmallVector<exec::BufferOp> getBuffers(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

} // namespace cleave::cost

#endif // CLEAVE_COST_MEMORY_H
