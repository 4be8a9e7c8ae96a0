//===- Conversion.cpp - casts and quantization ----------------------------===//
//
// A conversion is the one op whose result type does not follow from its operands: both types are given, and only their
// shapes are compared.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Composer.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

LogicalResult CastOp::verify() {
  if (getInput().getType().getShape() != getResult().getType().getShape())
    return emitOpError() << "operand " << getInput().getType() << " and result " << getResult().getType()
                         << " have different shapes (C1)";
  Type from = getElementType(getInput()), to = getElementType(getResult());
  if (getRounding() != Rounding::Nearest && !isa<Float8E8M0FNUType>(to))
    return emitOpError() << "rounds " << stringifyRounding(getRounding())
                         << ", which is for results of f8E8M0FNU alone, not " << to << " (C2)";
  if (getBits() && (!from.isUnsignedInteger(8) || to.getIntOrFloatBitWidth() > 8 || to.isInteger(1)))
    return emitOpError() << "takes the bits of " << from << " for " << to
                         << ", expected ui8 and a type of 8 bits at most (C3)";
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : nullptr;
}

LogicalResult BitcastOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape())
    return emitOpError() << "operand " << from << " and result " << to << " have different shapes (C1)";
  // A bool lies in memory as a byte.
  auto countBits = [](Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); };
  unsigned bits = countBits(from.getElementType()), wanted = countBits(to.getElementType());
  if (bits != wanted || bits % 8)
    return emitOpError() << "elements of " << from << " and " << to << " take " << bits << " and " << wanted
                         << " bits, expected equally many whole bytes (C2)";
  return success();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : nullptr;
}

template <typename Op> static LogicalResult verifyZeroPoint(Op op, Value quantized) {
  if (!op.getZeroPoint())
    return success();
  auto scale = op.getScale().getType();
  auto zeroPoint = op.getZeroPoint().getType();
  if (zeroPoint.getShape() != scale.getShape() || zeroPoint.getElementType() != getElementType(quantized))
    return op.emitOpError() << "zero point is " << zeroPoint << ", expected the shape of the scale " << scale
                            << " and element type " << getElementType(quantized) << " (C2)";
  return success();
}

/// The scale has the operand's shape, but one element per block along the dim.
template <typename Op> static LogicalResult verifyBlocks(Op op) {
  auto type = op.getInput().getType(), scale = op.getScale().getType();
  int64_t dim = op.getDim(), block = op.getBlock();
  if (dim < 0 || dim >= type.getRank())
    return op.emitOpError() << "dim " << dim << " is not in [0, " << type.getRank() << ") (C1)";
  SmallVector<int64_t> wanted(type.getShape());
  wanted[dim] = llvm::divideCeil(wanted[dim], block);
  if (scale.getShape() == ArrayRef(wanted))
    return success();
  return op.emitOpError() << "scale is " << scale << ", expected "
                          << RankedTensorType::get(wanted, scale.getElementType()) << " for blocks of " << block
                          << " along dim " << dim << " of " << type << " (C1)";
}

/// Constraints of quantize and dequantize; `quantized` is the side that the zero point belongs to.
template <typename Op> static LogicalResult verifyQuantization(Op op, Value quantized) {
  auto type = op.getInput().getType(), scale = op.getScale().getType();
  int64_t dim = op.getDim();
  if (type.getShape() != op.getResult().getType().getShape())
    return op.emitOpError() << "operand " << type << " and result " << op.getResult().getType()
                            << " have different shapes (C3)";
  int64_t block = op.getBlock();
  if (block < 0 || (block == 0 && scale.getRank() > 1))
    return op.emitOpError() << "scale is " << scale << " and block " << block
                            << ", expected a scalar, a vector, or elements for blocks of at least 1 (C1)";
  if (block > 0)
    return failed(verifyBlocks(op)) ? failure() : verifyZeroPoint(op, quantized);
  if (scale.getRank() == 1 && (dim < 0 || dim >= type.getRank()))
    return op.emitOpError() << "dim " << dim << " is not in [0, " << type.getRank() << ") (C1)";
  if (scale.getRank() == 1 && scale.getDimSize(0) != type.getDimSize(dim))
    return op.emitOpError() << "scale has " << scale.getDimSize(0) << " elements but dim " << dim << " has "
                            << type.getDimSize(dim) << " (C1)";
  return verifyZeroPoint(op, quantized);
}

LogicalResult QuantizeOp::verify() { return verifyQuantization(*this, getResult()); }
LogicalResult DequantizeOp::verify() { return verifyQuantization(*this, getInput()); }

std::optional<int64_t> CastOp::followDim(int64_t dim) { return dim; }

/// Each may have one scale, or those of its blocks; one for each of its rows or columns has no op.
Value DequantizeOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool> isStacked, int64_t count) {
  bool hasBlocks = getBlock() > 0, hasZeroPoint = operands.size() > 2;
  bool fits = hasBlocks ? isStacked[1] : !isStacked[1] || getShape(operands[1]).size() == 1;
  if (!isStacked[0] || !fits || (hasZeroPoint && isStacked[2] != isStacked[1]))
    return {};
  return compose.createTyped<DequantizeOp>(
      getStackedType(getResult(), count), operands[0], operands[1], hasZeroPoint ? operands[2] : Value(),
      isStacked[1] && !hasBlocks ? int64_t(0) : int64_t(getDim()) + 1, int64_t(getBlock()));
}
