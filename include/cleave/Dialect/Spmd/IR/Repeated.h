//===- Repeated.h - ops that run more than once -----------------*- C++ -*-===//
//
// What stands in the body of a loop runs as often as the loop does. Deciding costs it so often, and so do all that count what
// a program sends and computes: an attribute of the loop says how often that is.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_REPEATED_H
#define CLEAVE_DIALECT_SPMD_IR_REPEATED_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"

namespace cleave::spmd {

/// On a loop, from propagation on: how many iterations it was counted for (i64).
inline constexpr llvm::StringLiteral kTimesAttr = "spmd.times";
/// On a loop, between propagation and reshard insertion: the shardings that the arguments of its body come in (array, unit =
/// as their types say).
inline constexpr llvm::StringLiteral kArgumentShardingsAttr = "spmd.arguments";

/// More iterations than these, of all loops around an op together, are not counted in costs, so that these stay in range.
inline constexpr int64_t kMostTimes = 1 << 20;

/// How often a loop of `inner` iterations in one of `outer` is counted, each of them at most kMostTimes.
inline int64_t multiplyTimes(int64_t outer, int64_t inner) { return std::min(outer * inner, kMostTimes); }

/// How often `op` runs, by the loops around it; 1 outside of loops.
int64_t getTimes(mlir::Operation *op);

/// Each collective inside `root`, and how often it runs in a call: in all iterations of loops, and where `root` is a function of one
/// microbatch, for all of them.
void forEachCollective(mlir::Operation *root, llvm::function_ref<void(CollectiveOpInterface op, int64_t runs)> visit);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_REPEATED_H
