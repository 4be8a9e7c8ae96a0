//===- PlacementLoops.cpp - how long a loop needs its values --------------===//
//
//   step      3       4      5          6       7
//             enter   reads %x   reads %a       leave
//   %x        ───────────────────────────────────▶      from outside: the next iteration reads it, too
//   %a                ───────▶                          made in the body, and again in the next iteration
//
// So a read in the body of what is made outside of it counts as one at its end. What a loop carries is made where it is entered, and
// written where its body ends.
//
//===----------------------------------------------------------------------===//
#include "Placement.h"

#include "cleave/Dialect/Exec/IR/Control.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

void Placement::pairMarks() {
  SmallVector<int64_t> open;
  for (auto [step, op] : llvm::enumerate(steps))
    if (isa<EnterOp>(op))
      open.push_back(step);
    else if (isa<LeaveOp>(op))
      loops.push_back({open.pop_back_val(), int64_t(step)});
}

int64_t Placement::getEnd(Value root, int64_t step) const {
  int64_t made = root.getDefiningOp() ? numbers.lookup(root.getDefiningOp()) : -1, end = step;
  // What a loop carries is made where it is entered, and wanted again in the next iteration.
  for (auto [enter, leave] : loops)
    if (made <= enter && enter < step && step <= leave)
      end = std::max(end, leave);
  return end;
}

/// Who only sees a value in another shape reads nothing; a mark does.
bool Placement::isSeenThrough(Operation *op) const {
  return !isMark(op) && op->getNumResults() == 1 && getRoot(op->getResult(0)).value != op->getResult(0);
}
