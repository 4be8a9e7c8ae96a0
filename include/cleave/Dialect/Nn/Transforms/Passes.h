//===- Passes.h - passes over the nn dialect --------------------*- C++ -*-===//
//
// Recomposition and the canonical form that deciding wants; dialects/Nn/NnPasses.td describes each.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_TRANSFORMS_PASSES_H
#define CLEAVE_DIALECT_NN_TRANSFORMS_PASSES_H

#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace cleave::nn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_TRANSFORMS_PASSES_H
