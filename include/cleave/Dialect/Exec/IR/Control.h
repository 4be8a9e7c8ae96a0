//===- Control.h - loops of the exec dialect --------------------*- C++ -*-===//
//
// Marks in a list (dialects/Exec/ExecControl.td): exec.enter and exec.leave on tensors, exec.loop and exec.end_loop on memory. They pair
// like brackets.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_IR_CONTROL_H
#define CLEAVE_DIALECT_EXEC_IR_CONTROL_H

#include "cleave/Dialect/Exec/IR/Exec.h"

#define GET_OP_CLASSES
#include "cleave/Dialect/Exec/IR/ExecControl.h.inc"

namespace cleave::exec {

/// True for where a loop begins, or its body ends: nothing passes it.
inline bool isMark(mlir::Operation *op) { return llvm::isa<EnterOp, LeaveOp, LoopOp, EndLoopOp>(op); }

/// The mark that ends the body of the loop that `begin` begins; null where there is none of its kind (C2). Linear in the body.
mlir::Operation *findEnd(mlir::Operation *begin);
/// The mark that begins the loop whose body `end` ends, or null, likewise.
mlir::Operation *findBegin(mlir::Operation *end);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_IR_CONTROL_H
