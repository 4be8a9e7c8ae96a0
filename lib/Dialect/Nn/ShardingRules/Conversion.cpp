//===- Conversion.cpp - casts between floats pass sums on -----------------===//
//
// Everything else rounds, truncates or saturates, and rounding the terms of a sum is not rounding the sum.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

// Conversions between floats only: others truncate, saturate or wrap.
ShardingRule CastOp::getShardingRule() {
  auto isWide = [](Value value) {
    return isa<FloatType>(getElementType(value)) && getElementType(value).getIntOrFloatBitWidth() > 8;
  };
  bool isFloats = isWide(getInput()) && isWide(getResult());
  return isFloats ? getPointwiseRule(*this, {{0}}) : getPointwiseRule(*this);
}

// Bits of a term are not a term of the bits.
ShardingRule BitcastOp::getShardingRule() { return getPointwiseRule(*this); }

/// Blocks of `block` along `dim` are cut, and their scales with them, but not what is inside of them; nothing is where they do not fill
/// the dim.
static ShardingRule scaledByBlocks(Operation *op, int64_t dim, int64_t block) {
  OpRule rule(op);
  for (auto [index, extent] : llvm::enumerate(getShape(op->getResult(0)))) {
    bool isBlocked = int64_t(index) == dim, isFull = extent % block == 0;
    SmallVector<FactorId, 2> factors, scales;
    if (!isBlocked || isFull) {
      factors = OpRule::present({rule.addParallel(isBlocked ? extent / block : extent)});
      scales = factors;
    }
    if (isBlocked) {
      llvm::append_range(factors, OpRule::present({rule.addReplicated(isFull ? block : extent)}));
      if (!isFull)
        scales = OpRule::present({rule.addReplicated(getShape(op->getOperand(1))[dim])});
    }
    rule.operandDim(0, factors).resultDim(0, factors);
    for (unsigned operand = 1; operand < op->getNumOperands(); ++operand)
      rule.operandDim(operand, scales);
  }
  return rule.finish();
}

/// Quantized arithmetic rounds, and partial sums of small integers wrap: no operand may be partial.
static ShardingRule scaled(Operation *op, int64_t dim, int64_t block) {
  if (block)
    return scaledByBlocks(op, dim, block);
  OpRule rule(op);
  FactorList dims = rule.addParallelDims(getShape(op->getResult(0)));
  rule.operandDims(0, dims).resultDims(0, dims);
  for (unsigned index = 1; index < op->getNumOperands(); ++index) {
    ArrayRef<int64_t> shape = getShape(op->getOperand(index));
    if (shape.size() == 1)
      rule.operandDim(index, shape[0] > 1 ? dims[dim] : std::nullopt);
  }
  return rule.finish();
}

ShardingRule QuantizeOp::getShardingRule() { return scaled(*this, getDim(), getBlock()); }
ShardingRule DequantizeOp::getShardingRule() { return scaled(*this, getDim(), getBlock()); }
