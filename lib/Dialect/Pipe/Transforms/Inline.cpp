//===- Inline.cpp - one block for each rank of the pipeline ---------------===//
//
//   before   %p = pipe.part %x[1] split 0 of 2   %h = call @main.stage0(%p)    pipe.send %h to 1 ..
//   after    %p = nn.slice %x starts [8, 0] ..   %h = nn.exp %p                pipe.send %h to 1 ..
//
// What kernels are formed of: functions of ranks alone, bodies instead of calls, parts of a batch as slices. A parameter that
// every microbatch reads is loaded once.
//
// A pair of calls that run as one, the forward of a microbatch and the backward of another one (DualPipe, DeepSeek-AI 2024), becomes one strand
// of ops, taken from both in turn: from collective to collective, so that what one of them sends travels while the other one computes.
//
//   forward     a b ⇄ c d ⇄ e         backward    p ⇄ q r ⇄ s         both    a b ⇄ p ⇄ c d ⇄ q r ⇄ e s
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Dialect/Pipe/IR/NodeOrder.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Transforms/MergeEqual.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_INLINE
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct Inline : pipe::impl::InlineBase<Inline> {
  using InlineBase::InlineBase;

  void runOnOperation() override;
};
} // namespace

/// Piece `index` of each block, one behind the other.
static Value makePart(OpBuilder &builder, PartOp op) {
  nn::Composer f(builder, op.getLoc());
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  int64_t block = op.getInput().getType().getDimSize(dim) / blocks, index = static_cast<int64_t>(*op.getIndex());
  Deal deal = op.getDeal();
  SmallVector<Value> pieces;
  for (int64_t number = 0; number < blocks; ++number)
    pieces.push_back(f.sliceDim(op.getInput(), dim, number * block + block / deal.samples * deal.getStart(index),
                                deal.getExtent(block, index)));
  return f.concat(pieces, dim);
}

/// Block by block, a piece of each part.
static Value makeJoin(OpBuilder &builder, JoinOp op) {
  nn::Composer f(builder, op.getLoc());
  int64_t dim = static_cast<int64_t>(op.getDim()), blocks = static_cast<int64_t>(op.getBlocks());
  SmallVector<Value> pieces;
  for (int64_t block = 0; block < blocks; ++block)
    for (Value part : op.getParts()) {
      int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(dim) / blocks;
      pieces.push_back(f.sliceDim(part, dim, block * extent, extent));
    }
  return f.concat(pieces, dim);
}

namespace {
/// Calls one behind the other, whose ops are made anew one by one.
class Strand {
public:
  Strand(ArrayRef<func::CallOp> calls, OpBuilder &builder, DenseMap<Value, Value> &made)
      : calls(calls), builder(builder), made(made) {}

  bool isDone() const { return calls.empty(); }
  /// All ops up to the next one that sends something, or to the end.
  void advance();

private:
  void enter();

  ArrayRef<func::CallOp> calls;
  OpBuilder &builder;
  DenseMap<Value, Value> &made;
  Operation *next = nullptr;
  IRMapping mapping;
};
} // namespace

/// What an earlier call of the pair makes is there by now.
void Strand::enter() {
  func::CallOp call = calls.front();
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  Block &body = callee.getBody().front();
  mapping.clear();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), call.getOperands())) {
    Value known = made.lookup(operand);
    mapping.map(argument, known ? known : operand);
  }
  next = &body.front();
}

void Strand::advance() {
  while (!isDone()) {
    if (!next)
      enter();
    Operation *op = next;
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      for (auto [result, value] : llvm::zip_equal(func::CallOp(calls.front()).getResults(), op->getOperands()))
        made[result] = mapping.lookup(value);
      calls = calls.drop_front();
      next = nullptr;
      continue;
    }
    next = op->getNextNode();
    builder.clone(*op, mapping);
    if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op); collective && collective.communicates())
      return;
  }
}

/// What stands between the calls and reads nothing of them, such as parts of a batch, moves in front of the first: then all can begin there.
static void interleave(ArrayRef<func::CallOp> calls, size_t numFirst) {
  func::CallOp first = calls.front();
  DenseSet<Operation *> later(calls.begin(), calls.end());
  SmallVector<Operation *> between;
  for (Operation *op = first->getNextNode(); op != calls.back(); op = op->getNextNode())
    between.push_back(op);
  for (Operation *op : between) {
    bool waits = later.contains(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
                   return operand.getDefiningOp() && later.contains(operand.getDefiningOp());
                 });
    if (waits)
      later.insert(op);
    else
      op->moveBefore(first);
  }
  OpBuilder builder(first);
  DenseMap<Value, Value> made;
  Strand one(calls.take_front(numFirst), builder, made), other(calls.drop_front(numFirst), builder, made);
  while (!one.isDone() || !other.isDone()) {
    one.advance();
    other.advance();
  }
  for (func::CallOp call : llvm::reverse(calls)) {
    for (Value result : call.getResults())
      result.replaceAllUsesWith(made.lookup(result));
    call.erase();
  }
}

/// Messages stand in front of pairs, and behind them.
static void interleavePairs(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    llvm::MapVector<int64_t, SmallVector<func::CallOp>> pairs;
    for (auto call : func.getOps<func::CallOp>())
      if (auto pair = call->getAttrOfType<IntegerAttr>(kPairAttr))
        pairs[pair.getInt() / 2].push_back(call);
    for (auto &[number, calls] : pairs) {
      auto isOfFirst = [](func::CallOp call) { return call->getAttrOfType<IntegerAttr>(kPairAttr).getInt() % 2 == 0; };
      size_t numFirst = llvm::count_if(calls, isOfFirst);
      if (numFirst > 0 && numFirst < calls.size())
        interleave(calls, numFirst);
    }
  }
}

void Inline::runOnOperation() {
  ModuleOp module = getOperation();
  // What only the loop needs is of no use any more.
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!func.getOps<MicrobatchesOp>().empty())
      func.erase();
  for (auto table : llvm::make_early_inc_range(module.getOps<ScheduleOp>()))
    table.erase();
  interleavePairs(module);
  if (failed(nn::inlineCalls(module)))
    return signalPassFailure();
  module.walk([](Operation *op) {
    OpBuilder builder(op);
    Value made;
    if (auto part = dyn_cast<PartOp>(op); part && part.getIndex())
      made = makePart(builder, part);
    else if (auto join = dyn_cast<JoinOp>(op))
      made = makeJoin(builder, join);
    if (!made)
      return;
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  });
  for (auto func : module.getOps<func::FuncOp>())
    mergeEqual(func);
}
