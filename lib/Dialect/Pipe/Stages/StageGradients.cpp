//===- StageGradients.cpp - what gradients of a model take ----------------===//
//
// One walk over the ops in their order: what a value is made of is known when its users come.
//
//   argument ──▶ einsum ──▶ relu ──▶ einsum ──▶ result        I: relu, the second einsum (by its first operand)
//          parameter ┘       parameter ┘                      W: both; kept for it: what relu made
//
// What gradients read of F: the other operands of a product; all operands and the result of attention; of other ops what their slope
// says (`SlopeOpInterface`): the result, operands, or of what is linear nothing but its indices and conditions.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageGradients.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
/// What a value is made of, as far as gradients go.
enum class Origin : uint8_t {
  Nothing,    ///< needs no gradient
  Parameters, ///< of parameters alone, and of what needs no gradient and is constant
  Both,       ///< of parameters and of the model's inputs
};

class GradientFinder {
public:
  explicit GradientFinder(const StageGraph &graph) : graph(graph) {}
  std::vector<OpGradients> run();

private:
  Origin getOrigin(Value value);
  Origin findOrigin(Operation &op);
  void addProduct(Operation &op, double ns, OpGradients &found);
  void addOther(Operation &op, double ns, OpGradients &found);
  bool isWanted(Value value) { return getOrigin(value) != Origin::Nothing; }
  void read(Value value, SmallVector<uint32_t, 2> &reads) const {
    // Arguments are handed to every rank, parameters are there.
    if (auto number = numbers.find(value); number != numbers.end())
      reads.push_back(number->second);
  }

  const StageGraph &graph;
  DenseMap<Value, uint32_t> numbers;
  DenseMap<Value, Origin> origins;
  DenseSet<Value> constants;
};
} // namespace

