//===- StepReport.h - what reports say of a step of training ----*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_STEPREPORT_H
#define CLEAVE_LIB_PIPELINES_STEPREPORT_H

#include "cleave/Pipelines/Report.h"

namespace cleave {

/// Fills in what is trained, and what the most bytes of a rank are for; nothing of a function that is not a step. Precondition: all else is
/// counted.
void describeStep(mlir::func::FuncOp func, const mlir::SymbolTable &symbols, Report &report);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_STEPREPORT_H
