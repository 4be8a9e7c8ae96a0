//===- Action.h - which action of a schedule an op is of --------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_PIPE_IR_ACTION_H
#define CLEAVE_DIALECT_PIPE_IR_ACTION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace cleave::pipe {

/// The first action that a location names, as the table has it (`1F3`: stage, kind, microbatch); null if it names none. A kernel may have been
/// formed of ops of several, the last of which often only adds its term to a sum.
mlir::StringAttr findAction(mlir::Location loc);

/// Whether an op is of a forward, or of a backward; neither if it is of no action.
bool isOfForward(mlir::Operation *op);
bool isOfBackward(mlir::Operation *op);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_IR_ACTION_H
