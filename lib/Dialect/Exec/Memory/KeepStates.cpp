//===- KeepStates.cpp - states of a program, before memory is planned -----===//
//
// A state that grows lies in the buffer of its next value, whose last positions it is. A concat in a kernel would read it
// dense, from a buffer of its own; exec.append moves it where it lies, by copies:
//
//   %present = nn.concat %past, %new dim 2     ─▶     %present = exec.append %past, %new dim 2
//
// Whoever else reads %past gets a copy of it, made first thing.
//
//===----------------------------------------------------------------------===//
#include "KeepStates.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;
using cleave::spmd::StatePlace;

static Value getNext(func::FuncOp func, const StatePlace &state) {
  return func.getBody().front().getTerminator()->getOperand(state.result);
}

/// True if `op` puts something behind the whole of a state, along the dim that grows.
template <typename OpT> static bool appendsTo(OpT op, func::FuncOp func, const StatePlace &state) {
  Value past = func.getArgument(state.argument);
  return op && state.dim && op.getDim() == *state.dim && op.getInputs().front() == past &&
         llvm::count(op.getInputs(), past) == 1;
}

void cleave::exec::appendStates(func::FuncOp func, ArrayRef<StatePlace> states) {
  for (const StatePlace &state : states) {
    auto concat = getNext(func, state).getDefiningOp<nn::ConcatOp>();
    if (!appendsTo(concat, func, state))
      continue;
    OpBuilder builder(concat);
    OperationState made(concat.getLoc(), AppendOp::getOperationName(), concat->getOperands(), concat->getResultTypes(),
                        concat->getAttrs());
    concat.replaceAllUsesWith(builder.create(made));
    concat.erase();
  }
}

AppendOp cleave::exec::getAppend(func::FuncOp func, const StatePlace &state) {
  auto append = getNext(func, state).getDefiningOp<AppendOp>();
  return appendsTo(append, func, state) ? append : AppendOp();
}

void cleave::exec::copyOldStates(func::FuncOp func, ArrayRef<StatePlace> states) {
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  Operation *end = func.getBody().front().getTerminator();
  for (const StatePlace &state : states) {
    BlockArgument past = func.getArgument(state.argument);
    AppendOp append = getAppend(func, state);
    auto mustCopy = [&](OpOperand &use) {
      if (state.dim)
        return use.getOwner() != append;
      return use.getOwner() == end && use.getOperandNumber() != state.result;
    };
    auto type = cast<RankedTensorType>(past.getType());
    if (type.getRank() == 0 || llvm::none_of(past.getUses(), mustCopy))
      continue;
    auto copy = AppendOp::create(builder, past.getLoc(), type, ValueRange{past}, state.dim.value_or(0));
    past.replaceUsesWithIf(copy.getResult(), [&](OpOperand &use) { return use.getOwner() != copy && mustCopy(use); });
  }
}
