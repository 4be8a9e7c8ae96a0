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
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

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
  /// How long the values of a block live, and what else it holds, which `names` has no value of.
  Liveness follow(Block &body, llvm::function_ref<bool(Value)> isHeldOutside, SmallVectorImpl<Value> &names);

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
  SmallVector<Value> names;
  return follow(body, isHeldOutside, names).getPeakBytes();
}

Liveness PeakCounter::follow(Block &body, llvm::function_ref<bool(Value)> isHeldOutside,
                             SmallVectorImpl<Value> &names) {
  Liveness liveness;
  llvm::DenseMap<Value, Liveness::Buffer> buffers;
  auto define = [&](Value value, int64_t step) {
    names.push_back(value);
    // What is in the host's memory takes none of the rank's.
    bool isElsewhere = isHeldOutside(value) || value.getDefiningOp<exec::OffloadOp>();
    return buffers[value] = liveness.define(step, isElsewhere ? 0 : spmd::getBytes(value.getType()));
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
    auto loop = dyn_cast<nn::LoopOp>(op);
    func::FuncOp callee = getCallee(&op, symbols);
    if (callee || loop) {
      names.push_back(Value());
      liveness.define(step, loop ? countBody(loop) : count(callee));
    }
    ++step;
  }
  return liveness;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The bytes of [begin, end) that none of `taken` has, which they join.
static int64_t claim(std::map<int64_t, int64_t> &taken, int64_t begin, int64_t end) {
  int64_t free = end - begin;
  auto it = taken.lower_bound(begin);
  if (it != taken.begin() && std::prev(it)->second > begin)
    --it;
  int64_t first = begin, last = end;
  while (it != taken.end() && it->first < end) {
    free -= std::min(it->second, end) - std::max(it->first, begin);
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = taken.erase(it);
  }
  taken[first] = last;
  return free;
}

/// The tensors of an arena at the command where most of it is in use.
static void listArena(func::FuncOp func, exec::BufferOp buffer, SmallVectorImpl<HeldBytes> &held) {
  Liveness liveness;
  llvm::MapVector<Value, Liveness::Buffer> tensors;
  auto touch = [&](Value view, int64_t step) {
    Value tensor = view.getDefiningOp<exec::ViewOp>().getTensor();
    if (tensor.getDefiningOp<exec::ViewOp>().getBuffer() != buffer.getSymName())
      return;
    auto [it, isNew] = tensors.insert({tensor, 0});
    if (isNew)
      it->second = liveness.define(step, spmd::getBytes(tensor.getType()));
    liveness.use(it->second, step);
  };
  int64_t step = 0;
  for (Operation &op : func.getBody().front()) {
    op.walk([&](exec::CommandOpInterface command) {
      for (Value view : llvm::concat<Value>(command.getReads(), command.getWrites()))
        touch(view, step);
    });
    ++step;
  }
  int64_t peak = liveness.findPeak().first, left = static_cast<int64_t>(buffer.getBytes());
  std::map<int64_t, int64_t> taken;
  for (auto &[tensor, number] : llvm::reverse(tensors)) {
    const LiveInterval &interval = liveness.getIntervals()[number];
    if (peak < interval.first || interval.last < peak)
      continue;
    int64_t begin = tensor.getDefiningOp<exec::ViewOp>().getOffset().evaluate(func, 0);
    int64_t bytes = claim(taken, begin, begin + interval.bytes);
    held.push_back({bytes, tensor, buffer});
    left -= bytes;
  }
  held.push_back({left, Value(), buffer});
}

SmallVector<HeldBytes> cleave::cost::listPeakBytes(func::FuncOp func, const SymbolTable &symbols) {
  SmallVector<HeldBytes> held;
  llvm::DenseMap<StringRef, Value> inputs;
  for (auto input : func.getOps<exec::InputOp>())
    if (auto view = input.getView().getDefiningOp<exec::ViewOp>())
      inputs[view.getBuffer()] = view;
  for (exec::BufferOp buffer : getBuffers(func, symbols))
    if (buffer.getOnHost())
      continue;
    else if (buffer.getKind() == exec::BufferKind::Activations)
      listArena(func, buffer, held);
    else
      held.push_back({static_cast<int64_t>(buffer.getBytes()), inputs.lookup(buffer.getSymName()), buffer});
  if (!held.empty())
    return held;
  SmallVector<LiveBytes> all = listLiveBytes(func, symbols);
  Liveness liveness;
  for (const LiveBytes &one : all)
    liveness.use(liveness.define(one.first, one.bytes), one.last);
  int64_t peak = liveness.findPeak().first;
  for (const LiveBytes &one : all)
    if (one.first <= peak && peak <= one.last)
      held.push_back(one);
  return held;
}

SmallVector<LiveBytes> cleave::cost::listLiveBytes(func::FuncOp func, const SymbolTable &symbols) {
  SmallVector<Value> names;
  Liveness liveness = PeakCounter(symbols).follow(func.getBody().front(), [](Value) { return false; }, names);
  SmallVector<LiveBytes> live;
  for (auto [value, interval] : llvm::zip_equal(names, liveness.getIntervals()))
    live.push_back({{interval.bytes, value, {}}, interval.first, interval.last});
  return live;
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
    planned += buffer.getOnHost() ? 0 : static_cast<int64_t>(buffer.getBytes());
  return planned ? planned : PeakCounter(symbols).count(func);
}

int64_t cleave::cost::countPeakBytes(func::FuncOp func) {
  return countPeakBytes(func, SymbolTable(func->getParentOfType<ModuleOp>()));
}
