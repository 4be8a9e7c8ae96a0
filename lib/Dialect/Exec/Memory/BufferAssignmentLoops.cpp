//===- BufferAssignmentLoops.cpp - how long a loop needs its values -------===//
//
//   step      3       4      5          6       7
//             enter   reads %x   reads %a       leave
//   %x        ───────────────────────────────────▶      from outside: the next iteration reads it, too
//   %a                ───────▶                          made in the body, and again in the next iteration
//
// So a read in the body of what is made outside of it counts as one at its end. What a loop carries is made where it is entered, and
// written where its body ends.
//
// What the next iteration finds in place of %a is made right there if its op comes behind the last one that reads %a in an iteration, or
// is that one and works in place. Then all that is carried from there on is in the bytes of %a, and no copy ends the iteration; nor
// does one begin the loop if what %a is at first is not read any more:
//
//   step      2          3       4          5       6
//             makes %x   enter   reads %a   makes   leave
//   %x        ──────────▶                                   in the bytes of %a
//   %a                   ───────▶
//   %next                                   ───────▶        in the bytes of %a, which it is in the next iteration
//
//===----------------------------------------------------------------------===//
#include "BufferAssignment.h"

#include "cleave/Dialect/Exec/IR/Control.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

void BufferAssignment::pairMarks() {
  SmallVector<int64_t> open;
  for (auto [step, op] : llvm::enumerate(steps))
    if (isa<EnterOp>(op))
      open.push_back(step);
    else if (isa<LeaveOp>(op))
      loops.push_back({open.pop_back_val(), int64_t(step)});
}

int64_t BufferAssignment::getEnd(Value root, int64_t step) const {
  int64_t made = root.getDefiningOp() ? numbers.lookup(root.getDefiningOp()) : -1, end = step;
  // What a loop carries is made where it is entered, and wanted again in the next iteration.
  for (auto [enter, leave] : loops)
    if (made <= enter && enter < step && step <= leave)
      end = std::max(end, leave);
  return end;
}

/// Who only sees a value in another shape reads nothing; a mark does.
bool BufferAssignment::isSeenThrough(Operation *op) const {
  return !isMark(op) && op->getNumResults() == 1 && getRoot(op->getResult(0)).value != op->getResult(0);
}

//===----------------------------------------------------------------------===//
// Carried values
//===----------------------------------------------------------------------===//

/// An inner loop reads until it ends. What is copied where the body ends is read there.
void BufferAssignment::findCarried() {
  for (auto [enterStep, leaveStep] : loops) {
    auto enter = cast<EnterOp>(steps[enterStep]);
    auto leave = cast<LeaveOp>(steps[leaveStep]);
    for (auto [value, next] : llvm::zip(enter.getValues(), leave.getNext())) {
      Root root = getRoot(next);
      bool isMade = isAllOf(next, root) && numbers.lookup(root.value.getDefiningOp()) > enterStep;
      carriedAs[value] = carried.size();
      carried.push_back({enterStep, leaveStep, value, isMade ? root.value : Value(), enterStep});
    }
    for (int64_t step = enterStep + 1, end = leaveStep; step <= end; ++step) {
      Operation *op = steps[step];
      int64_t until = waits.contains(op) ? waits.lookup(op) : step;
      for (auto [innerEnter, innerLeave] : loops)
        if (enterStep < innerEnter && innerEnter < step && step <= innerLeave)
          until = std::max(until, innerLeave);
      for (Value operand : isSeenThrough(op) ? ValueRange() : ValueRange(op->getOperands()))
        if (auto known = carriedAs.find(getRoot(operand).value);
            known != carriedAs.end() && carried[known->second].enter == enterStep && op != leave.getOperation())
          carried[known->second].last = std::max(carried[known->second].last, until);
    }
  }
}

bool BufferAssignment::makesInPlace(Operation *op, Value root, Value old) const {
  auto isOld = [&](Value value) { return getRoot(value).value == old; };
  if (llvm::count_if(op->getOperands(), isOld) != 1)
    return false;
  unsigned number = cast<OpResult>(root).getResultNumber();
  Value operand;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    ArrayRef<int64_t> inPlace = getKernel(launch).getInPlace().value_or(ArrayRef<int64_t>());
    if (number < inPlace.size() && inPlace[number] >= 0)
      operand = launch.getOperand(inPlace[number]);
  } else if (auto enter = dyn_cast<EnterOp>(op); enter && number < enter.getInitial().size()) {
    operand = enter.getInitial()[number];
  }
  return operand && isOld(operand) && isAllOf(operand, getRoot(operand));
}

bool BufferAssignment::isReplaced(OpOperand &operand, Value result) const {
  Root root = getRoot(operand.get());
  auto known = carriedAs.find(root.value);
  auto isSame = [&](Value value) { return getRoot(value).value == root.value; };
  return known != carriedAs.end() && carried[known->second].next == result && isAllOf(operand.get(), root) &&
         carried[known->second].last == numbers.lookup(operand.getOwner()) &&
         llvm::count_if(operand.getOwner()->getOperands(), isSame) == 1;
}

BufferPlace BufferAssignment::getInPlace(Value result, Value operand) const {
  BufferPlace at = getPlace(result);
  Value root = getRoot(operand).value;
  if (!carriedAs.contains(root))
    at.tensor = root;
  return at;
}

/// No command makes what a loop carries of what is there: it is the same tensor.
bool BufferAssignment::mayFollow(Value root, const BufferPlace &at) const {
  auto others = carriedIn.find(at.storage);
  if (others == carriedIn.end())
    return true;
  Operation *op = root.getDefiningOp();
  int64_t step = numbers.lookup(op);
  return llvm::all_of(others->second, [&](unsigned index) {
    const Carried &other = carried[index];
    bool isInside = other.enter < step && step < other.leave;
    return !isInside || step > other.last ||
           (step == other.last && makesInPlace(op, root, other.root) &&
            (!isa<EnterOp>(op) || getPlace(other.root).tensor == at.tensor));
  });
}

/// From the back, so that a loop's place is known before what is made in its body asks for one.
void BufferAssignment::placeCarried(int64_t leave) {
  for (auto [index, value] : llvm::enumerate(carried))
    if (value.leave == leave) {
      BufferPlace at = placeAnywhere(value.root);
      carriedIn[at.storage].push_back(index);
    }
  for (const Carried &value : carried)
    if (value.leave == leave && value.next)
      if (BufferPlace at = getPlace(value.root); mayLie(value.next, at, steps[leave]))
        place(value.next, at, leave);
}

void BufferAssignment::placeInitial(EnterOp enter) {
  for (auto [operand, value] : llvm::zip(enter.getInitialMutable(), enter.getValues()))
    share(operand, BufferPlace(getPlace(value)), numbers[enter]);
}

bool BufferAssignment::liesAt(Value value, Value other) const {
  Root root = getRoot(value), at = getRoot(other);
  auto place = places.find(root.value), there = places.find(at.value);
  return root.value == at.value ||
         (place != places.end() && there != places.end() && root.offset == at.offset &&
          place->second.storage == there->second.storage && place->second.offset == there->second.offset);
}
