//===- Control.cpp - loops of the exec dialect ----------------------------===//
//
// What marks give is what they take, and they pair like brackets (dialects/Exec/ExecControl.td). Each mark looks for the other one of its loop, so
// that no pass, and nobody who runs a list, comes to see one without the other.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Control.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define GET_OP_CLASSES
#include "cleave/Dialect/Exec/IR/ExecControl.cpp.inc"

/// The first mark from `op` on, in one of both directions, that is not of a loop within.
static Operation *findOther(Operation *op, bool forward) {
  int64_t open = 0;
  do {
    if (isMark(op))
      open += isa<EnterOp, LoopOp>(op) == forward ? 1 : -1;
    if (open == 0)
      return op;
    op = forward ? op->getNextNode() : op->getPrevNode();
  } while (op);
  return nullptr;
}

Operation *cleave::exec::findEnd(Operation *begin) {
  Operation *end = findOther(begin, /*forward=*/true);
  return end && isa<LeaveOp>(end) == isa<EnterOp>(begin) ? end : nullptr;
}

Operation *cleave::exec::findBegin(Operation *end) {
  Operation *begin = findOther(end, /*forward=*/false);
  return begin && isa<LeaveOp>(end) == isa<EnterOp>(begin) ? begin : nullptr;
}

/// C2
static LogicalResult checkIsEnded(Operation *begin) {
  return findEnd(begin) ? success() : LogicalResult(begin->emitOpError("begins a loop that does not end (C2)"));
}

/// C2, C4; gives the op that begins the loop.
template <typename BeginOp, typename EndOp> static BeginOp checkEnds(EndOp end) {
  auto begin = cast_if_present<BeginOp>(findBegin(end));
  if (!begin) {
    end.emitOpError("ends no loop (C2)");
    return nullptr;
  }
  if (bool(begin.getCondition()) == bool(end.getCondition()))
    return begin;
  InFlightDiagnostic error = end.emitOpError()
                             << "has " << (end.getCondition() ? "a" : "no") << " condition, unlike its loop (C4)";
  error.attachNote(begin.getLoc()) << "the loop begins here";
  return nullptr;
}

LogicalResult EnterOp::verify() {
  SmallVector<Type> types(getInitial().getTypes());
  llvm::append_range(types, getCaptured().getTypes());
  if (types != SmallVector<Type>(getResultTypes()))
    return emitOpError("does not give what it takes (C1)");
  return checkIsEnded(*this);
}

LogicalResult LeaveOp::verify() {
  if (getNext().getTypes() != getResultTypes())
    return emitOpError("does not give what it takes (C1)");
  auto enter = checkEnds<EnterOp>(*this);
  if (!enter)
    return failure();
  if (enter.getInitial().getTypes() == getNext().getTypes())
    return success();
  InFlightDiagnostic error = emitOpError()
                             << "yields (" << getNext().getTypes() << "), expected what its loop carries, ("
                             << enter.getInitial().getTypes() << ") (C3)";
  error.attachNote(enter.getLoc()) << "the loop begins here";
  return error;
}

LogicalResult LoopOp::verify() {
  if (!getCondition() && !getCount())
    return emitOpError("has neither a condition nor a count (C1)");
  return checkIsEnded(*this);
}

LogicalResult EndLoopOp::verify() { return success(checkEnds<LoopOp>(*this) != nullptr); }
