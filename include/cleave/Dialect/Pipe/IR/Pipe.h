//===- Pipe.h - the pipe dialect --------------------------------*- C++ -*-===//
//
// Stages of a model, microbatches, schedules; see dialects/Pipe for what is meant by them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_IR_PIPE_H
#define CLEAVE_DIALECT_PIPE_IR_PIPE_H

#include "cleave/Dialect/Nn/IR/Nn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

/// The stage of an op; nothing if it has none.
std::optional<int64_t> getStage(mlir::Operation *op);
void setStage(mlir::Operation *op, int64_t stage);

/// The dim along which argument or result `index` of the entry is cut into microbatches; nothing if it is whole.
std::optional<int64_t> getArgSplit(mlir::FunctionOpInterface func, unsigned index);
std::optional<int64_t> getResultSplit(mlir::FunctionOpInterface func, unsigned index);

/// The pipeline rank whose list `func` is; nothing if it is none.
std::optional<int64_t> getRank(mlir::FunctionOpInterface func);

/// The functions of the pipeline's ranks, in order of ranks; none if `module` is no pipeline.
llvm::SmallVector<mlir::func::FuncOp, 4> getRankFunctions(mlir::ModuleOp module);

/// Of a rank's function: which argument or result of the entry its own one is; nothing if it does not say.
std::optional<int64_t> getArgIndex(mlir::FunctionOpInterface func, unsigned index);
std::optional<int64_t> getResultIndex(mlir::FunctionOpInterface func, unsigned index);

/// Microbatches that the entry of `module` is one of; nothing if it is no such program.
std::optional<int64_t> getMicrobatches(mlir::Operation *module);

} // namespace cleave::pipe

#include "cleave/Dialect/Pipe/IR/PipeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeAttrs.h.inc"

#define GET_OP_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeOps.h.inc"

#endif // CLEAVE_DIALECT_PIPE_IR_PIPE_H
