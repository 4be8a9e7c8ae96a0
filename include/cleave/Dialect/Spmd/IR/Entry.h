//===- Entry.h - the function that is run -----------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_SPMD_IR_ENTRY_H
#define CLEAVE_DIALECT_SPMD_IR_ENTRY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

/// The function that a program is made of, trained and run: `main`, or the only one of the module. Null where it is not known; the caller
/// says why it asked.
mlir::func::FuncOp findEntry(mlir::ModuleOp module);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_ENTRY_H
