//===- Lower.cpp - a function per rank of the pipeline --------------------===//
//
//   row of rank 1   1RECV_F0,1F0,1RECV_F1,1F1
//   becomes         %h0 = pipe.recv from 0 ..   %y0 = call @main.stage1(%h0)   %h1 = pipe.recv ..   %y1 = call ..
//                   %y = pipe.join %y0, %y1 split 0       return %y
//
// A rank walks through its row. Before it, whole values that stages of several ranks read go from the first of these to the
// others. What an action reads is a part of an input, a whole value (made at its first use, before or between, unless it
// was received), or what an earlier action made or received. Behind the row, what was combined over all microbatches goes
// to the rank of the last stage, which runs what stands behind the loop.
//
//===----------------------------------------------------------------------===//
#include "../Stages/Staged.h"

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/InterleavedRange.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_LOWER
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
/// Makes the function of one rank.
class RankMaker {
public:
  RankMaker(Staged &staged, int32_t rank)
      : staged(staged), rank(rank), builder(staged.func), loc(staged.func.getLoc()) {}

  LogicalResult run();
  func::FuncOp getMade() const { return made; }

private:
  LogicalResult act(const schedule::Action &action);
  LogicalResult compute(const schedule::Action &action);
  void keepResults(Operation *call, int32_t microbatch);
  FailureOr<Value> getInner(Value value, int32_t microbatch);
  Value getOuter(Value value);
  Value getPart(unsigned input, int32_t microbatch);
  void joinResults();
  void shareInvariants();
  void shareInvariant(Operation *call, int32_t reader);
  void runAfter();
  void finish(Operation *ret);

  Staged &staged;
  int32_t rank;
  OpBuilder builder;
  Location loc;
  func::FuncOp made;
  /// For values outside of the loop; for values in the loop, by microbatch; parts of inputs of the loop.
  llvm::DenseMap<Value, Value> outer;
  llvm::DenseMap<std::pair<Value, int32_t>, Value> inner;
  llvm::DenseMap<std::pair<unsigned, int32_t>, Value> parts;
  /// Per result of the loop: its parts by microbatch, or what is combined so far.
  std::vector<SmallVector<Value>> gathered;
};

struct Lower : pipe::impl::LowerBase<Lower> {
  using LowerBase::LowerBase;

  void runOnOperation() override;

private:
  LogicalResult lower(func::FuncOp func, MicrobatchesOp loop);
};
} // namespace

//===----------------------------------------------------------------------===//
// Values of one rank
//===----------------------------------------------------------------------===//

/// An argument, or what a call before the loop makes, which a rank that needs it makes once if it has not received it.
Value RankMaker::getOuter(Value value) {
  if (Value known = outer.lookup(value))
    return known;
  Operation *producer = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : producer->getOperands())
    mapping.map(operand, getOuter(operand));
  Operation *clone = builder.clone(*producer, mapping);
  for (auto [old, result] : llvm::zip_equal(producer->getResults(), clone->getResults()))
    outer[old] = result;
  return outer.lookup(value);
}

/// What microbatch `microbatch` has of an operand of the loop.
Value RankMaker::getPart(unsigned input, int32_t microbatch) {
  Value whole = getOuter(staged.loop.getInputs()[input]);
  auto take = cast<PieceAttr>(staged.loop.getTakes()[input]);
  if (take.isReplicated())
    return whole;
  Value &part = parts[{input, microbatch}];
  if (part)
    return part;
  Type type = staged.loop.getBodyOf(microbatch).getArgument(input).getType();
  IntegerAttr index = builder.getI64IntegerAttr(microbatch), dim = builder.getI64IntegerAttr(take.getDim());
  return part = PartOp::create(builder, loc, type, whole, index, dim, staged.loop.getCountAttr(),
                               staged.loop.getSamplesAttr(), builder.getI64IntegerAttr(take.getBlocks()));
}

/// A value of the loop, for one microbatch: a part of an input, or what an action of this rank has made or received.
FailureOr<Value> RankMaker::getInner(Value value, int32_t microbatch) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getPart(argument.getArgNumber(), microbatch);
  if (Value known = inner.lookup({value, microbatch}))
    return known;
  return staged.func.emitError() << "rank " << rank << " reads what stage "
                                 << staged.stageOf.lookup(value.getDefiningOp()) << " makes of microbatch "
                                 << microbatch << " before it is there (P7)";
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

