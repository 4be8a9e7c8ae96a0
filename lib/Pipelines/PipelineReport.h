//===- PipelineReport.h - what reports say of pipelines ---------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H
#define CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H

#include "cleave/Cost/OpTimes.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// `func`, and those that it calls, each once.
llvm::SmallVector<mlir::func::FuncOp> getCalled(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);
/// As `makeReport`, by the module's symbols: there may be many functions, and more parameters.
Report makeReport(mlir::func::FuncOp func, llvm::StringRef model, const mlir::SymbolTable &symbols,
                  const cost::OpTimes *times);
/// Of each rank of a pipeline, or of the one program that all ranks have. Precondition: the mesh fits on the cluster.
std::vector<cost::OpTimes> makeTimes(mlir::ModuleOp module, size_t numRanks, const spmd::Cluster &cluster);
/// What a rank of a pipeline sends in one message, a collective of kind `send` for each value; none for other ops.
std::vector<CollectiveReport> describeMessage(mlir::Operation *op);

/// A line for the schedule, and one for each stage.
void printPipeline(llvm::raw_ostream &os, const llvm::json::Object &pipeline);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_PIPELINEREPORT_H
