//===- Loss.h - where the forward of a step ends ----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_LOSS_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_LOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::exec {

/// The last op of the forward: what makes the loss, or, with microbatches, what it is added up of. Null of a function that is no step.
mlir::Operation *findLoss(mlir::func::FuncOp func);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_LOSS_H
