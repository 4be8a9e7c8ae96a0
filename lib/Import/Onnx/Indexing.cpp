//===- Indexing.cpp - reads and writes at computed places -----------------===//
//
// NonZero and Compress, whose result's shape depends on values, become constants, or gathers with constant places, where these
// are known; others have a bound (Bounded/Selection.cpp). Negative indices stay as they are: nn counts them from the end too.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

template <typename OpTy> static void importGatherLike(NodeContext &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), NodeContext::rank(node.operand(0)));
  node.result(0, node.create<OpTy>(node.operand(0), node.operand(1), axis));
}

/// Batch dims stand in front of both operands, and one dim of each at least must be left.
static void importGatherNd(NodeContext &node) {
  int64_t batchDims = node.getOpset() >= 12 ? node.intAttr("batch_dims", 0) : 0;
  int64_t least = std::min(NodeContext::rank(node.operand(0)), NodeContext::rank(node.operand(1)));
  if (node.check(batchDims >= 0 && batchDims < least, "attribute 'batch_dims' is " + Twine(batchDims)))
    node.result(0, node.create<nn::GatherNdOp>(node.operand(0), node.operand(1), batchDims));
}

/// `reduction` came with opset 16, its max and min with 18.
static std::optional<nn::ScatterKind> scatterKind(NodeContext &node) {
  StringRef name = node.getOpset() >= 16 ? node.stringAttr("reduction", StringRef("none")) : StringRef("none");
  std::optional<nn::ScatterKind> kind = name == "none" ? nn::ScatterKind::Set : nn::symbolizeScatterKind(name);
  bool isKnown = kind && name != "set" && (node.getOpset() >= 18 || (name != "max" && name != "min"));
  return node.check(isKnown, "attribute 'reduction' is '" + name + "', which is not known") ? kind : std::nullopt;
}

static void importScatterElements(NodeContext &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), NodeContext::rank(node.operand(0)));
  if (std::optional<nn::ScatterKind> kind = scatterKind(node))
    node.result(0, node.create<nn::ScatterElementsOp>(*kind, node.operand(0), node.operand(1), node.operand(2), axis));
}

static void importScatterNd(NodeContext &node) {
  if (std::optional<nn::ScatterKind> kind = scatterKind(node))
    node.result(0, node.create<nn::ScatterNdOp>(*kind, node.operand(0), node.operand(1), node.operand(2)));
}

static void importOneHot(NodeContext &node) {
  int64_t axis = node.axis(node.intAttr("axis", -1), NodeContext::rank(node.operand(0)) + 1);
  // Its type is any number's, and exporters use floats.
  SmallVector<double> depth;
  if (isa_and_present<FloatType>(NodeContext::elementType(node.operand(1))))
    depth = node.constantFloats(1);
  else
    depth.push_back(double(node.constantInt(1)));
  if (!node.failed() &&
      node.check(depth.size() == 1 && depth[0] >= 1 && depth[0] < 1e12, "the depth is not a positive number"))
    node.result(0, node.create<nn::OneHotOp>(node.operand(0), node.operand(2), int64_t(depth[0]), axis));
}

static void importNonZero(NodeContext &node) {
  std::optional<Tensor> input = node.tryConstant(0);
  if (!input)
    return findNonZeroWithinBound(node);
  Shape shape = input->getShape();
  int64_t bytes = reference::getElementBytes(input->getElementType());
  // A float is zero with either sign, so the top bit does not count there.
  bool isFloat = isa<FloatType>(input->getElementType());
  SmallVector<Ints> places(shape.size());
  for (int64_t i = 0, n = input->getNumElements(); i < n; ++i) {
    ArrayRef<char> element = input->getBytes().slice(i * bytes, bytes);
    bool isZero = llvm::all_of(element.drop_back(), [](char byte) { return byte == 0; }) &&
                  (uint8_t(element.back()) & (isFloat ? 0x7f : 0xff)) == 0;
    if (isZero)
      continue;
    int64_t rest = i;
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
      places[dim].push_back(rest % shape[dim]);
      rest /= shape[dim];
    }
  }
  Ints flat;
  for (const Ints &list : places)
    llvm::append_range(flat, list);
  int64_t count = places.empty() ? 0 : places[0].size();
  node.result(0, node.reshape(node.vector(flat), {int64_t(shape.size()), count}));
}

/// A gather with the places where the condition holds.
static void importCompress(NodeContext &node) {
  Value input = node.operand(0);
  Shape condition = NodeContext::shape(node.operand(1));
  int64_t axis = 0;
  if (node.hasAttr("axis"))
    axis = node.axis(node.intAttr("axis"), NodeContext::rank(input));
  else
    input = node.reshape(input, {ShapedType::getNumElements(NodeContext::shape(input))});
  if (node.failed() || !node.check(condition.size() == 1, "the condition must have 1 dim") ||
      !node.check(condition[0] <= NodeContext::shape(input)[axis], "the condition is longer than dim " + Twine(axis)))
    return;
  if (!node.tryConstant(1))
    return compressWithinBound(node, input, axis);
  Ints places;
  for (auto [i, holds] : llvm::enumerate(node.constantInts(1)))
    if (holds)
      places.push_back(i);
  node.result(0, node.create<nn::GatherOp>(input, node.vector(places), axis));
}

