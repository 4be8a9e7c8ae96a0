//===- StageParts.cpp - what each stage is made of ------------------------===//
//
// From the ops of a stage backward: an operand is made by the stage itself, is a parameter, is cheaper made again, arrives
// with the microbatch, is invariant and made before the loop, or is received. What is received, another stage gives:
//
//   stage    0          1          2
//            a ──────────────────▶ c        direct: 0 gives a to 2
//            a ───────▶ a ───────▶ c        relayed: 1 receives it, and gives it on
//
// In a step all this is so of units (StageUnits.h). Behind the loop an op is on the rank that has most of what it reads, so that a weight is
// updated where its gradient is. What needs gradients of all stages, such as a length to clip by, splits this into levels:
//
//   level    0                        1                            2
//            squares of stages 0, 1   length of all, on stage 0    updates of stages 0, 1
//
// What needs no stage, since it is summed up over arguments alone, is made ahead of the loop: with the number of labels that count no update waits
// for the stage that reads the labels.
//
//===----------------------------------------------------------------------===//
#include "SharedInvariants.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;
using spmd::Span;
using spmd::Spans;

namespace {
class PartFinder {
public:
  PartFinder(func::FuncOp func, const Spans &spans, DenseSet<Operation *> again, bool relays)
      : func(func), spans(spans), again(std::move(again)), relays(relays) {
    parts.units = StageUnits::get(func->getParentOfType<ModuleOp>(), 0);
    // A mark costs nothing: each unit that reads the value has its own, of what the forward keeps.
    func.walk([&](exec::AgainOp op) { this->again.insert(op); });
  }

  FailureOr<ModelParts> run(FindShared findShared);

private:
  void findAhead();
  void takeAhead(AccumulateOp sum);
  LogicalResult placeOps();
  int64_t findStage(Operation &op);
  void need(int64_t stage, Value value);
  void needOperands(int64_t stage, Operation *op);
  void receive(int64_t stage, Value value);
  void needBefore(int64_t stage, Value value);
  void give(Value value);
  void share(FindShared findShared);
  void placeAfter();
  int64_t findHome(Operation &op);
  std::map<int64_t, Values> findReadBehind();
  LogicalResult findOutputs();
  LogicalResult needAfter(AfterParts &own, Value value, Operation *user);
  AfterParts &getAfter(Operation *op);

  func::FuncOp func;
  const Spans &spans;
  DenseSet<Operation *> again;
  bool relays;
  ModelParts parts;
  /// Ops of a microbatch that nobody reads but sums which are made ahead of the loop.
  DenseSet<Operation *> onlyAhead;
  /// Of ops behind the loop: stage and level.
  DenseMap<Operation *, std::pair<int64_t, int64_t>> homes;
  /// What ops behind the loop are made of, by level and stage.
  std::map<std::pair<int64_t, int64_t>, AfterParts> groups;
};
} // namespace

/// That of the attribute; where reshards and the like have none, that of the last producer.
int64_t PartFinder::findStage(Operation &op) {
  if (std::optional<int64_t> stage = getStage(&op))
    return *stage;
  int64_t last = 0;
  for (Value operand : op.getOperands())
    if (Operation *producer = operand.getDefiningOp())
      last = std::max(last, parts.stageOf.lookup(producer));
  return last;
}

/// Constants that are no weights: cloned wherever they are read.
static bool isConstant(Operation *op) { return op && isOfEveryStage(op) && !isa<nn::LoadOp>(op); }

/// A sum, with all that it is made of.
void PartFinder::takeAhead(AccumulateOp sum) {
  AheadParts &ahead = parts.ahead;
  ahead.sums.push_back(sum);
  SmallVector<Value> todo{sum.getInput()};
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op)
      ahead.reads.insert(value);
    else if (ahead.each.insert(op))
      llvm::append_range(todo, op->getOperands());
  }
}