/// The call of a stage may make several results of the loop, and none.
/// Parts of results wait for the others; what is combined is so at once, and nothing waits.
void RankMaker::keepResults(Operation *call, int32_t microbatch) {
  Operation *yield = staged.loop.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    if (value.getDefiningOp() != call)
      continue;
    SmallVector<Value> &own = gathered[index];
    Value mine = inner.lookup({value, microbatch});
    auto give = cast<PieceAttr>(staged.loop.getGives()[index]);
    if (give.isSplit()) {
      own.resize(staged.loop.getCount());
      own[microbatch] = mine;
    } else if (std::optional<spmd::ReductionKind> kind = give.getKind(); kind && !own.empty()) {
      own.front() = nn::Composer(builder, loc).combine(*kind, own.front(), mine);
      own.front().getDefiningOp()->setDiscardableAttr(spmd::kCombinesAttr, builder.getUnitAttr());
    } else if (own.empty()) {
      own.push_back(mine);
    }
  }
}

/// An F: the call of its stage on what this microbatch has. Values go by the first body's names, whatever the size.
LogicalResult RankMaker::compute(const schedule::Action &action) {
  func::CallOp call = staged.calls[action.stage], own = staged.getCall(action.stage, action.microbatch);
  IRMapping mapping;
  for (auto [operand, ownOperand] : llvm::zip_equal(call->getOperands(), own->getOperands())) {
    FailureOr<Value> known = getInner(operand, action.microbatch);
    if (failed(known))
      return failure();
    mapping.map(ownOperand, *known);
  }
  Operation *clone = builder.clone(*own, mapping);
  for (auto [value, result] : llvm::zip_equal(call->getResults(), clone->getResults()))
    inner[{value, action.microbatch}] = result;
  keepResults(call, action.microbatch);
  return success();
}

/// Two stages may wait for each other without a value between them that is not there already: then nothing is sent.
LogicalResult RankMaker::act(const schedule::Action &action) {
  if (action.kind == schedule::ActionKind::F)
    return compute(action);
  bool sends = action.kind == schedule::ActionKind::SendF;
  int32_t from = sends ? action.stage : action.other, to = sends ? action.other : action.stage;
  SmallVector<Value> values = staged.getMessage(from, to);
  if (values.empty())
    return success();
  int64_t channel = staged.getChannel(from, to), peer = staged.getRank(sends ? to : from);
  if (!sends) {
    func::CallOp call = staged.getCall(from, action.microbatch);
    auto types = llvm::map_to_vector(
        values, [&](Value value) { return call.getResult(cast<OpResult>(value).getResultNumber()).getType(); });
    auto recv = RecvOp::create(builder, loc, types, peer, channel, static_cast<int64_t>(action.microbatch));
    for (auto [value, result] : llvm::zip_equal(values, recv.getResults()))
      inner[{value, action.microbatch}] = result;
    return success();
  }
  SmallVector<Value> own;
  for (Value value : values) {
    FailureOr<Value> known = getInner(value, action.microbatch);
    if (failed(known))
      return failure();
    own.push_back(*known);
  }
  SendOp::create(builder, loc, own, peer, channel, static_cast<int64_t>(action.microbatch));
  return success();
}

//===----------------------------------------------------------------------===//
// Before the row
//===----------------------------------------------------------------------===//

/// What the rank of `reader` reads of a call goes there in one message, if another rank makes it and no earlier stage there
/// has asked.
void RankMaker::shareInvariant(Operation *call, int32_t reader) {
  int32_t maker = staged.getMaker(call), from = staged.getRank(maker), to = staged.getRank(reader);
  if (from == to || (rank != from && rank != to))
    return;
  SmallVector<Value> values;
  for (Value result : call->getResults()) {
    auto found = staged.readers.find(result);
    if (found == staged.readers.end())
      continue;
    auto first = llvm::find_if(found->second, [&](int32_t stage) { return staged.getRank(stage) == to; });
    if (first != found->second.end() && *first == reader)
      values.push_back(result);
  }
  if (values.empty())
    return;
  int64_t channel = staged.getChannel(maker, reader);
  if (rank == from) {
    auto own = llvm::map_to_vector(values, [&](Value value) { return getOuter(value); });
    SendOp::create(builder, loc, own, static_cast<int64_t>(to), channel, int64_t(-1));
    return;
  }
  auto types = llvm::map_to_vector(values, [](Value value) { return value.getType(); });
  auto recv = RecvOp::create(builder, loc, types, static_cast<int64_t>(from), channel, int64_t(-1));
  for (auto [value, result] : llvm::zip_equal(values, recv.getResults()))
    outer[value] = result;
}

