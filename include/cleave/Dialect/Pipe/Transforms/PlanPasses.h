//===- PlanPasses.h - passes that follow a plan -----------------*- C++ -*-===//
//
// As the driver makes them: with a plan, which has places for errors, instead of options.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_TRANSFORMS_PLANPASSES_H
#define CLEAVE_DIALECT_PIPE_TRANSFORMS_PLANPASSES_H

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "mlir/Pass/Pass.h"

namespace cleave::pipe {

/// For what the plan's pipeline says of microbatches and batch dims; the module gets the plan's mesh as `pipe.mesh`.
/// Precondition of all: the plan has a pipeline.
std::unique_ptr<mlir::Pass> createMicrobatch(spmd::PlanRef plan);

/// For its stages, its schedule and limits. Times are those of types: of local shapes, where the program is partitioned. \param steps those of a
/// call of a step of training.
std::unique_ptr<mlir::Pass> createAssignStages(spmd::PlanRef plan, int64_t steps = 1);

/// Whether the plan's schedule waits for the end of a step; and, of one that does not, whether microbatches read the weights of the step before
/// (Schedule/Generate.h).
bool hasFlush(const spmd::Plan &plan);
bool isStepBehind(const spmd::Plan &plan);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_TRANSFORMS_PLANPASSES_H
