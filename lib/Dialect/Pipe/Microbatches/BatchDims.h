//===- BatchDims.h - where inputs have the batch ----------------*- C++ -*-===//
//
// Which dim of which input is split into microbatches, and into how many. A wrong answer costs nothing but an error: that no
// op mixes samples is proved op by op (SplitInTime.h), whatever dims are split.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_BATCHDIMS_H
#define CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_BATCHDIMS_H

#include "cleave/Plan/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

struct Batch {
  int64_t microbatches = 1;
  /// Microbatches may differ by a sample: of so many, of which all batch dims have a multiple.
  bool isUneven = false;
  int64_t samples = 0;
  /// Devices that a microbatch may be sharded over.
  int64_t devices = 1;
  /// By argument: the dim that is split; nothing for inputs that all microbatches see all of.
  llvm::SmallVector<std::optional<unsigned>> dims;
  /// By argument: where that was said, in a plan or in the program.
  llvm::SmallVector<mlir::Location> places;
};

/// The batch dims of `func` by the first of these that says something of an input:
///  1. a line of `batch`;
///  2. the dim whose name in the model contains "batch";
///  3. where neither says anything of any input: dim 0 of all that have more than one element there, if they agree in size;
///     else, where the model names no dim of an input: dim 0, if it is as large as the batch of the others.
/// Errors: a line that no input has or that names a dim that is not there; inputs that do not agree; no batch at all;
/// a size that microbatches do not divide, with the nearest that would (P4), or, where they may be uneven, fewer samples than those.
mlir::FailureOr<Batch> findBatch(mlir::func::FuncOp func, const spmd::PlanPipeline &pipeline);

/// A place of a plan; `otherwise` where it has none.
mlir::Location toLoc(const spmd::PlanPlace &place, mlir::Location otherwise);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_BATCHDIMS_H
