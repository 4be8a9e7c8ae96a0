//===- FunctionProblem.cpp - one function as a problem to decide ----------===//
//
// One walk in order. Arguments and ops without operands (constants, loads, iota) are inputs; `spmd.constrain` is a
// value with an annotation; every other op brings its rule, which equal ops share, so that its text is read once per kind of
// layer and not once per layer.
//
// In the program of one microbatch what each of them does costs as much as all do.
//
// A loop (`LoopOpInterface`) is in the same problem as what is around it. What is in its body costs as much as all iterations do. Each value that
// it carries is an op of the problem that takes the initial value and the yielded one and gives argument and result, all split
// along the same dims: an edge leads back to it from the end of the body, so that the search finds the cheapest state for the whole
// loop, before, in and behind it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"

#include "RuleMatches.h"
#include "cleave/Dialect/Spmd/IR/Even.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Solver/SearchMemory.h"
#include "llvm/Support/SaveAndRestore.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

std::shared_ptr<SearchMemory> cleave::spmd::makeSearchMemory() { return std::make_shared<SearchMemory>(); }

struct FunctionProblem::RuleTable {
  /// By how often an op runs, which is part of its cost.
  std::map<int64_t, SameRuleMap<RuleId>> ids;
};

std::unique_ptr<FunctionProblem> FunctionProblem::create(func::FuncOp func, MeshAtoms &atoms, ProblemOptions options) {
  if (!func.getBody().hasOneBlock()) {
    func.emitOpError() << "has control flow: only functions of one block can be sharded";
    return nullptr;
  }
  std::unique_ptr<FunctionProblem> result(new FunctionProblem(func, atoms, std::move(options)));
  return succeeded(result->build()) ? std::move(result) : nullptr;
}

/// Elements of a tensor; extents of 0 count as 1, so that costs of parts of it are below.
static double countElements(ArrayRef<int64_t> shape) {
  double product = 1;
  for (int64_t extent : shape)
    product *= std::max<double>(extent, 1);
  return product;
}

/// As many runs of the largest value in a loop of `func`, or of a microbatch, as costs stay in range for.
static int64_t findMostTimes(func::FuncOp func, bool areMicrobatches) {
  double largest = 1;
  auto look = [&](ValueRange values) {
    for (Value value : values)
      if (auto type = dyn_cast<RankedTensorType>(value.getType()); type && type.hasStaticShape())
        largest = std::max(largest, countElements(type.getShape()));
  };
  func.walk([&](LoopOpInterface loop) {
    look(loop.getBody().getArguments());
    loop.getBody().walk([&](Operation *op) { look(op->getResults()); });
  });
  if (areMicrobatches)
    func.walk([&](Operation *op) { look(op->getOperands()); });
  return int64_t(0x1p46 / largest);
}

LogicalResult FunctionProblem::build() {
  rules = std::make_shared<RuleTable>();
  mostTimes = std::min(findMostTimes(func, spans.areSeveral()), kMostTimes);
  if (auto even = func->getAttrOfType<IntegerAttr>(kEvenAttr))
    problem.keepEven(even.getInt());
  for (AtomId atom : options.free.atoms)
    problem.setFree(atom, options.free.areUneven);
  Block &body = func.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    llvm::SaveAndRestore counted(times, std::min(spans.getTimes(spans.get(argument)), mostTimes));
    if (failed(addValue(argument)))
      return failure();
    if (isParameter(func, argument.getArgNumber()))
      setParameter(getId(argument));
    if (auto even = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kEvenAttr))
      problem.keepInputEven(getId(argument), static_cast<int32_t>(even.getInt()));
  }
  if (failed(addValues(body)))
    return failure();
  addOps(body);
  for (auto [index, result] : llvm::enumerate(body.getTerminator()->getOperands())) {
    OutputId output = problem.addOutput(getId(result));
    if (auto even = func.getResultAttrOfType<IntegerAttr>(index, kEvenAttr))
      problem.keepOutputEven(output, static_cast<int32_t>(even.getInt()));
  }
  rules.reset();
  return tieStates();
}

/// Before uses of the value are added.
void FunctionProblem::setParameter(ValueId value) {
  problem.setParameter(value);
  if (options.storesParameters && !problem.annotation(value))
    problem.decideStorage(value);
}

/// Where axes are free nobody else holds both ends of a state to one sharding.
LogicalResult FunctionProblem::tieStates() {
  if (options.free.atoms.empty())
    return success();
  FailureOr<SmallVector<StatePlace>> states = getStates(func);
  if (failed(states))
    return failure();
  Operation *terminator = func.getBody().front().getTerminator();
  for (const StatePlace &place : *states) {
    ValueId input = getId(func.getArgument(place.argument)), output = getId(terminator->getOperand(place.result));
    if (place.dim)
      problem.keepInputDim(input, static_cast<int32_t>(*place.dim));
    if (problem.annotation(input) || problem.annotation(output))
      continue;
    problem.decideStorage(input);
    // What grows has two shapes: what is returned is then made as it is stored (Propagate.cpp).
    if (!place.dim)
      problem.tie(input, place.result);
  }
  return success();
}

