//===- FlattenLoops.cpp - bodies of loops in the list around them ---------===//
//
//   %y = nn.loop count 8 carries (%x)       %a = exec.enter count 8 carries (%x)
//   ^bb0(%a):                          ─▶   %b = nn.exp %a
//     %b = nn.exp %a                        %y = exec.leave next (%b)
//     nn.yield next (%b)
//
// What is yielded is copied to where what is carried lies, one value after the other. So what is itself carried by another value, or
// is the condition, gets bytes of its own first: else two values that change places would both be one of them.
//
// What is loaded lies where it lies: the body reads it from there, so that whoever packs weights or makes them narrow finds them.
//
//===----------------------------------------------------------------------===//
#include "../Memory/BufferAssignment.h"

#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "llvm/ADT/Statistic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_FLATTENLOOPS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-flatten-loops"

ALWAYS_ENABLED_STATISTIC(numLoops, "loops moved into their function");

/// The value whose bytes `value` is, or a part of.
static Value getSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!getAliasOffset(op) && !isa<spmd::LocalSliceOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The same elements somewhere else.
static Value copy(OpBuilder &builder, Location loc, Value value) {
  nn::Composer f(builder, loc);
  RankedTensorType type = getTensorType(value);
  Value flat = f.reshape(value, type.getNumElements());
  Value made = AppendOp::create(builder, loc, flat.getType(), flat, /*dim=*/0);
  return f.reshape(made, type.getShape());
}

/// What is captured without being loaded comes by the mark.
static void readLoaded(nn::LoopOp loop) {
  Block &body = loop.getBody().front();
  for (unsigned index = loop.getCaptured().size(); index-- > 0;) {
    Value captured = loop.getCaptured()[index];
    if (!isLoaded(captured))
      continue;
    unsigned number = loop.getInitial().size() + index;
    body.getArgument(number).replaceAllUsesWith(captured);
    body.eraseArgument(number);
    loop.getCapturedMutable().erase(index);
  }
}

static void flatten(nn::LoopOp loop) {
  readLoaded(loop);
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  size_t carried = loop.getInitial().size();
  SmallVector<Type> types(loop.getInitial().getTypes());
  llvm::append_range(types, loop.getCaptured().getTypes());
  auto enter = EnterOp::create(builder, loc, types, loop.getCondition(), loop.getInitial(), loop.getCaptured(),
                               loop.getCountAttr());
  enter->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block &body = loop.getBody().front();
  nn::YieldOp yield = loop.getYield();
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), enter.getValues()))
    argument.replaceAllUsesWith(value);
  loop->getBlock()->getOperations().splice(loop->getIterator(), body.getOperations(), body.begin(),
                                           yield->getIterator());
  auto isCarried = [&](Value value) {
    auto result = dyn_cast<OpResult>(getSource(value));
    return result && result.getOwner() == enter && result.getResultNumber() < carried;
  };
  Value condition = yield.getCondition();
  if (condition && isCarried(condition))
    condition = copy(builder, loc, condition);
  SmallVector<Value> next;
  for (auto [value, own] : llvm::zip(yield.getNext(), enter.getValues()))
    next.push_back(value != own && isCarried(value) ? copy(builder, loc, value) : value);
  auto leave = LeaveOp::create(builder, loc, loop.getInitial().getTypes(), condition, next);
  loop->replaceAllUsesWith(leave.getValues());
  loop.erase();
}

namespace {
struct FlattenLoops : cleave::exec::impl::FlattenLoopsBase<FlattenLoops> {
  void runOnOperation() override {
    SmallVector<nn::LoopOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](nn::LoopOp loop) { loops.push_back(loop); });
    numLoops += loops.size();
    llvm::for_each(loops, flatten);
  }
};
} // namespace
