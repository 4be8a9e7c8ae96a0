//===- CellPlan.cpp - one mesh, and the plan of a decision ----------------===//
//
// What is decided becomes a plan in the words that a person would use.
//
//===----------------------------------------------------------------------===//
#include "CellPlan.h"

#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Search/AxisNames.h"
#include "cleave/Search/PlanRules.h"
#include "cleave/Search/Styles.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

CellPlan::CellPlan(std::unique_ptr<MeshProblem> made, const ModelNames &names)
    : problem(std::move(made)), names(names), classes(std::make_unique<DimClasses>(problem->getProblem())) {
  search = std::make_unique<CellSearch>(problem->getProblem(), problem->options, listStyles());
}

/// The classes of dims that some op could split; nothing where there are more than `most`.
static std::optional<std::set<DimClassId>> listClasses(const Problem &problem, const DimClasses &classes, size_t most) {
  std::set<DimClassId> all;
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (auto [factor, size] : llvm::enumerate(problem.rule(problem.ruleOf(op)).factorSizes))
      if (size > 1 && all.insert(classes.ofFactor(op, factor)).second && all.size() > most)
        return std::nullopt;
  return all;
}

/// As people do: batches alone, weights alone, tokens alone. Of a model that has few classes of dims each alone as well, and none: whatever the
/// costs of the solver leave out of some op, all programs that split one thing are then predicted.
std::vector<SearchStyle> CellPlan::listStyles() const {
  constexpr size_t kFewClasses = 8;
  std::vector<SearchStyle> styles;
  for (DimTag tag : kDimTags)
    styles.push_back([classes = classes.get(), tag](OpId op, FactorId factor) {
      return classes->getTag(classes->ofFactor(op, factor)) == tag;
    });
  std::optional<std::set<DimClassId>> few = listClasses(problem->getProblem(), *classes, kFewClasses);
  if (!few)
    return styles;
  for (DimClassId id : *few)
    styles.push_back(
        [classes = classes.get(), id](OpId op, FactorId factor) { return classes->ofFactor(op, factor) == id; });
  styles.push_back([](OpId, FactorId) { return false; });
  return styles;
}

/// The names by which a plan addresses a value: of an input or a parameter there is one.
static StringRef getPlanName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      return getArgumentName(func, argument.getArgNumber());
  if (auto parameter = value.getDefiningOp<ParameterOpInterface>())
    return parameter.getParameterName();
  return "";
}

/// Empty: no rule is made of it. What the given plan asks for it says itself.
StringRef CellPlan::getRuledName(ValueId value) const {
  const Problem &decided = problem->getProblem();
  bool isOpen = decided.producer(value) == kNone && !decided.annotation(value);
  return isOpen ? getPlanName(problem->source->getValues()[value]) : "";
}

static const State &getState(const CellAnswer &answer, ValueId value) {
  const Decision &decision = answer.getDecision();
  return decision.states[decision.valueStates[value]];
}

/// Bytes of the smallest piece that a rank can have. Each prime factor of the ranks splits some dim as often as it is in its extent, at most;
/// where uneven splits are allowed, no piece is below its share.
static int64_t countLeastPiece(const Problem &problem, ValueId value) {
  const AtomMesh &mesh = problem.getMesh();
  int64_t elements = 1;
  for (int64_t extent : problem.shape(value))
    elements *= extent;
  if (!problem.getUnevenAtoms().empty())
    return (elements + mesh.numRanks() - 1) / mesh.numRanks() * problem.elementBytes(value);
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    if (elements % mesh.size(atom) == 0)
      elements /= mesh.size(atom);
  return elements * problem.elementBytes(value);
}

//===----------------------------------------------------------------------===//
// Bytes that any program needs
//===----------------------------------------------------------------------===//

namespace {
/// What a product needs at once: a kernel for one reads elements of its operands that are in memory, and writes its result, to which it
/// may have done more, element by element (Exec/Fusion/Clusters.h). So the operand that is no weight is there in full, and the result, while
/// the product runs; in rings and in pieces, too, for the last piece is made while all others are there.
class ProductBytes {
public:
  ProductBytes(const Problem &problem, ArrayRef<Value> values, ArrayRef<Operation *> ops)
      : problem(problem), values(values), ops(ops), users(problem.numValues()) {
    for (OpId op = 0; op < problem.numOps(); ++op)
      for (ValueId operand : problem.operands(op))
        users[operand].push_back(op);
  }

