//===- RecomputePass.h - exec-recompute, with a judge -----------*- C++ -*-===//
//
// As the driver makes it: what a choice takes of memory is what its planned program takes, which a pass of one phase cannot know.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H
#define CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H

#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Plan/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::exec {

/// The attribute of a step's function that lists its choices: dictionaries of `ns`, of a call, `bytes`, at the peak, `kept`, bytes from the
/// forward, `again_ns` and `least_ns`, of what runs again and of what no choice that keeps as little could save, and `taken`, of one.
inline constexpr llvm::StringLiteral kFrontAttr = "nn.front";

/// Bytes that a rank takes of a program at this phase, of which it may do anything, or each rank of a pipeline; none where that cannot be told.
using MemoryJudge = std::function<llvm::SmallVector<int64_t>(mlir::ModuleOp module)>;

/// Where the ops of a step would be in stages, as far as it is known before anything is made again.
struct StagesOfOps {
  /// By op of the function's block: its stage; -1 of what is in none, or of no forward.
  std::vector<int64_t> stageOf;
  /// By stage.
  std::vector<int64_t> rankOf;
};
using StageFinder = std::function<StagesOfOps(mlir::func::FuncOp func)>;

/// As a plan asks for it. Null `judge`: by the lifetimes of values. With `findStages` (null: there is one stage), `auto` decides for each stage
/// by itself what its rank has no room for. \param keepsLast the last stage makes nothing again: it reads at once what it makes.
/// \param ofStages where there are several, the policy of each, instead of `plan`'s; none where stages are of another number, which is told
/// where that is known.
std::unique_ptr<mlir::Pass> createRecompute(const spmd::PlanMemory &plan, MemoryJudge judge,
                                            StageFinder findStages = nullptr, bool keepsLast = false,
                                            llvm::ArrayRef<spmd::PlanPolicy> ofStages = {});

//===----------------------------------------------------------------------===//
// Values in the host's memory
//===----------------------------------------------------------------------===//

/// Of a module whose step offloads: a dictionary of `before` and `after`, bytes of a rank at its peak without that and with it.
inline constexpr llvm::StringLiteral kOffloadAttr = "nn.offload";
/// Of a function whose memory is planned: a dictionary of `values` and `bytes` that wait in the host's memory, values that `stayed` as there is
/// no time, and `exposed_ns`, what kernels are predicted to wait for copies.
inline constexpr llvm::StringLiteral kTransfersAttr = "nn.transfers";

/// What the pass does with what a plan names.
enum class OffloadMode {
  Insert, ///< copies are made
  Check,  ///< errors are told; a pipeline's ranks make copies, once there are some
  Drop,   ///< copies that are there go: the program's device has no other memory, which a warning tells
};

/// Values that a plan names wait for the backward in the host's memory. Null `before` and `after`: what that saves is not told, of the program
/// without copies and with them.
std::unique_ptr<mlir::Pass> createOffload(const spmd::PlanMemory &plan, OffloadMode mode, MemoryJudge before = nullptr,
                                          MemoryJudge after = nullptr);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_TRANSFORMS_RECOMPUTEPASS_H
