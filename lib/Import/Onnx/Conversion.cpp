//===- Conversion.cpp - casts and quantized types -------------------------===//
//
// Scale and zero point are scalars, vectors along an axis, or (opset 21 on) one per block of elements along it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static bool isFloatOf(Type type, unsigned most) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= most; }

/// Only floats of 8 bits saturate, and only powers of two have a choice of rounding.
static Value castTo(NodeContext &node, Value value, Type type) {
  bool saturates = node.boolAttr("saturate", true);
  StringRef mode = node.stringAttr("round_mode", "up");
  std::optional<nn::Rounding> rounding = nn::symbolizeRounding(mode);
  if (!node.check(rounding.has_value(), "attribute 'round_mode' is '" + mode + "', expected up, down or nearest") ||
      node.failed() || !value || !type)
    return {};
  if (NodeContext::elementType(value) == type || !isFloatOf(type, 8) || type.getIntOrFloatBitWidth() < 8)
    return node.cast(value, type);
  bool isPower = isa<Float8E8M0FNUType>(type);
  auto tensorType = RankedTensorType::get(NodeContext::shape(value), type);
  return node.createTyped<nn::CastOp>(tensorType, value, saturates, isPower ? *rounding : nn::Rounding::Nearest, false);
}

static void importCast(NodeContext &node) { node.result(0, castTo(node, node.operand(0), node.typeAttr("to"))); }

static void importCastLike(NodeContext &node) {
  node.result(0, castTo(node, node.operand(0), NodeContext::elementType(node.operand(1))));
}

/// Integers of one width have the same bits, whether or not they have a sign: a cast, which is known to keep numbers.
static void importBitCast(NodeContext &node) {
  Type from = NodeContext::elementType(node.operand(0)), to = node.typeAttr("to");
  if (node.failed() || from == to)
    return node.result(0, node.operand(0));
  unsigned width = from.getIntOrFloatBitWidth() == 1 ? 8 : from.getIntOrFloatBitWidth(); // a bool takes a byte
  unsigned wanted = to.getIntOrFloatBitWidth() == 1 ? 8 : to.getIntOrFloatBitWidth();
  if (!node.check(width == wanted, "has elements of " + Twine(width) + " bits, expected " + Twine(wanted)))
    return;
  Value input = node.operand(0);
  bool isIntegers = isa<IntegerType>(from) && isa<IntegerType>(to) && !from.isInteger(1) && !to.isInteger(1);
  if (isIntegers)
    return node.result(0, node.cast(input, to));
  if (!node.check(width >= 8, "of less than a byte is supported between integers only"))
    return;
  node.result(0, node.createTyped<nn::BitcastOp>(RankedTensorType::get(NodeContext::shape(input), to), input));
}

namespace {
struct Scaling {
  Value scale, zero;
  /// Along which the scale varies.
  int64_t axis = 0;
  /// How many elements along the axis have one scale; 0 without blocks.
  int64_t block = 0;
};
} // namespace

/// The shape of the scale says which of the three it is. One along an axis is dim 1 before opset 13, and a choice
/// after.
static std::optional<Scaling> readScaling(NodeContext &node) {
  Scaling scaling{node.operand(1), node.operand(2)};
  Shape shape = NodeContext::shape(node.operand(0)), scaleShape = NodeContext::shape(scaling.scale);
  int64_t rank = shape.size(), axis = 1, block = 0;
  if (node.getOpset() >= 13) {
    axis = node.intAttr("axis", 1);
  }
  if (node.getOpset() >= 21)
    block = node.intAttr("block_size", 0);
  // onnxruntime's quantizer writes vectors of one scale beside scalars.
  if (scaling.zero && ShapedType::getNumElements(scaleShape) == 1 &&
      ShapedType::getNumElements(NodeContext::shape(scaling.zero)) == 1)
    scaling.zero = node.reshape(scaling.zero, scaleShape);
  if (node.failed() || !node.check(!scaling.zero || NodeContext::shape(scaling.zero) == scaleShape,
                                   "scale and zero point differ in shape"))
    return std::nullopt;
  // Powers of two are scales that nothing divides by as they are.
  if (isFloatOf(NodeContext::elementType(scaling.scale), 8))
    scaling.scale = node.cast(scaling.scale, node.getBuilder().getF32Type());
  if (ShapedType::getNumElements(scaleShape) == 1 && scaleShape.size() <= 1) {
    scaling.scale = node.reshape(scaling.scale, {});
    scaling.zero = node.reshape(scaling.zero, {});
    return scaling;
  }
  scaling.axis = node.axis(axis, rank);
  if (node.failed())
    return std::nullopt;
  bool isVector = scaleShape.size() == 1 && (block == 0 || rank > 1);
  if (isVector)
    return node.check(scaleShape[0] == shape[scaling.axis], "the scale is not as long as dim " + Twine(scaling.axis))
               ? std::optional(scaling)
               : std::nullopt;
  Ints blocked(shape);
  if (!node.check(block > 0, "a scale of " + Twine(scaleShape.size()) + " dims needs 'block_size'"))
    return std::nullopt;
  block = std::min(block, std::max<int64_t>(shape[scaling.axis], 1)); // a block may be longer than the dim
  blocked[scaling.axis] = (shape[scaling.axis] + block - 1) / block;
  if (!node.check(scaleShape == Shape(blocked), "the scale does not have one element per block"))
    return std::nullopt;
  scaling.block = block;
  return scaling;
}

