//===- Control.cpp - loops ------------------------------------------------===//
//
// The body again and again, on all ranks at once: whether there is another iteration is read from the condition, which all ranks
// must agree on, since they meet in the body.
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"

#include "cleave/Dialect/Nn/IR/Control.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// A loop without a count that goes on for longer is taken to be one without an end.
static constexpr int64_t kMostIterations = nn::LoopOp::kMostTimes;

/// True where all ranks say so.
static FailureOr<bool> readCondition(nn::LoopOp loop, const PerRank &condition, int64_t iteration) {
  bool first = condition.front().as<bool>()[0];
  for (auto [rank, tensor] : llvm::enumerate(condition))
    if (tensor.as<bool>()[0] != first)
      return loop.emitOpError() << "cannot be evaluated: behind " << iteration << " iterations rank " << rank
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
