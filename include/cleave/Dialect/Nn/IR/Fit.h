//===- Fit.h - per-device values of another size ----------------*- C++ -*-===//
//
// Where shards do not divide, what ranks send each other is padded, and what they have together is cut off.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_FIT_H
#define CLEAVE_DIALECT_NN_IR_FIT_H

#include "cleave/Dialect/Nn/IR/Nn.h"

namespace cleave::nn {

/// The tensor `value` with extents `shape`: per dim cut off at the end, or filled up there with what does not matter.
/// `value` itself if it has that shape.
mlir::Value fit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_FIT_H
