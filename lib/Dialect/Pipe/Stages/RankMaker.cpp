//===- RankMaker.cpp - the function of one rank of the pipeline -----------===//
//
//   row of rank 1   1RECV_F0,1F0,1RECV_F1,1F1
//   becomes         %h0 = pipe.recv from 0 ..   %y0 = call @main.stage1(%h0)   %h1 = pipe.recv ..   %y1 = call ..
//                   %y = pipe.join %y0, %y1 split 0       return %y
//
// A rank walks through its row. Before it, whole values that stages of several ranks read go from the first of these to the
// others; a state that several ranks read goes to them from the one that makes its next value. What an action reads is a part of an input, a
// whole value (made at its first use, before or between, unless it was received), or what an earlier action made or received. Behind the
// row, each call that stands behind the loop runs on the rank of its stage, where what it reads of other ranks is sent.
//
// Addends of microbatches are added in the order of these, in whatever order the row makes them: so every schedule gives the same sums.
//
//===----------------------------------------------------------------------===//
#include "RankMaker.h"

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Pipe/IR/NodeOrder.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

//===----------------------------------------------------------------------===//
// Values of one rank
//===----------------------------------------------------------------------===//

/// An argument, or what a call before the loop makes, which a rank that needs it makes once if it has not received it. Of several steps, states
/// are those of a version, and all else is that of a batch.
Value RankMaker::getOuter(Value value) {
  llvm::DenseMap<Value, Value> &outer = getOuters();
  if (Value known = outer.lookup(value))
    return known;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    bool isOfStep = signature.arguments.test(argument.getArgNumber());
    return outer[value] = isOfStep ? takeStep(builder, loc, made.getArgument(argument.getArgNumber()), now.second)
                                   : outers[{now.first, -1}].lookup(value);
  }
  Operation *producer = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : producer->getOperands())
    mapping.map(operand, getOuter(operand));
  Operation *clone = builder.clone(*producer, mapping);
  for (auto [old, result] : llvm::zip_equal(producer->getResults(), clone->getResults()))
    getOuters()[old] = result;
  return getOuters().lookup(value);
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
  int32_t own = microbatch % perStep;
  Type type = staged.loop.getBodyOf(own).getArgument(input).getType();
  IntegerAttr index = builder.getI64IntegerAttr(own), dim = builder.getI64IntegerAttr(take.getDim());
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

/// The mark keeps the addition where the addend is made: fused with its first operand's kernel it would hold a microbatch's values until a
/// later one is there.
void RankMaker::add(Value &sum, spmd::ReductionKind kind, Value addend) {
  if (!sum) {
    sum = addend;
    return;
  }
  sum = nn::Composer(builder, loc).combine(kind, sum, addend);
  sum.getDefiningOp()->setDiscardableAttr(spmd::kCombinesAttr, builder.getUnitAttr());
}

/// A sum of floats is its order: a table that makes addends out of turn has them wait, and gives the bits of one that does not. Of several
/// steps, `sums` are those of the one that is under way: each W comes before those of the next step.
void RankMaker::combine(unsigned result, spmd::ReductionKind kind, int32_t microbatch, Value addend) {
  size_t way = 0;
  while (!llvm::is_contained(staged.table.replicas[way].microbatches, microbatch))
    ++way;
  ArrayRef<int32_t> order = staged.table.replicas[way].microbatches;
  if (steps > 1)
    order = order.slice(static_cast<size_t>(microbatch / perStep * perStep), perStep);
  Sum &own = sums[{result, way}];
  own.early[microbatch] = addend;
  for (; own.turn < order.size() && own.early.lookup(order[own.turn]); ++own.turn)
    add(own.value, kind, own.early.lookup(order[own.turn]));
}

/// The call of a unit may make several results of the loop, and none. Parts of results wait for the others.
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
      own[microbatch % perStep] = mine;
    } else if (std::optional<spmd::ReductionKind> kind = give.getKind()) {
      combine(static_cast<unsigned>(index), *kind, microbatch, mine);
    } else if (own.empty()) {
      own.push_back(mine);
    }
  }
}

