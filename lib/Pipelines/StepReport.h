//===- StepReport.h - what reports say of a step of training ----*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_STEPREPORT_H
#define CLEAVE_LIB_PIPELINES_STEPREPORT_H

#include "cleave/Cost/Memory.h"
#include "cleave/Pipelines/Report.h"
#include "llvm/ADT/StringMap.h"

namespace cleave {

/// Fills in what is trained, and what the most bytes of a rank are for; nothing of a function that is not a step. Precondition: all else is
/// counted.
void describeStep(mlir::func::FuncOp func, const mlir::SymbolTable &symbols, Report &report);

/// Which collectives of a step send gradients on their way to an update, or their sums over microbatches. Not those of activations, nor a
/// length to clip by. Precondition: memory is not planned.
class GradientPaths {
public:
  GradientPaths(mlir::func::FuncOp func, const mlir::SymbolTable &symbols);

  bool areSentBy(mlir::Operation *collective);

private:
  bool isForUpdate(mlir::Value value);
  bool isOfBackward(mlir::Value value);

  const mlir::SymbolTable &symbols;
  llvm::StringMap<llvm::SmallVector<mlir::func::CallOp, 2>> callers;
  /// What is known of values: an update reads it, the backward pass made it.
  llvm::DenseMap<mlir::Value, bool> updated, made;
};

/// What bytes of a rank are for, in the words of `memory_by_role`. Of what is no step arguments that are no weights are the batch.
llvm::StringRef nameRole(mlir::func::FuncOp func, const cost::HeldBytes &held);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_STEPREPORT_H
