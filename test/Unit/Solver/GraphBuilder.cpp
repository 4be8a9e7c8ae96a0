//===- GraphBuilder.cpp - small problems for tests ------------------------===//
#include "GraphBuilder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;

namespace cleave::spmd {

static std::vector<int64_t> shapeOf(const Problem &problem, ValueId value) { return problem.shape(value).vec(); }

static std::vector<std::vector<int64_t>> shapesOf(const Problem &problem, ArrayRef<ValueId> values) {
  std::vector<std::vector<int64_t>> shapes;
  for (ValueId value : values)
    shapes.push_back(shapeOf(problem, value));
  return shapes;
}

//===----------------------------------------------------------------------===//
// Values and annotations
//===----------------------------------------------------------------------===//

State GraphBuilder::state(const DimAxes &dims) const {
  State state = State::replicated(dims.size());
  for (auto [atoms, axes] : zip_equal(state.dims, dims))
    for (unsigned axis : axes)
      llvm::append_range(atoms, problem.getMesh().atomsOf(axis));
  return state;
}

Annotation GraphBuilder::annotation(const DimAxes &dims) {
  Annotation annotation;
  for (const AtomList &atoms : state(dims).dims) {
    AnnotationDim &dim = annotation.dims.emplace_back();
    dim.atoms = atoms;
  }
  annotation.cause = nextCause++;
  return annotation;
}

Annotation GraphBuilder::partialAnnotation(const DimAxes &dims, ArrayRef<unsigned> partial, ReductionKind kind) {
  Annotation result = annotation(dims);
  for (unsigned axis : partial)
    llvm::append_range(result.partial, problem.getMesh().atomsOf(axis));
  llvm::sort(result.partial);
  result.partialKind = kind;
  return result;
}

ValueId GraphBuilder::constrain(ValueId operand, const Annotation &annotation) {
  ValueId result = problem.addValue(shapeOf(problem, operand), problem.elementBytes(operand));
  problem.addConstraint(operand, result);
  problem.setAnnotation(result, annotation);
  return result;
}

ValueId GraphBuilder::input(ArrayRef<int64_t> shape) { return problem.addValue(shape, 4); }

ValueId GraphBuilder::input(ArrayRef<int64_t> shape, const DimAxes &dims) {
  ValueId value = input(shape);
  problem.setAnnotation(value, annotation(dims));
  return value;
}

ValueId GraphBuilder::parameter(ArrayRef<int64_t> shape) {
  ValueId value = input(shape);
  problem.setParameter(value);
  return value;
}

ValueId GraphBuilder::parameter(ArrayRef<int64_t> shape, const DimAxes &dims) {
  ValueId value = input(shape, dims);
  problem.setParameter(value);
  return value;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

ValueId GraphBuilder::op(ShardingRule rule, ArrayRef<ValueId> operands, ArrayRef<int64_t> shape) {
  ValueId result = input(shape);
  problem.addOp(problem.internRule(std::move(rule)), operands, result);
  return result;
}

ShardingRule einsumRule(StringRef equation, ArrayRef<std::vector<int64_t>> shapes) {
  auto [lhs, result] = equation.split("->");
  SmallVector<StringRef> terms;
  lhs.split(terms, ',');
  std::map<char, int64_t> sizes;
  std::string letters;
  for (auto [term, shape] : zip_equal(terms, shapes))
    for (auto [letter, extent] : zip_equal(term, shape)) {
      if (!sizes.count(letter))
        letters += letter;
      sizes[letter] = std::max(sizes[letter], extent);
    }
  RuleBuilder rule(terms.size(), 1);
  std::map<char, std::optional<FactorId>> factors;
  double flops = 2;
  for (char letter : letters) {
    factors[letter] = result.contains(letter) ? rule.addParallel(sizes[letter])
                                              : rule.addReduction(sizes[letter], ReductionKind::Sum);
    flops *= sizes[letter];
  }
  for (auto [index, term] : enumerate(terms)) {
    for (auto [letter, extent] : zip_equal(term, shapes[index]))
      rule.operandDim(index, extent > 1 ? factors[letter] : std::nullopt);
    rule.addLinear({static_cast<int32_t>(index)});
  }
  for (char letter : result)
    rule.resultDim(0, factors[letter]);
  rule.rule.flops = terms.size() > 1 ? flops : 0;
  rule.rule.form = Form::Contraction;
  return rule.rule;
}

ValueId GraphBuilder::einsum(StringRef equation, ArrayRef<ValueId> operands) {
  std::vector<std::vector<int64_t>> shapes = shapesOf(problem, operands);
  auto [lhs, result] = equation.split("->");
  SmallVector<StringRef> terms;
  lhs.split(terms, ',');
  std::vector<int64_t> shape;
  for (char letter : result)
    for (auto [term, operandShape] : zip_equal(terms, shapes))
      if (size_t place = term.find(letter); place != StringRef::npos) {
        shape.push_back(operandShape[place]);
        break;
      }
  return op(einsumRule(equation, shapes), operands, shape);
}

/// One parallel factor per dim of the broadcast operands.
static std::vector<int64_t> broadcast(RuleBuilder &rule, ArrayRef<std::vector<int64_t>> shapes,
                                      SmallVectorImpl<std::optional<FactorId>> &factors) {
  size_t rank = 0;
  for (const std::vector<int64_t> &shape : shapes)
    rank = std::max(rank, shape.size());
  std::vector<int64_t> result(rank, 1);
  for (const std::vector<int64_t> &shape : shapes)
    for (size_t dim = 0; dim < shape.size(); ++dim)
      result[rank - shape.size() + dim] = std::max(result[rank - shape.size() + dim], shape[dim]);
  for (int64_t extent : result) {
    factors.push_back(rule.addParallel(extent));
    rule.resultDim(0, factors.back());
  }
  for (auto [index, shape] : enumerate(shapes))
    for (size_t dim = 0; dim < shape.size(); ++dim)
      rule.operandDim(index, shape[dim] > 1 ? factors[rank - shape.size() + dim] : std::nullopt);
  return result;
}

ValueId GraphBuilder::pointwise(ArrayRef<ValueId> operands, ArrayRef<std::vector<int32_t>> linearSets) {
  RuleBuilder rule(operands.size(), 1);
  std::vector<std::vector<int64_t>> shapes = shapesOf(problem, operands);
  SmallVector<std::optional<FactorId>> factors;
  std::vector<int64_t> shape = broadcast(rule, shapes, factors);
  for (const std::vector<int32_t> &set : linearSets)
    rule.addLinear(set);
  rule.rule.form = Form::Map;
  return op(rule.rule, operands, shape);
}

ValueId GraphBuilder::normalize(ArrayRef<ValueId> operands, int64_t times) {
  RuleBuilder rule(operands.size(), 1);
  std::vector<std::vector<int64_t>> shapes = shapesOf(problem, operands);
  SmallVector<std::optional<FactorId>> factors;
  std::vector<int64_t> shape = broadcast(rule, shapes, factors);
  InnerCost cost;
  cost.kind = InnerCost::Kind::AllReduce;
  cost.factors = {*factors.back()};
  cost.times = times;
  for (const std::optional<FactorId> &factor : ArrayRef(factors).drop_back())
    if (factor)
      cost.elementFactors.push_back(*factor);
  rule.addInner(cost);
  rule.rule.orderedFactors = {*factors.back()};
  rule.rule.form = Form::Row;
  rule.rule.rowDims = {static_cast<int64_t>(shape.size()) - 1};
  return op(rule.rule, operands, shape);
}

ValueId GraphBuilder::move(RuleBuilder &rule, ValueId operand, ArrayRef<int64_t> shape) {
  for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min})
    rule.addLinear({0}, kind);
  rule.rule.isMovement = true;
  rule.rule.form = Form::Movement;
  return op(rule.rule, operand, shape);
}