/// What ops make, before the ops: a loop wants what the end of its body yields.
LogicalResult FunctionProblem::addValues(Block &block) {
  for (Operation &op : block.without_terminator()) {
    llvm::SaveAndRestore counted(times, times * getMicrobatches(&op));
    auto loop = dyn_cast<LoopOpInterface>(op);
    if (!loop && !isa<ShardingRuleOpInterface, ConstrainOp, ReshardOp>(op))
      return op.emitOpError() << "has no sharding rule"
                              << (isa<func::CallOp>(op) ? ": nn-inline-calls comes first" : "");
    for (OpResult result : op.getResults())
      if (failed(addValue(result)))
        return failure();
    if (!loop)
      continue;
    int64_t around = std::exchange(times, times * getTimes(loop));
    for (BlockArgument argument : loop.getBody().getArguments())
      if (failed(addValue(argument)))
        return failure();
    if (failed(addValues(loop.getBody().front())))
      return failure();
    times = around;
  }
  return success();
}

void FunctionProblem::addOps(Block &block) {
  for (Operation &op : block.without_terminator()) {
    llvm::SaveAndRestore counted(times, times * getMicrobatches(&op));
    if (auto loop = dyn_cast<LoopOpInterface>(op))
      addLoop(loop);
    else
      addOp(&op);
  }
}

//===----------------------------------------------------------------------===//
// Values and annotations
//===----------------------------------------------------------------------===//

int64_t FunctionProblem::getMicrobatches(Operation *op) const {
  return op->getParentOp() == func ? std::min(spans.getTimes(spans.get(op)), mostTimes) : 1;
}

int64_t FunctionProblem::getTimes(LoopOpInterface loop) const {
  return std::clamp<int64_t>(mostTimes / times, 1, loop.getCountedTimes());
}

LogicalResult FunctionProblem::addValue(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return emitError(value.getLoc()) << "value of type " << value.getType() << " is not a tensor of static shape";
  if (!isElementType(type.getElementType()))
    return emitError(value.getLoc()) << "value of type " << type << " cannot be sharded: its elements are not numbers "
                                     << "of nn (S8)";
  if (countElements(type.getShape()) > 0x1p40)
    return emitError(value.getLoc()) << "value of type " << type << " is too large to be sharded: extents multiply to "
                                     << "more than 2^40";
  ValueId id = problem.addValue(type.getShape(), times * getElementBytes(type.getElementType()));
  values.push_back(value);
  valueIds[value] = id;
  if (ShardingAttr sharding = getSharding(type))
    setAnnotation(value, id, sharding);
  return success();
}

void FunctionProblem::setAnnotation(Value value, ValueId id, ShardingAttr sharding) {
  Annotation annotation;
  for (DimShardingAttr dim : sharding.getDims()) {
    AnnotationDim &wanted = annotation.dims.emplace_back();
    for (AxisAttr axis : dim.getAxes())
      llvm::append_range(wanted.atoms, atoms.toAtoms(axis));
    wanted.isOpen = dim.getIsOpen();
    wanted.priority = dim.getPriority();
  }
  const State &state = atoms.toState(sharding);
  annotation.partial = state.partial;
  annotation.partialKind = state.kind;
  for (AxisAttr axis : sharding.getReplicated())
    llvm::append_range(annotation.replicated, atoms.toAtoms(axis));
  annotation.isUneven = sharding.getUneven();
  annotation.cause = annotations.size();
  annotations.push_back(value);
  problem.setAnnotation(id, std::move(annotation));
}

Location FunctionProblem::getAnnotationLoc(CauseId cause) const {
  Value value = annotations[cause];
  Attribute place;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner()->getParentOp() == func)
      place = func::FuncOp(func).getArgAttr(argument.getArgNumber(), SpmdDialect::kAnnotationAttr);
  } else
    place = value.getDefiningOp()->getDiscardableAttr(SpmdDialect::kAnnotationAttr);
  auto loc = dyn_cast_if_present<LocationAttr>(place);
  return loc ? Location(loc) : value.getLoc();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Makes a rule that of an op that runs so often: it computes and sends as often.
static void repeat(ShardingRule &rule, int64_t times) {
  rule.flops *= double(times);
  for (InnerCost &cost : rule.inner) {
    bool isCounted = cost.kind == InnerCost::Kind::AllReduce || cost.kind == InnerCost::Kind::AllGather;
    (isCounted ? cost.times : cost.elementBytes) *= times;
  }
  for (Regroup &regroup : rule.regroups)
    regroup.elementBytes *= times;
}

