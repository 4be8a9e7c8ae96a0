//===- StepReport.h - what reports say of a step of training ----*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_STEPREPORT_H
#define CLEAVE_LIB_PIPELINES_STEPREPORT_H

#include "cleave/Cost/Memory.h"
#include "cleave/Pipelines/Report.h"

namespace cleave {

/// Fills in what is trained, and what the most bytes of a rank are for; nothing of a function that is not a step. Precondition: all else is
/// counted.
void describeStep(mlir::func::FuncOp func, const mlir::SymbolTable &symbols, Report &report);

/// Whether a collective of a step sends gradients on their way to an update, or their sums over microbatches. Not those of activations, nor a
/// length to clip by. Precondition: memory is not planned.
bool sendsGradients(mlir::Operation *collective);

/// What bytes of a rank are for, in the words of `memory_by_role`. Of what is no step arguments that are no weights are the batch.
llvm::StringRef nameRole(mlir::func::FuncOp func, const cost::HeldBytes &held);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_STEPREPORT_H
