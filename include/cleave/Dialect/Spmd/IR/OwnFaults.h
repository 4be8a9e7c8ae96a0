//===- OwnFaults.h - errors that are nobody's fault but ours ----*- C++ -*-===//
//
// A pass that may only fail where an earlier one broke its promise says so, and the driver need not guess from a phase
// whether to blame the user or to ask for a bug report.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_OWNFAULTS_H
#define CLEAVE_DIALECT_SPMD_IR_OWNFAULTS_H

#include "mlir/IR/Diagnostics.h"

namespace cleave {

/// While it lives, errors are marked as our own fault.
class OwnFaults : public mlir::ScopedDiagnosticHandler {
public:
  explicit OwnFaults(mlir::MLIRContext *context);
};

bool isOwnFault(mlir::Diagnostic &diagnostic);

} // namespace cleave

#endif // CLEAVE_DIALECT_SPMD_IR_OWNFAULTS_H
