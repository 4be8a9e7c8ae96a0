//===- Pipe.h - the pipe dialect --------------------------------*- C++ -*-===//
//
// Stages of a model, microbatches, schedules; see dialects/Pipe for what is meant by them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_IR_PIPE_H
#define CLEAVE_DIALECT_PIPE_IR_PIPE_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::pipe {

/// The stage of an op; nothing if it has none.
std::optional<int64_t> getStage(mlir::Operation *op);
void setStage(mlir::Operation *op, int64_t stage);

/// The dim along which argument or result `index` of the entry is split into microbatches; nothing if it is invariant.
std::optional<int64_t> getArgSplit(mlir::FunctionOpInterface func, unsigned index);
std::optional<int64_t> getResultSplit(mlir::FunctionOpInterface func, unsigned index);

/// The pipeline rank whose list `func` is; nothing if it is none.
std::optional<int64_t> getRank(mlir::FunctionOpInterface func);

/// The functions of the pipeline's ranks, in order of ranks; none if `module` is no pipeline.
llvm::SmallVector<mlir::func::FuncOp, 4> getRankFunctions(mlir::ModuleOp module);

/// Of a rank's function: which argument or result of the entry its own one is; nothing if it does not say.
std::optional<int64_t> getArgIndex(mlir::FunctionOpInterface func, unsigned index);
std::optional<int64_t> getResultIndex(mlir::FunctionOpInterface func, unsigned index);

/// The mesh of the machine: that of all stages, where `module` is of a pipeline, else its own one. Null: it has none.
spmd::MeshAttr getWholeMesh(mlir::ModuleOp module);

/// Microbatches that the entry of `module` is one of; nothing if it is no such program.
std::optional<int64_t> getMicrobatches(mlir::Operation *module);

/// Samples dealt out to microbatches: as many to each, and one more to the first ones where some are left over.
struct Deal {
  int64_t count = 1, samples = 1;

  bool isEven() const { return samples % count == 0; }
  bool hasOneMore(int64_t microbatch) const { return microbatch < samples % count; }
  int64_t getSize(int64_t microbatch) const { return samples / count + hasOneMore(microbatch); }
  int64_t getStart(int64_t microbatch) const {
    return microbatch * (samples / count) + std::min(microbatch, samples % count);
  }
  /// Positions of a dim of `extent` that a microbatch has, where the dim is `blocks` blocks of all samples.
  int64_t getExtent(int64_t extent, int64_t microbatch) const { return extent / samples * getSize(microbatch); }
};

} // namespace cleave::pipe

#include "cleave/Dialect/Pipe/IR/PipeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeAttrs.h.inc"

#define GET_OP_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeOps.h.inc"

#endif // CLEAVE_DIALECT_PIPE_IR_PIPE_H
