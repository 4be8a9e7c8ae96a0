//===- Control.cpp - loops ------------------------------------------------===//
//
// The body again and again, on all ranks at once: whether there is another iteration is read from the condition, which all ranks
// must agree on, since they meet in the body.
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Program/Command.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

using program::kMostIterations;

FailureOr<bool> reference::readCondition(Operation *loop, const PerRank &condition, int64_t iteration) {
  bool first = condition.front().as<bool>()[0];
  for (auto [rank, tensor] : llvm::enumerate(condition))
    if (tensor.as<bool>()[0] != first)
      return loop->emitOpError() << "cannot be evaluated: after " << iteration << " iterations rank " << rank
                                 << " and rank 0 "
                                 << "disagree about its condition";
  return first;
}

/// An iteration is a run of the body like that of a function: it keeps nothing but what it yields, so that memory does not grow with the
/// iterations. Ranks that hold equal values share them from one iteration to the next, too.
LogicalResult Interpreter::runLoop(nn::LoopOp loop) {
  SmallVector<PerRank> operands = getOperands(*loop.getOperation());
  PerRank condition = loop.getCondition() ? operands.front() : PerRank();
  SmallVector<PerRank> inputs(ArrayRef(operands).drop_front(loop.getCondition() ? 1 : 0));
  operands.clear();
  size_t numCarried = loop.getInitial().size();
  int64_t count = loop.getCount() ? int64_t(*loop.getCount()) : std::numeric_limits<int64_t>::max();
  Block &body = loop.getBody().front();
  for (int64_t iteration = 0; iteration < count; ++iteration) {
    if (!condition.empty()) {
      FailureOr<bool> goesOn = readCondition(loop, condition, iteration);
      if (failed(goesOn))
        return failure();
      if (!*goesOn)
        break;
    }
    if (!loop.getCount() && iteration == kMostIterations)
      return loop.emitOpError() << "has not ended after " << kMostIterations << " iterations";
    SmallVector<PerRank> yielded;
    if (failed(Interpreter(body, mesh, params).run(inputs, yielded)))
      return failure();
    if (!condition.empty())
      condition = yielded.front();
    std::move(yielded.end() - numCarried, yielded.end(), inputs.begin());
  }
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), ArrayRef(inputs).take_front(numCarried)))
    set(result, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

/// Once forms are lowered, the body stands in the same block: what comes next is another op than the next one.
LogicalResult Interpreter::runEnter(exec::EnterOp enter) {
  size_t numCarried = enter.getInitial().size();
  bool goesOn = !enter.getCount() || *enter.getCount() > 0;
  if (enter.getCondition()) {
    FailureOr<bool> holds = readCondition(enter, values[enter.getCondition()], 0);
    if (failed(holds))
      return failure();
    goesOn &= *holds;
  }
  Operation *leave = goesOn ? nullptr : exec::findEnd(enter);
  for (auto [index, value] :
       llvm::enumerate(llvm::concat<Value>(llvm::to_vector(enter.getInitial()), llvm::to_vector(enter.getCaptured()))))
    if (goesOn)
      set(enter.getResult(index), PerRank(values[value]));
    else if (index < numCarried)
      set(leave->getResult(index), PerRank(values[value]));
  if (goesOn)
    entered.push_back({enter, 0});
  next = (goesOn ? enter.getOperation() : leave)->getNextNode();
  return success();
}

LogicalResult Interpreter::runLeave(exec::LeaveOp leave) {
  auto &[enter, iterations] = entered.back();
  ++iterations;
  bool goesOn = !enter.getCount() || iterations < int64_t(*enter.getCount());
  if (leave.getCondition()) {
    FailureOr<bool> holds = readCondition(leave, values[leave.getCondition()], iterations);
    if (failed(holds))
      return failure();
    goesOn &= *holds;
  }
  if (goesOn && !enter.getCount() && iterations == kMostIterations)
    return leave.emitOpError() << "has not ended after " << kMostIterations << " iterations";
  // All are read before one is written: values may change places.
  auto yielded = llvm::map_to_vector(leave.getNext(), [&](Value value) { return PerRank(values[value]); });
  for (auto [index, value] : llvm::enumerate(yielded))
    set(goesOn ? enter.getResult(index) : leave->getResult(index), std::move(value));
  next = (goesOn ? enter.getOperation() : leave.getOperation())->getNextNode();
  if (!goesOn)
    entered.pop_back();
  return success();
}