ValueId GraphBuilder::transpose(ValueId operand, ArrayRef<unsigned> permutation) {
  RuleBuilder rule(1, 1);
  SmallVector<std::optional<FactorId>> factors;
  for (int64_t extent : problem.shape(operand)) {
    factors.push_back(rule.addParallel(extent));
    rule.operandDim(0, factors.back());
  }
  std::vector<int64_t> shape;
  for (unsigned dim : permutation) {
    rule.resultDim(0, factors[dim]);
    shape.push_back(problem.shape(operand)[dim]);
  }
  return move(rule, operand, shape);
}

ValueId GraphBuilder::splitDim(ValueId operand, unsigned dim, int64_t major) {
  RuleBuilder rule(1, 1);
  rule.rule.isAlias = true;
  std::vector<int64_t> shape;
  for (auto [index, extent] : enumerate(problem.shape(operand))) {
    SmallVector<int64_t> parts{extent};
    if (index == dim)
      parts = {major, extent / major};
    SmallVector<FactorId> factors;
    for (int64_t part : parts) {
      shape.push_back(part);
      std::optional<FactorId> factor = rule.addParallel(part);
      rule.resultDim(0, factor);
      if (factor)
        factors.push_back(*factor);
    }
    rule.operandDim(0, factors);
  }
  return move(rule, operand, shape);
}

