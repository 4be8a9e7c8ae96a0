//===- Pipe.h - the pipe dialect --------------------------------*- C++ -*-===//
//
// Stages of a model; see dialects/Pipe for what is meant by them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_IR_PIPE_H
#define CLEAVE_DIALECT_PIPE_IR_PIPE_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace cleave::pipe {

/// The stage of an op; nothing if it has none.
std::optional<int64_t> getStage(mlir::Operation *op);
void setStage(mlir::Operation *op, int64_t stage);

} // namespace cleave::pipe

#include "cleave/Dialect/Pipe/IR/PipeDialect.h.inc"

#endif // CLEAVE_DIALECT_PIPE_IR_PIPE_H
