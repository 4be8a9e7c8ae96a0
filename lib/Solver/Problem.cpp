//===- Problem.cpp - what is to be decided --------------------------------===//
//
// Rules are interned by content: a hash over everything in them finds the few that may be equal.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Problem.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include "llvm/ADT/STLExtras.h"

#include <cassert>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Interning of rules
//===----------------------------------------------------------------------===//

/// Not all that `areEqual` looks at: what differs without this rarely differs alone.
static uint64_t hashRule(const ShardingRule &rule) {
  SmallVector<int64_t, 64> words(rule.factorSizes.begin(), rule.factorSizes.end());
  auto addList = [&](const auto &list) {
    words.push_back(list.size());
    words.append(list.begin(), list.end());
  };
  auto addTensors = [&](ArrayRef<TensorFactors> tensors) {
    words.push_back(tensors.size());
    for (const TensorFactors &dims : tensors) {
      words.push_back(dims.size());
      for_each(dims, addList);
    }
  };
  addTensors(rule.operands);
  addTensors(rule.results);
  for (const Choice &choice : rule.choices) {
    addList(choice.factors);
    addList(choice.partialOperands);
  }
  addList(rule.rowDims);
  words.append({static_cast<int64_t>(rule.inner.size()), static_cast<int64_t>(rule.form), rule.isMovement, rule.isAlias,
                rule.isLoop});
  return hashWords<int64_t>(words);
}

static bool areEqual(const InnerCost &lhs, const InnerCost &rhs) {
  return lhs.kind == rhs.kind && lhs.factors == rhs.factors && lhs.times == rhs.times &&
         lhs.elementFactors == rhs.elementFactors && lhs.elementScale == rhs.elementScale &&
         lhs.elementBytes == rhs.elementBytes && lhs.slides == rhs.slides && lhs.unless == rhs.unless;
}

static bool areEqual(const ShardingRule &lhs, const ShardingRule &rhs) {
  return lhs.factorSizes == rhs.factorSizes && lhs.operands == rhs.operands && lhs.results == rhs.results &&
         lhs.choices == rhs.choices && lhs.flops == rhs.flops && lhs.flopFactors == rhs.flopFactors &&
         lhs.orderedFactors == rhs.orderedFactors && lhs.held == rhs.held && lhs.form == rhs.form &&
         lhs.rowDims == rhs.rowDims && lhs.isMovement == rhs.isMovement && lhs.isAlias == rhs.isAlias &&
         lhs.isLoop == rhs.isLoop && lhs.mustReplicate == rhs.mustReplicate && lhs.regroups == rhs.regroups &&
         lhs.inner.size() == rhs.inner.size() && all_of(zip(lhs.inner, rhs.inner), [](const auto &pair) {
           return areEqual(std::get<0>(pair), std::get<1>(pair));
         });
}

RuleId Problem::internRule(ShardingRule &&rule) {
  RuleId id = ruleIndex.find(hashRule(rule), [&](RuleId other) { return areEqual(rules[other], rule); });
  if (id == rules.size())
    rules.push_back(std::move(rule));
  return id;
}

//===----------------------------------------------------------------------===//
// Building the graph
//===----------------------------------------------------------------------===//

bool Annotation::asksSameAs(const Annotation &other) const {
  auto sameDim = [](const auto &pair) {
    const AnnotationDim &lhs = std::get<0>(pair), &rhs = std::get<1>(pair);
    return lhs.atoms == rhs.atoms && lhs.isOpen == rhs.isOpen && lhs.priority == rhs.priority;
  };
  return dims.size() == other.dims.size() && partial == other.partial && partialKind == other.partialKind &&
         replicated == other.replicated && isUneven == other.isUneven && all_of(zip(dims, other.dims), sameDim);
}

ValueId Problem::addValue(ArrayRef<int64_t> shape, int64_t elementBytes) {
  Value value;
  value.firstExtent = extents.size();
  value.rank = shape.size();
  value.elementBytes = elementBytes;
  extents.insert(extents.end(), shape.begin(), shape.end());
  values.push_back(value);
  return values.size() - 1;
}

void Problem::setFree(AtomId atom, bool isUneven) {
  freeAtoms.push_back(atom);
  if (isUneven && !mayBeUneven(atom))
    unevenAtoms.push_back(atom);
}

void Problem::noteUneven(const Annotation &annotation) {
  for (const AnnotationDim &dim : annotation.dims)
    for (AtomId atom : dim.atoms)
      if (annotation.isUneven && !mayBeUneven(atom))
        unevenAtoms.push_back(atom);
}

