//===- StageSplitter.h - a function, to be split into stages ----*- C++ -*-===//
//
// Who runs a pipeline and who shows its schedule ask here, so that both have the same stages: those of one function, with all that a plan
// says of them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_STAGESPLITTER_H
#define CLEAVE_DIALECT_PIPE_STAGES_STAGESPLITTER_H

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

namespace cleave::pipe {

struct StageSplitter {
  StageGraph graph;
  /// By hand; empty: where it is best.
  std::vector<spmd::PlanStage> lines;
  spmd::StageNames said;
  /// But for the placement.
  schedule::SplitOptions options;

  /// The ops of `func`, and what `pipeline` (null: nothing) asks for. Error: no op uses a parameter that stays together with others.
  static llvm::Expected<StageSplitter> create(mlir::func::FuncOp func, const DeviceRates &rates,
                                              const spmd::PlanPipeline *pipeline);

  /// For stages that stand so: see `findStageSplit`. \param inFlight by stage, microbatches whose activations it keeps; empty: one.
  llvm::Expected<schedule::StageSplit> splitStages(llvm::ArrayRef<int32_t> placement, StageFault *fault = nullptr,
                                                   llvm::ArrayRef<int64_t> inFlight = {}) const;
};

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_STAGESPLITTER_H