static bool hasFloats(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// Collectives move and add; tests give integers or bools, which have no gradient anyway.
static nn::Slope getSlope(Operation &op) {
  auto sloped = dyn_cast<nn::SlopeOpInterface>(op);
  return sloped ? sloped.getSlope() : nn::Slope::Constant;
}

static bool isAttention(Operation &op) {
  auto formed = dyn_cast<nn::FormOpInterface>(op);
  return formed && formed.getForm() == nn::Form::Attention;
}

/// Of an argument nothing is wanted; parameters that are no floats are not learned.
Origin GradientFinder::getOrigin(Value value) {
  if (isa_and_nonnull<nn::LoadOp>(value.getDefiningOp()))
    return hasFloats(value) ? Origin::Parameters : Origin::Nothing;
  return origins.lookup_or(value, Origin::Nothing);
}

/// A weight that is only moved or converted is still one; beside anything that inputs change it is not.
Origin GradientFinder::findOrigin(Operation &op) {
  bool isLearned = false, isConstant = true;
  for (Value operand : op.getOperands()) {
    Origin origin = getOrigin(operand);
    isLearned |= origin != Origin::Nothing;
    isConstant &= origin == Origin::Parameters || constants.contains(operand) || nn::isData(operand.getDefiningOp());
  }
  if (isConstant)
    constants.insert(op.getResults().begin(), op.getResults().end());
  if (!isLearned)
    return Origin::Nothing;
  return isConstant ? Origin::Parameters : Origin::Both;
}

void GradientFinder::addProduct(Operation &op, double ns, OpGradients &found) {
  auto factors = op.getOperands().take_front(nn::countFactors(&op));
  for (Value factor : factors) {
    Origin origin = getOrigin(factor);
    if (origin == Origin::Nothing)
      continue;
    bool isWeight = origin == Origin::Parameters;
    (isWeight ? found.weightGradNs : found.inputGradNs) += ns;
    for (Value other : factors)
      if (other != factor || llvm::count(factors, factor) > 1)
        read(other, isWeight ? found.weightGradReads : found.inputGradReads);
  }
}

/// Attention is computed again for its gradients.
void GradientFinder::addOther(Operation &op, double ns, OpGradients &found) {
  bool isInput = llvm::any_of(op.getOperands(), [&](Value operand) { return getOrigin(operand) == Origin::Both; });
  (isInput ? found.inputGradNs : found.weightGradNs) = isAttention(op) ? 2 * ns : ns;
  SmallVector<uint32_t, 2> &reads = isInput ? found.inputGradReads : found.weightGradReads;
  SmallVector<bool> wanted = llvm::map_to_vector(op.getOperands(), [&](Value operand) { return isWanted(operand); });
  if (auto sloped = dyn_cast<nn::SlopeOpInterface>(op))
    for (OpOperand &operand : op.getOpOperands())
      if (sloped.isReadForGradient(operand.getOperandNumber(), wanted))
        read(operand.get(), reads);
  if (getSlope(op) == nn::Slope::OfResult || isAttention(op))
    read(op.getResult(0), reads);
}

std::vector<OpGradients> GradientFinder::run() {
  std::vector<OpGradients> all;
  for (auto [op, known] : llvm::zip_equal(graph.ops, graph.problem.ops)) {
    for (Value result : op->getResults())
      numbers[result] = static_cast<uint32_t>(numbers.size());
    OpGradients &found = all.emplace_back();
    Origin origin = findOrigin(*op);
    bool hasGradient =
        origin != Origin::Nothing && getSlope(*op) != nn::Slope::Zero && llvm::any_of(op->getResults(), hasFloats);
    for (Value result : op->getResults())
      origins[result] = hasGradient && hasFloats(result) ? origin : Origin::Nothing;
    if (!hasGradient)
      continue;
    auto ns = static_cast<double>(known.ns);
    if (nn::countFactors(op) > 1)
      addProduct(*op, ns, found);
    else
      addOther(*op, ns, found);
    for (Value result : op->getResults())
      found.waitingBytes += found.weightGradNs > 0 ? graph.problem.values[numbers[result]].bytes : 0;
  }
  return all;
}

std::vector<OpGradients> cleave::pipe::findGradients(const StageGraph &graph) { return GradientFinder(graph).run(); }

StageGraph cleave::pipe::addGradients(StageGraph graph, ArrayRef<OpGradients> ops) {
  for (auto [op, gradients] : llvm::zip_equal(graph.problem.ops, ops))
    op.ns += std::llround(gradients.inputGradNs + gradients.weightGradNs);
  return graph;
}

/// A value is made where its producer stands and, in its stage, gone behind its last user; what later stages read stays.
static void findLiveBytes(const StageGraph &graph, ArrayRef<int32_t> stageOf, std::vector<StageGradients> &stages) {
  constexpr uint32_t never = UINT32_MAX;
  std::vector<std::vector<uint32_t>> madeBy(graph.ops.size()), endsAt(graph.ops.size());
  for (auto [number, value] : llvm::enumerate(graph.problem.values)) {
    uint32_t last = value.producer;
    for (uint32_t user : value.users)
      last = stageOf[user] == stageOf[value.producer] ? std::max(last, user) : never;
    madeBy[value.producer].push_back(static_cast<uint32_t>(number));
    // Without users it is a result of the model.
    if (last != never && !value.users.empty())
      endsAt[last].push_back(static_cast<uint32_t>(number));
  }
  std::vector<double> live(stages.size(), 0);
  auto getBytes = [&](uint32_t value) { return static_cast<double>(graph.problem.values[value].bytes); };
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    int32_t stage = stageOf[op];
    for (uint32_t value : madeBy[op])
      live[stage] += getBytes(value);
    stages[stage].liveBytes = std::max(stages[stage].liveBytes, live[stage]);
    for (uint32_t value : endsAt[op])
      live[stage] -= getBytes(value);
  }
}

std::vector<StageGradients> cleave::pipe::sumGradients(const StageGraph &graph, ArrayRef<OpGradients> ops,
                                                       ArrayRef<int32_t> stageOf, size_t numStages) {
  std::vector<StageGradients> stages(numStages);
  // What each stage keeps until W, and until I.
  std::vector<DenseSet<uint32_t>> forWeights(numStages), forInputs(numStages);
  for (auto [op, gradients, stage] : llvm::zip_equal(graph.problem.ops, ops, stageOf)) {
    StageGradients &sum = stages[stage];
    sum.forwardNs += static_cast<double>(op.ns);
    sum.inputGradNs += gradients.inputGradNs;
    sum.weightGradNs += gradients.weightGradNs;
    sum.inputGradBytes += static_cast<double>(gradients.waitingBytes);
    sum.weightGradBytes -= static_cast<double>(gradients.waitingBytes);
    forWeights[stage].insert(gradients.weightGradReads.begin(), gradients.weightGradReads.end());
    forInputs[stage].insert(gradients.inputGradReads.begin(), gradients.inputGradReads.end());
  }
  auto getBytes = [&](uint32_t value) { return static_cast<double>(graph.problem.values[value].bytes); };
  for (size_t stage = 0; stage < numStages; ++stage) {
    for (uint32_t value : forWeights[stage]) {
      stages[stage].keptBytes += getBytes(value);
      stages[stage].weightGradBytes -= getBytes(value);
    }
    for (uint32_t value : forInputs[stage])
      if (!forWeights[stage].contains(value)) {
        stages[stage].keptBytes += getBytes(value);
        stages[stage].inputGradBytes -= getBytes(value);
      }
  }
  findLiveBytes(graph, stageOf, stages);
  return stages;
}

