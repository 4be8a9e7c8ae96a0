//===- DimClasses.cpp - dims that are cut together ------------------------===//
//
// Union-find over the factors of all ops and the dims of all inputs. A dim of several factors on one side and others on the other is joined
// digit by digit: factors that begin behind the same number of more major positions are one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/DimClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

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

/// Joins factors of a dim as it is made with those of the dim as it is read: those before which equally many positions have been passed.
void DimClasses::joinDims(const ShardingRule &from, Element fromFirst, const DimFactors &made, const ShardingRule &to,
                          Element toFirst, const DimFactors &read) {
  int64_t before = 1;
  size_t next = 0;
  int64_t nextBefore = 1;
  for (FactorId factor : made) {
    while (next < read.size() && nextBefore < before)
      nextBefore *= to.factorSizes[read[next++]];
    if (next < read.size() && nextBefore == before)
      unite(fromFirst + factor, toFirst + read[next]);
    before *= from.factorSizes[factor];
  }
}

/// An input has a factor for each dim, as a result of the identity would.
static ShardingRule identityOf(ArrayRef<int64_t> shape) {
  ShardingRule rule;
  TensorFactors &dims = rule.results.emplace_back();
  for (auto [dim, extent] : enumerate(shape)) {
    rule.factorSizes.push_back(extent);
    dims.push_back({static_cast<FactorId>(dim)});
  }
  return rule;
}

/// Loops hand on values to their next iteration: their ops have an operand that is made behind them, which is joined all the same.
void DimClasses::joinUses() {
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    for (auto [index, operand] : enumerate(problem.operands(op))) {
      OpId producer = problem.producer(operand);
      ShardingRule identity = producer == kNone ? identityOf(problem.shape(operand)) : ShardingRule();
      const ShardingRule &from = producer == kNone ? identity : problem.rule(problem.ruleOf(producer));
      Element first = producer == kNone ? firstDims[operand] : firstFactors[producer];
      unsigned result = producer == kNone ? 0 : problem.resultIndex(operand);
      for (auto [made, read] : zip(from.results[result], rule.operands[index]))
        joinDims(from, first, made, rule, firstFactors[op], read);
    }
  }
}

//===----------------------------------------------------------------------===//
// What classes are
//===----------------------------------------------------------------------===//

/// In any dim, alone or with others.
static bool standsIn(const TensorFactors &dims, FactorId factor) {
  return any_of(dims, [&](const DimFactors &factors) { return is_contained(factors, factor); });
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
  bool isProduct = rule.flops > 0, looksUp = rule.form == Form::Movement && operands.size() > 1;
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor) {
    bool inParameter = false, inOther = false;
    for (auto [dims, operand] : zip(rule.operands, operands))
      (isOfParameters(operand) ? inParameter : inOther) |= standsIn(dims, factor);
    bool inResult = any_of(rule.results, [&](const TensorFactors &dims) { return standsIn(dims, factor); });
    if (inParameter && (isProduct || looksUp))
      mark(factor, isProduct && inOther && inResult ? DimTag::Expert : DimTag::Weight);
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

DimClasses::DimClasses(const Problem &problem) : problem(problem), parameters(problem.numValues(), false) {
  Element count = 0;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    firstFactors.push_back(count);
    count += problem.rule(problem.ruleOf(op)).factorSizes.size();
  }
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    firstDims.push_back(count);
    if (problem.producer(value) != kNone)
      continue;
    count += problem.shape(value).size();
    parameters[value] = problem.isParameter(value);
  }
  parents.resize(count);
  std::iota(parents.begin(), parents.end(), Element(0));
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (ValueId result : problem.results(op))
      parameters[result] = all_of(problem.operands(op), [&](ValueId operand) { return parameters[operand]; });
  joinUses();
  tagAll();
}
