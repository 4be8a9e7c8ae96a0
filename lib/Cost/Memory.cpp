//===- Memory.cpp - the bytes that a rank's program needs at once ---------===//
//
// Every value is a buffer that lives from the step that makes it to its last use:
//
//   step      0   1   2   3
//   %w        ########### .. a loaded weight, always there
//   %a        ####            an argument, until its last use
//   %b            ########    a value                              peak: the step with the most bytes
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/Memory.h"

#include "cleave/Cost/Program.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Support/Liveness.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::cost;

namespace {
/// Bytes that are needed at once. Loaded weights live throughout, and arguments without a user to the end, for somebody else holds
/// them; all other values from the op that makes them to their last user.
class PeakCounter {
public:
  explicit PeakCounter(const SymbolTable &symbols) : symbols(symbols) {}

  int64_t count(func::FuncOp func);

private:
  int64_t countBody(nn::LoopOp loop);
  int64_t countBlock(Block &body, llvm::function_ref<bool(Value)> isHeldOutside);

  const SymbolTable &symbols;
  llvm::DenseMap<Operation *, int64_t> known;
};
} // namespace

int64_t PeakCounter::count(func::FuncOp func) {
  if (auto it = known.find(func); it != known.end())
    return it->second;
  return known[func] = countBlock(func.getBody().front(), [](Value) { return false; });
}

/// What a loop holds beside its operands and results: what it hands on is where its results are, and what it was handed where an
/// initial value was that nobody else reads.
int64_t PeakCounter::countBody(nn::LoopOp loop) {
  llvm::DenseSet<Value> held;
  held.insert_range(loop.getTaken());
  held.insert_range(loop.getYield().getNext());
  for (auto [initial, argument] : llvm::zip_equal(loop.getInitial(), loop.getCarried()))
    if (initial.hasOneUse() && !initial.getDefiningOp<nn::LoadOp>())
      held.insert(argument);
  return countBlock(loop.getBody().front(), [&](Value value) { return held.contains(value); });
}

int64_t PeakCounter::countBlock(Block &body, llvm::function_ref<bool(Value)> isHeldOutside) {
  Liveness liveness;
  llvm::DenseMap<Value, Liveness::Buffer> buffers;
  auto define = [&](Value value, int64_t step) {
    return buffers[value] = liveness.define(step, isHeldOutside(value) ? 0 : spmd::getBytes(value.getType()));
  };
  int64_t step = 0, end = body.getOperations().size();
  buffers.reserve(end + body.getNumArguments());
  for (BlockArgument argument : body.getArguments()) {
    Liveness::Buffer buffer = define(argument, 0);
    if (argument.use_empty()) // the caller's
      liveness.use(buffer, end);
  }
  for (Operation &op : body) {
    for (Value operand : op.getOperands())
      liveness.use(buffers.lookup(operand), step);
    for (Value result : op.getResults())
      if (isa<nn::LoadOp>(op))
        liveness.use(define(result, 0), end);
      else
        define(result, step);
    // What a stage or a loop holds of its own, while it runs.
    if (func::FuncOp callee = getCallee(&op, symbols))
      liveness.define(step, count(callee));
    else if (auto loop = dyn_cast<nn::LoopOp>(op))
      liveness.define(step, countBody(loop));
    ++step;
  }
  return liveness.getPeakBytes();
}

SmallVector<exec::BufferOp> cleave::cost::getBuffers(func::FuncOp func, const SymbolTable &symbols) {
  if (!pipe::getRank(func))
    return llvm::to_vector(func->getParentOfType<ModuleOp>().getOps<exec::BufferOp>());
  llvm::SetVector<Operation *> seen;
  for (auto view : func.getOps<exec::ViewOp>())
    if (auto buffer = symbols.lookup<exec::BufferOp>(view.getBuffer()))
      seen.insert(buffer);
  return llvm::map_to_vector(seen, [](Operation *op) { return cast<exec::BufferOp>(op); });
}

int64_t cleave::cost::countPeakBytes(func::FuncOp func, const SymbolTable &symbols) {
  int64_t planned = 0;
  for (exec::BufferOp buffer : getBuffers(func, symbols))
    planned += static_cast<int64_t>(buffer.getBytes());
  return planned ? planned : PeakCounter(symbols).count(func);
}

int64_t cleave::cost::countPeakBytes(func::FuncOp func) {
  return countPeakBytes(func, SymbolTable(func->getParentOfType<ModuleOp>()));
}
