//===- Fit.h - per-device values of another size ----------------*- C++ -*-===//
//
// Where shards do not divide, what ranks send each other is padded, and what they have together is cut off. Ops that do
// that belong to a dialect that knows values; reshards know shardings only, and ask for them here.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_FIT_H
#define CLEAVE_DIALECT_SPMD_IR_FIT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"

namespace cleave::spmd {

/// What a dialect with ops on tensors offers to those without.
class FitInterface : public mlir::DialectInterface::Base<FitInterface> {
public:
  explicit FitInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// The tensor `value` with extents `shape`: per dim cut off at the end, or filled up there with what does not matter.
  virtual mlir::Value fit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> shape) const = 0;
};

/// The same by the loaded dialect that can; `value` itself if it has that shape. Null, with an error at `loc`, if there is
/// no such dialect.
mlir::Value fit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_FIT_H
