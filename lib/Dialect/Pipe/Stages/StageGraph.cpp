//===- StageGraph.cpp - a function as a problem of stages -----------------===//
//
// One walk in program order. What depends on arguments and constants alone is followed on the way: its time, all that it
// is made of included, against that of a message.
//
// A state stays in a rank between calls, so that who reads it and who makes its next value are in one stage, and with them
// what lies between:
//
//   past ──▶ concat ──▶ slice ──▶ present        all three, and nothing that only reads what they make
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

#include "StageParts.h"
#include "StepOps.h"
#include "cleave/Cost/OpCosts.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Pipe/IR/NodeOrder.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"
#include "cleave/Plan/ClusterFile.h"
#include "llvm/ADT/EquivalenceClasses.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;
using spmd::Span;
using spmd::Spans;

/// What the body of a loop captures is what stands outside.
static Value getCaptured(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<nn::LoopOp>(argument.getOwner()->getParentOp()) : nn::LoopOp();
  unsigned numCarried = loop ? loop.getInitial().size() : 0;
  if (!loop || argument.getArgNumber() < numCarried)
    return value;
  return getCaptured(loop.getCaptured()[argument.getArgNumber() - numCarried]);
}

/// Of one microbatch; of a parameter or constant all, since each microbatch reads all.
static int64_t countBytes(Value value, const DeviceRates &rates) {
  value = getCaptured(value);
  int64_t bytes = spmd::getBytes(value.getType());
  return isOfEveryStage(value.getDefiningOp()) ? bytes : (bytes + rates.microbatches - 1) / rates.microbatches;
}

/// What a microbatch passes through. Each stage has parameters and constants by itself, and what is the same in all
/// microbatches, or runs behind them, is of no stage.
static bool isOfOneStage(Operation &op, const Spans &spans) {
  return !isOfEveryStage(&op) && !isa<PartOp>(op) && !op.hasTrait<OpTrait::IsTerminator>() &&
         spans.get(&op) == Span::Each;
}

// Before the mesh is looked up: a plan for a schedule alone may have none, and then all links are the nearest. Ops are timed on a device as
// all are; what a rank makes of that follows from its speed.
DeviceRates DeviceRates::get(const spmd::Plan *plan) {
  DeviceRates rates;
  if (!plan || !plan->cluster)
    return rates;
  rates.cluster = *plan->cluster;
  spmd::ClusterMesh mesh = spmd::getClusterMesh(*plan);
  rates.link = spmd::findLink(rates.cluster, mesh, plan->pipeline ? plan->pipeline->axis : "");
  const spmd::MeshAxis *axis = plan->pipeline ? plan->findAxis(plan->pipeline->axis) : nullptr;
  if (rates.cluster.unlike.empty() || !axis)
    return rates;
  for (int64_t rank = 0; rank < axis->size; ++rank) {
    std::vector<int64_t> devices = spmd::listDevices(mesh, axis->name, rank);
    rates.speeds.push_back(rates.cluster.getSpeed(devices));
    rates.memoryBytes.push_back(rates.cluster.getMemoryBytes(devices));
  }
  rates.cluster.unlike.clear();
  return rates;
}

/// The mesh of stages, in which collectives are, and that of the machine. A file of stages may have neither.
static cost::OpTimes makeTimes(func::FuncOp func, const DeviceRates &rates) {
  auto inner = spmd::getMesh(func);
  auto module = func->getParentOfType<ModuleOp>();
  if (!inner)
    inner = spmd::MeshAttr::get(func.getContext(), {"device"}, {1}, {});
  auto whole = module->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  return cost::OpTimes(rates.cluster, inner, whole ? whole : inner);
}

/// Of one op, or of one collective, for one part of the batch.
static double getNs(Operation &op, cost::OpCosts &costs, const DeviceRates &rates) {
  return costs.get(op, {rates.microbatches, [&](Value value) { return countBytes(value, rates); }}).getNs();
}

double cleave::pipe::getOpNs(Operation &op, const DeviceRates &rates) {
  cost::OpTimes times = makeTimes(op.getParentOfType<func::FuncOp>(), rates);
  cost::OpCosts costs(&times);
  return getNs(op, costs, rates);
}

namespace {
class GraphMaker {
public:
  GraphMaker(func::FuncOp func, const DeviceRates &rates, const Spans &spans, StageGraph &graph)
      : rates(rates), times(makeTimes(func, rates)), costs(&times), spans(spans), graph(graph) {}