/// A gather along the time dim, with places computed from the lengths, which must be known.
static void importReverseSequence(NodeContext &node) {
  Value input = node.operand(0);
  Ints lengths = node.constantInts(1);
  int64_t batchAxis = node.intAttr("batch_axis", 1), timeAxis = node.intAttr("time_axis", 0);
  Shape shape = NodeContext::shape(input);
  if (node.failed() ||
      !node.check(shape.size() >= 2 && (batchAxis == 0 || batchAxis == 1) && timeAxis == 1 - batchAxis,
                  "'batch_axis' and 'time_axis' must be 0 and 1 in some order, of at least 2 dims") ||
      !node.check(int64_t(lengths.size()) == shape[batchAxis], "there must be one length per batch element"))
    return;
  int64_t times = shape[timeAxis];
  Ints places;
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    int64_t first = i / shape[1], second = i % shape[1];
    int64_t batch = batchAxis == 0 ? first : second, time = batchAxis == 0 ? second : first;
    if (!node.check(lengths[batch] >= 0 && lengths[batch] <= times, "a length is outside [0, " + Twine(times) + "]"))
      return;
    places.push_back(time < lengths[batch] ? lengths[batch] - 1 - time : time);
  }
  Ints indexShape(shape.size(), 1);
  indexShape[0] = shape[0];
  indexShape[1] = shape[1];
  Value index = node.broadcast(node.reshape(node.vector(places), indexShape), shape);
  node.result(0, node.create<nn::GatherElementsOp>(input, index, timeAxis));
}

/// Writes `updates` into a cache at `write_indices` of each batch, along the sequence axis.
///
///   mode linear     place = write index + i
///   mode circular   place = (write index + i) mod length
static void importTensorScatter(NodeContext &node) {
  Value past = node.operand(0), update = node.operand(1), start = node.operand(2);
  StringRef mode = node.stringAttr("mode", StringRef("linear"));
  Shape shape = NodeContext::shape(past);
  int64_t axis = node.axis(node.intAttr("axis", -2), shape.size());
  if (!node.check(mode == "linear" || mode == "circular",
                  "attribute 'mode' is '" + mode + "', expected 'linear' or 'circular'") ||
      node.failed() || !node.check(axis != 0, "'axis' is the batch axis") ||
      !node.check(NodeContext::rank(update) == int64_t(shape.size()), "cache and update differ in rank"))
    return;
  Ints along(shape.size(), 1), batch(shape.size(), 1), updateShape(NodeContext::shape(update));
  along[axis] = updateShape[axis];
  batch[0] = shape[0];
  Type i64 = node.getBuilder().getI64Type();
  Value place = node.createTyped<nn::IotaOp>(RankedTensorType::get(along, i64), axis, 0, 1);
  if (start &&
      node.check(NodeContext::shape(start) == Shape({shape[0]}), "there must be one write index per batch element"))
    place = node.create<nn::AddOp>(node.reshape(node.cast(start, i64), batch), place);
  if (mode == "circular")
    place = node.create<nn::ModOp>(place, node.scalar(i64, shape[axis]), false);
  place = node.broadcast(place, updateShape);
  node.result(0, node.create<nn::ScatterElementsOp>(nn::ScatterKind::Set, past, place, update, axis));
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

static std::optional<int64_t> findGatheredRows(NodeContext &at, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(at.operand(0)), indices = NodeContext::rank(at.operand(1));
  int64_t axis = at.axis(at.intAttr("axis", 0), rank);
  if (operand == 1)
    return axis + dim;
  return axis == dim ? std::nullopt : std::optional(dim < axis ? dim : dim + indices - 1);
}

static std::optional<int64_t> findRowsOfTuples(NodeContext &node, unsigned operand, int64_t dim) {
  bool isTuple = operand != 1 || dim + 1 >= NodeContext::rank(node.operand(1));
  return isTuple ? std::nullopt : std::optional(dim);
}

static std::optional<int64_t> findRowsOfElements(NodeContext &node, unsigned operand, int64_t dim) {
  bool isAlong = operand != 1 && node.axis(node.intAttr("axis", 0), NodeContext::rank(node.operand(operand))) == dim;
  return isAlong ? std::nullopt : findBroadcastRows(node, operand, dim);
}

void cleave::onnx::registerIndexing(Registry &registry) {
  Arity two{2, 2}, three{3, 3};
  registry.add("Compress", 9, two, importCompress);
  registry.add("Gather", two, importGatherLike<nn::GatherOp>).follow(findGatheredRows).mix(Mixing::Lookup);
  registry.add("GatherElements", 11, two, importGatherLike<nn::GatherElementsOp>).follow(findRowsOfElements);
  registry.add("GatherND", 11, two, importGatherNd).follow(findRowsOfTuples).mix(Mixing::TupleLookup);
  registry.add("NonZero", 9, {1, 1}, importNonZero).mix(Mixing::Places);
  registry.add("OneHot", 9, three, importOneHot);
  registry.add("ReverseSequence", 10, two, importReverseSequence);
  registry.add("Scatter", 9, three, importScatterElements);
  registry.end("Scatter", 11);
  registry.add("ScatterElements", 11, three, importScatterElements);
  registry.add("ScatterND", 11, three, importScatterNd);
  registry.add("TensorScatter", 24, {2, 3}, importTensorScatter);
}
