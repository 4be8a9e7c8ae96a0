//===- SplitInTime.h - from a batch to one microbatch -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_SPLITINTIME_H
#define CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_SPLITINTIME_H

#include "BatchDims.h"

namespace cleave::pipe {

/// Makes of `func`, the program of a whole batch, that of one microbatch. Errors, after which `func` is as it was: an op
/// mixes samples of different microbatches; all microbatches would change one state; what a plan wants of a value does
/// not fit its part (S5); where samples are dealt out unevenly, fewer of them on a shard than microbatches (P4).
/// Precondition: one block, more than one microbatch, each dim of `batch` is divided, or uneven.
llvm::LogicalResult splitInTime(mlir::func::FuncOp func, const Batch &batch);

/// Makes of `func`, a stage on one device with `from` samples of a shard, that of `to` samples. `dims`: where its arguments
/// have the batch. Gives the same of its results. Fails after an error where it is sharded so that it has no whole samples.
mlir::FailureOr<llvm::SmallVector<std::optional<int64_t>>>
splitStage(mlir::func::FuncOp func, llvm::ArrayRef<std::optional<int64_t>> dims, int64_t from, int64_t to);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_SPLITINTIME_H