  void add(Operation &op);
  void addGradients(const StepOps &step);
  void findStates(func::FuncOp func);
  void findTrained(func::FuncOp func);
  void keepStates(func::FuncOp func);
  void findAttention();

private:
  std::optional<uint32_t> findChained(Value value, bool isBefore, SmallVectorImpl<uint32_t> &members);
  void addNumbers(Value value, SmallVectorImpl<uint32_t> &members);
  void closeBetween(SmallVectorImpl<uint32_t> &members);
  void addOperands(Operation &op, schedule::SplitOp &made);
  uint32_t addParameter(Attribute key, StringRef name, int64_t bytes);
  bool isCheap(Operation &op, double ns, int64_t bytes);

  const DeviceRates &rates;
  const cost::OpTimes times;
  cost::OpCosts costs;
  const Spans &spans;
  StageGraph &graph;
  DenseMap<Operation *, uint32_t> numbers;
  DenseMap<Value, uint32_t> valueNumbers;
  /// By symbol and part: a parameter that is loaded twice is one.
  DenseMap<Attribute, uint32_t> parameters;
  /// What is made of arguments and constants alone, and how long that takes in all.
  DenseMap<Operation *, double> nsFromArguments;
  DenseSet<Value> states;
  /// Arguments that a step trains, with the bytes of all that a rank has of each: itself, its gradient, states of its optimizer.
  DenseMap<Value, int64_t> trained;
};
} // namespace

/// True if every rank had better compute the results again.
bool GraphMaker::isCheap(Operation &op, double ns, int64_t bytes) {
  double total = ns;
  // Only one rank has a state.
  if (llvm::any_of(op.getOperands(), [&](Value operand) { return states.contains(operand); }))
    return false;
  for (Value operand : op.getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || isa<nn::ConstantOp, PartOp>(producer) ||
        (spans.get(producer) == Span::Invariant && !isa<nn::LoadOp>(producer)))
      continue;
    auto found = nsFromArguments.find(producer);
    if (found == nsFromArguments.end())
      return false;
    total += found->second;
  }
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  if ((collective && collective.communicates()) || total > rates.getMessageNs(bytes))
    return false;
  nsFromArguments[&op] = total;
  return true;
}

uint32_t GraphMaker::addParameter(Attribute key, StringRef name, int64_t bytes) {
  auto [found, isNew] = parameters.try_emplace(key, static_cast<uint32_t>(graph.problem.parameterBytes.size()));
  if (isNew) {
    graph.parameterNames.push_back(name.str());
    graph.problem.parameterBytes.push_back(bytes);
  }
  return found->second;
}

/// Another argument is neither: every rank is given it. A stage has its parameters all the time, so that they are nothing that an op takes
/// for as long as it runs.
void GraphMaker::addOperands(Operation &op, schedule::SplitOp &made) {
  for (Value operand : op.getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (auto load = dyn_cast_or_null<nn::LoadOp>(producer)) {
      Builder builder(op.getContext());
      Attribute key = builder.getArrayAttr(
          {load.getParamAttr(), builder.getDenseI64ArrayAttr(load.getStarts().value_or(ArrayRef<int64_t>())),
           builder.getDenseI64ArrayAttr(load.getSizes().value_or(ArrayRef<int64_t>()))});
      made.parameters.push_back(addParameter(key, load.getParam(), countBytes(operand, rates)));
    } else if (auto own = trained.find(operand); own != trained.end()) {
      unsigned index = cast<BlockArgument>(operand).getArgNumber();
      auto entry = op.getParentOfType<func::FuncOp>();
      made.parameters.push_back(addParameter(Builder(op.getContext()).getI64IntegerAttr(index),
                                             spmd::getArgumentName(entry, index), own->second));
    } else {
      made.temporaryBytes += countBytes(operand, rates);
      if (auto value = valueNumbers.find(operand); value != valueNumbers.end())
        graph.problem.values[value->second].users.push_back(numbers[&op]);
    }
  }
}

void GraphMaker::add(Operation &op) {
  uint32_t number = static_cast<uint32_t>(graph.ops.size());
  numbers[&op] = number;
  graph.ops.push_back(&op);
  double ns = getNs(op, costs, rates);
  schedule::SplitOp &made = graph.problem.ops.emplace_back();
  made.ns = std::llround(ns);
  made.name = spmd::describeNode(&op);
  addOperands(op, made);
  int64_t bytes = 0;
  for (Value result : op.getResults())
    bytes += countBytes(result, rates);
  made.temporaryBytes += bytes;
  bool isFree = isCheap(op, ns, bytes);
  for (Value result : op.getResults()) {
    valueNumbers[result] = static_cast<uint32_t>(graph.problem.values.size());
    auto names = spmd::getTensorNames(result);
    graph.problem.values.push_back(
        {isFree ? 0 : countBytes(result, rates), number, {}, names.empty() ? "" : names[0].str()});
  }
}

