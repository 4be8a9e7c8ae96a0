//===- SplitLoop.cpp - a loop for other samples ---------------------------===//
//
// A loop is whole in one microbatch: each one runs the body on its own samples, as often as the loop says. What it carries is split if what
// goes in is, or what comes back, or if the body reads it beside something that is. So the body is made again until nothing that is
// carried becomes split any more:
//
//   %zeros invariant ──▶ %h invariant ──▶ %h + %x, split ──▶ yielded: split           first time
//   part of %zeros ──▶ %h split ──▶ %h + %x, split ──▶ yielded: split           second time
//
// A whole value that the body captures and reads beside samples comes in once more, in parts. Nothing in the body may be made of all
// microbatches: what ends a loop least of all, for then each microbatch would go on as long as its own samples want.
//
// What a loop carries whole beside samples (a count of its iterations, say) is the same in all microbatches, and may be read where there
// are none: a second loop, without samples, makes it.
//
//===----------------------------------------------------------------------===//
#include "TimeSplitter.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Transforms/MergeEqual.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

struct TimeSplitter::LoopSplit {
  nn::LoopOp loop;
  /// Of what goes in, whose batch is that of all that is split in the loop.
  const InTime &source;
  LoopSplit *around;
  Block *outer;
  /// Per value that is carried, as far as is known; it only ever becomes split.
  SmallVector<InTime> carried;
  /// Of the body that is being made: what it takes beside these.
  SmallVector<Value> captured;
  Block *body;
  /// Something became split, so that this body is of no use.
  bool isAgain;
};

LogicalResult TimeSplitter::accumulates(nn::LoopOp loop, const Twine &what, const InTime &time, const InTime &source) {
  return mixes(loop, what + " is made of all of them, by '" + time.accumulated->getName().getStringRef() + "'", source,
               time.accumulated);
}

//===----------------------------------------------------------------------===//
// What the body reads
//===----------------------------------------------------------------------===//

/// The part that a microbatch has of a whole argument of the body that is being made: of what is captured, from outside; of what
/// is carried, by splitting it from the first iteration on, for which the body is made anew.
Value TimeSplitter::getPartOfArgument(BlockArgument argument, unsigned dim) {
  LoopSplit &own = *loopSplit;
  unsigned number = argument.getArgNumber(), numCarried = own.carried.size();
  if (number < numCarried) {
    own.carried[number] = {InTime::Kind::Split, dim, own.source.argument, nullptr};
    own.isAgain = true;
    return own.body->addArgument(getPartType(argument.getType(), dim), argument.getLoc());
  }
  Value part;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(own.outer);
    loopSplit = own.around;
    part = getPart(own.loop.getCaptured()[number - numCarried], dim);
    loopSplit = &own;
  }
  if (!part)
    return {};
  own.captured.push_back(part);
  return own.body->addArgument(part.getType(), argument.getLoc());
}