/// In one order on all ranks, that of the calls, so that none wait for each other.
void RankMaker::shareInvariants() {
  for (Operation &op : staged.func.getBody().front()) {
    if (&op == staged.loop)
      return;
    for (int32_t stage = 0; isa<func::CallOp>(op) && stage < staged.table.numStages; ++stage)
      if (staged.getMaker(&op) >= 0)
        shareInvariant(&op, stage);
  }
}

//===----------------------------------------------------------------------===//
// Behind the row
//===----------------------------------------------------------------------===//

/// Results of the loop that this rank's stages make.
void RankMaker::joinResults() {
  for (OpResult result : staged.loop->getResults()) {
    SmallVector<Value> &own = gathered[result.getResultNumber()];
    if (own.empty())
      continue;
    auto give = cast<PieceAttr>(staged.loop.getGives()[result.getResultNumber()]);
    outer[result] =
        give.isSplit()
            ? Value(JoinOp::create(builder, loc, result.getType(), own, builder.getI64IntegerAttr(give.getDim()),
                                   builder.getI64IntegerAttr(give.getBlocks())))
            : own.front();
  }
}

/// What is read behind the loop goes to the last rank, in the order in which it is read; then that rank runs it.
void RankMaker::runAfter() {
  int32_t last = staged.getLastRank();
  SmallVector<Operation *> calls;
  llvm::SetVector<Value> read;
  for (Operation *op = staged.loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    calls.push_back(op);
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp() == staged.loop)
        read.insert(operand);
  }
  for (Value value : read) {
    Value yielded = staged.getYielded(cast<OpResult>(value));
    int32_t owner = staged.getRank(yielded);
    int64_t channel = staged.getChannel(staged.stageOf.lookup(yielded.getDefiningOp()), staged.table.numStages - 1);
    if (owner == last)
      continue;
    if (rank == owner)
      SendOp::create(builder, loc, outer.lookup(value), static_cast<int64_t>(last), channel, int64_t(-1));
    else if (rank == last)
      outer[value] =
          RecvOp::create(builder, loc, value.getType(), static_cast<int64_t>(owner), channel, int64_t(-1)).getResult(0);
  }
  if (rank == last)
    for (Operation *op : calls)
      for (Value result : op->getResults())
        getOuter(result);
}

/// The attributes of argument or result `index` of the whole (null: none) for the rank that has it.
static DictionaryAttr withIndex(DictionaryAttr attributes, unsigned index, Builder builder) {
  NamedAttrList list(attributes);
  list.erase(PipeDialect::kSplitAttr);
  list.set(PipeDialect::kIndexAttr, builder.getI64IntegerAttr(index));
  return list.getDictionary(builder.getContext());
}

/// Who makes a value returns it; an input that is returned is so by the first rank that reads it. Arguments that the
/// rank does not read go, but for states whose next value it makes.
void RankMaker::finish(Operation *ret) {
  SmallVector<Value> returned;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> argAttrs, resultAttrs;
  llvm::SmallDenseSet<unsigned> states;
  for (auto [index, value] : llvm::enumerate(ret->getOperands())) {
    Operation *producer = value.getDefiningOp();
    int32_t owner = !producer                 ? staged.getReader(value)
                    : producer == staged.loop ? staged.getRank(staged.getYielded(cast<OpResult>(value)))
                                              : staged.getLastRank();
    if (owner != rank)
      continue;
    if (std::optional<unsigned> state = spmd::findStateArgument(staged.func, index))
      states.insert(*state);
    returned.push_back(outer.lookup(value));
    types.push_back(value.getType());
    resultAttrs.push_back(withIndex(staged.func.getResultAttrDict(index), index, builder));
  }
  func::ReturnOp::create(builder, loc, returned);
  Block &block = made.getBody().front();
  llvm::BitVector unused(block.getNumArguments());
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (argument.use_empty() && !states.contains(index))
      unused.set(index);
    else
      argAttrs.push_back(withIndex(staged.func.getArgAttrDict(index), index, builder));
  }
  block.eraseArguments(unused);
  made.setFunctionType(FunctionType::get(builder.getContext(), block.getArgumentTypes(), types));
  made.setAllArgAttrs(argAttrs);
  made.setAllResultAttrs(resultAttrs);
}

/// Whole values of other ranks, the row, then results, then what stands behind the loop.
LogicalResult RankMaker::run() {
  std::string name = (staged.func.getName() + ".rank" + Twine(rank)).str();
  made = func::FuncOp::create(builder, loc, name, staged.func.getFunctionType());
  made->setAttr(PipeDialect::kRankAttr, builder.getI64IntegerAttr(rank));
  // What earlier passes said of the step holds for each rank.
  for (NamedAttribute said : staged.func->getDiscardableAttrs())
    if (isa_and_present<nn::NnDialect>(said.getNameDialect()))
      made->setDiscardableAttr(said.getName(), said.getValue());
  Block *block = made.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  for (auto [old, argument] : llvm::zip_equal(staged.func.getArguments(), block->getArguments()))
    outer[old] = argument;
  gathered.resize(staged.loop.getNumResults());
  shareInvariants();
  for (const schedule::Action &action : staged.table.programs[rank])
    if (failed(act(action)))
      return failure();
  joinResults();
  runAfter();
  finish(staged.func.getBody().front().getTerminator());
  return success();
}