/// In a step of several stages, whose microbatches are all of one size. Nothing of it is sent over the mesh but what is made of sums.
void PartFinder::findAhead() {
  if (!parts.units.hasGradients() || parts.units.countStages() < 2 || func->hasAttr(PipeDialect::kShardsAttr))
    return;
  // Made of arguments that are split; of constants alone, such as what stands in for a label that is not there.
  DenseSet<Operation *> early, fixed;
  auto isFixed = [&](Value operand) {
    return isConstant(operand.getDefiningOp()) || fixed.contains(operand.getDefiningOp());
  };
  auto isEarly = [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    return op ? early.contains(op) || isFixed(operand) : spans.get(operand) == Span::Each;
  };
  for (Operation &op : func.getBody().front().without_terminator()) {
    bool isMade = op.getNumOperands() > 0 && llvm::all_of(op.getOperands(), isEarly) && isPure(&op);
    if (isMade && spans.get(&op) == Span::Invariant && llvm::all_of(op.getOperands(), isFixed))
      fixed.insert(&op);
    if (auto sum = dyn_cast<AccumulateOp>(op)) {
      if (Operation *maker = sum.getInput().getDefiningOp(); maker && early.contains(maker))
        takeAhead(sum);
    } else if (spans.get(&op) == Span::Each && isMade && !isa<spmd::CollectiveOpInterface>(op)) {
      early.insert(&op);
    } else if (spans.get(&op) == Span::After && op.getNumOperands() > 0 &&
               llvm::all_of(op.getOperands(), [&](Value operand) {
                 return parts.ahead.contains(operand.getDefiningOp()) || isConstant(operand.getDefiningOp());
               })) {
      parts.ahead.known.insert(&op);
    }
  }
  for (Operation &op : llvm::reverse(func.getBody().front()))
    if (parts.ahead.each.contains(&op) && spans.get(&op) == Span::Each &&
        llvm::all_of(op.getUsers(),
                     [&](Operation *user) { return onlyAhead.contains(user) || parts.ahead.contains(user); }))
      onlyAhead.insert(&op);
}

/// Each op of the loop gets its stage, and no edge goes backward. Parameters and constants are of no stage, but of each that reads them.
LogicalResult PartFinder::placeOps() {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (spans.get(&op) != Span::Each || isa<PartOp>(op) || isOfEveryStage(&op) || onlyAhead.contains(&op))
      continue;
    int64_t stage = findStage(op);
    parts.stageOf[&op] = stage;
    if (static_cast<size_t>(stage) >= parts.stages.size())
      parts.stages.resize(stage + 1);
    parts.stages[stage].ops.insert(&op);
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && !again.contains(producer) && parts.stageOf.lookup(producer) > stage)
        return op.emitOpError() << "is in stage " << stage << " and uses what stage " << parts.stageOf.lookup(producer)
                                << " makes (P3)";
  }
  if (!parts.units.hasGradients())
    parts.units = StageUnits(static_cast<int64_t>(parts.stages.size()), false);
  else if (parts.stages.size() > static_cast<size_t>(parts.units.count()))
    return func.emitOpError() << "has an op in unit " << parts.stages.size() - 1 << " of " << parts.units.countStages()
                              << " stages, which have three each (P2)";
  else
    parts.stages.resize(parts.units.count());
  for (auto [number, stage] : llvm::enumerate(parts.stages)) {
    // Of the first stage nobody wants gradients of inputs, and of one without weights there are no others.
    if (stage.ops.empty() && parts.units.getKind(static_cast<int64_t>(number)) != UnitKind::Forward)
      continue;
    if (stage.ops.empty())
      return func.emitOpError() << "has no op in stage " << number << " of " << parts.stages.size() << " (P2)";
    // A stage has what nobody else makes; one that had nothing else keeps what others could make again.
    bool isLeft = llvm::any_of(stage.ops, [&](Operation *op) { return !again.contains(op); });
    if (isLeft)
      stage.ops.remove_if([&](Operation *op) { return again.contains(op); });
    else
      llvm::for_each(stage.ops, [&](Operation *op) { again.erase(op); });
  }
  if (parts.stages.empty())
    return func.emitOpError("has no op that depends on a microbatch: there is nothing to split into stages");
  return success();
}

/// Whole values are made of whole ones alone, wherever they are needed.
void PartFinder::needBefore(int64_t stage, Value value) {
  if (value.getDefiningOp())
    parts.stages[stage].before.insert(value);
}

/// Whoever makes it hands it to `stage`, or to the one before, which hands it on. Gradients know no way but the direct one.
void PartFinder::receive(int64_t stage, Value value) {
  int64_t source = parts.stageOf.lookup(value.getDefiningOp());
  while (stage > source && parts.stages[stage].received.insert(value)) {
    stage = relays && parts.units.getKind(stage) == UnitKind::Forward ? stage - 1 : source;
    parts.stages[stage].given.insert(value);
  }
}

