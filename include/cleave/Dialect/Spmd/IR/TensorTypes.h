//===- TensorTypes.h - the type of a value that is a tensor -----*- C++ -*-===//
//
// What nn, spmd and exec compute are ranked tensors; these ask a value for what its type says, and take nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_TENSORTYPES_H
#define CLEAVE_DIALECT_SPMD_IR_TENSORTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace cleave {

inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

inline llvm::ArrayRef<int64_t> getShape(mlir::Value value) { return getTensorType(value).getShape(); }

inline mlir::Type getElementType(mlir::Value value) { return getTensorType(value).getElementType(); }

} // namespace cleave

#endif // CLEAVE_DIALECT_SPMD_IR_TENSORTYPES_H
