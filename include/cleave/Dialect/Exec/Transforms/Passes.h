//===- Passes.h - the passes of the exec dialect ----------------*- C++ -*-===//
//
// What each does, with a picture, is in dialects/Exec/ExecPasses.td; how they follow each other in Pipelines/Lower.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_TRANSFORMS_PASSES_H
#define CLEAVE_DIALECT_EXEC_TRANSFORMS_PASSES_H

#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace cleave::exec {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_TRANSFORMS_PASSES_H
