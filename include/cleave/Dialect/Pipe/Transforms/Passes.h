//===- Passes.h - the passes of the pipe dialect ----------------*- C++ -*-===//
//
// What each does, with a picture, is in dialects/Pipe/PipePasses.td.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_TRANSFORMS_PASSES_H
#define CLEAVE_DIALECT_PIPE_TRANSFORMS_PASSES_H

#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace cleave::pipe {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_TRANSFORMS_PASSES_H