void GraphMaker::findStates(func::FuncOp func) {
  for (unsigned result = 0; result < func.getNumResults(); ++result)
    if (std::optional<unsigned> argument = spmd::findStateArgument(func, result))
      states.insert(func.getArgument(*argument));
}

/// States of an optimizer are called after what they are of: `m(w)`.
void GraphMaker::findTrained(func::FuncOp func) {
  llvm::StringMap<Value> named;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (spmd::isParameter(func, index)) {
      Value argument = func.getArgument(index);
      named[spmd::getArgumentName(func, index)] = argument;
      trained[argument] = 2 * spmd::getBytes(argument.getType());
    }
  for (BlockArgument argument : func.getArguments()) {
    StringRef name = spmd::getArgumentName(func, argument.getArgNumber());
    auto found = named.find(name.split('(').second.drop_back(name.ends_with(")") ? 1 : 0));
    if (name.contains('(') && found != named.end())
      trained[found->second] += spmd::getBytes(argument.getType());
  }
}

/// An op of the backward is timed with the first op that it is a gradient of, or, without one, with the last op of the forward. With that op
/// stays, until then, what it reads of the forward: the first of those that read a value counts it.
void GraphMaker::addGradients(const StepOps &step) {
  DenseMap<Value, uint32_t> keepers;
  for (Operation *op : step.getBackward()) {
    int64_t ns = std::llround(getNs(*op, costs, rates));
    graph.backwardNs[op] = ns;
    std::optional<uint32_t> number;
    for (Operation *forward : step.getForward(op))
      if (auto found = numbers.find(forward); found != numbers.end())
        number = std::min(number.value_or(found->second), found->second);
    if (!graph.ops.empty())
      graph.problem.ops[number.value_or(graph.ops.size() - 1)].ns += ns;
    for (Value operand : op->getOperands())
      if (auto made = numbers.find(operand.getDefiningOp()); operand.getDefiningOp() && made != numbers.end()) {
        uint32_t own = number.value_or(made->second), &keeper = keepers.try_emplace(operand, own).first->second;
        keeper = std::min(keeper, own);
      }
  }
  for (auto [value, keeper] : keepers)
    graph.problem.ops[keeper].savedBytes += countBytes(value, rates);
}

/// Who makes a value, or, of an argument, who reads it.
void GraphMaker::addNumbers(Value value, SmallVectorImpl<uint32_t> &members) {
  auto addOp = [&](Operation *op) {
    if (auto number = numbers.find(op); number != numbers.end())
      members.push_back(number->second);
  };
  if (Operation *producer = value.getDefiningOp())
    return addOp(producer);
  llvm::for_each(value.getUsers(), addOp);
}

/// Whatever depends on one of the ops and leads to another is one of them, too: a stage cannot be left and come back to.
void GraphMaker::closeBetween(SmallVectorImpl<uint32_t> &members) {
  auto [first, last] = std::minmax_element(members.begin(), members.end());
  uint32_t begin = *first, end = *last + 1;
  std::vector<bool> isBehind(end - begin), isBefore(end - begin);
  for (uint32_t member : members)
    isBehind[member - begin] = isBefore[member - begin] = true;
  auto visitEdges = [&](uint32_t number, auto visit) {
    for (Value operand : graph.ops[number]->getOperands())
      if (auto producer = numbers.find(operand.getDefiningOp()); producer != numbers.end() && producer->second >= begin)
        visit(producer->second - begin);
  };
  for (uint32_t number = begin; number < end; ++number)
    visitEdges(number,
               [&](uint32_t producer) { isBehind[number - begin] = isBehind[number - begin] || isBehind[producer]; });
  for (uint32_t number = end; number-- > begin;)
    visitEdges(number, [&](uint32_t producer) { isBefore[producer] = isBefore[producer] || isBefore[number - begin]; });
  members.clear();
  for (uint32_t number = begin; number < end; ++number)
    if (isBehind[number - begin] && isBefore[number - begin])
      members.push_back(number);
}

