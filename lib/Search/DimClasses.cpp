//===- DimClasses.cpp - dims that are cut together ------------------------===//
//
// Union-find over the factors of all ops and the dims of all inputs. A dim of several factors on one side and others on the other is joined
// digit by digit: factors that begin behind the same number of more major positions are one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/DimClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"

#include <cassert>
#include <numeric>

using namespace cleave::spmd;
using namespace llvm;

/// Paths are halved on the way.
DimClasses::Element DimClasses::find(Element element) const {
  while (parents[element] != element)
    element = parents[element] = parents[parents[element]];
  return element;
}

/// The lower number stays: what comes first names a class.
void DimClasses::unite(Element a, Element b) {
  a = find(a);
  b = find(b);
  parents[std::max(a, b)] = std::min(a, b);
}

/// Joins factors of a dim as it is made with those of the dim as it is read: those before which equally many positions have been passed. What
/// has one position only is passed over.
void DimClasses::joinDims(Element fromFirst, const DimFactors &made, Element toFirst, const DimFactors &read) {
  int64_t before = 1;
  size_t next = 0;
  int64_t nextBefore = 1;
  for (FactorId factor : made) {
    if (extents[fromFirst + factor] == 1)
      continue;
    while (next < read.size() && (nextBefore < before || extents[toFirst + read[next]] == 1))
      nextBefore *= extents[toFirst + read[next++]];
    if (next < read.size() && nextBefore == before)
      unite(fromFirst + factor, toFirst + read[next]);
    before *= extents[fromFirst + factor];
  }
}

/// An input has a factor for each dim, as a result of the identity would.
static TensorFactors identityOf(size_t rank) {
  TensorFactors dims;
  for (size_t dim = 0; dim < rank; ++dim)
    dims.push_back({static_cast<FactorId>(dim)});
  return dims;
}

/// Loops hand on values to their next iteration: their ops have an operand that is made behind them, which is joined all the same.
void DimClasses::joinUses() {
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    for (auto [index, operand] : enumerate(problem.operands(op))) {
      OpId producer = problem.producer(operand);
      bool isInput = producer == kNone;
      TensorFactors identity = isInput ? identityOf(problem.shape(operand).size()) : TensorFactors();
      const TensorFactors &from =
          isInput ? identity : problem.rule(problem.ruleOf(producer)).results[problem.resultIndex(operand)];
      Element first = isInput ? firstDims[operand] : firstFactors[producer];
      for (auto [made, read] : zip(from, rule.operands[index]))
        joinDims(first, made, firstFactors[op], read);
    }
  }
}

//===----------------------------------------------------------------------===//
// What classes are
//===----------------------------------------------------------------------===//

bool cleave::spmd::standsIn(const TensorFactors &dims, FactorId factor) {
  return any_of(dims, [&](const DimFactors &factors) { return is_contained(factors, factor); });
}

bool cleave::spmd::isLookup(const ShardingRule &rule) {
  if (rule.form != Form::Movement || rule.operands.size() < 2)
    return false;
  return any_of(seq<FactorId>(0, rule.factorSizes.size()), [&](FactorId factor) {
    return rule.isReduction(factor) && standsIn(rule.operands[0], factor) && !standsIn(rule.operands[1], factor);
  });
}

std::vector<char> cleave::spmd::findDependents(const Problem &problem, std::vector<char> isOne) {
  for (OpId op = 0; op < problem.numOps(); ++op)
    if (any_of(problem.operands(op), [&](ValueId operand) { return isOne[operand]; }))
      for (ValueId result : problem.results(op))
        isOne[result] = true;
  return isOne;
}

