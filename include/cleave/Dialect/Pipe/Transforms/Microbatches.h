//===- Microbatches.h - the program of one microbatch -----------*- C++ -*-===//
//
// `pipe-microbatch` as the driver makes it: with the section of a plan, which has places for errors.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_TRANSFORMS_MICROBATCHES_H
#define CLEAVE_DIALECT_PIPE_TRANSFORMS_MICROBATCHES_H

#include "cleave/Plan/Pipeline.h"
#include "mlir/Pass/Pass.h"

namespace cleave::pipe {

/// The pass, for what `pipeline` says of microbatches and batch dims.
std::unique_ptr<mlir::Pass> createMicrobatch(spmd::PlanPipeline pipeline);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_TRANSFORMS_MICROBATCHES_H
