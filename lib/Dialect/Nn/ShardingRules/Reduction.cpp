//===- Reduction.cpp - along one or more dims -----------------------------===//
//
// Dims that are not reduced are parallel. A reduced dim makes the result of a plain reduction partial; softmax keeps
// the data where it is and all-reduces its statistics.
// The search for an index does likewise; running sums and the k largest elements gather a little from every rank.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "Rules.h"
#include "cleave/Dialect/Nn/IR/GradientOf.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// How partial results combine. Nothing for a mean of integers, which rounds once, after the whole sum.
static std::optional<ReductionKind> getPartialKind(ReduceOp op) {
  if (op.getKind() == ReduceKind::Mean && !isa<FloatType>(getElementType(op.getInput())))
    return std::nullopt;
  return getReductionKind(op.getKind());
}

ShardingRule ReduceOp::getShardingRule() {
  OpRule rule(*this);
  std::optional<ReductionKind> kind = getPartialKind(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    bool isReduced = llvm::is_contained(getDims(), static_cast<int64_t>(dim));
    MaybeFactor factor = !isReduced ? rule.addParallel(extent)
                         : kind     ? rule.addReduction(extent, *kind)
                                    : rule.addReplicated(extent);
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
  // Of an attention's gradient the queries are in front of the keys.
  if (op->hasAttr(kGradientOfAttr) && dim > 0 && !dims[dim - 1].empty())
    rule.rule.held = dims[dim - 1].front();
  return rule.finish();
}

ShardingRule SoftmaxOp::getShardingRule() { return softmaxRule(*this, getDim()); }
ShardingRule LogSoftmaxOp::getShardingRule() { return softmaxRule(*this, getDim()); }

// Each rank finds its own extremum; the ranks then agree on the value and on the index of whoever has it.
ShardingRule ArgReduceOp::getShardingRule() {
  OpRule rule(*this);
  FactorList kept;
  MaybeFactor searched;
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    bool isReduced = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    MaybeFactor factor = rule.addParallel(extent);
    rule.operandDim(0, factor);
    (isReduced ? searched : kept.emplace_back()) = factor;
    if (!isReduced || getKeepDims())
      rule.resultDim(0, isReduced ? std::nullopt : factor);
  }
  rule.addStatistics(searched, 1, kept, bytesOf(getInput()));
  rule.addStatistics(searched, 1, kept, getSentIndexBytes(*this));
  return rule.finish();
}

int64_t cleave::nn::getSentIndexBytes(ArgReduceOp op) {
  // The index one past the end marks ranks that did not win.
  return getShape(op.getInput())[op.getDim()] < std::numeric_limits<int32_t>::max() ? 4 : 8;
}

/// The factors but that of `dim`.
static FactorList dropDim(FactorList dims, int64_t dim) {
  dims.erase(dims.begin() + dim);
  return dims;
}

// Each rank adds what the ranks before it have in total.
ShardingRule CumsumOp::getShardingRule() {
  OpRule rule = alignedRule(*this);
  FactorList dims = llvm::map_to_vector<4>(rule.rule.results[0], [](const DimFactors &factors) {
    return factors.empty() ? MaybeFactor() : MaybeFactor(factors.front());
  });
  bool isFloat = isa<FloatType>(getElementType(getInput()));
  rule.addLinear(0);
  rule.addGather(dims[getDim()], dropDim(dims, getDim()), 1,
                 isFloat ? statisticBytes(getInput()) : bytesOf(getInput()));
  return rule.finish();
}

// Each rank offers its k best elements and their positions (i32).
ShardingRule TopKOp::getShardingRule() {
  OpRule rule(*this);
  FactorList dims = rule.addParallelDims(getShape(getInput()));
  FactorList kept = dims;
  kept[getDim()] = rule.addReplicated(getK());
  rule.operandDims(0, dims).resultDims(0, kept).resultDims(1, kept);
  FactorList others = dropDim(dims, getDim());
  rule.addGather(dims[getDim()], others, getK(), bytesOf(getInput()));
  rule.addGather(dims[getDim()], others, getK(), sizeof(int32_t));
  return rule.finish();
}
