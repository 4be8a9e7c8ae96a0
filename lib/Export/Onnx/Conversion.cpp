//===- Conversion.cpp - between element types -----------------------------===//
//
// Integers of 4 and 2 bits are bytes with the same values here (Elements.h): casts to them take low bits, and what is dequantized is the
// same. Cast has a `saturate` for floats of 8 bits alone.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "Elements.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static bool isSmallFloat(Type element) { return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8; }

/// The low bits of integers, in bytes, with their sign where they have one: of 4 bits, `((x & 15) ^ 8) - 8`.
static std::string takeLowBits(GraphBuilder &out, const std::string &x, IntegerType to) {
  Type byte = IntegerType::get(to.getContext(), 8, IntegerType::Unsigned), wide = IntegerType::get(to.getContext(), 32);
  int64_t count = int64_t(1) << to.getWidth();
  std::string low = out.binary("BitwiseAnd", out.cast(x, byte), out.scalar(double(count - 1), byte));
  if (to.isUnsigned())
    return low;
  std::string sign = out.scalar(double(count / 2), wide);
  std::string value = out.binary("Sub", out.binary("BitwiseXor", out.cast(low, wide), sign), sign);
  return out.cast(value, IntegerType::get(to.getContext(), 8));
}

static Written writeCast(nn::CastOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  RankedTensorType type = getResultType(op);
  Type from = op.getInput().getType().getElementType(), to = type.getElementType();
  if (op.getBits() && !to.isInteger())
    return op.emitOpError() << "of bits to " << to << " has no form in ONNX's opset " << kOpset;
  if (from == to)
    return x;
  if (op.getSaturate() && !isSmallFloat(to) && !to.isInteger(1))
    return op.emitOpError() << "from " << from << " to " << to << " that saturates has no form in ONNX";
  if (isSmallInteger(to))
    return takeLowBits(out, isa<FloatType>(from) ? out.cast(x, IntegerType::get(op.getContext(), 32)) : x,
                       cast<IntegerType>(to));
  std::vector<NodeAttribute> attributes = {{"to", *getDataType(to)}};
  if (isSmallFloat(to))
    attributes.emplace_back("saturate", op.getSaturate());
  return out.typeOf(x).getElementType() == to ? x : out.node("Cast", {x}, type, std::move(attributes));
}

/// A scalar's axis means nothing, but must be one.
template <typename OpT> static std::vector<NodeAttribute> getPlace(OpT op) {
  std::vector<NodeAttribute> attributes;
  if (cast<RankedTensorType>(op.getScale().getType()).getRank() > 0)
    attributes.emplace_back("axis", op.getDim());
  if (op.getBlock())
    attributes.emplace_back("block_size", op.getBlock());
  return attributes;
}

/// The type of the zero point is the result's, so there is always one.
static Written writeQuantize(nn::QuantizeOp op, GraphBuilder &out) {
  RankedTensorType type = getResultType(op);
  Type element = type.getElementType();
  if (element.isInteger() && element.getIntOrFloatBitWidth() > 16)
    return op.emitOpError() << "to " << element << " has no form in ONNX";
  std::vector<NodeAttribute> attributes = getPlace(op);
  if (isSmallFloat(element))
    attributes.emplace_back("saturate", !op.getOverflow());
  auto ofScale = cast<RankedTensorType>(op.getScale().getType()).clone(element);
  std::string zero = op.getZeroPoint() ? out(op.getZeroPoint()) : out.splat(0, getStoredType(ofScale));
  Names inputs = {out(op.getInput()), out(op.getScale()), zero};
  std::string result = out.node("QuantizeLinear", inputs, type, std::move(attributes));
  if (!isSmallInteger(element))
    return result;
  // A byte goes on where 4 bits end: numbers that stop there stop sooner.
  int64_t count = int64_t(1) << element.getIntOrFloatBitWidth(), low = element.isUnsignedInteger() ? 0 : -count / 2;
  Type stored = out.typeOf(result).getElementType();
  return out.node("Clip", {result, out.scalar(double(low), stored), out.scalar(double(low + count - 1), stored)}, type);
}

static Written writeDequantize(nn::DequantizeOp op, GraphBuilder &out) {
  Type element = op.getInput().getType().getElementType();
  if (element.getIntOrFloatBitWidth() > 16 && !element.isSignlessInteger(32))
    return op.emitOpError() << "of " << element << " has no form in ONNX";
  Names inputs = {out(op.getInput()), out(op.getScale())};
  if (op.getZeroPoint())
    inputs.push_back(out(op.getZeroPoint()));
  return out.node("DequantizeLinear", inputs, op.getType(), getPlace(op));
}

void cleave::onnx::registerConversion(WriterTable &table) {
  table.add<nn::CastOp>(writeCast);
  table.add<nn::QuantizeOp>(writeQuantize);
  table.add<nn::DequantizeOp>(writeDequantize);
}