/// How `stage` comes to an operand, by what the operand is.
void PartFinder::need(int64_t stage, Value value) {
  StageParts &own = parts.stages[stage];
  Operation *producer = value.getDefiningOp();
  if (isOfEveryStage(producer)) {
    own.ops.insert(producer);
  } else if (auto part = dyn_cast_or_null<PartOp>(producer)) {
    own.parts.insert(value);
    needBefore(stage, part.getInput());
  } else if (spans.get(value) == Span::Invariant) {
    own.invariants.insert(value);
    needBefore(stage, value);
  } else if (!producer) {
    own.parts.insert(value);
  } else if (again.contains(producer)) {
    if (own.ops.insert(producer))
      needOperands(stage, producer);
  } else if (parts.stageOf.lookup(producer) != stage) {
    receive(stage, value);
  }
}

/// Of an op of the stage, or of one that it makes again.
void PartFinder::needOperands(int64_t stage, Operation *op) {
  for (Value operand : op->getOperands())
    need(stage, operand);
}

/// The stage that has most bytes of what the op reads; of equal ones the first.
int64_t PartFinder::findHome(Operation &op) {
  std::map<int64_t, int64_t> bytes;
  for (Value operand : op.getOperands()) {
    Operation *producer = operand.getDefiningOp();
    int64_t size = spmd::getBytes(operand.getType());
    if (parts.ahead.contains(producer))
      continue;
    if (auto sum = dyn_cast_if_present<AccumulateOp>(producer))
      bytes[parts.units.getStage(parts.stageOf.lookup(sum.getInput().getDefiningOp()))] += size;
    else if (auto known = homes.find(producer); producer && known != homes.end())
      bytes[known->second.first] += size;
  }
  auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  return most == bytes.end() ? parts.units.countStages() - 1 : most->first;
}

/// Of each op behind the loop the stage, and the level: one more than that of what it gets of other stages.
void PartFinder::placeAfter() {
  int64_t last = parts.units.countStages() - 1;
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (spans.get(&op) != Span::After || isa<AccumulateOp>(op) || parts.ahead.contains(&op))
      continue;
    int64_t stage = parts.units.hasGradients() ? findHome(op) : last, level = 0;
    for (Value operand : op.getOperands()) {
      auto sum = operand.getDefiningOp<AccumulateOp>();
      auto known = homes.find(operand.getDefiningOp());
      bool isFar = sum && parts.units.hasGradients() && !parts.ahead.contains(sum) &&
                   parts.units.getStage(parts.stageOf.lookup(sum.getInput().getDefiningOp())) != stage;
      if (operand.getDefiningOp() && known != homes.end())
        level = std::max(level, known->second.second + (known->second.first != stage));
      else if (isFar)
        level = std::max<int64_t>(level, 1);
    }
    homes[&op] = {stage, level};
  }
}

/// That of an op, or of a whole value that is returned: such a one is on the last rank, which tells callers rates and counts.
AfterParts &PartFinder::getAfter(Operation *op) {
  auto known = homes.find(op);
  auto [stage, level] = known == homes.end() ? std::pair(parts.units.countStages() - 1, int64_t(0)) : known->second;
  AfterParts &own = groups[{level, stage}];
  own.stage = stage;
  own.level = level;
  return own;
}

/// Ops behind the loop, from their results backward. Whole values that nobody makes before the loop are made where they are needed.
LogicalResult PartFinder::needAfter(AfterParts &own, Value value, Operation *user) {
  Operation *producer = value.getDefiningOp();
  if (spans.get(value) == Span::Each) {
    InFlightDiagnostic error = user->emitOpError()
                               << "reads what one microbatch makes, and runs after the last of them";
    if (producer)
      error.attachNote(producer->getLoc()) << "it is made here";
    return error;
  }
  if (!producer || isa<AccumulateOp>(producer) || parts.makers.contains(producer) || parts.ahead.contains(producer)) {
    if (parts.ahead.contains(producer))
      parts.ahead.gives.insert(value);
    own.reads.insert(value);
    return success();
  }
  AfterParts &maker = homes.contains(producer) ? getAfter(producer) : own;
  if (&maker != &own) {
    own.reads.insert(value);
    maker.gives.insert(value);
  }
  if (!maker.ops.insert(producer))
    return success();
  for (Value operand : producer->getOperands())
    if (failed(needAfter(maker, operand, producer)))
      return failure();
  return success();
}

