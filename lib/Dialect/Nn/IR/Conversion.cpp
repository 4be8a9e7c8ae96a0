//===- Conversion.cpp - casts and quantisation ----------------------------===//
//
// A conversion is the one op whose result type does not follow from its operands: both types are given, and only their
// shapes are compared.
//
//===----------------------------------------------------------------------===//
#include "TypeInference.h"

using namespace mlir;
using namespace cleave::nn;

LogicalResult CastOp::verify() {
  if (getInput().getType().getShape() != getResult().getType().getShape())
    return emitOpError() << "operand " << getInput().getType() << " and result " << getResult().getType()
                         << " have different shapes (C1)";
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : nullptr;
}

/// Constraints of quantize and dequantize; `quantized` is the side that the zero point belongs to.
template <typename Op> static LogicalResult verifyQuantization(Op op, Value quantized) {
  auto type = op.getInput().getType(), scale = op.getScale().getType();
  int64_t dim = op.getDim();
  if (type.getShape() != op.getResult().getType().getShape())
    return op.emitOpError() << "operand " << type << " and result " << op.getResult().getType()
                            << " have different shapes (C3)";
  if (scale.getRank() > 1)
    return op.emitOpError() << "scale is " << scale << ", expected a scalar or a vector (C1)";
  if (scale.getRank() == 1 && (dim < 0 || dim >= type.getRank()))
    return op.emitOpError() << "dim " << dim << " is not in [0, " << type.getRank() << ") (C1)";
  if (scale.getRank() == 1 && scale.getDimSize(0) != type.getDimSize(dim))
    return op.emitOpError() << "scale has " << scale.getDimSize(0) << " elements but dim " << dim << " has "
                            << type.getDimSize(dim) << " (C1)";
  if (!op.getZeroPoint())
    return success();
  auto zeroPoint = op.getZeroPoint().getType();
  if (zeroPoint.getShape() != scale.getShape() || zeroPoint.getElementType() != getElementType(quantized))
    return op.emitOpError() << "zero point is " << zeroPoint << ", expected the shape of the scale " << scale
                            << " and element type " << getElementType(quantized) << " (C2)";
  return success();
}

LogicalResult QuantizeOp::verify() { return verifyQuantization(*this, getResult()); }
LogicalResult DequantizeOp::verify() { return verifyQuantization(*this, getInput()); }
