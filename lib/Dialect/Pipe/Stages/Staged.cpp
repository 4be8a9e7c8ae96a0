//===- Staged.cpp - what all ranks of one entry share ---------------------===//
//
// Who reads a value follows from its uses: in the loop the stages whose calls do, before it the stage that makes what is made
// of it, behind it the last stage.
//
//===----------------------------------------------------------------------===//
#include "Staged.h"

#include "cleave/Cost/OpCosts.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// What is behind the loop without a word about where is of the last stage: programs without gradients have one such call.
Staged::Staged(func::FuncOp func, MicrobatchesOp loop, const schedule::Schedule &table)
    : func(func), loop(loop), table(table), calls(getStageCalls(loop.getBody())),
      units(StageUnits::get(func->getParentOfType<ModuleOp>(), static_cast<int64_t>(calls.size()))) {
  if (!loop.getRest().empty())
    rest = getStageCalls(loop.getRest());
  for (auto [unit, call] : llvm::enumerate(calls)) {
    unitOf[call] = static_cast<int32_t>(unit);
    stageOf[call] = static_cast<int32_t>(units.getStage(static_cast<int64_t>(unit)));
  }
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
    auto home = op->getAttrOfType<IntegerAttr>(PipeDialect::kHomeAttr);
    stageOf[op] = home ? static_cast<int32_t>(home.getInt()) : table.numStages - 1;
  }
  findReaders();
  findOwners();
  findAlone();
}

/// Without gradients a state has one rank that reads it and makes its next value (`checkStates` of pipe-lower).
void Staged::findOwners() {
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    arguments[spmd::getArgumentName(func, index)] = argument;
    if (auto home = func.getArgAttrOfType<IntegerAttr>(index, PipeDialect::kHomeAttr))
      owners[argument] = static_cast<int32_t>(home.getInt());
  }
  for (auto [index, next] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(index, spmd::SpmdDialect::kStateAttr);
    auto found = name ? arguments.find(name) : arguments.end();
    // What is left as it is is where it is read.
    if (found != arguments.end() && units.hasGradients() && !isa<BlockArgument>(next))
      owners[found->second] = getRank(getResultStage(next));
  }
}

std::optional<int32_t> Staged::getOwner(BlockArgument argument) const {
  auto found = owners.find(argument);
  return found == owners.end() ? std::nullopt : std::optional(found->second);
}

/// What a call behind the loop reads that its stage does not have by itself: of another stage, or made of such a value. Null: nothing.
Value Staged::findForeign(Operation *behind) {
  for (Value operand : behind->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || (maker != loop && maker->isBeforeInBlock(loop)))
      continue;
    if (getResultStage(operand) != stageOf.lookup(behind) || (maker != loop && !alone.contains(maker)))
      return operand;
  }
  return {};
}

/// Calls stand in the order in which they read each other. Of two ways, gradients of a stage are its own wherever they are made.
void Staged::findAlone() {
  for (Operation *op = loop->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    if (!findForeign(op))
      alone.insert(op);
}

/// What the function that is called, or that the loop calls, names the value that it returns, or the node that makes it; empty where neither has
/// a name.
static std::string getMadeName(Value value) {
  auto call = value.getDefiningOp<func::CallOp>();
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()) : func::FuncOp();
  if (!callee || callee.isExternal())
    return {};
  Value made = callee.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  if (SmallVector<StringRef, 1> names = spmd::getTensorNames(made); !names.empty())
    return names.front().str();
  if (Operation *op = made.getDefiningOp())
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
      if (!info.node.empty())
        return info.node.str();
  return {};
}

