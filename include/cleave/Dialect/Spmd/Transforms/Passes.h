//===- Passes.h - the passes of the spmd dialect ----------------*- C++ -*-===//
//
// What each does, with a picture, is in dialects/Spmd/SpmdPasses.td; how they follow each other in Pipelines/Shard.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H

#include "cleave/Dialect/Spmd/Transforms/PassOptions.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/CommandLine.h"

namespace cleave::spmd {

/// The words of `optimize`.
inline llvm::cl::ValuesClass getOptimizeValues() {
  return llvm::cl::values(clEnumValN(Optimize::Balanced, kOptimizeWords[0], "bytes, compute and surprises"),
                          clEnumValN(Optimize::Bytes, kOptimizeWords[1], "bytes on the wire alone"),
                          clEnumValN(Optimize::Time, kOptimizeWords[2], "time on the cluster"));
}

/// The words of `attention`.
inline llvm::cl::ValuesClass getAttentionValues() {
  return llvm::cl::values(clEnumValN(AttentionMethod::Auto, kAttentionWords[0], "by price, or as the plan says"),
                          clEnumValN(AttentionMethod::Gather, kAttentionWords[1], "keys and values gathered"),
                          clEnumValN(AttentionMethod::Ring, kAttentionWords[2], "keys and values in blocks, round"));
}

#define GEN_PASS_REGISTRATION
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_PASSES_H