/// The same annotation twice is one; the first of two different ones counts, and the conflict is told by the solver.
void Problem::setAnnotation(ValueId value, Annotation annotation) {
  noteUneven(annotation);
  if (const Annotation *earlier = this->annotation(value)) {
    if (!earlier->asksSameAs(annotation))
      conflicts.push_back({value, earlier->cause, annotation.cause});
    return;
  }
  values[value].annotation = annotations.size();
  annotations.push_back(std::move(annotation));
}

OpId Problem::addOp(RuleId rule, ArrayRef<ValueId> operands, ArrayRef<ValueId> results) {
  [[maybe_unused]] auto fits = [&](const TensorFactors &factors, ValueId value) {
    return factors.size() == shape(value).size();
  };
  assert(operands.size() == rules[rule].operands.size() && all_of_zip(rules[rule].operands, operands, fits) &&
         results.size() == rules[rule].results.size() && all_of_zip(rules[rule].results, results, fits) &&
         "one value per tensor of the rule, with its rank");
  assert(all_of(results, [&](ValueId result) { return producer(result) == kNone; }) && "a result has one op");
  OpId id = ops.size();
  ops.push_back({rule, static_cast<uint32_t>(allOperands.size()), static_cast<uint32_t>(allResults.size())});
  allOperands.insert(allOperands.end(), operands.begin(), operands.end());
  allResults.insert(allResults.end(), results.begin(), results.end());
  for (auto [index, result] : enumerate(results)) {
    values[result].producer = id;
    values[result].resultIndex = index;
  }
  return id;
}

/// As an op that moves every dim to itself: annotations flow through it in both directions, and nothing is computed.
OpId Problem::addConstraint(ValueId operand, ValueId result) {
  assert(shape(operand) == shape(result) && "a constraint keeps the shape");
  RuleBuilder rule(1, 1);
  for (int64_t extent : shape(operand)) {
    std::optional<FactorId> factor = rule.addParallel(extent);
    rule.operandDim(0, factor).resultDim(0, factor);
  }
  rule.rule.isMovement = true;
  OpId id = addOp(internRule(std::move(rule.rule)), operand, result);
  ops[id].isConstraint = true;
  return id;
}

void Problem::tie(ValueId input, OutputId output) {
  assert(isStorageDecided(input) && !outputAnnotation(output) && !annotation(outputValue(output)) &&
         shape(input) == shape(outputValue(output)) && "both ends of a tie are open, and of one shape");
  ties.push_back({input, output});
}

OutputId Problem::addOutput(ValueId value, const Annotation *annotation) {
  outputs.push_back({value, kNone});
  if (annotation) {
    noteUneven(*annotation);
    outputs.back().annotation = annotations.size();
    annotations.push_back(*annotation);
  }
  return outputs.size() - 1;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// Rules are numbered in the order of ops, and annotations in that of values, so that equal problems have equal numbers.
bool Problem::isSameAs(const Problem &other) const {
  auto valueKey = [](const Value &value) {
    return std::tuple(value.firstExtent, value.rank, value.elementBytes, value.producer, value.resultIndex,
                      value.annotation, value.isParameter, value.isStorageDecided, value.evenDim, value.keptDim);
  };
  auto opKey = [](const Op &op) {
    return std::tuple(op.rule, op.firstOperand, op.firstResult, op.isConstraint, op.held);
  };
  auto outputKey = [](const Output &output) { return std::tuple(output.value, output.annotation, output.evenDim); };
  auto areAlike = [](const auto &one, const auto &another, auto key) {
    return llvm::equal(one, another, [&](const auto &lhs, const auto &rhs) { return key(lhs) == key(rhs); });
  };
  return areSame(mesh, other.mesh) && areAlike(values, other.values, valueKey) && areAlike(ops, other.ops, opKey) &&
         areAlike(outputs, other.outputs, outputKey) && extents == other.extents && allOperands == other.allOperands &&
         allResults == other.allResults && unevenAtoms == other.unevenAtoms && freeAtoms == other.freeAtoms &&
         ties == other.ties && evenSize == other.evenSize && conflicts.empty() && other.conflicts.empty() &&
         llvm::equal(rules, other.rules, [](const auto &lhs, const auto &rhs) { return areEqual(lhs, rhs); }) &&
         llvm::equal(annotations, other.annotations,
                     [](const Annotation &lhs, const Annotation &rhs) { return lhs.asksSameAs(rhs); });
}