/// The call of a unit on what this microbatch has. Values go by the first body's names, whatever the size.
LogicalResult RankMaker::compute(int32_t unit, int32_t microbatch) {
  func::CallOp call = staged.calls[unit], own = staged.getCall(unit, microbatch % perStep);
  if (failed(choose(microbatch)))
    return failure();
  IRMapping mapping;
  for (auto [operand, ownOperand] : llvm::zip_equal(call->getOperands(), own->getOperands())) {
    FailureOr<Value> known = getInner(operand, microbatch);
    if (failed(known))
      return failure();
    mapping.map(ownOperand, *known);
  }
  Operation *clone = builder.clone(*own, mapping);
  // For traces: `1F3`, as the table has it; of B the two that it is.
  StringRef kind = std::array{"F", "I", "W"}[static_cast<size_t>(staged.units.getKind(unit))];
  auto action = builder.getStringAttr(Twine(staged.units.getStage(unit)) + kind + Twine(microbatch));
  clone->setLoc(FusedLoc::get({clone->getLoc()}, action, builder.getContext()));
  if (pair)
    clone->setAttr(kPairAttr, builder.getI64IntegerAttr(*pair));
  for (auto [value, result] : llvm::zip_equal(call->getResults(), clone->getResults()))
    inner[{value, microbatch}] = result;
  keepResults(call, microbatch);
  int32_t step = microbatch / perStep;
  if (steps > 1 && staged.units.getKind(unit) == UnitKind::WeightGrad && ++numDone[step] == perStep)
    return finishStep(step);
  return success();
}

/// B is I, and W behind it. Where parameters are gathered and gradients reduced follows from what reads them.
LogicalResult RankMaker::act(const schedule::Action &action) {
  using schedule::ActionKind;
  auto run = [&](UnitKind kind) {
    return compute(static_cast<int32_t>(staged.units.getUnit(kind, action.stage)), action.microbatch);
  };
  switch (action.kind) {
  case ActionKind::F:
    return run(UnitKind::Forward);
  case ActionKind::B:
    return success(succeeded(run(UnitKind::InputGrad)) && succeeded(run(UnitKind::WeightGrad)));
  case ActionKind::I:
    return run(UnitKind::InputGrad);
  case ActionKind::W:
    return run(UnitKind::WeightGrad);
  case ActionKind::ReduceGrad:
    sendHome(action.stage);
    return success();
  case ActionKind::Unshard:
  case ActionKind::Reshard:
    return success();
  case ActionKind::Update:
    return update(action.stage);
  default:
    return pass(action);
  }
}

