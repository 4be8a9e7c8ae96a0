//===- CutInTime.h - from a batch to one microbatch -------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_CUTINTIME_H
#define CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_CUTINTIME_H

#include "BatchDims.h"

namespace cleave::pipe {

/// Makes of `func`, the program of a whole batch, that of one microbatch. Errors, after which `func` is as it was: an op
/// mixes samples of different microbatches; all microbatches would change one state; what a plan wants of a value does
/// not fit its part (S5). Precondition: one block, more than one microbatch, each dim of `batch` is divided.
llvm::LogicalResult cutInTime(mlir::func::FuncOp func, const Batch &batch);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_TRANSFORMS_CUTINTIME_H