  /// The most that a product of a weight needs; a weight that is loaded is counted by others (`areLoadsCounted`).
  int64_t findMost(bool areLoadsCounted) const;

private:
  static constexpr unsigned kFarthest = 16;

  bool isProduct(OpId op) const;
  bool isWeight(ValueId value) const;
  ValueId findSource(ValueId value, int64_t &least) const;
  int64_t countMade(ValueId value, unsigned depth = kFarthest) const;
  bool hasOneSource(OpId op) const;

  const Problem &problem;
  ArrayRef<Value> values;
  ArrayRef<Operation *> ops;
  std::vector<SmallVector<OpId, 2>> users;
};
} // namespace

/// Of floats, and of more terms than there are ranks: what would have one term on a rank may be no product any more.
bool ProductBytes::isProduct(OpId op) const {
  Operation *source = ops[op];
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  if (!isa_and_present<nn::EinsumOp>(source) || !isa<FloatType>(getElementTypeOrSelf(source->getResult(0).getType())))
    return false;
  int64_t terms = 1;
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
    terms *= rule.isReduction(factor) ? rule.factorSizes[factor] : 1;
  return terms > problem.getMesh().numRanks();
}

/// What moves or converts elements of one value: a kernel may read that instead.
bool ProductBytes::hasOneSource(OpId op) const {
  Operation *source = ops[op];
  return problem.isConstraint(op) ||
         (problem.operands(op).size() == 1 && source && source->getNumResults() == 1 &&
          (problem.rule(problem.ruleOf(op)).isMovement || source->hasTrait<nn::Elementwise>()));
}

/// What is surely in memory of an operand, and the least bytes on the way from there, which a kernel may go for itself.
ValueId ProductBytes::findSource(ValueId value, int64_t &least) const {
  least = countLeastPiece(problem, value);
  for (OpId producer = problem.producer(value); producer != kNone && hasOneSource(producer);
       producer = problem.producer(value)) {
    value = problem.operands(producer)[0];
    least = std::min(least, countLeastPiece(problem, value));
  }
  return value;
}

bool ProductBytes::isWeight(ValueId value) const {
  return problem.isParameter(value) || isa_and_present<nn::LoadOp>(values[value].getDefiningOp());
}

/// Of a result the least that an epilogue could make of it.
int64_t ProductBytes::countMade(ValueId value, unsigned depth) const {
  int64_t least = countLeastPiece(problem, value);
  if (depth == 0)
    return least / problem.elementBytes(value);
  for (OpId user : users[value]) {
    ArrayRef<ValueId> results = problem.results(user);
    bool isElementwise = ops[user] && ops[user]->hasTrait<nn::Elementwise>();
    if (results.size() == 1 && (isElementwise || hasOneSource(user)) &&
        problem.shape(results[0]) == problem.shape(value))
      least = std::min(least, countMade(results[0], depth - 1));
  }
  return least;
}

/// Products of two activations are left out: those of attention are in a kernel that keeps none of the scores.
int64_t ProductBytes::findMost(bool areLoadsCounted) const {
  int64_t most = 0;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    ArrayRef<ValueId> operands = problem.operands(op);
    if (!isProduct(op) || operands.size() != 2)
      continue;
    int64_t leasts[2], bytes = countMade(problem.results(op)[0]);
    ValueId sources[2] = {findSource(operands[0], leasts[0]), findSource(operands[1], leasts[1])};
    if (isWeight(sources[0]) == isWeight(sources[1]))
      continue;
    for (size_t index = 0; index < 2; ++index) {
      OpId producer = problem.producer(sources[index]);
      bool isLoaded = isa_and_present<nn::LoadOp>(values[sources[index]].getDefiningOp());
      // A constant, or pieces that a kernel reads where each comes from.
      bool isPutTogether = producer != kNone && !isLoaded &&
                           (problem.operands(producer).empty() || problem.rule(problem.ruleOf(producer)).isMovement);
      bytes += isPutTogether || (isLoaded && areLoadsCounted) ? 0 : leasts[index];
    }
    most = std::max(most, bytes);
  }
  return most;
}

