//===- Elementwise.cpp - every dim is parallel; some ops are linear -------===//
//
// Operands broadcast, so a dim of size 1 has no factor. An op that is linear in an operand may take it partial: the
// sum over ranks commutes with the op. The rules of all other elementwise ops come from TableGen (`Nn_Pointwise`).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

ShardingRule NegOp::getShardingRule() { return getPointwiseRule(*this, {{0}}); }
ShardingRule AddOp::getShardingRule() { return getPointwiseRule(*this, {{0, 1}}); }
ShardingRule SubOp::getShardingRule() { return getPointwiseRule(*this, {{0, 1}}); }
ShardingRule MulOp::getShardingRule() { return getPointwiseRule(*this, {{0}, {1}}); }
ShardingRule MinOp::getShardingRule() { return getPointwiseRule(*this, {{0, 1}}, ReductionKind::Min); }
ShardingRule MaxOp::getShardingRule() { return getPointwiseRule(*this, {{0, 1}}, ReductionKind::Max); }

// Integer division rounds, so it does not commute with sums.
ShardingRule DivOp::getShardingRule() {
  return isa<FloatType>(getElementType(getLhs())) ? getPointwiseRule(*this, {{0}}) : getPointwiseRule(*this);
}

// Bool has no sums; there a maximum (logical or) passes through instead.
ShardingRule SelectOp::getShardingRule() {
  return getPointwiseRule(*this, {{1, 2}}, getMaskKind(getElementType(getResult())));
}
