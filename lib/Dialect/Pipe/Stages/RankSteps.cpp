//===- RankSteps.cpp - a rank that goes from step to step without a flush -===//
//
// A table without a flush is of the microbatches of several steps (PipeDream). A rank updates its weights behind the last W of a step, in the
// midst of its row, and F of a later microbatch reads the newest weights there are, or those of the step before (2BW); I and W of that
// microbatch read the same. Versions of weights are values:
//
//   steps of 2 microbatches, newest    F0 F1 I0 W0 F2 I1 W1 ▶ w1   F3 I2 W2 I3 W3 ▶ w2        F0 F1 F2 read w0, F3 reads w1
//
//===----------------------------------------------------------------------===//
#include "RankMaker.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// Which weights a microbatch reads is said where its F stands: the newest, or those of the step before, which have to be there.
LogicalResult RankMaker::choose(int32_t microbatch) {
  if (steps == 1)
    return success();
  int32_t step = microbatch / perStep;
  auto [known, isNew] = versions.try_emplace(microbatch, isBehind ? std::max(step - 1, 0) : numUpdates);
  now = {known->second, step};
  if (known->second <= numUpdates)
    return success();
  return staged.func.emitError() << "rank " << rank << " runs microbatch " << microbatch << " of step " << step
                                 << " before the weights of the step before are there: " << perStep
                                 << " microbatches of a step are too few for " << staged.table.numRanks
                                 << " ranks (P7)";
}

/// In the midst of its row a rank waits for nobody, but for what its row says. Precondition of the rest: a stage is updated by itself.
LogicalResult RankMaker::checkAlone() {
  auto fail = [&](const Twine &why) {
    return staged.func.emitError() << "a schedule without a flush has each rank update its weights by itself, and "
                                   << why;
  };
  if (staged.table.replicas.size() > 1 || staged.table.numStages != staged.table.numRanks)
    return fail("this one has several stages on a rank");
  for (Operation *op = staged.loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && (producer == staged.loop || staged.loop->isBeforeInBlock(producer)) &&
          staged.getRank(staged.getResultStage(operand)) != staged.getRank(staged.stageOf.lookup(op)))
        return fail("stage " + Twine(staged.stageOf.lookup(op)) + " needs what stage " +
                    Twine(staged.getResultStage(operand)) +
                    " makes of gradients: a length to clip by, a scale, or a weight of both");
    }
  for (Operation *op = staged.loop->getPrevNode(); op; op = op->getPrevNode()) {
    std::set<int32_t> stages;
    for (Value result : op->getResults())
      if (auto found = staged.readers.find(result); found != staged.readers.end())
        stages.insert(found->second.begin(), found->second.end());
    if (stages.size() > 1)
      return fail("stage " + Twine(*stages.rbegin()) + " reads what stage " + Twine(*stages.begin()) +
                  " makes for all microbatches");
  }
  return success();
}

/// What another rank makes of states alone, such as the number of steps, is made here as well.
FailureOr<Value> RankMaker::advanceAlone(Value next, int32_t step) {
  auto call = next.getDefiningOp<func::CallOp>();
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()) : func::FuncOp();
  if (!callee)
    return failure();
  IRMapping mapping;
  std::function<LogicalResult(Value)> take = [&](Value value) -> LogicalResult {
    if (mapping.contains(value))
      return success();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto outside = dyn_cast<BlockArgument>(call.getOperand(argument.getArgNumber()));
      if (!outside || signature.arguments.test(outside.getArgNumber()))
        return failure();
      mapping.map(value, getOuter(outside));
      return success();
    }
    Operation *producer = value.getDefiningOp();
    for (Value operand : producer->getOperands())
      if (failed(take(operand)))
        return failure();
    builder.clone(*producer, mapping);
    return success();
  };
  Value inside = callee.getBody().front().getTerminator()->getOperand(cast<OpResult>(next).getResultNumber());
  return failed(take(inside)) ? FailureOr<Value>() : FailureOr<Value>(mapping.lookup(inside));
}

/// The next value of a state that this rank has, or reads; null for what it does not.
FailureOr<Value> RankMaker::advance(BlockArgument state, int32_t step) {
  Operation *ret = staged.func.getBody().front().getTerminator();
  auto found = staged.readers.find(state);
  bool isRead = found != staged.readers.end() &&
                llvm::any_of(found->second, [&](int32_t stage) { return staged.isOn(rank, stage); });
  for (unsigned result = 0; result < ret->getNumOperands(); ++result) {
    if (spmd::findStateArgument(staged.func, result) != state.getArgNumber())
      continue;
    Value next = ret->getOperand(result);
    if (isa<BlockArgument>(next) || staged.getRank(staged.getResultStage(next)) == rank)
      return getOuter(next);
    if (!isRead)
      return Value();
    FailureOr<Value> made = advanceAlone(next, step);
    if (succeeded(made))
      return made;
    return staged.func.emitError() << "state '" << spmd::getArgumentName(staged.func, state.getArgNumber())
                                   << "' is read on rank " << rank << ", and rank "
                                   << staged.getRank(staged.getResultStage(next))
                                   << " updates it: a schedule without a flush has each weight on one rank";
  }
  return Value();
}

/// Behind the last W of a step: its sums, the update, and from then on there is one more version of what the rank has.
LogicalResult RankMaker::finishStep(int32_t step) {
  if (step != numUpdates)
    return staged.func.emitError() << "rank " << rank << " ends step " << step << " before step " << numUpdates
                                   << " (P7)";
  now = {step, step};
  joinResults();
  for (Operation *op = staged.loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    if (staged.getRank(staged.stageOf.lookup(op)) == rank)
      for (Value result : op->getResults())
        getOuter(result);
  for (auto [index, value] : llvm::enumerate(staged.func.getBody().front().getTerminator()->getOperands()))
    if (staged.getRank(staged.getResultStage(value)) == rank)
      given[index].push_back(getOuter(value));
  for (BlockArgument argument : staged.func.getArguments()) {
    if (signature.arguments.test(argument.getArgNumber()))
      continue;
    FailureOr<Value> next = advance(argument, step);
    if (failed(next))
      return failure();
    outers[{step + 1, -1}][argument] = *next ? *next : outers[{step, -1}].lookup(argument);
  }
  sums.clear();
  for (SmallVector<Value> &parts : gathered)
    parts.clear();
  ++numUpdates;
  return success();
}
