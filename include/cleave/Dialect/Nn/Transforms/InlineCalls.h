//===- InlineCalls.h - bodies instead of calls ------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_TRANSFORMS_INLINECALLS_H
#define CLEAVE_DIALECT_NN_TRANSFORMS_INLINECALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace cleave::nn {

/// Replaces every `func.call` of the module's functions by the body of its callee, and erases private functions that
/// were called. Types, annotations in them and locations come along as they are. Linear in the ops that there are
/// afterwards. Fails after an error on a call: its callee calls itself in the end, has no body or control flow, or its
/// function would grow beyond a million ops. The module is then half done.
llvm::LogicalResult inlineCalls(mlir::ModuleOp module);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_TRANSFORMS_INLINECALLS_H
