//===- PipelineReport.h - what reports say of pipelines ---------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H
#define CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H

#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// The function that a call runs; null for other ops.
mlir::func::FuncOp getCallee(mlir::Operation *op);
/// `func`, and those that it calls, each once.
llvm::SmallVector<mlir::func::FuncOp> getCalled(mlir::func::FuncOp func);
/// What a rank of a pipeline sends in one message, as a collective of kind `send`; nothing for other ops.
std::optional<CollectiveReport> describeMessage(mlir::Operation *op);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H
