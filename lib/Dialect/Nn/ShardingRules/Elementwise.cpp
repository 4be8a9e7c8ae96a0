//===- Elementwise.cpp - every dim is parallel; some ops are linear -------===//
//
// Operands broadcast, so a dim of size 1 has no factor. An op that is linear in an operand may take it partial: the
// sum over ranks commutes with the op.
//
//===----------------------------------------------------------------------===//
#include "Rules.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

/// An elementwise op that is linear in each of `operandSets` (all operands of one set partial together).
static ShardingRule pointwise(Operation *op, ArrayRef<SmallVector<int32_t, 2>> operandSets = {},
                              ReductionKind kind = ReductionKind::Sum) {
  OpRule rule = alignedRule(op);
  for (const SmallVector<int32_t, 2> &operands : operandSets)
    rule.addLinear(operands, kind);
  return rule.finish();
}

static bool isFloat(Value value) { return isa<FloatType>(elementTypeOf(value)); }

//===----------------------------------------------------------------------===//
// Linear in some operands
//===----------------------------------------------------------------------===//

ShardingRule NegOp::getShardingRule() { return pointwise(*this, {{0}}); }
ShardingRule AddOp::getShardingRule() { return pointwise(*this, {{0, 1}}); }
ShardingRule SubOp::getShardingRule() { return pointwise(*this, {{0, 1}}); }
ShardingRule MulOp::getShardingRule() { return pointwise(*this, {{0}, {1}}); }
ShardingRule MinOp::getShardingRule() { return pointwise(*this, {{0, 1}}, ReductionKind::Min); }
ShardingRule MaxOp::getShardingRule() { return pointwise(*this, {{0, 1}}, ReductionKind::Max); }

// Integer division rounds, so it does not commute with sums.
ShardingRule DivOp::getShardingRule() { return isFloat(getLhs()) ? pointwise(*this, {{0}}) : pointwise(*this); }

// Conversions between floats only: others truncate, saturate or wrap.
ShardingRule CastOp::getShardingRule() {
  return isFloat(getInput()) && isFloat(getResult()) ? pointwise(*this, {{0}}) : pointwise(*this);
}

// Bool has no sums; there a maximum (logical or) passes through instead.
ShardingRule SelectOp::getShardingRule() { return pointwise(*this, {{1, 2}}, getMaskKind(elementTypeOf(getResult()))); }

//===----------------------------------------------------------------------===//
// A scale per tensor or along one dim
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// No operand may be partial
//===----------------------------------------------------------------------===//

#define CLEAVE_POINTWISE(Op)                                                                                           \
  ShardingRule Op::getShardingRule() { return pointwise(*this); }

CLEAVE_POINTWISE(AbsOp)
CLEAVE_POINTWISE(SignOp)
CLEAVE_POINTWISE(SqrtOp)
CLEAVE_POINTWISE(ReciprocalOp)
CLEAVE_POINTWISE(ExpOp)
CLEAVE_POINTWISE(LogOp)
CLEAVE_POINTWISE(ErfOp)
CLEAVE_POINTWISE(SinOp)
CLEAVE_POINTWISE(CosOp)
CLEAVE_POINTWISE(TanOp)
CLEAVE_POINTWISE(AsinOp)
CLEAVE_POINTWISE(AcosOp)
CLEAVE_POINTWISE(AtanOp)
CLEAVE_POINTWISE(SinhOp)
CLEAVE_POINTWISE(CoshOp)
CLEAVE_POINTWISE(TanhOp)
CLEAVE_POINTWISE(AsinhOp)
CLEAVE_POINTWISE(AcoshOp)
CLEAVE_POINTWISE(AtanhOp)
CLEAVE_POINTWISE(FloorOp)
CLEAVE_POINTWISE(CeilOp)
CLEAVE_POINTWISE(RoundOp)
CLEAVE_POINTWISE(ReluOp)
CLEAVE_POINTWISE(SigmoidOp)
CLEAVE_POINTWISE(SiluOp)
CLEAVE_POINTWISE(SoftplusOp)
CLEAVE_POINTWISE(BitwiseNotOp)
CLEAVE_POINTWISE(NotOp)
CLEAVE_POINTWISE(IsNanOp)
CLEAVE_POINTWISE(IsInfOp)
CLEAVE_POINTWISE(GeluOp)
CLEAVE_POINTWISE(LeakyReluOp)
CLEAVE_POINTWISE(EluOp)
CLEAVE_POINTWISE(HardSigmoidOp)
CLEAVE_POINTWISE(HardSwishOp)
CLEAVE_POINTWISE(PowOp)
CLEAVE_POINTWISE(PreluOp)
CLEAVE_POINTWISE(BitwiseAndOp)
CLEAVE_POINTWISE(BitwiseOrOp)
CLEAVE_POINTWISE(BitwiseXorOp)
CLEAVE_POINTWISE(AndOp)
CLEAVE_POINTWISE(OrOp)
CLEAVE_POINTWISE(XorOp)
CLEAVE_POINTWISE(EqOp)
CLEAVE_POINTWISE(LtOp)
CLEAVE_POINTWISE(LeOp)
CLEAVE_POINTWISE(GtOp)
CLEAVE_POINTWISE(GeOp)
CLEAVE_POINTWISE(ModOp)
CLEAVE_POINTWISE(ShiftOp)

#undef CLEAVE_POINTWISE