std::string Staged::describeNeeds(int32_t stage) {
  for (Operation *op = loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    if (stageOf.lookup(op) != stage || isAlone(op))
      continue;
    Value value = findForeign(op);
    bool isOfLoop = value.getDefiningOp() == loop;
    std::string name = getMadeName(isOfLoop ? getYielded(cast<OpResult>(value)) : value);
    // Of its own stage it is made of what others have.
    int32_t other = getResultStage(value);
    std::string what = other == stage ? "what is made of gradients of several stages"
                       : isOfLoop     ? llvm::formatv("a gradient of stage {0}", other).str()
                                      : llvm::formatv("what stage {0} makes of all microbatches", other).str();
    return llvm::formatv("it needs {0}{1}", what, name.empty() ? "" : llvm::formatv(", '{0}'", name).str()).str();
  }
  return {};
}

/// Of a stage whose weights are all frozen there is nothing to update.
llvm::Expected<std::vector<schedule::LateUpdate>> Staged::placeUpdates(schedule::Schedule &timed,
                                                                       const schedule::Costs &costs, bool early) {
  // Without a flush the table is of several steps, and each update follows from its W.
  if (table.isForwardOnly || table.numMicrobatches != static_cast<int32_t>(loop.getCount()))
    return std::vector<schedule::LateUpdate>();
  llvm::BitVector mayBeEarly(table.numStages);
  for (int32_t stage = 0; stage < table.numStages; ++stage)
    mayBeEarly[stage] = costs.update[stage] > 0;
  if (early && mayBeEarly.any() && schedule::listUpdated(timed).empty()) {
    llvm::Expected<int64_t> count = schedule::placeUpdates(timed, costs, mayBeEarly);
    if (!count)
      return count.takeError();
  }
  llvm::BitVector isEarly(table.numStages);
  for (int32_t stage : schedule::listUpdated(timed))
    isEarly.set(stage);
  std::vector<schedule::LateUpdate> late;
  for (int32_t stage = 0; stage < table.numStages; ++stage) {
    std::string why = describeNeeds(stage);
    if (why.empty() && mayBeEarly[stage] && !isEarly[stage])
      why = early ? "no wait of its rank after its last gradient has room for it" : "the plan has updates at the end";
    if (!why.empty())
      late.push_back({stage, std::move(why)});
  }
  return late;
}

/// What the update reads and writes goes through memory once, as in the kernels that it becomes: op by op it would be counted many times. What it
/// sends is counted by itself, since a rank does other things meanwhile; of two ways that is also what comes from the other rank of the stage.
LogicalResult Staged::addUpdateCosts(const schedule::Schedule &timed, schedule::Costs &costs) {
  auto module = func->getParentOfType<ModuleOp>();
  FailureOr<cost::OpTimes> times = cost::OpTimes::get(module);
  if (failed(times))
    return failure();
  const SymbolTable symbols(module);
  cost::OpCosts ops(&*times, &symbols);
  const spmd::ClusterDevice &device = times->getCluster().device;
  costs.update.assign(table.numStages, 0);
  costs.reduction.assign(table.numStages, 0);
  for (Operation *op = loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    if (!isAlone(op))
      continue;
    int32_t stage = stageOf.lookup(op);
    double bytes = 0;
    for (auto values : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value value : values)
        bytes += static_cast<double>(cost::countBytes(value));
    costs.update[stage] += device.getNs(0, bytes, "f32") + device.launchNs * op->getNumResults();
    auto call = dyn_cast<func::CallOp>(op);
    auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    if (callee && !callee.isExternal())
      for (Operation &own : callee.getBody().front().without_terminator())
        costs.reduction[stage] += ops.get(own).communicationNs;
  }
  for (OpResult result : loop->getResults())
    if (int32_t stage = getResultStage(result); isSentHome(result))
      costs.reduction[stage] += costs.bandwidth > 0 ? double(cost::countBytes(result)) / costs.bandwidth : 0;
  for (int32_t stage = 0; stage < table.numStages; ++stage)
    if (!schedule::findGuests(table, stage).empty() && !timed.channels.empty())
      costs.reduction[stage] += timed.channels.front().latency;
  return success();
}

