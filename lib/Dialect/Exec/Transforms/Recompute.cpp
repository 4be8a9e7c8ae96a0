//===- Recompute.cpp - values are made again, not kept --------------------===//
//
//   1. the step as a problem of the solver: ops and their times, values and their bytes      StepReader
//   2. by policy, which ops run again                                                        Solver/Recompute.h
//   3. their clones, each in front of its first reader behind the loss                       Repeater
//
// What the solver knows of the program:
//
//   bytes      of a rank; what only shows the bytes of another value has none. What is made of weights alone is there all along
//   time       as predicted (lib/Cost), of an op by itself; of a collective what it takes on the machine's links
//   forward    all up to the op that makes the loss. Gradients are differentiated behind it, so that no op of theirs stands before
//
// Where anything is made again, all that is read behind the loss is read through exec.again. Else a kernel of the forward would take in what
// the backward makes of its values, and store that as well.
//
// For `auto` all choices are made, each in a copy, and judged; the fastest that fits is the program's. By time they are in order, so that the
// first that fits is it.
//
// In stages each rank has its own room, and each stage makes a choice of its own (Solver/RecomputeStages.h).
//
//===----------------------------------------------------------------------===//
#include "../Memory/Loss.h"
#include "cleave/Cost/Program.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Solver/RecomputeStages.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_RECOMPUTE
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-recompute"

ALWAYS_ENABLED_STATISTIC(numRepeated, "ops that run again");

namespace {
enum class Policy { None, Cheap, Blocks, Auto };

/// What a user asks for.
struct RecomputeWish {
  Policy policy = Policy::None;
  int64_t limit = 0;
  std::string gather;
  std::vector<spmd::NamePattern> keep, again;
};

//===----------------------------------------------------------------------===//
// The step as a problem
//===----------------------------------------------------------------------===//

class StepReader {
public:
  StepReader(func::FuncOp func, const RecomputeWish &wish, cost::OpCosts &costs)
      : func(func), block(func.getBody().front()), wish(wish), costs(costs) {}

  /// Nothing of a function that is no step.
  std::optional<RecomputeProblem> read();

private:
  void readArguments(RecomputeProblem &problem);
  void readOp(Operation &op, RecomputeProblem &problem, bool isForward);
  void readStates(RecomputeProblem &problem);
  bool isGiven(Operation &op, const RecomputeProblem &problem) const;
  bool mayRepeat(Operation &op);
  bool isPicked(Operation &op, ArrayRef<spmd::NamePattern> patterns) const;

  func::FuncOp func;
  Block &block;
  const RecomputeWish &wish;
  cost::OpCosts &costs;
  DenseMap<Value, unsigned> numbers;
  DenseSet<Value> parameters; ///< and what is made of them alone
};
} // namespace

/// They lie in memory all along, whoever reads them.
void StepReader::readArguments(RecomputeProblem &problem) {
  for (BlockArgument argument : block.getArguments()) {
    numbers[argument] = problem.addValue(spmd::getBytes(argument.getType()));
    problem.values.back().isGiven = true;
    if (spmd::isParameter(func, argument.getArgNumber()))
      parameters.insert(argument);
  }
}

/// What is made of weights and constants alone is made before the step, or where it is read.
bool StepReader::isGiven(Operation &op, const RecomputeProblem &problem) const {
  return llvm::all_of(op.getOperands(), [&](Value operand) {
    return operand.getDefiningOp() && problem.values[numbers.lookup(operand)].isGiven;
  });
}

/// A softmax whose scores are a product, which is far less work than storing them would be worth.
static bool leadsToSoftmax(Operation &op) {
  Operation *reader = &op;
  while (reader->hasOneUse()) {
    reader = *reader->user_begin();
    if (isa<nn::SoftmaxOp>(reader))
      return true;
    auto formed = dyn_cast<nn::FormOpInterface>(reader);
    if (!formed || (formed.getForm() != nn::Form::Map && formed.getForm() != nn::Form::Movement))
      return false;
  }
  return false;
}

/// What reads and writes memory more than it computes.
static bool isCheap(Operation &op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  if (!formed)
    return false;
  nn::Form form = formed.getForm();
  return form == nn::Form::Map || form == nn::Form::Movement || form == nn::Form::Row || form == nn::Form::Scan ||
         (isa<nn::EinsumOp>(op) && leadsToSoftmax(op));
}

