//===- Passes.h - the passes of the spmd dialect ----------------*- C++ -*-===//
//
// What each does, with a picture, is in dialects/Spmd/SpmdPasses.td; how they follow each other in Pipelines/Shard.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace cleave::spmd {

#define GEN_PASS_DECL
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H