void FunctionProblem::addOp(Operation *op) {
  if (isa<ConstrainOp, ReshardOp>(op)) {
    problem.addConstraint(getId(op->getOperand(0)), getId(op->getResult(0)));
    ops.push_back(op);
    return;
  }
  if (op->getNumOperands() == 0) {
    // A weight and a constant (a zero point) make a weight.
    if (isa<ParameterOpInterface>(op) || op->hasTrait<OpTrait::ConstantLike>())
      setParameter(getId(op->getResult(0)));
    return;
  }
  auto [it, isNew] = rules->ids[times].try_emplace(op);
  if (isNew) {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    repeat(rule, times);
    it->second = problem.internRule(std::move(rule));
  }
  SmallVector<ValueId> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(getId(operand));
  for (Value result : op->getResults())
    results.push_back(getId(result));
  OpId id = problem.addOp(it->second, operands, results);
  if (FactorId held = problem.rule(it->second).held; options.holdsQueries && held >= 0)
    problem.hold(id, held);
  ops.push_back(op);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// All of one shape, split along the same dims.
OpId FunctionProblem::addLoopOp(LoopOpInterface loop, ArrayRef<Value> operands, ArrayRef<Value> results) {
  RuleBuilder rule(operands.size(), results.size());
  for (int64_t extent : cast<RankedTensorType>(operands.front().getType()).getShape()) {
    std::optional<FactorId> factor = rule.addParallel(extent);
    for (unsigned i = 0; i < operands.size(); ++i)
      rule.operandDim(i, factor);
    for (unsigned i = 0; i < results.size(); ++i)
      rule.resultDim(i, factor);
  }
  rule.rule.isMovement = rule.rule.isLoop = true;
  auto getIds = [&](ArrayRef<Value> list) {
    return llvm::map_to_vector(list, [&](Value value) { return getId(value); });
  };
  ops.push_back(loop);
  return problem.addOp(problem.internRule(std::move(rule.rule)), getIds(operands), getIds(results));
}

/// What is yielded as it came in is no second operand: it would be an edge from an op to itself.
void FunctionProblem::addLoop(LoopOpInterface loop) {
  LoopProblem made{loop, {}, {}, kNone, getTimes(loop)};
  for (auto [initial, next, argument, result] :
       llvm::zip_equal(loop.getInitial(), loop.getNext(), loop.getCarried(), loop->getResults())) {
    SmallVector<Value, 2> operands{initial};
    if (next != argument)
      operands.push_back(next);
    made.carried.push_back(addLoopOp(loop, operands, {argument, result}));
  }
  for (auto [operand, argument] : llvm::zip_equal(loop.getCaptured(), loop.getTaken())) {
    if (problem.isParameter(getId(operand)))
      problem.setParameter(getId(argument));
    made.captured.push_back(addLoopOp(loop, {operand}, {argument}));
  }
  if (loop.getCondition())
    made.condition = addLoopOp(loop, {loop.getCondition(), loop.getNextCondition()}, {});
  loops.push_back(std::move(made));
  int64_t around = std::exchange(times, times * getTimes(loop));
  addOps(loop.getBody().front());
  times = around;
}

//===----------------------------------------------------------------------===//
// Solving
//===----------------------------------------------------------------------===//

/// By the model's name for it, where it has one.
static std::string describe(Value value) {
  SmallVector<StringRef, 1> names = getTensorNames(value);
  return names.empty() ? std::string("a value") : "'" + names.front().str() + "'";
}

/// At the annotation, in the plan or the program: that is where the user can change something.
void FunctionProblem::emit(const SolverError &error) {
  Location loc = error.first == kNone ? func.getLoc() : getAnnotationLoc(error.first);
  InFlightDiagnostic diagnostic = emitError(loc);
  if (error.value != kNone)
    diagnostic << describe(values[error.value]) << ": ";
  diagnostic << error.message;
  if (error.second != kNone)
    diagnostic.attachNote(getAnnotationLoc(error.second)) << "the other annotation is here";
}

/// Names are asked for by the trace alone; making them for every op would cost more than solving.
LogicalResult FunctionProblem::solve(SolverOptions options) {
  options.trace.axisNames.assign(atoms.getAxisNames().begin(), atoms.getAxisNames().end());
  options.trace.opName = [this](OpId op) {
    std::string node = describeNode(ops[op]);
    return ops[op]->getName().getStringRef().str() + (node.empty() ? "" : " " + node);
  };
  options.trace.valueName = [this](ValueId value) { return describe(values[value]); };
  solver = std::make_unique<Solver>(problem, options);
  if (solver->solve())
    return success();
  for (const SolverError &error : solver->getErrors())
    emit(error);
  return failure();
}