/// A collective is done again where a plan asks for it, or where its time counts.
bool StepReader::mayRepeat(Operation &op) {
  if (isPicked(op, wish.again))
    return true;
  bool isOfParameters = llvm::all_of(op.getOperands(), [&](Value value) { return parameters.contains(value); });
  if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op); collective && collective.communicates())
    return isOfParameters && !wish.gather.empty() ? wish.gather == "twice" : wish.policy == Policy::Auto;
  // What is gathered may be turned before it is read.
  if (isOfParameters && wish.gather == "twice")
    return true;
  switch (wish.policy) {
  case Policy::None:
    return false;
  case Policy::Cheap:
    return isCheap(op) || isa<spmd::CollectiveOpInterface>(op);
  default:
    return isMemoryEffectFree(&op) && !isa<pipe::AccumulateOp>(op);
  }
}

/// By the names of its results: those of the model's tensors.
bool StepReader::isPicked(Operation &op, ArrayRef<spmd::NamePattern> patterns) const {
  return !patterns.empty() && llvm::any_of(op.getResults(), [&](Value result) {
    return llvm::any_of(spmd::getTensorNames(result), [&](StringRef name) {
      return llvm::any_of(patterns, [&](const spmd::NamePattern &pattern) { return pattern.matches(name); });
    });
  });
}

/// Ops behind the loss are only read: what they read of the forward, and when.
void StepReader::readOp(Operation &op, RecomputeProblem &problem, bool isForward) {
  RecomputeProblem::Op &made = problem.ops.emplace_back();
  made.isForward = isForward;
  for (Value operand : op.getOperands())
    made.operands.push_back(numbers.lookup(operand));
  bool given = isGiven(op, problem);
  std::optional<int64_t> alias = getAliasOffset(&op);
  for (Value result : op.getResults()) {
    unsigned number = numbers[result] =
        problem.addValue(given && !isa<nn::LoadOp>(op) ? 0 : spmd::getBytes(result.getType()));
    made.results.push_back(number);
    RecomputeProblem::Value &value = problem.values.back();
    value.isGiven = given;
    if (alias && !given) {
      value.bytes = 0;
      value.root = problem.values[made.operands.front()].root;
    }
    value.mustKeep = isForward && isPicked(op, wish.keep);
  }
  if (!isForward || given)
    return;
  if (llvm::all_of(op.getOperands(), [&](Value value) { return parameters.contains(value); }))
    parameters.insert_range(op.getResults());
  made.ns = costs.get(op).getNs();
  made.mayRepeat = mayRepeat(op);
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  bool isAsked = collective && collective.communicates() && wish.gather == "twice" && made.mayRepeat;
  made.mustRepeat = (isAsked || isPicked(op, wish.again)) && !isPicked(op, wish.keep);
}

/// The next value of a state lies where the old one does.
void StepReader::readStates(RecomputeProblem &problem) {
  Operation *terminator = block.getTerminator();
  for (Value result : terminator->getOperands())
    problem.values[numbers.lookup(result)].isResult = true;
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  for (const spmd::StatePlace &state : succeeded(states) ? *states : SmallVector<spmd::StatePlace>()) {
    RecomputeProblem::Value &next = problem.values[numbers.lookup(terminator->getOperand(state.result))];
    if (!state.dim && next.root == numbers.lookup(terminator->getOperand(state.result)))
      next.bytes = 0;
  }
}

std::optional<RecomputeProblem> StepReader::read() {
  Operation *loss = findLoss(func);
  if (!loss)
    return std::nullopt;
  RecomputeProblem problem;
  readArguments(problem);
  bool isForward = true;
  for (Operation &op : block.without_terminator()) {
    readOp(op, problem, isForward);
    isForward &= &op != loss;
  }
  readStates(problem);
  return problem;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

namespace {
/// Makes the program that a choice stands for.
class Repeater {
public:
  Repeater(func::FuncOp func, const RecomputeProblem &problem, const RepeatedOps &repeated)
      : func(func), problem(problem), repeated(repeated), builder(func.getContext()) {}

  void run();

private:
  Value getBehind(Value value, bool isOfClone);
  void clone(Operation *op, Operation *before);

  func::FuncOp func;
  const RecomputeProblem &problem;
  const RepeatedOps &repeated;
  OpBuilder builder;
  DenseSet<Value> forward;
  IRMapping clones;
  DenseMap<Value, Value> again;
};
} // namespace

/// What stands for a value of the forward behind the loss: a clone of it, or the value that was kept. Of what is there all along `isOfClone`
/// reads another value than the forward did, or the clone would be equal to the op.
Value Repeater::getBehind(Value value, bool isOfClone) {
  if (Value made = clones.lookupOrNull(value))
    return made;
  if (!(isOfClone && isa<BlockArgument>(value)) && !forward.contains(value))
    return value;
  Value &read = again[value];
  if (!read)
    read = AgainOp::create(builder, value.getLoc(), value);
  return read;
}

/// What it reads has been cloned before, or is kept.
void Repeater::clone(Operation *op, Operation *before) {
  builder.setInsertionPoint(before);
  bool readsAlike = llvm::none_of(op->getOperands(), [&](Value value) { return forward.contains(value); });
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value value) { return getBehind(value, readsAlike); });
  Operation *made = builder.clone(*op);
  made->setOperands(operands);
  clones.map(op->getResults(), made->getResults());
  ++numRepeated;
}

