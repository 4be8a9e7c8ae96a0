//===- RecomputePass.h - exec-recompute, with a judge -----------*- C++ -*-===//
//
// As the driver makes it: what a choice takes of memory is what its planned program takes, which a pass of one phase cannot know.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H
#define CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H

#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Plan/Train.h"

namespace cleave::exec {

/// The attribute of a step's function that lists its choices: dictionaries of `ns`, of a call, `bytes`, at the peak, `kept`, bytes from the
/// forward, `again_ns` and `least_ns`, of what runs again and of what no choice that keeps as little could save, and `taken`, of one.
inline constexpr llvm::StringLiteral kFrontAttr = "nn.front";

/// Bytes that a rank takes of a program at this phase, of which it may do anything; nothing where that cannot be told.
using MemoryJudge = std::function<std::optional<int64_t>(mlir::ModuleOp module)>;

/// As a plan asks for it. Null `judge`: by the lifetimes of values.
std::unique_ptr<mlir::Pass> createRecompute(const spmd::PlanMemory &plan, MemoryJudge judge);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H
