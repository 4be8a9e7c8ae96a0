//===- Propagate.cpp - decides the sharding of every value ----------------===//
//
//   before   %y = nn.exp %x : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32>
//   after    %y = nn.exp %x : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #rows>
//
// The thinking is in Solver (Problem.h, Solver.h); here a function is read (`FunctionProblem`), decided, and written:
// types first, then what ops want otherwise than it is shared, then what the user should know.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/AttentionRequest.h"
#include "cleave/Dialect/Spmd/IR/Costs.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include "cleave/Sharding/ServeWants.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PROPAGATE
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

#define DEBUG_TYPE "spmd-propagate"

ALWAYS_ENABLED_STATISTIC(numOps, "ops that got a strategy");
ALWAYS_ENABLED_STATISTIC(numValues, "values that got a sharding");
ALWAYS_ENABLED_STATISTIC(numReplications, "ops that replicate what an annotation splits");
ALWAYS_ENABLED_STATISTIC(numDetours, "places where another decision sends less, or follows the plan");

namespace {
/// An op that does not follow an annotation for some axes.
struct Replication {
  OpId op = kNone;
  StringAttr reason;
  bool isReplicated = false; ///< not just resharded
  SmallVector<AxisAttr, 2> axes;
  int64_t cost = 0; ///< bytes sent around the op
};

/// Writes the decision about one function.
class DecisionWriter {
public:
  DecisionWriter(const FunctionProblem &source, MeshAtoms &atoms, const CostModel &model)
      : source(source), problem(source.getProblem()), decision(source.getDecision()), atoms(atoms), model(model),
        builder(source.getFunction().getContext()),
        shardings{std::vector<ShardingAttr>(decision.states.size()), std::vector<ShardingAttr>(decision.states.size())},
        planner(atoms.getAtoms(), {/*useIdleAtoms=*/false, model}), states(decision.states), costs(planner, states) {}

  void writeTypes();
  LogicalResult writeAnnotations();
  void writeReplications();
  void writeDetours();

private:
  /// Of a value in this state.
  ShardingAttr getSharding(ValueId value, StateId state);
  void writeAnnotations(Operation *op, StringRef name, ArrayRef<ValueId> values, ArrayRef<StateId> wanted);
  void writeLoop(const LoopProblem &loop);
  FailureOr<int64_t> keepStates(ArrayRef<ValueId> outputs, MutableArrayRef<StateId> wanted);
  void writeSources();
  std::string getReason(const ForcedReplication &forced) const;
  ShapeId getShapeId(ValueId value);
  /// What it costs to bring a value from one state into another.
  int64_t getCost(ValueId value, StateId from, StateId to);
  /// What is sent of a value for all who want it, `outputs` of the function among them, wanted as told. Costs by time are no bytes.
  int64_t countBytes(ValueId value, ArrayRef<ValueId> outputs, ArrayRef<StateId> wanted);
  int64_t getReplicationCost(OpId id);
  /// The dearest first.
  std::vector<Replication> getReplications();

  const FunctionProblem &source;
  const Problem &problem;
  const Decision &decision;
  MeshAtoms &atoms;
  const CostModel &model;
  Builder builder;
  /// By state, where it divides and where it does not.
  std::array<std::vector<ShardingAttr>, 2> shardings;
  ReshardPlanner planner;
  /// Those of the decision, and more.
  StateTable states;
  ReshardCosts costs;
};

struct Propagate : spmd::impl::PropagateBase<Propagate> {
  using Base::Base;
  Propagate(PropagateOptions options, CostModel costs, Decisions *kept, std::shared_ptr<SearchMemory> memory)
      : Base(std::move(options)), costs(std::move(costs)), kept(kept), memory(std::move(memory)) {}

  void runOnOperation() override;

private:
  /// Null after an error.
  std::unique_ptr<FunctionProblem> decide(func::FuncOp func, MeshAtoms &atoms, SolverOptions options);

  /// Without one, that of the option.
  std::optional<CostModel> costs;
  Decisions *kept = nullptr;
  std::shared_ptr<SearchMemory> memory;
};
} // namespace

ShardingAttr DecisionWriter::getSharding(ValueId value, StateId state) {
  ArrayRef<int64_t> shape = problem.shape(value);
  ShardingAttr &sharding = shardings[isUneven(atoms.getAtoms(), shape, decision.states[state])][state];
  if (!sharding)
    sharding = atoms.toSharding(decision.states[state], shape);
  return sharding;
}