void Repeater::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front().without_terminator())
    ops.push_back(&op);
  for (auto [number, op] : llvm::enumerate(ops))
    if (problem.ops[number].isForward &&
        llvm::none_of(problem.ops[number].results, [&](unsigned value) { return problem.values[value].isGiven; }))
      forward.insert_range(op->getResults());
  // A clone stands in front of the op behind the loss that comes next.
  SmallVector<unsigned> waiting;
  for (RecomputeStep step : listSteps(problem, repeated)) {
    if (step.isAgain) {
      waiting.push_back(step.op);
      continue;
    }
    Operation *op = ops[step.op];
    for (unsigned number : waiting)
      clone(ops[number], op);
    waiting.clear();
    if (problem.ops[step.op].isForward)
      continue;
    builder.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(getBehind(operand.get(), /*isOfClone=*/false));
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct Recompute : cleave::exec::impl::RecomputeBase<Recompute> {
  using Base::Base;
  Recompute(RecomputeOptions options, spmd::PlanPlace place, MemoryJudge judge, StageFinder findStages, bool keepsLast,
            ArrayRef<spmd::PlanPolicy> ofStages)
      : Base(std::move(options)), place(std::move(place)), judge(std::move(judge)), findStages(std::move(findStages)),
        keepsLast(keepsLast), ofStages(ofStages.begin(), ofStages.end()) {}

  void runOnOperation() override;

private:
  LogicalResult readWish(RecomputeWish &wish);
  LogicalResult run(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times);
  LogicalResult choose(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times,
                       const RecomputeProblem &problem);
  LogicalResult chooseByStage(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times,
                              const RecomputeProblem &problem, const StagesOfOps &stages);
  OwningOpRef<ModuleOp> makeTrial(func::FuncOp func, const RecomputeProblem &problem, const RepeatedOps &repeated);
  SmallVector<int64_t> measure(ModuleOp trial, int64_t otherwise);
  LogicalResult take(func::FuncOp func, ArrayRef<Attribute> front, OwningOpRef<ModuleOp> taken, int64_t limit,
                     int64_t least, int64_t given);

  InFlightDiagnostic emitMisfit(func::FuncOp func);

  spmd::PlanPlace place;
  MemoryJudge judge;
  StageFinder findStages;
  bool keepsLast = false;
  SmallVector<spmd::PlanPolicy> ofStages;
};
} // namespace

/// Where the plan asks for it, if one does.
InFlightDiagnostic Recompute::emitMisfit(func::FuncOp func) {
  return place.line ? emitError(FileLineColLoc::get(&getContext(), place.file, place.line, place.column))
                    : func.emitError();
}

/// Words and patterns of the options, or of the plan, which has been checked.
LogicalResult Recompute::readWish(RecomputeWish &wish) {
  static constexpr StringRef words[] = {"none", "cheap", "blocks", "auto"};
  const auto *found = llvm::find(words, StringRef(policy));
  if (found == std::end(words))
    return getOperation().emitError() << "'policy' is none, cheap, blocks or auto, got '" << policy << "'";
  wish.policy = static_cast<Policy>(found - words);
  wish.limit = limit;
  wish.gather = gather;
  for (auto [texts, patterns] : {std::pair(&keep, &wish.keep), {&again, &wish.again}})
    for (const std::string &text : *texts) {
      llvm::Expected<spmd::NamePattern> pattern = spmd::NamePattern::create(text);
      if (!pattern)
        return getOperation().emitError() << llvm::toString(pattern.takeError());
      patterns->push_back(*pattern);
    }
  return success();
}

/// A copy in which these ops run again.
OwningOpRef<ModuleOp> Recompute::makeTrial(func::FuncOp func, const RecomputeProblem &problem,
                                           const RepeatedOps &repeated) {
  OwningOpRef<ModuleOp> trial(cast<ModuleOp>(getOperation()->clone()));
  if (repeated.any())
    Repeater(trial->lookupSymbol<func::FuncOp>(func.getSymName()), problem, repeated).run();
  return trial;
}

