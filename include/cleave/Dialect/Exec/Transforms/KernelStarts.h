//===- KernelStarts.h - which ops will begin kernels ------------*- C++ -*-===//
//
// For predictions of programs whose kernels have not been formed yet.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_EXEC_TRANSFORMS_KERNELSTARTS_H
#define CLEAVE_DIALECT_EXEC_TRANSFORMS_KERNELSTARTS_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::exec {

/// The first op of each kernel that exec-form-kernels would make of the block as it is now. Linear. What passes before it do (attention
/// that is recognized, masks that are written out) makes fewer of some and more of others.
llvm::DenseSet<mlir::Operation *> findKernelStarts(mlir::Block &block);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_TRANSFORMS_KERNELSTARTS_H