/// A loaded weight is there all the time, what is given at the beginning, and what is returned in the end (Cost/Memory.h). Loads of one weight
/// may become one; of values that are returned the largest counts, for others may turn out to be the same.
int64_t CellPlan::countLeastBytes(int64_t stages) const {
  const Problem &decided = problem->getProblem();
  int64_t loaded = 0, givenWeights = 0, given = 0, returned = 0;
  llvm::StringSet<> counted;
  for (ValueId id = 0; id < decided.numValues(); ++id) {
    Value value = problem->source->getValues()[id];
    auto load = value.getDefiningOp<nn::LoadOp>();
    auto argument = dyn_cast<BlockArgument>(value);
    if (load && counted.insert(load.getParam()).second)
      loaded += countLeastPiece(decided, id);
    if (argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      (decided.isParameter(id) ? givenWeights : given) += countLeastPiece(decided, id);
  }
  for (OutputId output = 0; output < decided.numOutputs(); ++output)
    returned = std::max(returned, countLeastPiece(decided, decided.outputValue(output)));
  ProductBytes products(decided, problem->source->getValues(), problem->source->getOps());
  if (stages == 1)
    return loaded + std::max({givenWeights + given, returned, products.findMost(/*areLoadsCounted=*/true)});
  return std::max((loaded + givenWeights + stages - 1) / stages, products.findMost(/*areLoadsCounted=*/false));
}

size_t CellPlan::countDifferent(const CellAnswer &answer, const CellAnswer &other) const {
  size_t count = 0;
  for (ValueId value = 0; value < problem->getProblem().numValues(); ++value)
    count += !getRuledName(value).empty() && !(getState(answer, value) == getState(other, value));
  return count;
}

/// Values are in the order of the model, so that a mixture changes at one layer.
std::vector<PlanRule> CellPlan::makeRules(const CellAnswer &answer, const Mixture *mixture, const AtomMesh &mesh,
                                          ArrayRef<MeshAxis> axes) const {
  std::vector<TensorDims> tensors;
  size_t met = 0, all = mixture ? countDifferent(answer, mixture->other) : 0;
  for (ValueId value = 0; value < problem->getProblem().numValues(); ++value) {
    StringRef name = getRuledName(value);
    if (name.empty())
      continue;
    const State *state = &getState(answer, value);
    if (mixture && !(*state == getState(mixture->other, value))) {
      bool isOther = mixture->isOfFirst ? met < mixture->count : met >= all - mixture->count;
      state = isOther ? &getState(mixture->other, value) : state;
      ++met;
    }
    if (!state->isPartial())
      tensors.push_back({name.str(), makePlanDims(state->dims, mesh, axes)});
  }
  return makePlanRules(keepAgreed(tensors), names);
}

/// By what styles split people name axes; a second one of a name has a number.
std::optional<Plan> CellPlan::makeStyledPlan(ArrayRef<Style> styles, const Plan &given, bool namesAxes) const {
  const AtomMesh &mesh = problem->getProblem().getMesh();
  if (mesh.numAxes() != styles.size() || given.mesh.size() != styles.size())
    return std::nullopt;
  Plan plan = given;
  StyledPlan styled(problem->getProblem(), makeStyledModel(*problem));
  llvm::StringSet<> used;
  for (auto [axis, style] : llvm::enumerate(styles)) {
    if (llvm::Error error = styled.apply(style, mesh.atomsOf(axis))) {
      llvm::consumeError(std::move(error));
      return std::nullopt;
    }
    std::string name = kStyleAxes[static_cast<int>(style)].str();
    if (namesAxes)
      plan.mesh[axis].name = used.insert(name).second ? name : name + "2";
  }
  llvm::append_range(plan.rules, makePlanRules(listStyled(*problem, styled, plan.mesh), names));
  plan.areAllFree = false;
  return plan;
}

/// As `nameAxes` calls them, where the cell's have no names.
std::vector<MeshAxis> CellPlan::nameInnerAxes(const CellAnswer &answer, const Plan &given,
                                              std::optional<ArrayRef<unsigned>> borders) const {
  if (!borders)
    return given.getInnerAxes();
  std::vector<MeshAxis> inner;
  for (const NamedAxis &axis : nameAxes(problem->getProblem(), *classes, answer.getDecision(), *borders))
    inner.push_back({axis.name, axis.size, {}});
  return inner;
}

/// The axis of stages, which no problem has, goes before the others.
Plan CellPlan::makeBarePlan(const CellAnswer &answer, const Plan &given,
                            std::optional<ArrayRef<unsigned>> borders) const {
  Plan plan = given;
  if (!borders)
    return plan;
  plan.mesh.resize(plan.mesh.size() - given.getInnerAxes().size());
  llvm::append_range(plan.mesh, nameInnerAxes(answer, given, borders));
  if (plan.mesh.empty()) // One device has nothing to name.
    plan.mesh.push_back({"device", 1, {}});
  return plan;
}

/// Of axes that have names, with atoms numbered as in the problem.
static AtomMesh makeAtomMesh(ArrayRef<MeshAxis> axes) {
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : axes)
    sizes.push_back(axis.size);
  return AtomMesh(sizes);
}

