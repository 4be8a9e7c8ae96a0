//===- PlaceUpdates.h - when a step that is not split is updated -*- C++ -*-===//
//
// For who shows the table of a step without making its program: what an update takes, and whether it needs other stages, follows from the
// functions that pipe-split makes, so that a copy of the step is split.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_TRANSFORMS_PLACEUPDATES_H
#define CLEAVE_DIALECT_PIPE_TRANSFORMS_PLACEUPDATES_H

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Schedule/Updates.h"

namespace cleave::pipe {

/// Gives `costs` what updates of stages take, and `table` those that fill waits of their ranks, as pipe-schedule does where `pipeline` is what
/// runs. Returns what is late. \param stageOf by op of `graph`, which is of a step.
/// Error: why pipe-split refuses these stages.
llvm::Expected<std::vector<schedule::LateUpdate>> placeUpdates(const StageGraph &graph, llvm::ArrayRef<int32_t> stageOf,
                                                               const spmd::PlanPipeline &pipeline,
                                                               schedule::Schedule &table, schedule::Costs &costs);

/// Whether a function of `module`, which is scheduled, runs by `table`, action by action.
bool runsBy(mlir::ModuleOp module, const schedule::Schedule &table);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_TRANSFORMS_PLACEUPDATES_H
