//===- Data.cpp - constants, shapes and ranges ----------------------------===//
//
// Shapes are static, so what asks for a shape gives a constant; ConstantFolder carries such constants on.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

static void importIdentity(NodeContext &node) { node.result(0, node.bound(0)); }

/// The value is one of several attributes; those of strings are not asked for, hence errors.
static void importConstant(NodeContext &node) {
  Builder b = node.getBuilder();
  if (node.hasAttr("value"))
    return node.result(0, node.tensorAttr("value", /*isOutput=*/true));
  if (node.hasAttr("sparse_value"))
    return node.result(0, node.sparseAttr("sparse_value"));
  if (node.hasAttr("value_float"))
    return node.result(0, node.scalar(b.getF32Type(), node.floatAttr("value_float")));
  if (node.hasAttr("value_int"))
    return node.result(0, node.reshape(node.vector({node.intAttr("value_int")}), {}));
  if (std::optional<Ints> ints = node.intsAttr("value_ints"))
    return node.result(0, node.vector(*ints));
  if (std::optional<SmallVector<double>> floats = node.floatsAttr("value_floats")) {
    SmallVector<float> values(floats->begin(), floats->end());
    auto type = RankedTensorType::get(int64_t(values.size()), b.getF32Type());
    Tensor tensor = Tensor::zeros(type);
    llvm::copy(values, tensor.write<float>().begin());
    return node.result(0, node.constant(tensor));
  }
  node.check(node.failed(), "the value must be a tensor, an integer, a float, or a list of these");
}

/// A broadcast of one element: no memory is taken for what may be large.
static void importConstantOfShape(NodeContext &node) {
  Ints shape = node.constantInts(0);
  Value fill = node.hasAttr("value") ? node.tensorAttr("value", /*isOutput=*/false)
                                     : node.scalar(node.getBuilder().getF32Type(), 0);
  if (node.failed() || !node.check(ShapedType::getNumElements(NodeContext::shape(fill)) == 1,
                                   "attribute 'value' does not have one element"))
    return;
  if (node.checkSize(shape, NodeContext::elementType(fill)))
    node.result(0, node.broadcast(node.reshape(fill, {}), shape));
}

/// Shapes are static here, so that whatever is computed from one folds.
static void importShape(NodeContext &node) {
  Shape shape = NodeContext::shape(node.operand(0));
  int64_t rank = shape.size(), start = 0, end = rank;
  if (node.getOpset() >= 15) {
    auto clamp = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + rank : place, 0, rank); };
    start = clamp(node.intAttr("start", 0));
    end = std::max(start, clamp(node.intAttr("end", rank)));
  }
  node.result(0, node.vector(shape.slice(start, end - start)));
}

static void importSize(NodeContext &node) {
  int64_t count = ShapedType::getNumElements(NodeContext::shape(node.operand(0)));
  node.result(0, node.reshape(node.vector({count}), {}));
}

//===----------------------------------------------------------------------===//
// Range
//===----------------------------------------------------------------------===//

/// Longer integer ranges stay symbolic, so that each device can make its own part.
constexpr int64_t kShortRange = 16;

static void importIntRange(NodeContext &node, Type type) {
  int64_t start = node.constantInt(0), limit = node.constantInt(1), delta = node.constantInt(2);
  if (node.failed() || !node.check(delta != 0, "the step is 0"))
    return;
  // Between the ends of int64 lie more numbers than int64 counts.
  __int128 span = delta > 0 ? __int128(limit) - start : __int128(start) - limit;
  __int128 step = delta > 0 ? __int128(delta) : -__int128(delta);
  __int128 count = span > 0 ? (span + step - 1) / step : 0;
  if (!node.check(count < (__int128(1) << 40), "the range has too many elements"))
    return;
  auto tensorType = RankedTensorType::get(int64_t(count), type);
  if (!node.checkSize(tensorType.getShape(), type))
    return;
  if (count > kShortRange)
    return node.result(0, node.createTyped<nn::IotaOp>(tensorType, 0, start, delta));
  Ints values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(int64_t(uint64_t(start) + uint64_t(i) * uint64_t(delta))); // the product alone may overflow
  node.result(0, node.cast(node.vector(values), type));
}

