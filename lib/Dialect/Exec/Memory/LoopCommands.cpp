//===- LoopCommands.cpp - loops as commands on memory ---------------------===//
//
//   %a = exec.enter count 8 carries (%x)     exec.copy %x into %a     exec.loop count 8
//     ..                                ─▶     ..
//   %y = exec.leave next (%b)                exec.copy %b into %a     exec.end_loop          (%y is %a)
//
// Nothing is copied where %x or %b is made in the bytes of %a (BufferAssignmentLoops.cpp).
//
// The copies at the end of the body run in the order of the values. None of them reads what another one has written: flattening has
// given bytes of its own to what would be.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// What is there already, as it was made there, or as an iteration leaves it as it was, needs nothing.
LogicalResult CommandBuilder::copyAll(Operation *op, ValueRange from, ValueRange to) {
  for (auto [value, place] : llvm::zip_equal(from, to)) {
    Value source = getView(value), target = getView(place);
    if (!source || !target)
      return failure();
    if (!assignment.liesAt(value, place) && spmd::getBytes(value.getType()) > 0)
      CopyOp::create(builder, op->getLoc(), source, target);
  }
  return success();
}

/// What is captured lies where it is.
LogicalResult CommandBuilder::emitEnter(EnterOp op) {
  if (failed(copyAll(op, op.getInitial(), op.getValues().take_front(op.getInitial().size()))))
    return failure();
  Value condition = op.getCondition() ? getView(op.getCondition()) : Value();
  if (op.getCondition() && !condition)
    return failure();
  note(LoopOp::create(builder, op.getLoc(), condition, op.getCountAttr()), op);
  return success();
}

LogicalResult CommandBuilder::emitLeave(LeaveOp op) {
  if (failed(copyAll(op, op.getNext(), op.getValues())))
    return failure();
  Value condition = op.getCondition() ? getView(op.getCondition()) : Value();
  if (op.getCondition() && !condition)
    return failure();
  note(EndLoopOp::create(builder, op.getLoc(), condition), op);
  return success();
}