namespace {
/// What units of a stage read that others have made, each value once.
struct StepReads {
  DenseSet<Value> forInputs, forWeights;
};
} // namespace

/// What a batch brings, parameters and what is made of them alone wait for nobody.
static bool isOfMicrobatch(Value value, const spmd::Spans &spans) {
  return value.getDefiningOp() && !nn::isData(value.getDefiningOp()) && spans.get(value) == spmd::Span::Each;
}

std::vector<StageGradients> cleave::pipe::sumStep(const StageGraph &graph, ArrayRef<int32_t> stageOf,
                                                  size_t numStages) {
  assert(!graph.backwardNs.empty() && "not a step");
  std::vector<StageGradients> stages(numStages);
  std::vector<StepReads> reads(numStages);
  auto func = graph.ops.front()->getParentOfType<func::FuncOp>();
  spmd::Spans spans(func);
  StageUnits units(static_cast<int64_t>(numStages), true);
  auto all = findUnits(graph, stageOf, units.countStages());
  for (auto [op, stage] : llvm::zip_equal(graph.problem.ops, stageOf))
    stages[stage].forwardNs += static_cast<double>(op.ns);
  for (auto [op, unit] : all) {
    StageGradients &sum = stages[units.getStage(unit)];
    StepReads &own = reads[units.getStage(unit)];
    bool isOfWeights = units.getKind(unit) == UnitKind::WeightGrad;
    (isOfWeights ? sum.weightGradNs : sum.inputGradNs) += static_cast<double>(graph.backwardNs.lookup(op));
    // What W makes for itself waits for nobody: it is working memory of W.
    auto isOwn = [&, unit = unit](Value operand) {
      auto made = all.find(operand.getDefiningOp());
      return isOfWeights && made != all.end() && made->second == unit;
    };
    // A mark of what is made again is none of these: its readers read what it marks.
    for (Value operand : isa<exec::AgainOp>(op) ? ValueRange() : ValueRange(op->getOperands())) {
      if (auto mark = operand.getDefiningOp<exec::AgainOp>())
        operand = mark.getInput();
      if (isOfMicrobatch(operand, spans) && !isOwn(operand))
        (isOfWeights ? own.forWeights : own.forInputs).insert(operand);
    }
  }
  // An op of the forward is timed with its gradients; those of a node may be in another stage than the first of its ops.
  for (StageGradients &sum : stages)
    sum.forwardNs = std::max(0., sum.forwardNs - sum.inputGradNs - sum.weightGradNs);
  auto isBackward = [&](Value value) { return graph.backwardNs.contains(value.getDefiningOp()); };
  for (auto [sum, own] : llvm::zip_equal(stages, reads)) {
    for (Value value : own.forWeights) {
      auto bytes = static_cast<double>(spmd::getBytes(value.getType()));
      (isBackward(value) ? sum.inputGradBytes : sum.keptBytes) += bytes;
      sum.weightGradBytes -= bytes;
    }
    for (Value value : own.forInputs)
      if (!own.forWeights.contains(value) && !isBackward(value)) {
        auto bytes = static_cast<double>(spmd::getBytes(value.getType()));
        sum.keptBytes += bytes;
        sum.inputGradBytes -= bytes;
      }
  }
  findLiveBytes(graph, stageOf, stages);
  return stages;
}

void cleave::pipe::scaleTimes(const schedule::SplitOptions &options, llvm::ArrayRef<int32_t> placement,
                              std::vector<StageGradients> &sums) {
  for (auto [rank, sum] : llvm::zip_equal(placement, sums))
    for (double *ns : {&sum.forwardNs, &sum.inputGradNs, &sum.weightGradNs})
      *ns /= options.getSpeed(rank);
}
