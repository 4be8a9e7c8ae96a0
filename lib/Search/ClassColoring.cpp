//===- ClassColoring.cpp - which classes of dims are cut ------------------===//
//
// Tables have one or two variables, so an op has one of its own: it pays for what it does not split, its results are summed where the
// factor that it takes is contracted, and it is tied to each class of its factors: none is taken of a class that is whole, and what has
// another factor of a class that is cut has to be gathered.
// Where two classes that are cut meet in an op, it is left whole.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/ClassColoring.h"
#include "cleave/Solver/Elimination.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>
#include <deque>

using namespace cleave::spmd;
using namespace llvm;

namespace {

/// What all operations, and all bytes that might be sent or stored, count together: bytes decide between what splits as much.
constexpr double kAllFlops = 0x1p44, kAllBytes = 0x1p36;

/// The sum of tables while it is made; `cells` keeps them where they are.
class Coloring {
public:
  Coloring(const Problem &problem, const DimClasses &classes, int64_t ranks, function_ref<bool(DimClassId)> maySplit)
      : problem(problem), classes(classes), saved(1.0 - 1.0 / static_cast<double>(ranks)), maySplit(maySplit) {}

  ClassColoring run();

private:
  struct OpVariable {
    OpId op;
    uint32_t variable;
    /// Option 0 is none; option i takes `factors[i - 1]`.
    SmallVector<FactorId, 4> factors;
  };

  uint32_t addVariable(size_t domain) {
    domains.push_back(static_cast<uint16_t>(domain));
    return domains.size() - 1;
  }
  uint32_t variableOf(DimClassId id);
  double gatheredBytes(OpId op, DimClassId id, FactorId taken) const;
  double summedBytes(OpId op, FactorId factor) const;
  void countAll();
  void addOp(OpId op);
  void addStorage();
  ArrayRef<int64_t> addCells(ArrayRef<double> costs);

  const Problem &problem;
  const DimClasses &classes;
  /// Share of a whole that a rank of several is spared, or sends in a gather.
  double saved;
  function_ref<bool(DimClassId)> maySplit;
  double allFlops = 0, allBytes = 0;
  std::vector<uint16_t> domains;
  DenseMap<DimClassId, uint32_t> classVariables;
  std::vector<OpVariable> opVariables;
  std::vector<CostTerm> terms;
  std::deque<std::vector<int64_t>> cells;
};

} // namespace

/// Option 0 is whole, 1 is cut. Classes that no op may cut have none.
uint32_t Coloring::variableOf(DimClassId id) {
  auto [entry, isNew] = classVariables.try_emplace(id, 0);
  if (isNew)
    entry->second = addVariable(2);
  return entry->second;
}

/// Operands that have a factor of the class which is not the one that the op takes.
double Coloring::gatheredBytes(OpId op, DimClassId id, FactorId taken) const {
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  double bytes = 0;
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor) {
    if (factor == taken || classes.ofFactor(op, factor) != id)
      continue;
    for (auto [dims, operand] : zip(rule.operands, problem.operands(op)))
      bytes += standsIn(dims, factor) ? saved * problem.totalBytes(operand) : 0;
  }
  return bytes;
}

/// All_reduces of results, where the factor is contracted, and those inside the op.
double Coloring::summedBytes(OpId op, FactorId factor) const {
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  double bytes = 0;
  if (rule.isReduction(factor))
    for (ValueId result : problem.results(op))
      bytes += 2 * saved * problem.totalBytes(result);
  for (const InnerCost &cost : rule.inner) {
    if (!is_contained(cost.factors, factor))
      continue;
    double elements = static_cast<double>(cost.elementScale * cost.times);
    for (FactorId other : cost.elementFactors)
      elements *= static_cast<double>(rule.factorSizes[other]);
    bytes += 2 * saved * elements * static_cast<double>(cost.elementBytes);
  }
  return bytes;
}

/// Units: shares of these, so that tables fit and neither depends on the size of the model.
void Coloring::countAll() {
  for (OpId op = 0; op < problem.numOps(); ++op)
    allFlops += problem.rule(problem.ruleOf(op)).flops;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    allBytes += problem.totalBytes(value);
}

/// A cost below 0 stands for what must not be.
ArrayRef<int64_t> Coloring::addCells(ArrayRef<double> costs) {
  std::vector<int64_t> &made = cells.emplace_back();
  for (double cost : costs)
    made.push_back(cost < 0 ? kForbidden : std::llround(cost));
  return made;
}

