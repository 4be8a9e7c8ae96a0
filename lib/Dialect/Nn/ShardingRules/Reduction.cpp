//===- Reduction.cpp - along one or more dims -----------------------------===//
//
// Dims that are not reduced are parallel. A reduced dim makes the result of a plain reduction partial; softmax keeps
// the data where it is and all-reduces its statistics.
// The search for an index does likewise.
//
//===----------------------------------------------------------------------===//
#include "Rules.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

/// Bytes of one element.
static int64_t bytesOf(Value value) { return elementTypeOf(value).getIntOrFloatBitWidth() / 8; }

/// How partial results of a reduction combine; a mean is a sum of means scaled by each rank. An integer mean rounds.
static std::optional<ReductionKind> getPartialKind(ReduceOp op) {
  switch (op.getKind()) {
  case ReduceKind::Sum:
    return ReductionKind::Sum;
  case ReduceKind::Mean:
    if (!isa<FloatType>(elementTypeOf(op.getInput())))
      return std::nullopt;
    return ReductionKind::Sum;
  case ReduceKind::Prod:
    return ReductionKind::Prod;
  case ReduceKind::Max:
    return ReductionKind::Max;
  case ReduceKind::Min:
    return ReductionKind::Min;
  }
  return std::nullopt;
}

ShardingRule ReduceOp::getShardingRule() {
  OpRule rule(*this);
  std::optional<ReductionKind> kind = getPartialKind(*this);
  for (auto [dim, extent] : llvm::enumerate(shapeOf(getInput()))) {
    bool isReduced = llvm::is_contained(getDims(), static_cast<int64_t>(dim));
    MaybeFactor factor = !isReduced ? rule.addParallel(extent)
                         : kind     ? rule.addReduction(extent, *kind)
                                    : rule.addWhole(extent);
    rule.operandDim(0, factor);
    if (!isReduced || getKeepDims())
      rule.resultDim(0, isReduced ? std::nullopt : factor);
  }
  if (kind)
    rule.addLinear(0, *kind);
  return rule.finish("a mean of integers rounds once, after the whole sum");
}

static ShardingRule softmaxRule(Operation *op, int64_t dim) {
  OpRule rule = alignedRule(op);
  const TensorFactors &dims = rule.rule.results[0];
  if (dims[dim].empty())
    return rule.finish();
  FactorList others;
  for (auto [index, factors] : llvm::enumerate(dims))
    if (static_cast<int64_t>(index) != dim && !factors.empty())
      others.push_back(factors.front());
  // The maximum and the sum of the exponentials.
  rule.addStatistics(MaybeFactor(dims[dim].front()), 2, others, statisticBytes(op->getOperand(0)));
  return rule.finish();
}

ShardingRule SoftmaxOp::getShardingRule() { return softmaxRule(*this, getDim()); }
ShardingRule LogSoftmaxOp::getShardingRule() { return softmaxRule(*this, getDim()); }

// Each rank finds its own extremum; the ranks then agree on the value and on the index of whoever has it.
ShardingRule ArgReduceOp::getShardingRule() {
  OpRule rule(*this);
  FactorList kept;
  MaybeFactor searched;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(getInput()))) {
    bool isReduced = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    MaybeFactor factor = rule.addParallel(extent);
    rule.operandDim(0, factor);
    (isReduced ? searched : kept.emplace_back()) = factor;
    if (!isReduced || getKeepDims())
      rule.resultDim(0, isReduced ? std::nullopt : factor);
  }
  rule.addStatistics(searched, 1, kept, bytesOf(getInput()));
  rule.addStatistics(searched, 1, kept, bytesOf(getResult()));
  return rule.finish();
}

ShardingRule CumsumOp::getShardingRule() {
  OpRule rule(*this);
  FactorList dims;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(getInput())))
    dims.push_back(static_cast<int64_t>(dim) == static_cast<int64_t>(getDim()) ? rule.addWhole(extent)
                                                                               : rule.addParallel(extent));
  rule.operandDims(0, dims).resultDims(0, dims).addLinear(0);
  return rule.finish();
}

ShardingRule TopKOp::getShardingRule() {
  OpRule rule(*this);
  for (auto [dim, extent] : llvm::enumerate(shapeOf(getInput()))) {
    bool isSorted = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    MaybeFactor factor = isSorted ? rule.addWhole(extent) : rule.addParallel(extent);
    MaybeFactor kept = isSorted ? rule.addWhole(getK()) : factor;
    rule.operandDim(0, factor).resultDim(0, kept).resultDim(1, kept);
  }
  return rule.finish("the largest elements of the only dim may all lie on one rank");
}
