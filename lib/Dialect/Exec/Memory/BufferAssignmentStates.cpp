//===- BufferAssignmentStates.cpp - where states lie ----------------------===//
//
// A state is a buffer of its own, as large as its next value. The old value is all of it, or, where the state grows, its end:
//
//   buffer      0        added                      bytes
//   old value   |        | past                     |      there when the call begins
//   next value  | past                     | new    |      there when it ends
//
// The next value is made in the buffer if nobody reads the old one any more. The last reader itself may make it there: a
// kernel or an all_reduce in place, and exec.append, which moves what is kept before it puts what is new behind.
//
//===----------------------------------------------------------------------===//
#include "BufferAssignment.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// A state's old value lies where the next one goes, and is the end of that where the state grows.
void BufferAssignment::placeArguments() {
  llvm::DenseMap<unsigned, spmd::StatePlace> stateOf;
  for (const spmd::StatePlace &state : states)
    stateOf[state.argument] = state;
  for (BlockArgument argument : block.getArguments()) {
    unsigned number = argument.getArgNumber();
    Storage storage{BufferKind::Input, spmd::getBytes(argument.getType()), number};
    int64_t offset = 0;
    auto func = cast<func::FuncOp>(block.getParentOp());
    if (func.getArgAttr(number, spmd::kKeptAttr))
      storage.kind = BufferKind::State;
    if (auto found = stateOf.find(number); found != stateOf.end()) {
      const spmd::StatePlace &state = found->second;
      auto read = uses.find(argument);
      storage.kind = BufferKind::State;
      storage.bytes = spmd::getBytes(block.getTerminator()->getOperand(state.result).getType());
      storage.old = argument;
      storage.oldUntil = read == uses.end() ? -1 : read->second.last.step;
      if (state.dim)
        offset = state.added * getStrides(argument)[*state.dim] * spmd::getElementBytes(getElementTypeOrSelf(argument));
      outputs[state.result] = storages.size();
    }
    storages.push_back(storage);
    place(argument, {unsigned(storages.size() - 1), table.get(offset), argument}, kNever);
  }
}

SmallVector<int64_t> BufferAssignment::getStrides(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return {};
  for (const spmd::StatePlace &state : states)
    if (state.argument == argument.getArgNumber() && state.dim) {
      Value next = block.getTerminator()->getOperand(state.result);
      return computeSuffixProduct(cast<RankedTensorType>(next.getType()).getShape());
    }
  return {};
}

/// True if the old value of a state of one shape is read for the last time here, and `result` is the next one.
bool BufferAssignment::isUpdated(OpOperand &operand, Value result) const {
  auto argument = dyn_cast<BlockArgument>(getRoot(operand.get()).value);
  auto isOfState = [&](const spmd::StatePlace &state) {
    Value next = block.getTerminator()->getOperand(state.result);
    return argument && state.argument == argument.getArgNumber() && !state.dim && getRoot(next).value == result;
  };
  return llvm::any_of(states, isOfState) && uses.find(argument)->second.last.op == operand.getOwner();
}

/// What is made by the last reader of the old value may lie there if that works in place: a kernel that says so, an
/// all_reduce, or an exec.append, which moves a state that grows.
bool BufferAssignment::mayReplace(Value root, const Storage &state) const {
  Operation *op = root.getDefiningOp();
  int64_t step = numbers.lookup(op);
  if (step != state.oldUntil)
    return step > state.oldUntil;
  auto isOld = [&](Value value) { return getRoot(value).value == state.old; };
  if (llvm::count_if(op->getOperands(), isOld) != 1 || isa<spmd::AllGatherOp>(op))
    return false;
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    ArrayRef<int64_t> inPlace = getKernel(launch).getInPlace().value_or(ArrayRef<int64_t>());
    unsigned result = cast<OpResult>(root).getResultNumber();
    return result < inPlace.size() && inPlace[result] >= 0 && isOld(launch.getOperand(inPlace[result]));
  }
  bool grows = spmd::getBytes(state.old.getType()) != state.bytes;
  return isa<AppendOp>(op) ? grows && op->getOperand(0) == state.old : isa<spmd::AllReduceOp>(op) && !grows;
}
