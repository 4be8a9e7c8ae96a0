//===- Conversion.cpp - casts and quantised types -------------------------===//
//
// Scale and zero point are scalars, vectors along an axis, or (opset 21 on) one per block of elements along it. Blocks
// have no op of their own: the scale is repeated to the input's shape and the formula spelled out.
//
//===----------------------------------------------------------------------===//
#include "NodeContext.h"
#include "Registry.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static void importCast(NodeContext &node) {
  node.ignoreAttr("saturate"); // These two are about float8, which no tensor has.
  node.ignoreAttr("round_mode");
  Type type = node.typeAttr("to");
  if (type)
    node.result(0, node.cast(node.operand(0), type));
}

static void importCastLike(NodeContext &node) {
  node.ignoreAttr("saturate");
  node.ignoreAttr("round_mode");
  node.result(0, node.cast(node.operand(0), NodeContext::elementType(node.operand(1))));
}

namespace {
struct Scaling {
  Value scale, zero;
  /// Along which the scale varies.
  int64_t axis = 0;
  bool isBlocked = false;
};
} // namespace

/// Repeats each element `block` times along `axis`, up to the extent of `shape`.
static Value repeatBlocks(NodeContext &node, Value value, int64_t axis, int64_t block, Shape shape) {
  if (!value || node.failed())
    return {};
  Ints apart(NodeContext::shape(value)), repeated, merged(NodeContext::shape(value));
  apart.insert(apart.begin() + axis + 1, 1);
  repeated = apart;
  repeated[axis + 1] = block;
  merged[axis] *= block;
  value = node.reshape(node.broadcast(node.reshape(value, apart), repeated), merged);
  return node.sliceDim(value, axis, 0, shape[axis]);
}

/// The shape of the scale says which of the three it is. One along an axis is dim 1 before opset 13, and a choice
/// after.
static std::optional<Scaling> readScaling(NodeContext &node) {
  Scaling scaling{node.operand(1), node.operand(2)};
  Shape shape = NodeContext::shape(node.operand(0)), scaleShape = NodeContext::shape(scaling.scale);
  int64_t rank = shape.size(), axis = 1, block = 0;
  if (node.getOpset() >= 13) {
    axis = node.intAttr("axis", 1);
    node.ignoreAttr("saturate"); // Of float8 only.
  }
  if (node.getOpset() >= 21)
    block = node.intAttr("block_size", 0);
  if (node.failed() || !node.check(!scaling.zero || NodeContext::shape(scaling.zero) == scaleShape,
                                   "scale and zero point differ in shape"))
    return std::nullopt;
  if (ShapedType::getNumElements(scaleShape) == 1 && scaleShape.size() <= 1) {
    scaling.scale = node.reshape(scaling.scale, {});
    scaling.zero = node.reshape(scaling.zero, {});
    return scaling;
  }
  scaling.axis = node.axis(axis, rank);
  if (node.failed())
    return std::nullopt;
  if (scaleShape.size() == 1)
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
  scaling.isBlocked = true;
  scaling.scale = repeatBlocks(node, scaling.scale, scaling.axis, block, shape);
  scaling.zero = repeatBlocks(node, scaling.zero, scaling.axis, block, shape);
  return scaling;
}

/// `saturate(round(x / scale) + zero)`, spelled out.
static Value quantizeBlocks(NodeContext &node, const Scaling &scaling, IntegerType type) {
  Value x = node.operand(0);
  Type real = NodeContext::elementType(scaling.scale);
  Value steps = node.create<nn::RoundOp>(node.create<nn::DivOp>(node.cast(x, real), scaling.scale));
  if (scaling.zero)
    steps = node.create<nn::AddOp>(steps, node.cast(scaling.zero, real));
  unsigned bits = type.getWidth();
  double low = type.isUnsigned() ? 0 : -double(int64_t(1) << (bits - 1));
  double high = double((int64_t(1) << (type.isUnsigned() ? bits : bits - 1)) - 1);
  steps = node.create<nn::MaxOp>(steps, node.scalar(real, low));
  steps = node.create<nn::MinOp>(steps, node.scalar(real, high));
  return node.cast(steps, type);
}

static void importQuantizeLinear(NodeContext &node) {
  std::optional<Scaling> scaling = readScaling(node);
  // The zero point decides what is quantised to, then the attribute, then the default of ONNX.
  Type type = node.getBuilder().getIntegerType(8, /*isSigned=*/false);
  if (node.getOpset() >= 21 && node.hasAttr("output_dtype") && node.intAttr("output_dtype") != 0)
    type = node.typeAttr("output_dtype");
  if (node.getOpset() >= 23)
    node.check(node.intAttr("precision", 0) == 0, "attribute 'precision' is not supported");
  if (!scaling || node.failed())
    return;
  if (scaling->zero)
    type = NodeContext::elementType(scaling->zero);
  if (!node.check(isa<IntegerType>(type) && type.getIntOrFloatBitWidth() <= 16,
                  "quantises to a type that is not supported"))
    return;
  if (scaling->isBlocked)
    return node.result(0, quantizeBlocks(node, *scaling, cast<IntegerType>(type)));
  auto tensorType = RankedTensorType::get(NodeContext::shape(node.operand(0)), type);
  node.result(
      0, node.createTyped<nn::QuantizeOp>(tensorType, node.operand(0), scaling->scale, scaling->zero, scaling->axis));
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
  if (scaling->isBlocked) {
    // Differences are exact in i32, and then in f32.
    Type i32 = node.getBuilder().getI32Type(), f32 = node.getBuilder().getF32Type();
    Value steps = node.cast(x, i32);
    if (scaling->zero)
      steps = node.create<nn::SubOp>(steps, node.cast(scaling->zero, i32));
    Value real = node.create<nn::MulOp>(node.cast(steps, f32), node.cast(scaling->scale, f32));
    return node.result(0, node.cast(real, type));
  }
  auto tensorType = RankedTensorType::get(NodeContext::shape(x), type);
  node.result(0, node.createTyped<nn::DequantizeOp>(tensorType, x, scaling->scale, scaling->zero, scaling->axis));
}

void cleave::onnx::registerConversion(Registry &registry) {
  registry.add("Cast", 6, {1, 1}, importCast);
  registry.add("CastLike", 15, {2, 2}, importCastLike);
  registry.add("DequantizeLinear", 10, {2, 3}, importDequantizeLinear);
  registry.add("QuantizeLinear", 10, {2, 3}, importQuantizeLinear);
}
