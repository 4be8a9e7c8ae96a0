//===- KernelParts.h - several kernels of one -------------------*- C++ -*-===//
//
// For passes that split kernels: those that a device cannot run as one, and those of which a library has a part.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_KERNELPARTS_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_KERNELPARTS_H

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "mlir/IR/IRMapping.h"

namespace cleave::exec {

/// Makes kernels of the parts of a region, each in front of `end`.
class Splitter {
public:
  explicit Splitter(mlir::Operation *end) : end(end), builder(end), inner(end->getContext()) {}
  /// What a value of the region is outside.
  mlir::IRMapping values;
  /// A kernel that gives `results`, values of the region, computed from what `values` knows; from then on they are known, too.
  FusedOp makePart(llvm::ArrayRef<mlir::Value> results);

private:
  mlir::Value resolve(mlir::Value value);

  mlir::Operation *end;
  mlir::OpBuilder builder, inner;
  // Of the part that is being made:
  mlir::IRMapping inside;
  mlir::Block *body = nullptr;
  llvm::SmallVector<mlir::Value> operands;
};

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_KERNELPARTS_H