/// What stands behind the loop runs here, for one stage, as far as it needs nothing of other stages (`Staged::isAlone`); the rest comes behind
/// the row. That the stage's gradients are there was seen before, by the checker of tables.
LogicalResult RankMaker::update(int32_t stage) {
  SmallVector<Operation *> own;
  for (Operation *op = staged.loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    if (staged.stageOf.lookup(op) == stage && staged.isAlone(op))
      own.push_back(op);
  if (steps > 1 || own.empty()) {
    std::string needs = staged.describeNeeds(stage);
    return staged.func.emitError() << "the table updates stage " << stage << " in the midst of its row, and "
                                   << (steps > 1       ? "a schedule without a flush updates each after its last W"
                                       : needs.empty() ? "it has nothing to update"
                                                       : needs)
                                   << " (P10)";
  }
  joinResults(stage);
  auto action = builder.getStringAttr(schedule::getText({schedule::ActionKind::Update, false, stage, -1, -1}));
  for (Operation *op : own)
    for (Value result : op->getResults())
      if (Operation *made = getOuter(result).getDefiningOp())
        made->setLoc(FusedLoc::get({op->getLoc()}, action, builder.getContext()));
  return success();
}

/// Two stages may wait for each other without a value between them that is not there already: then nothing is sent.
LogicalResult RankMaker::pass(const schedule::Action &action) {
  bool sends = schedule::isSend(action.kind);
  int32_t from = sends ? action.stage : action.other, to = sends ? action.other : action.stage;
  SmallVector<Value> values = staged.getMessage(from, to, action.microbatch);
  if (values.empty())
    return success();
  int64_t channel = staged.getChannel(from, to), peer = staged.table.getRank(sends ? to : from, action.microbatch);
  if (!sends) {
    auto types = llvm::map_to_vector(values, [&](Value value) {
      func::CallOp call = staged.getCall(staged.unitOf.lookup(value.getDefiningOp()), action.microbatch % perStep);
      return call.getResult(cast<OpResult>(value).getResultNumber()).getType();
    });
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

/// Values outside of the loop, from one rank to another one.
void RankMaker::exchange(int32_t sender, int32_t receiver, int64_t channel, ArrayRef<Value> values) {
  if (rank == sender) {
    auto own = llvm::map_to_vector(values, [&](Value value) { return getOuter(value); });
    SendOp::create(builder, loc, own, static_cast<int64_t>(receiver), channel, int64_t(-1));
  } else if (rank == receiver) {
    auto types = llvm::map_to_vector(values, [](Value value) { return value.getType(); });
    auto recv = RecvOp::create(builder, loc, types, static_cast<int64_t>(sender), channel, int64_t(-1));
    for (auto [value, result] : llvm::zip_equal(values, recv.getResults()))
      getOuters()[value] = result;
  }
}

/// A state has one owner. Other ranks that read it get it, all that they read of one owner in one message.
void RankMaker::shareStates() {
  std::map<std::pair<int32_t, int32_t>, SmallVector<Value>> messages;
  for (BlockArgument argument : staged.func.getArguments()) {
    std::optional<int32_t> owner = staged.getOwner(argument);
    auto found = staged.readers.find(argument);
    if (!owner || found == staged.readers.end())
      continue;
    DenseSet<int32_t> seen{*owner};
    for (int32_t reader : found->second)
      for (const schedule::Replica &way : staged.table.replicas)
        if (int32_t to = way.placement[reader]; seen.insert(to).second)
          messages[{*owner, to}].push_back(argument);
  }
  for (const auto &[ranks, values] : messages)
    exchange(ranks.first, ranks.second,
             staged.getChannel(staged.getStageOf(ranks.first), staged.getStageOf(ranks.second)), values);
}

/// What other ranks read of a call goes there in one message to each.
void RankMaker::shareInvariant(Operation *call) {
  int32_t maker = staged.getMaker(call), from = staged.getRank(maker);
  DenseSet<int32_t> seen{from};
  for (int32_t reader = 0; reader < staged.table.numStages; ++reader)
    for (const schedule::Replica &way : staged.table.replicas) {
      int32_t to = way.placement[reader];
      SmallVector<Value> values;
      bool isReader = false;
      for (Value result : call->getResults()) {
        auto found = staged.readers.find(result);
        if (found == staged.readers.end() ||
            llvm::none_of(found->second, [&](int32_t stage) { return staged.isOn(to, stage); }))
          continue;
        values.push_back(result);
        isReader |= found->second.count(reader) != 0;
      }
      if (isReader && seen.insert(to).second)
        exchange(from, to, staged.getChannel(maker, reader), values);
    }
}

/// In one order on all ranks, that of the calls, so that none wait for each other.
void RankMaker::shareInvariants() {
  for (Operation &op : staged.func.getBody().front()) {
    if (&op == staged.loop)
      return;
    if (isa<func::CallOp>(op) && staged.getMaker(&op) >= 0)
      shareInvariant(&op);
  }
}

//===----------------------------------------------------------------------===//
// Behind the row
//===----------------------------------------------------------------------===//

/// For an update in the midst of its home's row. Where the table has no such update, a REDUCE_GRAD is about other axes of the mesh.
void RankMaker::sendHome(int32_t stage) {
  bool isGuest = llvm::is_contained(schedule::findGuests(staged.table, stage), rank);
  if (isGuest && llvm::is_contained(schedule::listUpdated(staged.table), stage))
    gatherWays(stage);
}

/// What other ways than the first make of a result goes home, in one message from each rank: sums, in the order of the ways, and parts. `only`
/// those of one stage; else of all that are not updated in the midst of a row.
void RankMaker::gatherWays(std::optional<int32_t> only) {
  const std::vector<int32_t> early = schedule::listUpdated(staged.table);
  std::map<std::pair<int32_t, int32_t>, SmallVector<std::pair<unsigned, size_t>>> messages;
  for (OpResult result : staged.loop->getResults())
    for (size_t way = 1; way < staged.table.replicas.size(); ++way) {
      int32_t stage = staged.getResultStage(result), from = staged.table.replicas[way].placement[stage];
      if (only ? stage != *only : llvm::is_contained(early, stage))
        continue;
      if (!cast<PieceAttr>(staged.loop.getGives()[result.getResultNumber()]).isReplicated())
        messages[{from, staged.getRank(stage)}].push_back({result.getResultNumber(), way});
    }
  for (const auto &[ranks, results] : messages) {
    auto [from, to] = ranks;
    if (from == to || (rank != from && rank != to))
      continue;
    SmallVector<Value> own;
    SmallVector<Type> types;
    SmallVector<std::pair<unsigned, int32_t>> places;
    for (auto [index, way] : results) {
      bool isSplit = cast<PieceAttr>(staged.loop.getGives()[index]).isSplit();
      for (int32_t microbatch : staged.table.replicas[way].microbatches) {
        own.push_back(rank != from ? Value() : isSplit ? gathered[index][microbatch] : sums[{index, way}].value);
        types.push_back(staged.loop.getBodyOf(microbatch).getTerminator()->getOperand(index).getType());
        places.push_back({index, microbatch});
        if (!isSplit)
          break;
      }
    }
    int64_t channel = staged.getChannel(staged.getStageOf(from), staged.getStageOf(to));
    if (rank == from) {
      SendOp::create(builder, loc, own, static_cast<int64_t>(to), channel, int64_t(-1));
      continue;
    }
    auto recv = RecvOp::create(builder, loc, types, static_cast<int64_t>(from), channel, int64_t(-1));
    for (auto [place, value] : llvm::zip_equal(places, recv.getResults())) {
      auto give = cast<PieceAttr>(staged.loop.getGives()[place.first]);
      if (give.isSplit())
        gathered[place.first][place.second] = value;
      else
        add(sums[{place.first, 0}].value, *give.getKind(), value);
    }
  }
}

/// Results of the loop whose home is here, or those of one stage alone. Of one rank that has several ways of a stage, sums are added in the
/// order of these.
void RankMaker::joinResults(std::optional<int32_t> only) {
  gatherWays(only);
  for (OpResult result : staged.loop->getResults()) {
    unsigned index = result.getResultNumber();
    auto give = cast<PieceAttr>(staged.loop.getGives()[index]);
    int32_t stage = staged.getResultStage(result);
    if (staged.getRank(stage) != rank || stage != only.value_or(stage) || getOuters().contains(result))
      continue;
    if (std::optional<spmd::ReductionKind> kind = give.getKind()) {
      Value &sum = sums[{index, 0}].value;
      for (size_t way = 1; way < staged.table.replicas.size(); ++way)
        if (staged.table.replicas[way].placement[stage] == rank)
          add(sum, *kind, sums[{index, way}].value);
      getOuters()[result] = sum;
      continue;
    }
    SmallVector<Value> &own = gathered[index];
    assert(!own.empty() && "every microbatch makes it");
    getOuters()[result] =
        give.isSplit()
            ? Value(JoinOp::create(builder, loc, result.getType(), own, builder.getI64IntegerAttr(give.getDim()),
                                   builder.getI64IntegerAttr(give.getBlocks())))
            : own.front();
  }
}

/// What a call behind the loop reads of other ranks comes in one message from each, in the order in which it is read.
void RankMaker::receive(Operation *behind) {
  int32_t home = staged.stageOf.lookup(behind), to = staged.getRank(home);
  llvm::MapVector<int32_t, std::pair<int32_t, SmallVector<Value>>> messages;
  for (Value operand : behind->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || (producer != staged.loop && producer->isBeforeInBlock(staged.loop)))
      continue;
    int32_t source = staged.getResultStage(operand), from = staged.getRank(source);
    if (from == to || !arrived.insert({to, operand}).second)
      continue;
    auto &[stage, values] = messages[from];
    if (values.empty())
      stage = source;
    values.push_back(operand);
  }
  for (const auto &[from, message] : messages)
    exchange(from, to, staged.getChannel(message.first, home), message.second);
}

/// On all ranks in one order, so that none wait for each other.
void RankMaker::runAfter() {
  for (Operation *op = staged.loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    receive(op);
    if (staged.getRank(staged.stageOf.lookup(op)) == rank)
      for (Value result : op->getResults())
        getOuter(result);
  }
}

/// Nothing in it is split over microbatches any more.
DictionaryAttr cleave::pipe::withIndex(DictionaryAttr attributes, unsigned index, Builder builder) {
  NamedAttrList list(attributes);
  list.erase(PipeDialect::kSplitAttr);
  list.erase(PipeDialect::kHomeAttr);
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
    if (staged.getRank(staged.getResultStage(value)) != rank)
      continue;
    if (std::optional<unsigned> state = spmd::findStateArgument(staged.func, index))
      states.insert(*state);
    DictionaryAttr attributes = withIndex(staged.func.getResultAttrDict(index), index, builder);
    if (steps > 1)
      returned.push_back(signature.results.test(index) ? joinSteps(builder, loc, given[index]) : given[index].back());
    else
      returned.push_back(getOuters().lookup(value));
    resultAttrs.push_back(steps > 1 && signature.results.test(index) ? addSteps(attributes, steps) : attributes);
    types.push_back(returned.back().getType());
  }
  func::ReturnOp::create(builder, loc, returned);
  for (BlockArgument argument : staged.func.getArguments())
    if (staged.getOwner(argument) == rank)
      states.insert(argument.getArgNumber());
  Block &block = made.getBody().front();
  llvm::BitVector unused(block.getNumArguments());
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    DictionaryAttr attributes = withIndex(staged.func.getArgAttrDict(index), index, builder);
    if (argument.use_empty() && !states.contains(index))
      unused.set(index);
    else
      argAttrs.push_back(steps > 1 && signature.arguments.test(index) ? addSteps(attributes, steps) : attributes);
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
  // Of several steps, states are those of their version, whatever the batch (-1), and other arguments are taken apart.
  for (auto [old, argument] : llvm::zip_equal(staged.func.getArguments(), block->getArguments())) {
    bool isOfStep = steps > 1 && signature.arguments.test(argument.getArgNumber());
    if (isOfStep)
      argument.setType(addSteps(argument.getType(), steps));
    else
      outers[{0, steps > 1 ? -1 : 0}][old] = argument;
  }
  gathered.resize(staged.loop.getNumResults());
  given.resize(staged.func.getNumResults());
  if (steps > 1 && failed(checkAlone()))
    return failure();
  if (steps > 1)
    now.second = -1;
  shareStates();
  now.second = 0;
  shareInvariants();
  bool isSecond = false;
  for (const schedule::Action &action : staged.table.programs[rank]) {
    if (isSecond)
      ++*pair;
    else if (action.isJoined)
      pair = 2 * numPairs++;
    if (failed(act(action)))
      return failure();
    if (!action.isJoined)
      pair.reset();
    isSecond = action.isJoined;
  }
  if (steps == 1) {
    joinResults();
    runAfter();
  }
  finish(staged.func.getBody().front().getTerminator());
  return success();
}