/// An input that no rank reads is one of the first: callers give all that the model has.
static LogicalResult keepUnread(func::FuncOp func, ArrayRef<func::FuncOp> ranks) {
  llvm::SmallDenseSet<int64_t> read;
  for (func::FuncOp rank : ranks)
    for (unsigned i = 0; i < rank.getNumArguments(); ++i)
      read.insert(*getArgIndex(rank, i));
  // Arguments of a rank stand in the order of the whole's.
  func::FuncOp first = ranks.front();
  unsigned at = 0;
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!read.contains(index) &&
        failed(first.insertArgument(at, argument.getType(),
                                    withIndex(func.getArgAttrDict(index), index, Builder(func.getContext())),
                                    argument.getLoc())))
      return failure();
    if (at < first.getNumArguments() && getArgIndex(first, at) == int64_t(index))
      ++at;
  }
  return success();
}

/// A state stays in one rank: the one that makes its next value is the only one that reads it.
static LogicalResult checkStates(func::FuncOp func, ArrayRef<func::FuncOp> ranks) {
  for (unsigned result = 0; result < func.getNumResults(); ++result) {
    std::optional<unsigned> argument = spmd::findStateArgument(func, result);
    int64_t maker = -1;
    SmallVector<int64_t> readers;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      func::FuncOp own = ranks[rank];
      for (unsigned i = 0; i < own.getNumArguments(); ++i)
        if (argument && getArgIndex(own, i) == *argument && !own.getArgument(i).use_empty())
          readers.push_back(static_cast<int64_t>(rank));
      for (unsigned i = 0; i < own.getNumResults(); ++i)
        if (getResultIndex(own, i) == result)
          maker = static_cast<int64_t>(rank);
    }
    // The maker keeps the argument even where nobody reads it: it is the place of the state.
    if (llvm::any_of(readers, [&](int64_t reader) { return reader != maker; }))
      return func.emitError() << "state '" << spmd::getArgumentName(func, *argument) << "' is read on pipeline ranks "
                              << llvm::interleaved(readers) << ", and its next value is made on rank " << maker
                              << ": a state stays in one rank, so that stages on one rank have to do both";
  }
  return success();
}

/// Table and loop must be about the same stages and microbatches: both may come from a file.
LogicalResult Lower::lower(func::FuncOp func, MicrobatchesOp loop) {
  std::string name = (func.getName() + ".schedule").str();
  auto op = getOperation().lookupSymbol<ScheduleOp>(name);
  if (!op)
    return func.emitError() << "has no schedule: there is no pipe.schedule @" << name;
  FailureOr<schedule::Schedule> table = readTable(op);
  if (failed(table) || failed(checkBodies(loop)))
    return failure();
  Staged staged{func,
                loop,
                *table,
                getStageCalls(loop.getBody()),
                {},
                llvm::DenseMap<Operation *, int32_t>(),
                llvm::DenseMap<Value, std::set<int32_t>>()};
  if (!loop.getRest().empty())
    staged.rest = getStageCalls(loop.getRest());
  for (auto [stage, call] : llvm::enumerate(staged.calls))
    staged.stageOf[call] = static_cast<int32_t>(stage);
  if (staged.calls.size() != static_cast<size_t>(table->numStages) ||
      table->numMicrobatches != static_cast<int32_t>(loop.getCount()))
    return op.emitOpError() << "is of " << table->numStages << " stages and " << table->numMicrobatches
                            << " microbatches, the program of " << staged.calls.size() << " and " << loop.getCount();
  staged.findReaders();
  SmallVector<func::FuncOp> ranks;
  for (int32_t rank = 0; rank < table->numRanks; ++rank) {
    RankMaker maker(staged, rank);
    if (failed(maker.run()))
      return failure();
    ranks.push_back(maker.getMade());
  }
  return failed(keepUnread(func, ranks)) ? failure() : checkStates(func, ranks);
}

void Lower::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(enterPhase(module, Phase::PerRank)))
    return signalPassFailure();
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (MicrobatchesOp loop = findLoop(func); loop && failed(lower(func, loop)))
      return signalPassFailure();
}
