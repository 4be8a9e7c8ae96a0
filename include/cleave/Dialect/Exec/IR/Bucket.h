//===- Bucket.h - collectives that go together ------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_EXEC_IR_BUCKET_H
#define CLEAVE_DIALECT_EXEC_IR_BUCKET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace cleave::exec {

/// Of a collective, and of its command: a number that several have in common, which become one command of several tensors.
inline constexpr llvm::StringLiteral kBucketAttr = "exec.bucket";

/// Its number; null where it goes by itself.
inline mlir::IntegerAttr getBucket(mlir::Operation *op) { return op->getAttrOfType<mlir::IntegerAttr>(kBucketAttr); }

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_IR_BUCKET_H