/// A zero point of floats may be 0 alone: it is dropped where that is known.
static Value dropZero(NodeContext &node, Value zero) {
  if (!zero || !isFloatOf(NodeContext::elementType(zero), 8))
    return zero;
  std::optional<reference::Tensor> known = node.tryConstantOf(zero);
  bool isZero = known && llvm::all_of(known->getBytes(), [](char byte) { return byte == 0; });
  return isZero ? Value() : zero;
}

/// Quotients are of the type that the model asks for, else of f32: narrow ones are rounded to it before they are to an integer.
static Value divideFirst(NodeContext &node, Scaling &scaling) {
  Value x = node.operand(0);
  if (node.getOpset() < 23)
    return x;
  if (node.intAttr("precision", 0) == 0)
    return x;
  Type precision = node.typeAttr("precision");
  if (node.failed() || !node.check(isa<FloatType>(precision), "attribute 'precision' is not a floating-point type"))
    return {};
  if (precision.getIntOrFloatBitWidth() >= 32)
    return node.cast(x, precision);
  // What is divided already has scales of 1.
  Value scale = node.cast(scaling.scale, precision);
  if (!node.check(!scaling.block, "attribute 'precision' is " + Twine(precision.getIntOrFloatBitWidth()) +
                                      " bits, which is not supported with blocks"))
    return {};
  Ints aligned(NodeContext::shape(x).size(), 1);
  if (!NodeContext::shape(scale).empty())
    aligned[scaling.axis] = NodeContext::shape(scale)[0];
  Value quotient = node.create<nn::DivOp>(node.cast(x, precision), node.reshape(scale, aligned));
  scaling.scale = node.broadcast(node.scalar(precision, 1), NodeContext::shape(scaling.scale));
  return quotient;
}

static void importQuantizeLinear(NodeContext &node) {
  std::optional<Scaling> scaling = readScaling(node);
  // The zero point decides what is quantized to, then the attribute, then the default of ONNX.
  Type type = node.getBuilder().getIntegerType(8, /*isSigned=*/false);
  bool overflows = !node.boolAttr("saturate", true);
  if (node.getOpset() >= 21 && node.hasAttr("output_dtype") && node.intAttr("output_dtype") != 0)
    type = node.typeAttr("output_dtype");
  if (!scaling || node.failed())
    return;
  if (scaling->zero)
    type = NodeContext::elementType(scaling->zero);
  bool isInteger = isa<IntegerType>(type) && type.getIntOrFloatBitWidth() <= 16 && !type.isInteger(1);
  if (!node.check(isInteger || (isFloatOf(type, 8) && !isa<Float8E8M0FNUType>(type)),
                  "quantizes to a type that is not supported"))
    return;
  Value x = divideFirst(node, *scaling);
  auto tensorType = RankedTensorType::get(NodeContext::shape(node.operand(0)), type);
  node.result(0, node.createTyped<nn::QuantizeOp>(tensorType, x, scaling->scale, dropZero(node, scaling->zero),
                                                  scaling->axis, scaling->block, overflows && isFloatOf(type, 8)));
}

static void importDequantizeLinear(NodeContext &node) {
  std::optional<Scaling> scaling = readScaling(node);
  if (!scaling)
    return;
  Value x = node.operand(0);
  Type type = NodeContext::elementType(scaling->scale);
  if (node.getOpset() >= 23 && node.hasAttr("output_dtype") && node.intAttr("output_dtype") != 0)
    type = node.typeAttr("output_dtype");
  if (node.failed())
    return;
  auto tensorType = RankedTensorType::get(NodeContext::shape(x), type);
  node.result(0, node.createTyped<nn::DequantizeOp>(tensorType, x, scaling->scale, dropZero(node, scaling->zero),
                                                    scaling->axis, scaling->block));
}

/// Operands: scale and zero point of the result, then each part with its own.
static void importQLinearConcat(NodeContext &node) {
  SmallVector<Value> parts;
  if (!node.check(node.getNumOperands() % 3 == 2,
                  "has " + Twine(node.getNumOperands()) + " operands, expected two and then three for each part"))
    return;
  for (unsigned index = 2; index < node.getNumOperands(); index += 3) {
    Value scale = node.reshape(node.operand(index + 1), {}), zero = node.reshape(node.operand(index + 2), {});
    auto type = RankedTensorType::get(NodeContext::shape(node.operand(index)), node.getBuilder().getF32Type());
    parts.push_back(node.createTyped<nn::DequantizeOp>(type, node.operand(index), scale, zero, 0));
  }
  if (node.failed())
    return;
  Value whole = node.concat(parts, node.axis(node.intAttr("axis"), NodeContext::rank(parts.front())));
  Value zero = node.reshape(node.operand(1), {});
  if (node.failed())
    return;
  auto type = RankedTensorType::get(NodeContext::shape(whole), NodeContext::elementType(zero));
  node.result(0, node.createTyped<nn::QuantizeOp>(type, whole, node.reshape(node.operand(0), {}), zero, 0));
}

void cleave::onnx::registerConversion(Registry &registry) {
  registry.add("BitCast", 26, {1, 1}, importBitCast);
  registry.add("Cast", 6, {1, 1}, importCast).follow(findBroadcastRows);
  registry.add("CastLike", 15, {2, 2}, importCastLike);
  registry.add("DequantizeLinear", 10, {2, 3}, importDequantizeLinear);
  registry.add("com.microsoft.QLinearConcat", {5, Arity::kAny}, importQLinearConcat);
  registry.add("QuantizeLinear", 10, {2, 3}, importQuantizeLinear);
}
