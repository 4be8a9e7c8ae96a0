//===- FlatRun.h - a program of one microbatch, run for all of them -*- C++ -*-===//
//
// The meaning of what `pipe-microbatch` makes, written down once more and without any of its code: every value is
// kept once, or once for each microbatch, and ops run one by one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_DIALECT_PIPE_FLATRUN_H
#define CLEAVE_TEST_UNIT_DIALECT_PIPE_FLATRUN_H

#include "cleave/Plan/Plan.h"
#include "cleave/Reference/Evaluator.h"

namespace cleave::pipe::testing {

/// What `func`, the entry of a module with `pipe.microbatches`, gives for inputs of the whole batch. Nothing after an error.
std::optional<llvm::SmallVector<reference::Tensor>> runFlat(mlir::func::FuncOp func,
                                                            llvm::ArrayRef<reference::Tensor> inputs);

/// A plan that says nothing but this.
std::shared_ptr<const spmd::Plan> makePlan(spmd::PlanPipeline pipeline);

} // namespace cleave::pipe::testing

#endif // CLEAVE_TEST_UNIT_DIALECT_PIPE_FLATRUN_H