void GraphMaker::keepStates(func::FuncOp func) {
  Operation *ret = func.getBody().front().getTerminator();
  llvm::EquivalenceClasses<uint32_t> clusters;
  for (unsigned result = 0; result < func.getNumResults(); ++result) {
    std::optional<unsigned> argument = spmd::findStateArgument(func, result);
    // What a step trains changes behind the loop, and wherever it is read the rank that has it sends it there.
    if (!argument || spans.get(ret->getOperand(result)) == Span::After)
      continue;
    SmallVector<uint32_t> members;
    addNumbers(func.getArgument(*argument), members);
    addNumbers(ret->getOperand(result), members);
    if (members.empty())
      continue;
    closeBetween(members);
    for (uint32_t member : members)
      clusters.unionSets(members.front(), member);
  }
  for (const auto *entry : clusters)
    graph.problem.ops[entry->getData()].cluster = static_cast<int32_t>(clusters.getLeaderValue(entry->getData()));
}

/// The contraction that makes `value`, or that reads it, through elementwise ops of its shape, each the only op of the graph that reads what
/// it is made of: what layers share, as a bias, leads to none. Adds what lies on the way.
std::optional<uint32_t> GraphMaker::findChained(Value value, bool isBefore, SmallVectorImpl<uint32_t> &members) {
  ArrayRef<int64_t> shape = getShape(value);
  SmallVector<Operation *, 2> readers;
  for (Operation *user : value.getUsers())
    if (numbers.contains(user) && !llvm::is_contained(readers, user))
      readers.push_back(user);
  Operation *next = isBefore ? value.getDefiningOp() : readers.size() == 1 ? readers.front() : nullptr;
  auto number = next ? numbers.find(next) : numbers.end();
  auto formed = dyn_cast_or_null<nn::FormOpInterface>(next);
  if (readers.size() > 1 || number == numbers.end() || !formed)
    return std::nullopt;
  members.push_back(number->second);
  if (formed.getForm() == nn::Form::Contraction)
    return number->second;
  size_t kept = members.size();
  auto follow = [&](Value more) -> std::optional<uint32_t> {
    if (formed.getForm() != nn::Form::Map || getShape(more) != shape)
      return std::nullopt;
    return findChained(more, isBefore, members);
  };
  if (!isBefore)
    return follow(next->getResult(0));
  for (Value operand : next->getOperands()) {
    if (std::optional<uint32_t> found = follow(operand))
      return found;
    members.resize(kept);
  }
  return std::nullopt;
}

/// Around each softmax: exec-recognize-attention makes one kernel of these, where they are in one stage.
void GraphMaker::findAttention() {
  llvm::EquivalenceClasses<uint32_t> clusters;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    SmallVector<uint32_t> members{static_cast<uint32_t>(number)};
    if (!isa<nn::SoftmaxOp>(op) || !findChained(op->getOperand(0), /*isBefore=*/true, members) ||
        !findChained(op->getResult(0), /*isBefore=*/false, members))
      continue;
    closeBetween(members);
    for (uint32_t member : members)
      clusters.unionSets(members.front(), member);
  }
  if (clusters.empty())
    return;
  std::map<int32_t, uint32_t> firstOf;
  for (auto [number, op] : llvm::enumerate(graph.problem.ops))
    if (op.cluster >= 0)
      clusters.unionSets(firstOf.try_emplace(op.cluster, number).first->second, static_cast<uint32_t>(number));
  graph.attentionClusters.assign(graph.ops.size(), -1);
  for (const auto *entry : clusters)
    graph.attentionClusters[entry->getData()] = static_cast<int32_t>(clusters.getLeaderValue(entry->getData()));
}

StageGraph cleave::pipe::makeStageGraph(func::FuncOp func, const DeviceRates &rates) {
  StageGraph graph;
  Spans spans(func);
  GraphMaker maker(func, rates, spans, graph);
  StepOps step(func, spans);
  maker.findStates(func);
  maker.findTrained(func);
  for (Operation &op : func.getBody().front())
    if (isOfOneStage(op, spans) && !step.isBackward(&op))
      maker.add(op);
  maker.addGradients(step);
  maker.keepStates(func);
  maker.findAttention();
  if (auto nodes = func->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(kNodesAttr))
    for (auto name : nodes.getAsRange<StringAttr>())
      graph.nodes.push_back(name.str());
  return graph;
}

llvm::MapVector<Operation *, int64_t> cleave::pipe::findUnits(const StageGraph &graph, ArrayRef<int32_t> stageOf,
                                                              int64_t numStages) {
  if (graph.backwardNs.empty())
    return {};
  DenseMap<Operation *, int64_t> stages;
  for (auto [op, stage] : llvm::zip_equal(graph.ops, stageOf))
    stages[op] = stage;
  auto func = graph.ops.front()->getParentOfType<func::FuncOp>();
  return StepOps(func, Spans(func)).findUnits(StageUnits(numStages, true), stages);
}