/// Whether a choice is looked at closely: of a large program only what may be taken, since to plan one takes seconds.
static bool isInReach(const RecomputeChoice &choice, const RecomputeProblem &problem, const RecomputeWish &wish,
                      bool isTaken) {
  constexpr size_t kLarge = 20000;
  return problem.ops.size() <= kLarge ||
         (!isTaken && (wish.limit == 0 || choice.costs.peakBytes / 3 * 2 <= wish.limit));
}

/// By rank.
SmallVector<int64_t> Recompute::measure(ModuleOp trial, int64_t otherwise) {
  OwningOpRef<ModuleOp> judged(cast<ModuleOp>(trial->clone()));
  SmallVector<int64_t> bytes = judge ? judge(*judged) : SmallVector<int64_t>();
  return bytes.empty() ? SmallVector<int64_t>{otherwise} : bytes;
}

/// A line of the front: a choice that comes to `costs` and takes `bytes`.
static DictionaryAttr describe(Builder &builder, double ns, int64_t bytes, const RecomputeCosts &costs, double leastNs,
                               bool isTaken) {
  SmallVector<NamedAttribute> row = {builder.getNamedAttr("ns", builder.getF64FloatAttr(ns + costs.ns)),
                                     builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes)),
                                     builder.getNamedAttr("kept", builder.getI64IntegerAttr(costs.keptBytes)),
                                     builder.getNamedAttr("again_ns", builder.getF64FloatAttr(costs.ns)),
                                     builder.getNamedAttr("least_ns", builder.getF64FloatAttr(leastNs))};
  if (isTaken)
    row.push_back(builder.getNamedAttr("taken", builder.getUnitAttr()));
  return builder.getDictionaryAttr(row);
}

/// What is chosen becomes the program; null: an error, with the least limit that would do.
LogicalResult Recompute::take(func::FuncOp func, ArrayRef<Attribute> front, OwningOpRef<ModuleOp> taken, int64_t limit,
                              int64_t least, int64_t given) {
  func->setAttr(kFrontAttr, Builder(&getContext()).getArrayAttr(front));
  if (!taken)
    return emitMisfit(func) << "no choice of what to compute again fits " << limit << " B on a rank: the least is "
                            << least << " B, of which weights, states and inputs are " << given << " B";
  // What was planned is a copy, and so is what will be: the order in which a value lists its users is that of copies, and plans may follow it.
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>((*taken)->clone()));
  func.getBody().takeBody(copy->lookupSymbol<func::FuncOp>(func.getSymName()).getBody());
  return success();
}

/// All that was looked at is told, so far as it takes less than what takes less time.
LogicalResult Recompute::chooseByStage(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times,
                                       const RecomputeProblem &problem, const StagesOfOps &stages) {
  double ns = cost::countProgram(func, SymbolTable(getOperation()), &times).time.getNs();
  StageChooser chooser(problem, stages.stageOf, stages.rankOf, [&](const RepeatedOps &repeated) {
    return measure(*makeTrial(func, problem, repeated), countCosts(problem, repeated).peakBytes);
  });
  std::optional<StageChooser::Chosen> found = chooser.find(wish.limit);
  int64_t least = found ? 0 : chooser.findLeast(), shown = INT64_MAX;
  Builder builder(&getContext());
  SmallVector<Attribute> front;
  for (const StageChooser::Chosen &chosen : chooser.getTried()) {
    RecomputeCosts costs = countCosts(problem, chooser.getRepeated(chosen));
    if (int64_t bytes = chooser.getMost(chosen); bytes < shown)
      front.push_back(describe(builder, ns, shown = bytes, costs, costs.ns, chosen == found));
  }
  OwningOpRef<ModuleOp> taken;
  if (found)
    taken = makeTrial(func, problem, chooser.getRepeated(*found));
  return take(func, front, std::move(taken), wish.limit, least, chooser.getGivenBytes());
}

/// The fastest that fits; of those that take as long, the smallest.
LogicalResult Recompute::choose(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times,
                                const RecomputeProblem &problem) {
  double ns = cost::countProgram(func, SymbolTable(getOperation()), &times).time.getNs();
  std::vector<RecomputeChoice> choices = findChoices(problem);
  Builder builder(&getContext());
  SmallVector<Attribute> front;
  OwningOpRef<ModuleOp> taken;
  int64_t least = INT64_MAX, shown = INT64_MAX;
  for (const RecomputeChoice &choice : choices) {
    int64_t bytes = choice.costs.peakBytes;
    OwningOpRef<ModuleOp> trial;
    if (&choice == &choices.back() || isInReach(choice, problem, wish, !!taken)) {
      trial = makeTrial(func, problem, choice.repeated);
      bytes = *llvm::max_element(measure(*trial, bytes));
      least = std::min(least, bytes);
    }
    // What is planned may take more than lifetimes say: then another one is better in both.
    if (bytes >= shown)
      continue;
    shown = bytes;
    bool fits = !taken && trial && (wish.limit == 0 || bytes <= wish.limit);
    if (fits)
      taken = std::move(trial);
    front.push_back(describe(builder, ns, bytes, choice.costs, choice.leastNs, fits));
  }
  return take(func, front, std::move(taken), wish.limit, least, choices.front().costs.givenBytes);
}