/// Whole values that are made before the loop, if somebody else needs them, and read behind it; by stage.
std::map<int64_t, Values> PartFinder::findReadBehind() {
  std::map<int64_t, Values> read;
  for (Operation &op : func.getBody().front()) {
    auto known = homes.find(&op);
    int64_t stage = known == homes.end() ? parts.units.countStages() - 1 : known->second.first;
    if (spans.get(&op) == Span::After || op.hasTrait<OpTrait::IsTerminator>())
      for (Value operand : op.getOperands())
        if (spans.get(operand) == Span::Invariant && operand.getDefiningOp())
          read[stage].insert(operand);
  }
  return read;
}

/// Who makes a value for others makes what it is made of, or gets that of an earlier stage.
void PartFinder::share(FindShared findShared) {
  auto wanted = llvm::map_to_vector(parts.stages, [](const StageParts &stage) { return stage.before; });
  Values behind;
  for (const auto &[stage, values] : findReadBehind()) {
    wanted[stage].insert(values.begin(), values.end());
    behind.insert(values.begin(), values.end());
  }
  for (const SharedInvariant &whole : findShared(wanted))
    if (whole.isSent)
      parts.makers[whole.op] = whole.stages.front();
  auto fetch = [&](int64_t stage, SmallVector<Value> todo) {
    DenseSet<Operation *> seen;
    while (!todo.empty()) {
      Value value = todo.pop_back_val();
      Operation *producer = value.getDefiningOp();
      if (int64_t maker = parts.getMaker(stage, value); producer && maker != stage)
        parts.stages[maker].before.insert(value);
      else if (producer && seen.insert(producer).second)
        llvm::append_range(todo, producer->getOperands());
    }
  };
  fetch(static_cast<int64_t>(parts.stages.size()), llvm::to_vector(behind));
  for (int64_t stage = static_cast<int64_t>(parts.stages.size()) - 1; stage >= 0; --stage) {
    Values &before = parts.stages[stage].before;
    fetch(stage, llvm::to_vector(before));
    before.remove_if([&](Value value) { return parts.getMaker(stage, value) != stage; });
  }
}

/// The caller gets it of the stage that makes it.
void PartFinder::give(Value value) {
  int64_t stage = parts.stageOf.lookup(value.getDefiningOp());
  need(stage, value);
  parts.stages[stage].given.insert(value);
}

/// What is combined, what is returned of the loop, and what stands behind it.
LogicalResult PartFinder::findOutputs() {
  Block &block = func.getBody().front();
  for (auto sum : block.getOps<AccumulateOp>()) {
    if (parts.ahead.contains(sum))
      continue;
    parts.sums.push_back(sum);
    if (!parts.stageOf.contains(sum.getInput().getDefiningOp()))
      return sum.emitOpError("combines what no stage makes");
    give(sum.getInput());
  }
  Operation *ret = block.getTerminator();
  for (auto [index, value] : llvm::enumerate(ret->getOperands())) {
    Operation *producer = value.getDefiningOp();
    bool isSplit = getResultSplit(func, index).has_value();
    if (spans.areSeveral() && isSplit != (spans.get(value) == Span::Each))
      return ret->emitOpError() << "returns as result " << index << (isSplit ? ", which is cut," : "")
                                << " a value that is " << (isSplit ? "whole" : "one microbatch's");
    if (parts.ahead.contains(producer))
      parts.ahead.gives.insert(value);
    if (!producer || isa<AccumulateOp>(producer) || parts.ahead.contains(producer))
      continue;
    bool isOfLoop = spans.get(value) == Span::Each;
    if (!isOfLoop) {
      AfterParts &own = getAfter(producer);
      if (failed(needAfter(own, value, ret)))
        return failure();
      own.gives.insert(value);
    } else if (isa<PartOp>(producer))
      return ret->emitOpError() << "returns a part of a whole value as result " << index;
    else if (parts.outputs.insert(value))
      give(value);
  }
  return success();
}

FailureOr<ModelParts> PartFinder::run(FindShared findShared) {
  findAhead();
  if (failed(placeOps()))
    return failure();
  for (int64_t stage = 0, count = static_cast<int64_t>(parts.stages.size()); stage < count; ++stage) {
    auto own = llvm::to_vector(parts.stages[stage].ops);
    for (Operation *op : own)
      needOperands(stage, op);
  }
  placeAfter();
  share(findShared);
  if (failed(findOutputs()))
    return failure();
  for (auto &[key, own] : groups)
    parts.afters.push_back(std::move(own));
  return std::move(parts);
}

FailureOr<ModelParts> cleave::pipe::findParts(func::FuncOp func, const Spans &spans, DenseSet<Operation *> again,
                                              bool relays, FindShared findShared) {
  return PartFinder(func, spans, std::move(again), relays).run(findShared);
}
