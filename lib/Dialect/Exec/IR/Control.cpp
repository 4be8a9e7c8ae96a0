//===- Control.cpp - loops of the exec dialect ----------------------------===//
//
// What marks give is what they take (dialects/Exec/ExecControl.td). That they pair is looked at where a list is whole.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Control.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define GET_OP_CLASSES
#include "cleave/Dialect/Exec/IR/ExecControl.cpp.inc"

LogicalResult EnterOp::verify() {
  SmallVector<Type> types(getInitial().getTypes());
  llvm::append_range(types, getCaptured().getTypes());
  return types == SmallVector<Type>(getResultTypes()) ? success() : emitOpError("does not give what it takes (C1)");
}

LogicalResult LeaveOp::verify() {
  return getNext().getTypes() == getResultTypes() ? success() : emitOpError("does not give what it takes (C1)");
}

LogicalResult LoopOp::verify() {
  return getCondition() || getCount() ? success() : emitOpError("has neither a condition nor a count (C1)");
}