/// Costs below 0 are what must not be.
void Coloring::addOp(OpId op) {
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  OpVariable variable{op, 0, {}};
  SmallVector<DimClassId, 4> ids;
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor) {
    DimClassId id = classes.ofFactor(op, factor);
    if (classes.getExtent(classes.placeOf(op, factor)) == 1 || !maySplit(id))
      continue;
    if (rule.findSingleSplit(factor) >= 0)
      variable.factors.push_back(factor);
    if (!is_contained(ids, id))
      ids.push_back(id);
  }
  if (ids.empty())
    return;
  double perByte = kAllBytes / std::max(allBytes, 1.0), perFlop = kAllFlops / std::max(allFlops, 1.0);
  variable.variable = addVariable(1 + variable.factors.size());
  std::vector<double> alone{rule.flops * saved * perFlop};
  for (FactorId factor : variable.factors) {
    bool isSplit = rule.flopFactors.empty() || is_contained(rule.flopFactors, factor);
    alone.push_back((isSplit ? 0 : rule.flops * saved * perFlop) + summedBytes(op, factor) * perByte);
  }
  terms.push_back({variable.variable, kNoVariable, addCells(alone).data()});
  for (DimClassId id : ids) {
    std::vector<double> tied{0, gatheredBytes(op, id, -1) * perByte};
    // One axis cuts one dim of a tensor: what is cut along a factor has no other class that is cut.
    for (FactorId factor : variable.factors) {
      bool isOfClass = classes.ofFactor(op, factor) == id;
      tied.push_back(isOfClass ? -1 : 0);
      tied.push_back(isOfClass ? gatheredBytes(op, id, factor) * perByte : -1);
    }
    terms.push_back({variable.variable, variableOf(id), addCells(tied).data()});
  }
  opVariables.push_back(std::move(variable));
}

/// Parameters of which no dim is cut stay on each rank; of several classes each counts a half, which is as near as tables of one class come.
void Coloring::addStorage() {
  double perByte = kAllBytes / std::max(allBytes, 1.0);
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    if (problem.producer(value) != kNone || !problem.isParameter(value))
      continue;
    SmallVector<uint32_t, 2> variables;
    for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim) {
      auto found = classVariables.find(classes.ofDim(value, dim));
      if (found != classVariables.end() && !is_contained(variables, found->second))
        variables.push_back(found->second);
    }
    double whole = problem.totalBytes(value) * saved * perByte;
    if (variables.size() == 1)
      terms.push_back({variables[0], kNoVariable, addCells({whole, 0}).data()});
    else if (variables.size() == 2)
      terms.push_back({variables[0], variables[1], addCells({whole, 0, 0, 0}).data()});
  }
}

/// Classes that no op reads with a choice are whole.
ClassColoring Coloring::run() {
  countAll();
  for (OpId op = 0; op < problem.numOps(); ++op)
    addOp(op);
  addStorage();
  ClassColoring found;
  found.isSplit.assign(classes.numPlaces(), false);
  found.factors.assign(problem.numOps(), -1);
  if (domains.empty())
    return found;
  // Of equal ones, the class that comes first is cut.
  std::vector<DimClassId> order;
  for (auto [id, variable] : classVariables)
    order.push_back(id);
  llvm::sort(order);
  for (auto [rank, id] : enumerate(order))
    terms.push_back(
        {classVariables[id], kNoVariable, addCells({0, static_cast<double>(std::min<size_t>(rank, 1000))}).data()});
  Minimum minimum = minimize(domains, terms);
  for (auto [id, variable] : classVariables)
    found.isSplit[id] = minimum.options[variable] == 1;
  double split = 0;
  for (const OpVariable &variable : opVariables)
    if (unsigned option = minimum.options[variable.variable]) {
      found.factors[variable.op] = variable.factors[option - 1];
      split += problem.rule(problem.ruleOf(variable.op)).flops;
    }
  found.splitShare = allFlops > 0 ? split / allFlops : 0;
  return found;
}

ClassColoring cleave::spmd::colorClasses(const Problem &problem, const DimClasses &classes, int64_t ranks,
                                         function_ref<bool(DimClassId)> maySplit) {
  return Coloring(problem, classes, ranks, maySplit).run();
}