/// Atoms keep their numbers: axes are runs of them, so that states say the same over the new mesh.
Plan CellPlan::makePlan(const CellAnswer &answer, const Plan &given, std::optional<ArrayRef<unsigned>> borders,
                        const Mixture *mixture) const {
  Plan plan = makeBarePlan(answer, given, borders);
  std::vector<MeshAxis> inner = nameInnerAxes(answer, given, borders);
  AtomMesh mesh = makeAtomMesh(inner);
  assert(mesh.numAtoms() == problem->getProblem().getMesh().numAtoms() && "axes are runs of the same atoms");
  llvm::append_range(plan.rules, makeRules(answer, mixture, mesh, inner));
  return plan;
}

//===----------------------------------------------------------------------===//
// Small models
//===----------------------------------------------------------------------===//

/// Dims by axis, -1 for none; of axes along one dim the first is the major one.
static std::optional<State> placeAxes(ArrayRef<int64_t> shape, ArrayRef<int> dims, const AtomMesh &mesh) {
  State state = State::replicated(shape.size());
  for (auto [axis, dim] : llvm::enumerate(dims))
    if (dim >= 0)
      llvm::append_range(state.dims[dim], mesh.atomsOf(axis));
  for (auto [extent, atoms] : llvm::zip_equal(shape, state.dims))
    if (extent % mesh.product(atoms) != 0)
      return std::nullopt;
  return state;
}

/// One after the other, the last axis first; false: there is none after it.
static bool advance(MutableArrayRef<int> dims, int rank) {
  for (int &dim : llvm::reverse(dims)) {
    if (++dim < rank)
      return true;
    dim = -1;
  }
  return false;
}

/// All ways of one tensor, as states of the problem.
static std::vector<State> listWays(ArrayRef<int64_t> shape, const AtomMesh &mesh) {
  std::vector<State> ways;
  SmallVector<int> dims(mesh.numAxes(), -1);
  do
    if (std::optional<State> state = placeAxes(shape, dims, mesh))
      ways.push_back(std::move(*state));
  while (advance(dims, static_cast<int>(shape.size())));
  return ways;
}

/// Results after what a plan names otherwise: where one is to be follows from these, mostly.
std::vector<PlaceableTensor> CellPlan::listPlaceable(const CellAnswer &answer, ArrayRef<MeshAxis> axes) const {
  constexpr size_t kMostOps = 48, kMostTensors = 6, kMostAxes = 2, kMostWays = 32;
  const Problem &decided = problem->getProblem();
  if (decided.numOps() > kMostOps || axes.size() > kMostAxes)
    return {};
  std::vector<std::pair<std::string, ValueId>> named;
  for (ValueId value = 0; value < decided.numValues(); ++value)
    if (StringRef name = getRuledName(value); !name.empty() && !decided.shape(value).empty())
      named.emplace_back(name, value);
  for (OutputId output = 0; output < decided.numOutputs(); ++output)
    if (ValueId value = decided.outputValue(output); !decided.annotation(value) && !decided.shape(value).empty())
      named.emplace_back(getResultName(problem->source->getFunction(), output), value);
  if (named.size() > kMostTensors)
    return {};
  AtomMesh mesh = makeAtomMesh(axes);
  std::vector<PlaceableTensor> tensors;
  for (const auto &[name, value] : named) {
    PlaceableTensor &tensor = tensors.emplace_back();
    tensor.name = name;
    for (const State &way : listWays(decided.shape(value), mesh)) {
      tensor.ways.push_back(makePlanDims(way.dims, mesh, axes));
      if (decided.producer(value) == kNone && !way.isReplicated() && way == getState(answer, value))
        tensor.decided = tensor.ways.size();
    }
    if (tensor.ways.size() > kMostWays)
      return {};
  }
  return tensors;
}