/// Number of elements from the doubles; the elements from an iota, in the range's own type.
static void importFloatRange(NodeContext &node, Type type) {
  SmallVector<double> bounds;
  for (unsigned i = 0; i < 3; ++i)
    llvm::append_range(bounds, node.constantFloats(i));
  if (node.failed() || !node.check(bounds.size() == 3, "start, limit and step must be scalars") ||
      !node.check(bounds[2] != 0, "the step is 0"))
    return;
  double count = std::max(0.0, std::ceil((bounds[1] - bounds[0]) / bounds[2]));
  if (!node.check(count < double(int64_t(1) << 40), "the range has too many elements") ||
      !node.checkSize({int64_t(count)}, type))
    return;
  Type i64 = node.getBuilder().getI64Type();
  Value index = node.createTyped<nn::IotaOp>(RankedTensorType::get(int64_t(count), i64), 0, 0, 1);
  // Since opset 27 `stash_type` is the type in which elements are computed.
  Type wide = type;
  if (node.getOpset() >= 27 && type.getIntOrFloatBitWidth() == 16)
    wide = node.typeAttr("stash_type", 1);
  else if (node.getOpset() >= 27)
    node.ignoreAttr("stash_type");
  auto operand = [&](unsigned i) { return node.cast(node.reshape(node.operand(i), {}), wide); };
  Value scaled = node.create<nn::MulOp>(node.cast(index, wide), operand(2));
  node.result(0, node.cast(node.create<nn::AddOp>(scaled, operand(0)), type));
}

static void importRange(NodeContext &node) {
  Type type = NodeContext::elementType(node.operand(0));
  for (Value operand : node.getOperands())
    if (!node.check(NodeContext::elementType(operand) == type, "start, limit and step differ in type"))
      return;
  if (isa<FloatType>(type))
    return importFloatRange(node, type);
  if (node.getOpset() >= 27)
    node.ignoreAttr("stash_type"); // Of small floats.
  importIntRange(node, type);
}

/// Ones where column - row = k.
static void importEyeLike(NodeContext &node) {
  Shape shape = NodeContext::shape(node.operand(0));
  int64_t offset = node.intAttr("k", 0);
  Type type = node.hasAttr("dtype") ? node.typeAttr("dtype") : NodeContext::elementType(node.operand(0));
  if (!node.check(shape.size() == 2, "the input does not have 2 dims") || node.failed())
    return;
  Type i64 = node.getBuilder().getI64Type();
  auto index = [&](Shape extents, int64_t dim, int64_t start) {
    return node.createTyped<nn::IotaOp>(RankedTensorType::get(extents, i64), dim, start, 1);
  };
  Value isDiagonal = node.create<nn::EqOp>(index({shape[0], 1}, 0, offset), index({1, shape[1]}, 1, 0));
  node.result(0, node.cast(isDiagonal, type));
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

/// The extents are the operand's elements.
static std::optional<int64_t> findExtent(NodeContext &, int64_t element) { return element; }

/// From 0 on, in steps of 1.
static std::optional<int64_t> findRange(NodeContext &node, int64_t element) {
  return node.constantInt(0) == 0 && node.constantInt(2) == 1 ? std::optional(element) : std::nullopt;
}

void cleave::onnx::registerData(Registry &registry) {
  Arity one{1, 1};
  registry.add("Constant", {0, 0}, importConstant);
  registry.add("ConstantOfShape", 9, one, importConstantOfShape).sizedBy(0, findExtent);
  registry.add("EyeLike", 9, one, importEyeLike);
  registry.add("Identity", {1, 1, 1, /*takesLists=*/true}, importIdentity).follow(findBroadcastRows);
  registry.add("Range", 11, {3, 3}, importRange).sizedBy(1, findRange);
  registry.add("Shape", one, importShape).mix(Mixing::Shape);
  registry.add("Size", one, importSize).mix(Mixing::Size);
}
