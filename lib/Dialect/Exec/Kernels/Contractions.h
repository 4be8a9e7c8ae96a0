//===- Contractions.h - products, before kernels are formed -----*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_CONTRACTIONS_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_CONTRACTIONS_H

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/DenseSet.h"

namespace cleave::exec {

/// Transposed convolutions whose windows lie side by side become contractions.
void contractConvolutions(mlir::Block &block);
/// For the host: convolutions of few windows, or of many results, with weights that are not loaded (those are laid out beforehand) become contractions of
/// what is in their windows.
void unfoldConvolutions(mlir::Block &block, llvm::function_ref<bool(mlir::Value)> isLoaded);
/// True for a transposed convolution that becomes a contraction.
bool isBoxes(nn::ConvTransposeOp op);
/// As a contraction of `last`, its input with channels last; so is the result.
mlir::Value contractLast(nn::ConvTransposeOp op, mlir::Value last);

/// Lets contractions read and write in the order of the transposes around them.
void foldTransposes(mlir::Block &block);

/// A remark on each kind of op that is left to a kernel which is right, and slow; `told` are those that had theirs.
void remarkSlow(mlir::Block &block, llvm::DenseSet<mlir::OperationName> &told);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_CONTRACTIONS_H
