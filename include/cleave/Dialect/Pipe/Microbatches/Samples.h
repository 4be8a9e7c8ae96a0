//===- Samples.h - how large the batch of a model is ------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_PIPE_MICROBATCHES_SAMPLES_H
#define CLEAVE_DIALECT_PIPE_MICROBATCHES_SAMPLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

/// Samples that the inputs of `func` have in their batch dims, found as for microbatches of a plan that says nothing of them; where inputs
/// differ, what all have a multiple of. 1 where there is no batch, of which nothing is said.
int64_t countSamples(mlir::func::FuncOp func);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_MICROBATCHES_SAMPLES_H