bool Staged::isSentHome(OpResult result) {
  return !cast<PieceAttr>(loop.getGives()[result.getResultNumber()]).isReplicated() &&
         !schedule::findGuests(table, getResultStage(result)).empty();
}

/// Channels have the numbers of stages, also for what goes between ranks as such.
int32_t Staged::getStageOf(int32_t rank) const {
  for (int32_t stage = 0; stage < table.numStages; ++stage)
    if (getRank(stage) == rank)
      return stage;
  return 0;
}

/// By uses, not by operands: a value has few users, and a unit may read a thousand values.
bool Staged::isReadBy(int32_t stage, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto known = unitOf.find(user);
    return known != unitOf.end() && stageOf.lookup(user) == stage;
  });
}

SmallVector<Value> Staged::getMessage(int32_t from, int32_t to, int32_t microbatch) {
  bool isForward = from < to;
  SmallVector<Value> values;
  // A stage between, on the rank, has had its message before; and one behind `from` that of the forward.
  auto isThere = [&](Value value, bool ofForward) {
    for (int32_t stage = 0; stage < table.numStages; ++stage) {
      bool isEarlier =
          isForward ? from < stage && stage < to : (to < stage && stage < from) || (ofForward && stage > from);
      if (isEarlier && table.getRank(stage, microbatch) == table.getRank(to, microbatch) && isReadBy(stage, value))
        return true;
    }
    return false;
  };
  auto take = [&](UnitKind kind) {
    for (Value value : calls[units.getUnit(kind, from)]->getResults())
      if (isReadBy(to, value) && !isThere(value, kind == UnitKind::Forward))
        values.push_back(value);
  };
  take(UnitKind::Forward);
  if (!isForward)
    take(UnitKind::InputGrad);
  return values;
}

/// Pairs without a channel of their own, before or behind the loop, are numbered behind the others by their first stage.
int64_t Staged::getChannel(int32_t from, int32_t to) const {
  auto [first, second] = std::minmax(from, to);
  for (auto [number, channel] : llvm::enumerate(table.channels))
    if (channel.from == first && channel.to == second)
      return static_cast<int64_t>(number);
  return static_cast<int64_t>(table.channels.size()) + from;
}

/// A result of the loop is where the unit is that makes it; an argument that is handed through, where it is read first.
int32_t Staged::getResultStage(Value returned) {
  Operation *producer = returned.getDefiningOp();
  if (!producer) {
    auto found = readers.find(returned);
    return found == readers.end() ? 0 : *found->second.begin();
  }
  return stageOf.lookup(producer == loop ? getYielded(cast<OpResult>(returned)).getDefiningOp() : producer);
}

/// -1 for what nobody reads.
int32_t Staged::getMaker(Operation *call) const {
  int32_t maker = -1;
  for (Value result : call->getResults())
    if (auto found = readers.find(result); found != readers.end())
      maker = maker < 0 ? *found->second.begin() : std::min(maker, *found->second.begin());
  return maker;
}

/// From the loop backward, as calls before it read each other's results.
void Staged::findReaders() {
  auto read = [&](Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (user == loop) {
        for (Operation *call : loop.getBody().front().getArgument(use.getOperandNumber()).getUsers())
          if (auto stage = stageOf.find(call); stage != stageOf.end())
            readers[use.get()].insert(stage->second);
      } else if (loop->isBeforeInBlock(user)) {
        // A caller gets an argument from whoever has it.
        if (value.getDefiningOp() || !user->hasTrait<OpTrait::IsTerminator>())
          readers[value].insert(stageOf.lookup(user));
      } else if (int32_t maker = getMaker(user); maker >= 0) {
        readers[use.get()].insert(maker);
      }
    }
  };
  // Arguments come last: who reads them depends on who makes what is made of them.
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    llvm::for_each(op->getResults(), read);
  llvm::for_each(func.getArguments(), read);
}