/// Ops that run again by a policy but `auto`: one optimum, of time that is worth next to nothing. None of a function that is no step.
static std::optional<RepeatedOps> findRepeated(func::FuncOp func, RecomputeWish wish, Policy policy,
                                               cost::OpCosts &costs) {
  wish.policy = policy;
  std::optional<RecomputeProblem> problem = StepReader(func, wish, costs).read();
  if (!problem)
    return std::nullopt;
  return policy == Policy::Blocks ? findBlocks(*problem).repeated : findOptimum(*problem, /*price=*/1e-9).repeated;
}

/// What stages have by themselves: one policy for each, of which most are alike, so that each policy is decided once. What is in no stage is
/// made again where that is asked for by name alone.
LogicalResult Recompute::run(func::FuncOp func, const RecomputeWish &wish, const cost::OpTimes &times) {
  SymbolTable symbols(getOperation());
  cost::OpCosts costs(&times, &symbols);
  std::optional<RecomputeProblem> problem = StepReader(func, wish, costs).read();
  if (!problem)
    return success();
  StagesOfOps stages;
  if (findStages && (keepsLast || !ofStages.empty() || wish.policy != Policy::None))
    stages = findStages(func);
  bool areSeveral = stages.rankOf.size() > 1 && stages.stageOf.size() == problem->ops.size();
  if (wish.policy == Policy::Auto)
    return areSeveral ? chooseByStage(func, wish, times, *problem, stages) : choose(func, wish, times, *problem);
  SmallVector<Policy> own;
  for (spmd::PlanPolicy policy : ofStages)
    own.push_back(static_cast<Policy>(policy));
  if (keepsLast) {
    own.assign(stages.rankOf.size(), wish.policy);
    if (areSeveral)
      own.back() = Policy::None;
  }
  // A policy sees the whole step: what one stage makes again of another one's values is not made there, but handed on and kept.
  std::map<Policy, RepeatedOps> byPolicy;
  auto find = [&](Policy policy) -> const RepeatedOps & {
    auto [entry, isNew] = byPolicy.try_emplace(policy);
    if (isNew)
      entry->second = *findRepeated(func, wish, policy, costs);
    return entry->second;
  };
  RepeatedOps repeated = find(ofStages.empty() ? wish.policy : Policy::None);
  for (unsigned op = 0; areSeveral && own.size() == stages.rankOf.size() && op < problem->ops.size(); ++op)
    if (int64_t stage = stages.stageOf[op]; stage >= 0)
      repeated[op] = find(own[stage])[op];
  if (areSeveral)
    keepHandedOn(*problem, stages.stageOf, repeated);
  if (repeated.any())
    Repeater(func, *problem, repeated).run();
  LDBG() << "@" << func.getName() << " runs " << repeated.count() << " ops again";
  return success();
}

void Recompute::runOnOperation() {
  RecomputeWish wish;
  if (failed(readWish(wish)))
    return signalPassFailure();
  FailureOr<cost::OpTimes> times = cost::OpTimes::get(getOperation());
  if (failed(times))
    return signalPassFailure();
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return signalPassFailure();
    if (!states->empty() && func.getBody().hasOneBlock() && failed(run(func, wish, *times)))
      return signalPassFailure();
  }
}

std::unique_ptr<Pass> cleave::exec::createRecompute(const spmd::PlanMemory &plan, MemoryJudge judge,
                                                    StageFinder findStages, bool keepsLast,
                                                    ArrayRef<spmd::PlanPolicy> ofStages) {
  RecomputeOptions options;
  options.policy = spmd::kRecomputeWords[int(plan.policy)];
  options.limit = plan.limit;
  if (plan.gather)
    options.gather = spmd::kGatherWords[int(*plan.gather)];
  for (auto [patterns, texts] : {std::pair(&plan.keep, &options.keep), {&plan.again, &options.again}})
    for (const spmd::PlanPattern &pattern : *patterns)
      texts->push_back(pattern.text);
  return std::make_unique<Recompute>(std::move(options), plan.place, std::move(judge), std::move(findStages), keepsLast,
                                     ofStages);
}