/// Parts are of a body that is made anew: those of the one before are gone with it.
void TimeSplitter::forgetParts(Block &block) {
  for (auto *known : {&parts, &smalls})
    for (auto it = known->begin(), end = known->end(); it != end; ++it)
      if (it->first.first.getParentBlock() == &block)
        known->erase(it);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// What is yielded for value `index`; what is carried invariant and comes back split has to be split from the beginning.
FailureOr<Value> TimeSplitter::splitNextOf(unsigned index, Value next) {
  LoopSplit &own = *loopSplit;
  InTime now = times.lookup(next);
  std::string what = "value " + std::to_string(index) + " that it carries";
  if (now.kind == InTime::Kind::Accumulated)
    return accumulates(own.loop, what, now, own.source);
  InTime &carried = own.carried[index];
  if (!carried.isSplit() && now.isSplit()) {
    carried = now;
    own.isAgain = true;
  }
  if (!carried.isSplit() || (now.isSplit() && now.dim == carried.dim))
    return locals.lookup(next);
  if (now.isSplit())
    return mixes(own.loop,
                 what + " has the batch as dim " + Twine(carried.dim) + ", and comes back with it as dim " +
                     Twine(now.dim),
                 own.source);
  Value part = getPart(next, carried.dim);
  if (!part)
    return mixes(own.loop, what + " comes back with a size that does not follow from the batch", own.source);
  return part;
}

LogicalResult TimeSplitter::splitYield(nn::YieldOp yield) {
  LoopSplit &own = *loopSplit;
  Value condition = yield.getCondition();
  if (condition && times.lookup(condition).kind == InTime::Kind::Accumulated)
    return accumulates(own.loop, "its condition", times.lookup(condition), own.source);
  SmallVector<Value> next;
  for (auto [index, value] : llvm::enumerate(yield.getNext())) {
    FailureOr<Value> part = splitNextOf(index, value);
    if (failed(part))
      return failure();
    next.push_back(*part);
  }
  // What is carried is split from now on: this body is none.
  if (!own.isAgain)
    nn::YieldOp::create(builder, yield.getLoc(), condition ? locals.lookup(condition) : Value(), next);
  return success();
}

/// Once, with what is known of carried values by now.
LogicalResult TimeSplitter::splitBody() {
  LoopSplit &own = *loopSplit;
  Block &body = own.loop.getBody().front();
  forgetParts(body);
  own.isAgain = false;
  own.captured.clear();
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber(), numCarried = own.carried.size();
    bool isCarried = number < numCarried;
    Value outside = isCarried ? Value() : own.loop.getCaptured()[number - numCarried];
    InTime time = isCarried ? own.carried[number] : times.lookup(outside);
    if (!isCarried)
      own.captured.push_back(locals.lookup(outside));
    times[argument] = time;
    if (time.isSplit())
      samples = std::gcd(samples, cast<RankedTensorType>(argument.getType()).getDimSize(time.dim));
    Type type = time.isSplit() ? getPartType(argument.getType(), time.dim) : argument.getType();
    locals.map(argument, own.body->addArgument(type, argument.getLoc()));
  }
  builder.setInsertionPointToEnd(own.body);
  for (Operation &op : body.without_terminator())
    if (failed(split(&op)))
      return failure();
  return splitYield(own.loop.getYield());
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// What goes in: parts of what is split.
LogicalResult TimeSplitter::takeInitial(LoopSplit &own, SmallVectorImpl<Value> &initial) {
  for (auto [index, value, time] : llvm::enumerate(own.loop.getInitial(), own.carried)) {
    InTime before = times.lookup(value);
    if (before.isSplit() && before.dim != time.dim)
      return mixes(own.loop,
                   "value " + Twine(index) + " that it carries has the batch as dim " + Twine(before.dim) +
                       ", but is read as if that were dim " + Twine(time.dim),
                   own.source);
    initial.push_back(time.isSplit() && !before.isSplit() ? getPart(value, time.dim) : locals.lookup(value));
    if (!initial.back())
      return mixes(own.loop,
                   "value " + Twine(index) + " that it carries has a size that does not follow from the batch",
                   own.source);
  }
  return success();
}

LogicalResult TimeSplitter::splitLoop(nn::LoopOp loop, const InTime &source) {
  LoopSplit own{loop, source, loopSplit, builder.getInsertionBlock(), {}, {}, nullptr, false};
  for (Value value : loop->getOperands())
    if (InTime time = times.lookup(value); time.kind == InTime::Kind::Accumulated)
      return accumulates(loop, value == loop.getCondition() ? "its condition" : "what it takes", time, source);
  for (Value value : loop.getInitial())
    own.carried.push_back(times.lookup(value));
  Region region;
  do {
    region.getBlocks().clear();
    own.body = &region.emplaceBlock();
    OpBuilder::InsertionGuard guard(builder);
    loopSplit = &own;
    LogicalResult isSplitBody = splitBody();
    loopSplit = own.around;
    if (failed(isSplitBody))
      return failure();
  } while (own.isAgain);
  SmallVector<Value> initial;
  if (failed(takeInitial(own, initial)))
    return failure();
  auto made = nn::LoopOp::create(builder, loop.getLoc(), TypeRange(ValueRange(initial)),
                                 loop.getCondition() ? locals.lookup(loop.getCondition()) : Value(), initial,
                                 own.captured, loop.getCountAttr());
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  made.getBody().takeBody(region);
  mergeEqual(made.getBody().front());
  bool readsInvariant = false;
  for (auto [old, result, time] : llvm::zip_equal(loop.getResults(), made.getResults(), own.carried)) {
    locals.map(old, result);
    times[old] = time;
    readsInvariant |= !time.isSplit() && !old.use_empty();
  }
  // Within a body, and within a stage, all is of one microbatch.
  if (readsInvariant && !loopSplit && !sizes.isOfStage)
    makeInvariantLoop(loop, locals);
  return success();
}

//===----------------------------------------------------------------------===//
// What is the same in all microbatches
//===----------------------------------------------------------------------===//

/// The names of the node, as far as results are left.
static Location keepNames(nn::LoopOp loop, ArrayRef<unsigned> kept) {
  SmallVector<spmd::NodeInfo, 1> infos = spmd::getNodeInfos(loop);
  if (infos.size() != 1 || infos.front().results.size() != loop.getNumResults())
    return nn::getInnerLoc(loop.getLoc());
  auto results = llvm::map_to_vector(kept, [&](unsigned index) { return infos.front().results[index]; });
  infos.front().results = results;
  return nn::makeNodeLoc(loop.getContext(), infos.front());
}

/// A loop of what `loop` carries whole, and of ops of its body that are made of whole values alone; its results take the place of
/// those of the other one in `mapping`, which has whole values that it takes.
void TimeSplitter::makeInvariantLoop(nn::LoopOp loop, IRMapping &mapping) {
  auto isInvariant = [&](Value value) { return times.lookup(value).kind == InTime::Kind::Invariant; };
  SmallVector<unsigned> kept;
  SmallVector<Value> initial, captured, next;
  SmallVector<Type> types;
  IRMapping inner;
  Region region;
  Block &body = region.emplaceBlock();
  auto take = [&](Value outside, BlockArgument argument, SmallVectorImpl<Value> &list) {
    list.push_back(mapping.lookup(outside));
    inner.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  };
  for (auto [value, argument] : llvm::zip_equal(loop.getInitial(), loop.getCarried()))
    if (isInvariant(argument)) {
      kept.push_back(argument.getArgNumber());
      types.push_back(argument.getType());
      take(value, argument, initial);
    }
  for (auto [value, argument] : llvm::zip_equal(loop.getCaptured(), loop.getTaken()))
    if (isInvariant(argument))
      take(value, argument, captured);
  nn::YieldOp yield = loop.getYield();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    for (Operation &op : loop.getBody().front().without_terminator()) {
      auto within = dyn_cast<nn::LoopOp>(op);
      if (llvm::all_of(op.getOperands(), isInvariant))
        builder.clone(op, inner);
      else if (within && llvm::any_of(within.getResults(), isInvariant))
        makeInvariantLoop(within, inner);
    }
    for (unsigned index : kept)
      next.push_back(inner.lookup(yield.getNext()[index]));
    nn::YieldOp::create(builder, yield.getLoc(), yield.getCondition() ? inner.lookup(yield.getCondition()) : Value(),
                        next);
  }
  mergeEqual(body);
  // What only samples were computed with.
  for (unsigned number = captured.size(); number-- > 0;)
    if (BlockArgument argument = body.getArgument(kept.size() + number); argument.use_empty()) {
      body.eraseArgument(argument.getArgNumber());
      captured.erase(captured.begin() + number);
    }
  Location loc = keepNames(loop, kept);
  auto made =
      nn::LoopOp::create(builder, loc, types, loop.getCondition() ? mapping.lookup(loop.getCondition()) : Value(),
                         initial, captured, loop.getCountAttr());
  if (loop->hasAttr(spmd::kNodeAttr))
    made->setDiscardableAttr(spmd::kNodeAttr, LocationAttr(loc));
  made.getBody().takeBody(region);
  for (auto [index, result] : llvm::zip_equal(kept, made.getResults()))
    mapping.map(loop.getResult(index), result);
}
