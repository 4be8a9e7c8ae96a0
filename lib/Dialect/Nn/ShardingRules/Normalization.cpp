//===- Normalization.cpp - norms: statistics are all-reduced --------------===//
//
// The normalized dims may be cut: then each rank's moments are all-reduced, one number per element of the other dims
// and moment, and the dims count as ordered. Scales and biases go with the dims that they broadcast along.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// A norm over the dims from `dim` on, with `times` moments of one value per element of the other dims.
static ShardingRule normRule(Operation *op, int64_t dim, int64_t times) {
  OpRule rule(op);
  FactorList dims = rule.addParallelDims(getShape(op->getOperand(0)));
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    rule.alignOperand(index, dims);
  rule.resultDims(0, dims);
  ArrayRef<MaybeFactor> all(dims);
  rule.addStatistics(all.drop_front(dim), times, all.take_front(dim), statisticBytes(op->getOperand(0)));
  return rule.finish();
}

ShardingRule LayerNormOp::getShardingRule() { return normRule(*this, getDim(), 2); }
ShardingRule RmsNormOp::getShardingRule() { return normRule(*this, getDim(), 1); }

ShardingRule BatchNormOp::getShardingRule() {
  OpRule rule(*this);
  FactorList dims = rule.addParallelDims(getShape(getInput()));
  rule.operandDims(0, dims).resultDims(0, dims);
  for (unsigned index = 1; index < getNumOperands(); ++index)
    rule.operandDim(index, dims[1]);
  return rule.finish();
}

// The channel dim is [group, channel of the group]; only the latter and the spatial dims take part in the statistics.
ShardingRule GroupNormOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> shape = getShape(getInput());
  MaybeFactor batch = rule.addParallel(shape[0]);
  MaybeFactor group = rule.addParallel(getGroups());
  MaybeFactor channel = rule.addParallel(shape[1] / getGroups());
  FactorList spatial = rule.addParallelDims(shape.drop_front(2));
  SmallVector<FactorId, 4> channels = OpRule::present({group, channel});
  rule.operandDim(0, batch).operandDim(0, channels);
  rule.operandDims(0, spatial);
  rule.operandDim(1, channels).operandDim(2, channels);
  rule.resultDim(0, batch).resultDim(0, channels);
  rule.resultDims(0, spatial);
  FactorList reduced(spatial);
  reduced.push_back(channel);
  rule.addStatistics(reduced, 2, {batch, group}, statisticBytes(getInput()));
  return rule.finish();
}

// Each channel looks at its neighbors, of which a rank gets those that are missing. Of an even number, the odd one comes after.
ShardingRule LrnOp::getShardingRule() {
  OpRule rule(*this);
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    if (dim == 1 && getSize() > 1) {
      SlidingDim slide;
      slide.low = -std::min<int64_t>((getSize() - 1) / 2, extent);
      slide.high = std::min<int64_t>(getSize() / 2, extent);
      OpRule::Windowed factors = rule.addWindowDim(extent, extent, slide);
      rule.operandDim(0, factors.input).resultDim(0, factors.result);
      continue;
    }
    MaybeFactor factor = rule.addParallel(extent);
    rule.operandDim(0, factor).resultDim(0, factor);
  }
  rule.addExchange();
  return rule.finish();
}
