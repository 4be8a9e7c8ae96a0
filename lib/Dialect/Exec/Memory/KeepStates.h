//===- KeepStates.h - states of a program, before memory is -----*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPSTATES_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPSTATES_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Spmd/IR/States.h"

namespace cleave::exec {

/// Lets a concat of a state and what is new, whose result the state becomes, be an exec.append.
void appendStates(mlir::func::FuncOp func, llvm::ArrayRef<spmd::StatePlace> states);

/// The exec.append that makes the next value of a state that grows out of the old one; null if another op makes it.
AppendOp getAppend(mlir::func::FuncOp func, const spmd::StatePlace &state);

/// Copies the old value of a state for those who cannot read it where it lies: a state that grows is not dense, and one that
/// becomes the next value of another state may be gone by then.
void copyOldStates(mlir::func::FuncOp func, llvm::ArrayRef<spmd::StatePlace> states);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_KEEPSTATES_H