ValueId GraphBuilder::mergeDims(ValueId operand, unsigned dim) {
  RuleBuilder rule(1, 1);
  rule.rule.isAlias = true;
  std::vector<int64_t> shape;
  SmallVector<FactorId> merged;
  for (auto [index, extent] : enumerate(problem.shape(operand))) {
    std::optional<FactorId> factor = rule.addParallel(extent);
    rule.operandDim(0, factor);
    if (index != dim && index != dim + 1) {
      rule.resultDim(0, factor);
      shape.push_back(extent);
      continue;
    }
    if (factor)
      merged.push_back(*factor);
    if (index == dim)
      continue;
    rule.resultDim(0, merged);
    shape.push_back(extent * problem.shape(operand)[dim]);
  }
  return move(rule, operand, shape);
}

//===----------------------------------------------------------------------===//
// A transformer
//===----------------------------------------------------------------------===//

void buildTransformer(GraphBuilder &graph, unsigned numLayers, int64_t batch, int64_t sequence, int64_t hidden,
                      int64_t heads) {
  const std::vector<int32_t> both{0, 1}, first{0}, second{1};
  int64_t inner = 4 * hidden;
  ValueId x = graph.input({batch, sequence, hidden}, {{0}, {}, {}});
  ValueId mask = graph.input({1, 1, sequence, sequence}), scalar = graph.input({});
  auto linear = [&](ValueId in, int64_t from, int64_t to, const DimAxes &weightDims, const DimAxes &biasDims) {
    ValueId weight = graph.parameter({from, to}, weightDims), bias = graph.parameter({to}, biasDims);
    return graph.add(graph.einsum("bsk,kj->bsj", {in, weight}), bias);
  };
  auto norm = [&](ValueId in) {
    return graph.normalize({in, graph.parameter({hidden}), graph.parameter({hidden})}, 2);
  };
  auto head = [&](ValueId in) {
    ValueId projected = linear(in, hidden, hidden, {{}, {1}}, {{1}});
    return graph.transpose(graph.splitDim(projected, 2, heads), {0, 2, 1, 3});
  };
  for (unsigned layer = 0; layer < numLayers; ++layer) {
    ValueId normed = norm(x);
    ValueId query = head(normed), key = head(normed), value = head(normed);
    ValueId scores = graph.pointwise({graph.einsum("bhqd,bhkd->bhqk", {query, key}), scalar}, first);
    ValueId weights = graph.normalize(graph.add(scores, mask), 2);
    ValueId context = graph.transpose(graph.einsum("bhqk,bhkd->bhqd", {weights, value}), {0, 2, 1, 3});
    ValueId attended = linear(graph.mergeDims(context, 2), hidden, hidden, {{1}, {}}, {{}});
    x = graph.add(x, attended);
    ValueId up = linear(norm(x), hidden, inner, {{}, {1}}, {{1}});
    ValueId gate = graph.add(graph.pointwise(graph.pointwise({up, scalar}, first)), scalar);
    ValueId gelu = graph.pointwise({graph.pointwise({up, gate}, {first, second}), scalar}, {first, second});
    x = graph.add(x, linear(gelu, inner, hidden, {{1}, {}}, {{}}));
  }
  graph.problem.addOutput(x);
}

} // namespace cleave::spmd
