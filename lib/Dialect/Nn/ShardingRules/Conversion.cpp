//===- Conversion.cpp - casts between floats pass sums on -----------------===//
//
// Everything else rounds, truncates or saturates, and rounding the terms of a sum is not rounding the sum.
//
//===----------------------------------------------------------------------===//
#include "Rules.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

// Conversions between floats only: others truncate, saturate or wrap.
ShardingRule CastOp::getShardingRule() {
  bool isFloats = isa<FloatType>(elementTypeOf(getInput())) && isa<FloatType>(elementTypeOf(getResult()));
  return isFloats ? getPointwiseRule(*this, {{0}}) : getPointwiseRule(*this);
}

/// Quantised arithmetic rounds, and partial sums of small integers wrap: no operand may be partial.
static ShardingRule scaled(Operation *op, int64_t dim) {
  OpRule rule(op);
  FactorList dims = rule.addParallelDims(shapeOf(op->getResult(0)));
  rule.operandDims(0, dims).resultDims(0, dims);
  for (unsigned index = 1; index < op->getNumOperands(); ++index) {
    ArrayRef<int64_t> shape = shapeOf(op->getOperand(index));
    if (shape.size() == 1)
      rule.operandDim(index, shape[0] > 1 ? dims[dim] : std::nullopt);
  }
  return rule.finish();
}

ShardingRule QuantizeOp::getShardingRule() { return scaled(*this, getDim()); }
ShardingRule DequantizeOp::getShardingRule() { return scaled(*this, getDim()); }