/// Types are uniqued in the context, which hashes them whole: each pair of a type and a state is made once.
void DecisionWriter::writeTypes() {
  llvm::DenseMap<std::pair<Type, StateId>, Type> types;
  for (auto [id, value] : llvm::enumerate(source.getValues())) {
    StateId state = decision.valueStates[id];
    Type &type = types[{value.getType(), state}];
    if (!type)
      type = withSharding(cast<RankedTensorType>(value.getType()), getSharding(id, state));
    Value(value).setType(type);
  }
  func::FuncOp func = source.getFunction();
  Block &body = func.getBody().front();
  func.setFunctionType(
      FunctionType::get(func.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

/// Sets the attribute `name` of `op` if it wants any of `values` otherwise than they are shared.
void DecisionWriter::writeAnnotations(Operation *op, StringRef name, ArrayRef<ValueId> values,
                                      ArrayRef<StateId> wanted) {
  SmallVector<Attribute> list;
  bool any = false;
  for (auto [value, state] : llvm::zip_equal(values, wanted)) {
    bool differs = decision.valueStates[value] != state;
    any |= differs;
    list.push_back(differs ? Attribute(getSharding(value, state)) : builder.getUnitAttr());
  }
  if (any)
    op->setDiscardableAttr(name, builder.getArrayAttr(list));
}

/// What no op computes from terms (a constant, a parameter) is made whole, and partial for whom it is annotated so. Nor is a dim of
/// one position, or of none, split where it is made: rules have no factor for that.
void DecisionWriter::writeSources() {
  for (auto [id, value] : llvm::enumerate(source.getValues())) {
    Operation *op = Value(value).getDefiningOp();
    if (!op || op->getNumOperands() > 0)
      continue;
    const State &state = decision.states[decision.valueStates[id]];
    State made = state;
    made.partial.clear();
    made.kind = ReductionKind::Sum;
    for (auto [extent, atoms] : llvm::zip_equal(problem.shape(id), made.dims))
      if (extent < 2)
        atoms.clear();
    if (made == state)
      continue;
    op->setDiscardableAttr(SpmdDialect::kResultShardingsAttr,
                           builder.getArrayAttr(Attribute(atoms.toSharding(made, problem.shape(id)))));
  }
}

/// What the next call finds as an argument is wanted as that is; gives the bytes sent to make it so. The positions that a
/// state keeps move along the dim that grows, so no rank may have some of them only.
FailureOr<int64_t> DecisionWriter::keepStates(ArrayRef<ValueId> outputs, MutableArrayRef<StateId> wanted) {
  func::FuncOp func = source.getFunction();
  FailureOr<SmallVector<StatePlace>> states = getStates(func);
  if (failed(states))
    return failure();
  int64_t bytes = 0;
  for (const StatePlace &place : *states) {
    BlockArgument argument = func.getArgument(place.argument);
    StateId kept = decision.valueStates[source.getId(argument)];
    ShardingAttr sharding = getSharding(outputs[place.result], kept);
    if (place.dim && !sharding.getDims()[*place.dim].getAxes().empty())
      return emitError(argument.getLoc())
             << "state '" << getArgumentName(func, place.argument) << "' grows along dim " << *place.dim
             << ", which cannot be sharded: its positions move at every call";
    if (wanted[place.result] == kept)
      continue;
    // What the value is made for may change with it.
    bytes -= countBytes(outputs[place.result], outputs, wanted);
    wanted[place.result] = kept;
    bytes += countBytes(outputs[place.result], outputs, wanted);
  }
  return bytes;
}

/// A loop has one op of the problem for each value, whose state all that belongs to the value is wanted in.
void DecisionWriter::writeLoop(const LoopProblem &loop) {
  LoopOpInterface op = loop.op;
  Operation *yield = op.getBody().front().getTerminator();
  SmallVector<OpId> parts(loop.carried);
  llvm::append_range(parts, loop.captured);
  auto getWanted = [&](OpId part) { return decision.operandStates[problem.firstOperand(part)]; };
  auto write = [&](Operation *to, StringRef name, ValueRange values, ArrayRef<OpId> from) {
    auto ids = llvm::map_to_vector(values, [&](Value value) { return source.getId(value); });
    writeAnnotations(to, name, ids, llvm::map_to_vector(from, getWanted));
  };
  write(op, SpmdDialect::kResultShardingsAttr, op->getResults(), loop.carried);
  write(op, kArgumentShardingsAttr, op.getBody().getArguments(), parts);
  SmallVector<OpId> operands, yielded(loop.carried);
  if (loop.condition != kNone) {
    operands.push_back(loop.condition);
    yielded.insert(yielded.begin(), loop.condition);
  }
  llvm::append_range(operands, parts);
  write(op, SpmdDialect::kOperandShardingsAttr, op->getOperands(), operands);
  write(yield, SpmdDialect::kOperandShardingsAttr, yield->getOperands(), yielded);
  op->setDiscardableAttr(kTimesAttr, builder.getI64IntegerAttr(loop.times));
}

LogicalResult DecisionWriter::writeAnnotations() {
  for (auto [id, op] : llvm::enumerate(source.getOps())) {
    if (problem.isConstraint(id) || isa<LoopOpInterface>(op))
      continue;
    ArrayRef<ValueId> operands = problem.operands(id), results = problem.results(id);
    writeAnnotations(op, SpmdDialect::kOperandShardingsAttr, operands,
                     ArrayRef(decision.operandStates).slice(problem.firstOperand(id), operands.size()));
    writeAnnotations(op, SpmdDialect::kResultShardingsAttr, results,
                     ArrayRef(decision.resultStates).slice(problem.firstResult(id), results.size()));
  }
  for (const LoopProblem &loop : source.getLoops())
    writeLoop(loop);
  writeSources();
  SmallVector<ValueId> outputs;
  for (OutputId output = 0; output < problem.numOutputs(); ++output)
    outputs.push_back(problem.outputValue(output));
  func::FuncOp func = source.getFunction();
  SmallVector<StateId> wanted(decision.outputStates.begin(), decision.outputStates.end());
  FailureOr<int64_t> bytes = keepStates(outputs, wanted);
  if (failed(bytes))
    return failure();
  writeAnnotations(func.getBody().front().getTerminator(), SpmdDialect::kOperandShardingsAttr, outputs, wanted);
  func->setAttr(SpmdDialect::kWireBytesAttr, builder.getI64IntegerAttr(decision.wireBytes + *bytes));
  return success();
}

/// Users read these in remarks and in the report: they name what stands in the way, and its cost where it has one.
std::string DecisionWriter::getReason(const ForcedReplication &forced) const {
  const ShardingRule &rule = problem.rule(problem.ruleOf(forced.op));
  switch (forced.reason) {
  case ForcedReplication::Reason::NoChoice:
    return rule.mustReplicate.empty() ? "it cannot be split along this dim" : rule.mustReplicate;
  case ForcedReplication::Reason::NotDividing:
    return "size " + std::to_string(rule.factorSizes[forced.factor]) + " does not divide";
  case ForcedReplication::Reason::AxisTaken:
    return "another axis, or a more major part of the dim, is in the way";
  case ForcedReplication::Reason::Dearer:
    if (forced.extraBytes == 0)
      return "splitting it would save nothing";
    if (model.isTime())
      return "splitting it would take " + std::to_string(model.toNs(forced.extraBytes)) + " ns more";
    return "splitting it would send " + std::to_string(forced.extraBytes) + " bytes more";
  case ForcedReplication::Reason::Moved:
    return "it cannot be split along the dim that the axis comes along, and is split along another";
  }
  return "";
}

/// One per op and reason.
std::vector<Replication> DecisionWriter::getReplications() {
  // By op, reason, and whether the op is replicated (or just resharded).
  llvm::MapVector<std::tuple<OpId, Attribute, unsigned>, AtomList> atomsOf;
  for (const ForcedReplication &forced : decision.forced) {
    // What a loop only hands to its body (an op with one result) is gathered there as it would be without the loop.
    if (isa<LoopOpInterface>(source.getOps()[forced.op]) && problem.results(forced.op).size() == 1)
      continue;
    unsigned isReplicated = forced.reason != ForcedReplication::Reason::Moved;
    AtomList &list = atomsOf[{forced.op, builder.getStringAttr(getReason(forced)), isReplicated}];
    if (!llvm::is_contained(list, forced.atom))
      list.push_back(forced.atom);
  }
  std::vector<Replication> replications;
  for (auto &[key, list] : atomsOf) {
    auto [op, reason, isReplicated] = key;
    llvm::sort(list);
    replications.push_back(
        {op, cast<StringAttr>(reason), isReplicated != 0, atoms.toAxes(list), getReplicationCost(op)});
  }
  llvm::sort(replications, [](const Replication &a, const Replication &b) {
    return std::make_tuple(-a.cost, a.op, a.reason.getValue()) < std::make_tuple(-b.cost, b.op, b.reason.getValue());
  });
  return replications;
}

ShapeId DecisionWriter::getShapeId(ValueId value) {
  Type type = source.getValues()[value].getType();
  return costs.internShape(problem.shape(value), getElementBytes(getElementTypeOrSelf(type)));
}

int64_t DecisionWriter::getCost(ValueId value, StateId from, StateId to) {
  return costs.cost(getShapeId(value), from, to);
}

int64_t DecisionWriter::countBytes(ValueId value, ArrayRef<ValueId> outputs, ArrayRef<StateId> wanted) {
  StateId have = decision.valueStates[value], whole = states.intern(State::replicated(problem.shape(value).size()));
  SmallVector<StateId> wants, copies{have};
  auto want = [&](StateId state) {
    if (state != have && !llvm::is_contained(wants, state))
      wants.push_back(state);
  };
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (auto [index, operand] : llvm::enumerate(problem.operands(op)))
      if (operand == value)
        want(decision.operandStates[problem.firstOperand(op) + index]);
  for (auto [output, state] : llvm::zip_equal(outputs, wanted))
    if (output == value)
      want(state);
  if (wants.empty())
    return 0;
  int64_t bytes = 0;
  ShapeId shape = getShapeId(value);
  for (const ServedWant &served : serveWants(costs, shape, have, wants, whole)) {
    copies.push_back(served.want < wants.size() ? wants[served.want] : whole);
    if (std::optional<ReshardPlan> plan = costs.plan(shape, copies[served.source], copies.back()))
      bytes += plan->bytes;
  }
  return bytes;
}

/// Bytes sent to bring the operands of `id` into the form that it wants, and its results into the one that is shared.
int64_t DecisionWriter::getReplicationCost(OpId id) {
  int64_t cost = 0;
  auto add = [&](ValueId value, StateId from, StateId to) {
    cost = std::min(cost + getCost(value, from, to), kImpossibleCost);
  };
  for (auto [index, value] : llvm::enumerate(problem.operands(id)))
    add(value, decision.valueStates[value], decision.operandStates[problem.firstOperand(id) + index]);
  for (auto [index, value] : llvm::enumerate(problem.results(id)))
    add(value, decision.resultStates[problem.firstResult(id) + index], decision.valueStates[value]);
  return model.toBytes(cost);
}

/// One remark per op and reason, the dearest first, and those below a hundredth of the bytes counted; all of them as an
/// attribute for the report.
void DecisionWriter::writeReplications() {
  func::FuncOp func = source.getFunction();
  SmallVector<Attribute> entries;
  size_t small = 0;
  std::vector<Replication> replications = getReplications();
  for (const Replication &replication : replications) {
    Operation *op = source.getOps()[replication.op];
    if (replication.cost < decision.wireBytes / 100)
      ++small;
    else
      op->emitRemark() << "'" << op->getName() << "' op is " << (replication.isReplicated ? "replicated" : "resharded")
                       << " over " << formatAxes(replication.axes) << ": " << replication.reason.getValue();
    if (!replication.isReplicated)
      continue;
    ++numReplications;
    auto axes = llvm::map_to_vector(replication.axes, [](AxisAttr axis) { return formatAxis(axis); });
    SmallVector<StringRef> axisTexts(axes.begin(), axes.end());
    SmallVector<NamedAttribute> entry{builder.getNamedAttr("axes", builder.getStrArrayAttr(axisTexts)),
                                      builder.getNamedAttr("node", builder.getStringAttr(describeNode(op))),
                                      builder.getNamedAttr("op", builder.getStringAttr(op->getName().getStringRef())),
                                      builder.getNamedAttr("reason", replication.reason)};
    entries.push_back(builder.getDictionaryAttr(entry));
  }
  if (small)
    func.emitRemark() << (small < replications.size() ? "and " : "") << small << (small == 1 ? " remark" : " remarks")
                      << " about less than 1 % of the bytes";
  if (!entries.empty())
    func->setAttr(SpmdDialect::kReplicatedAttr, builder.getArrayAttr(entries));
}

/// One remark per place, equal ones counted: what another decision sends there, and why it is not taken, or this one is.
void DecisionWriter::writeDetours() {
  for (const Detour &detour : decision.detours) {
    auto hasFlops = [&](OpId op) { return problem.rule(problem.ruleOf(op)).flops > 0; };
    auto it = llvm::find_if(detour.ops, hasFlops);
    Operation *op = source.getOps()[it == detour.ops.end() ? detour.ops.front() : *it];
    InFlightDiagnostic remark = op->emitRemark();
    size_t more = detour.ops.size() - 1;
    remark << "'" << op->getName() << "' op";
    if (more)
      remark << " and " << more << " next to it";
    if (detour.numPlaces > 1)
      remark << ", in each of " << detour.numPlaces << " places,";
    if (detour.kind == Detour::Kind::OtherStrategy) {
      remark << (more ? " depart" : " departs") << " from the plan: " << detour.bytes << " bytes a rank instead of "
             << detour.otherBytes;
      continue;
    }
    remark << (more ? " send " : " sends ") << detour.bytes << " bytes a rank where " << detour.otherBytes
           << " would do: ";
    if (detour.otherFlops > detour.flops)
      remark << "that saves " << static_cast<int64_t>(detour.otherFlops - detour.flops) << " flops";
    else
      remark << "that follows the plan";
  }
}

/// The problem lives on where somebody wants to know why.
std::unique_ptr<FunctionProblem> Propagate::decide(func::FuncOp func, MeshAtoms &atoms, SolverOptions options) {
  FailureOr<FreeAtoms> free = getFreeAtoms(getOperation(), atoms);
  if (failed(free))
    return nullptr;
  bool holdsQueries = getAttentionRequest(getOperation(), attention) != AttentionMethod::Auto;
  std::unique_ptr<FunctionProblem> problem =
      FunctionProblem::create(func, atoms, {holdsQueries, options.perStoredByte > 0, std::move(*free)});
  if (!problem || failed(problem->solve(options)))
    return nullptr;
  const Decision &decision = problem->getDecision();
  numOps += problem->getProblem().numOps();
  numValues += problem->getProblem().numValues();
  numDetours += decision.detours.size();
  LDBG() << "@" << func.getName() << ": objective " << decision.objective << ", " << decision.wireBytes
         << " bytes on the wire, " << decision.states.size() << " states";
  DecisionWriter writer(*problem, atoms, options.costs);
  writer.writeTypes();
  if (failed(writer.writeAnnotations()))
    return nullptr;
  writer.writeReplications();
  writer.writeDetours();
  return problem;
}

void Propagate::runOnOperation() {
  SolverOptions options;
  bool isByTime = getOperation()->hasAttr(kFreeAttr);
  // Where nothing is asked for, nothing but time tells what is better: a program that is not split sends nothing.
  options.costs = costs.value_or(CostModel::create(isByTime ? Optimize::Time : optimize.getValue()));
  options.perStoredByte = isByTime ? memoryPrice * options.costs.perNs * 1e-6 : 0;
  writeCosts(getOperation(), options.costs);
  options.keepParameters = keepPlan;
  options.lookForFewerBytes = optimize == Optimize::Balanced;
  options.memory = memory;
  if (traceDecisions)
    options.trace.os = &llvm::errs();
  if (failed(enterPhase(getOperation(), Phase::Propagated)))
    return signalPassFailure();
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getOperation());
  if (!atoms)
    return signalPassFailure();
  Decisions decided;
  for (func::FuncOp func : getFunctions(getOperation())) {
    std::unique_ptr<FunctionProblem> problem = decide(func, *atoms, options);
    if (!problem)
      return signalPassFailure();
    if (kept)
      decided.functions.push_back(std::move(problem));
  }
  removeFreeAxes(getOperation());
  if (!kept)
    return;
  decided.atoms = std::move(atoms);
  *kept = std::move(decided);
}

const FunctionProblem *Decisions::find(func::FuncOp func) const {
  auto it = llvm::find_if(functions, [&](const auto &problem) { return problem->getFunction() == func; });
  return it == functions.end() ? nullptr : it->get();
}

std::unique_ptr<Pass> cleave::spmd::createPropagate(PropagateOptions options, CostModel costs, Decisions *kept,
                                                    std::shared_ptr<SearchMemory> memory) {
  return std::make_unique<Propagate>(std::move(options), std::move(costs), kept, std::move(memory));
}
