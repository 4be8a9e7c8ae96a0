//===- Memory.cpp - do all ranks fit into this machine? -------------------===//
//
// A lower bound, known before anything runs. Ranks that hold equal values share the bytes, so how many bytes there will
// be is not known; but every rank has a `Tensor` for each value that is alive, and a list of them at each op. At
// 100,000,000 ranks that alone is more than most machines have.
//
//===----------------------------------------------------------------------===//
#include "Ranks.h"

#include "cleave/Reference/Evaluator.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// The most values that are alive while one op runs, its results included.
static size_t countAlive(Block &body) {
  llvm::DenseMap<Value, Operation *> lastUses;
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      lastUses[operand] = &op;
  size_t alive = body.getNumArguments(), most = alive;
  for (Operation &op : body) {
    alive += op.getNumResults();
    most = std::max(most, alive);
    llvm::SmallDenseSet<Value> dead;
    for (Value operand : op.getOperands())
      if (lastUses[operand] == &op)
        dead.insert(operand);
    for (Value result : op.getResults())
      if (result.use_empty())
        dead.insert(result);
    alive -= dead.size();
  }
  return most;
}

LogicalResult cleave::reference::checkMemory(func::FuncOp func, int64_t numRanks) {
  assert(func.getBody().hasOneBlock() && "a program has one block");
  // Next to what is alive: the inputs, and the operands of the op that runs.
  double ofRank = countAlive(func.getBody().front()) * sizeof(Tensor) + 2 * sizeof(SmallVector<Tensor>);
  double needed = ofRank * double(numRanks), memory = getMemory();
  if (needed <= memory)
    return success();
  return func.emitError() << llvm::formatv("cannot be run on {0} ranks here: they need at least {1:f1} GB of memory, "
                                           "and there are {2:f1}",
                                           numRanks, needed / 1e9, memory / 1e9)
                                 .str();
}