std::vector<char> cleave::spmd::findWeights(const Problem &problem, const DimClasses &classes) {
  std::vector<char> weights;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    weights.push_back(classes.isOfParameters(value));
  // In order, so that what is made of a picked matrix is known when it is read; what a loop hands back is not.
  for (OpId op = 0; op < problem.numOps(); ++op) {
    ArrayRef<ValueId> operands = problem.operands(op);
    bool picks = isLookup(problem.rule(problem.ruleOf(op))) && problem.shape(operands.front()).size() > 2;
    // A matrix that has been picked may be moved and cast before it is multiplied.
    bool moves = !operands.empty() && problem.rule(problem.ruleOf(op)).flops == 0 &&
                 all_of(operands, [&](ValueId operand) { return weights[operand]; });
    for (ValueId result : problem.results(op))
      weights[result] |= moves || (picks && weights[operands.front()]);
  }
  return weights;
}

static uint8_t markOf(DimTag tag) { return uint8_t(1) << static_cast<int>(tag); }

/// Notes what the op says of the classes of its factors.
void DimClasses::tagOp(OpId op, std::vector<uint8_t> &marks) const {
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  auto mark = [&](FactorId factor, DimTag tag) { marks[ofFactor(op, factor)] |= markOf(tag); };
  for (const InnerCost &cost : rule.inner)
    for (const SlidingDim &slide : cost.slides)
      for (FactorId factor : {slide.input, slide.result})
        if (factor >= 0 && rule.form != Form::Movement)
          mark(factor, DimTag::Picture);
  ArrayRef<ValueId> operands = problem.operands(op);
  bool anyParameter = any_of(operands, [&](ValueId operand) { return isOfParameters(operand); });
  bool isProduct = rule.flops > 0, isStacked = isProduct && rule.form != Form::Convolution;
  bool looksUp = isLookup(rule);
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor) {
    bool inParameter = false, inOther = false;
    for (auto [dims, operand] : zip(rule.operands, operands))
      (isOfParameters(operand) ? inParameter : inOther) |= standsIn(dims, factor);
    bool inResult = any_of(rule.results, [&](const TensorFactors &dims) { return standsIn(dims, factor); });
    if (inParameter && (isProduct || looksUp))
      mark(factor, isStacked && inOther && inResult ? DimTag::Expert : DimTag::Weight);
    bool isSummed = isProduct && !inResult && !anyParameter;
    if (isSummed || is_contained(rule.orderedFactors, factor))
      mark(factor, DimTag::Token);
    // Attention: positions of one class meet each other.
    for (FactorId other = 0; other < factor; ++other)
      if (isProduct && ofFactor(op, factor) == ofFactor(op, other))
        mark(factor, DimTag::Token);
  }
}

void DimClasses::tagAll() {
  std::vector<uint8_t> marks(parents.size(), 0);
  for (OpId op = 0; op < problem.numOps(); ++op)
    tagOp(op, marks);
  tags.assign(parents.size(), DimTag::Batch);
  for (auto [tag, mark] : zip(tags, marks))
    if (mark != 0)
      tag = static_cast<DimTag>(countr_zero(mark));
}

/// Factors by op, then dims by input.
void DimClasses::numberPlaces(ArrayRef<int64_t> pieces) {
  for (OpId op = 0; op < problem.numOps(); ++op) {
    firstFactors.push_back(extents.size());
    append_range(extents, problem.rule(problem.ruleOf(op)).factorSizes);
  }
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    firstDims.push_back(extents.size());
    if (problem.producer(value) != kNone)
      continue;
    append_range(extents, problem.shape(value));
    parameters[value] = problem.isParameter(value);
  }
  assert((pieces.empty() || pieces.size() == extents.size()) && "one for each place");
  for (auto [extent, split] : zip(extents, pieces))
    extent = std::max<int64_t>(extent / split, 1);
}

DimClasses::DimClasses(const Problem &problem, std::vector<int64_t> pieces)
    : problem(problem), parameters(problem.numValues(), false) {
  numberPlaces(pieces);
  parents.resize(extents.size());
  std::iota(parents.begin(), parents.end(), Element(0));
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (ValueId result : problem.results(op))
      parameters[result] = all_of(problem.operands(op), [&](ValueId operand) { return parameters[operand]; });
  joinUses();
  tagAll();
}
