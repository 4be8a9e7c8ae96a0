//===- Phases.h - what each phase of a model's way does ---------*- C++ -*-===//
//
// A pipeline is a list of phases, each with its passes and, last, the gate that checks what now holds. What phases are
// called stands in Phase.h.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_PHASES_H
#define CLEAVE_PIPELINES_PHASES_H

#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/Transforms/Wishes.h"
#include "cleave/Solver/Solver.h"
#include <optional>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace cleave::spmd {
struct Decisions;
} // namespace cleave::spmd

namespace cleave {

/// What a user asked for.
struct ShardOptions {
  /// Placed, and taken away, by the first phase that can.
  spmd::PlanRef plan;
  /// A plan that is still to be read: by a Compilation when it loads, or by spmd-annotate.
  spmd::PlanSource source;
  spmd::Optimize optimize = spmd::Optimize::Balanced;
  /// What everything costs, where it is not what `optimize` stands for: links of a known machine.
  std::optional<spmd::CostModel> costs;
  /// Where spmd-propagate leaves how it decided, for explaining; may be null.
  spmd::Decisions *decisions = nullptr;
  bool checkBytes = false;     ///< an error where the program sends other bytes than were decided
  bool traceDecisions = false; ///< candidates and prices of each decision, to stderr

  /// Deciding and planning must go by the same.
  spmd::CostModel getCosts() const { return costs.value_or(spmd::CostModel::create(optimize)); }
};

/// One phase of a pipeline: adds its passes and its gate.
struct PipelinePhase {
  Phase phase;
  void (*addPasses)(mlir::OpPassManager &manager, ShardOptions &options);
};

/// The phases behind import, in order. A longer way is a longer list.
llvm::ArrayRef<PipelinePhase> getShardPhases();

} // namespace cleave

#endif // CLEAVE_PIPELINES_PHASES_H
