//===- Reduction.cpp - along dims: reductions, softmax, scans, top-k ------===//
//
// Axes, and what no axes mean, changed with the opsets: readReducedDims knows all ways. Up to opset 12 a softmax ran over
// all dims from its axis on, so the operand is flattened, and what was one dim is taken apart again behind it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Axes are an attribute up to opset 17 (ReduceSum: 12), then an operand.
ReducedDims cleave::onnx::readReducedDims(NodeContext &node) {
  int64_t rank = NodeContext::rank(node.operand(0));
  bool isOperand = node.getOpset() >= (node.getOpType() == "ReduceSum" ? 13 : 18);
  bool noop = isOperand && node.boolAttr("noop_with_empty_axes", false);
  bool keepDims = node.boolAttr("keepdims", true);
  std::optional<Ints> axes = isOperand ? std::nullopt : node.intsAttr("axes");
  if (isOperand && node.hasOperand(1))
    axes = node.constantInts(1);
  if (isOperand)
    node.check(node.getNumOperands() <= 2, "too many operands");
  else
    node.check(node.getNumOperands() == 1, "axes are an attribute at this opset");
  if (!axes || axes->empty()) {
    if (noop)
      return {{}, keepDims, true};
    return {llvm::to_vector(llvm::seq<int64_t>(0, rank)), keepDims, false};
  }
  return {node.axes(*axes, rank), keepDims, false};
}

static Value reduce(NodeContext &node, nn::ReduceKind kind, Value value, const ReducedDims &reduced) {
  return reduced.isNoop || reduced.dims.empty()
             ? value
             : node.create<nn::ReduceOp>(kind, value, reduced.dims, reduced.keepDims);
}

template <nn::ReduceKind kind> static void importReduce(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  node.result(0, reduce(node, kind, node.operand(0), reduced));
}

static Value square(NodeContext &node, Value value) { return node.create<nn::MulOp>(value, value); }

static void importReduceL1(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  node.result(0, reduce(node, nn::ReduceKind::Sum, node.create<nn::AbsOp>(node.operand(0)), reduced));
}

static void importReduceSumSquare(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  node.result(0, reduce(node, nn::ReduceKind::Sum, square(node, node.operand(0)), reduced));
}

/// Integers take their root as floats.
static void importReduceL2(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  Type type = NodeContext::elementType(node.operand(0));
  Value sum = reduce(node, nn::ReduceKind::Sum, square(node, node.operand(0)), reduced);
  Value root =
      node.create<nn::SqrtOp>(isa_and_present<FloatType>(type) ? sum : node.cast(sum, node.getBuilder().getF64Type()));
  node.result(0, node.cast(root, type));
}

static void importReduceLogSum(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  node.result(0, node.create<nn::LogOp>(reduce(node, nn::ReduceKind::Sum, node.operand(0), reduced)));
}

/// `log(sum(e^(x - m))) + m` with m the maximum, and 0 for it where it is infinite: infinity minus itself is not a
/// number.
static void importReduceLogSumExp(NodeContext &node) {
  ReducedDims reduced = readReducedDims(node);
  Value x = node.operand(0);
  if (reduced.isNoop || NodeContext::rank(x) == 0)
    return node.result(0, x);
  ReducedDims kept{reduced.dims, true, false};
  Value top = reduce(node, nn::ReduceKind::Max, x, kept);
  if (!top)
    return;
  top = node.create<nn::SelectOp>(node.create<nn::IsInfOp>(top, true, true), node.scalarLike(x, 0), top);
  Value sum = reduce(node, nn::ReduceKind::Sum, node.create<nn::ExpOp>(node.create<nn::SubOp>(x, top)), reduced);
  if (sum)
    node.result(0, node.create<nn::AddOp>(node.create<nn::LogOp>(sum), node.reshape(top, NodeContext::shape(sum))));
}

template <nn::ReduceKind kind> static void importArg(NodeContext &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), NodeContext::rank(node.operand(0)));
  bool keepDims = node.boolAttr("keepdims", true);
  bool last = node.getOpset() >= 12 && node.boolAttr("select_last_index", false);
  if (!node.failed() && node.check(NodeContext::shape(node.operand(0))[axis] > 0, "dim " + Twine(axis) + " is empty"))
    node.result(0, node.create<nn::ArgReduceOp>(kind, node.operand(0), axis, keepDims, last));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Calls `along(value, dim)` for the axis of the node. Up to opset 12 the dims from the axis on count as one.
template <typename Along> static void importAlongAxis(NodeContext &node, Along along) {
  Value x = node.operand(0);
  bool flattens = node.getOpset() < 13;
  int64_t rank = NodeContext::rank(x),
          axis = node.axis(node.intAttr("axis", flattens ? 1 : -1), std::max<int64_t>(rank, 1));
  if (node.failed() || !node.check(rank > 0, "the input is a scalar"))
    return;
  Ints shape(NodeContext::shape(x));
  if (!flattens || axis == rank - 1)
    return node.result(0, along(x, axis));
  Value flat = node.reshape(x, {ShapedType::getNumElements(Shape(shape).take_front(axis)),
                                ShapedType::getNumElements(Shape(shape).drop_front(axis))});
  node.result(0, node.reshape(along(flat, 1), shape));
}

template <typename OpTy> static void importSoftmax(NodeContext &node) {
  importAlongAxis(node, [&](Value x, int64_t dim) { return node.create<OpTy>(x, dim); });
}

/// 1 at the first maximum, 0 elsewhere.
static void importHardmax(NodeContext &node) {
  importAlongAxis(node, [&](Value x, int64_t dim) {
    Type type = NodeContext::elementType(x);
    Ints shape(NodeContext::shape(x));
    if (shape[dim] == 0)
      return x;
    Value top = node.create<nn::ArgReduceOp>(nn::ReduceKind::Max, x, dim, false, false);
    Value values = node.cast(node.vector({0, 1}), type);
    return Value(node.create<nn::OneHotOp>(top, values, shape[dim], dim));
  });
}

//===----------------------------------------------------------------------===//
// Scans and selections
//===----------------------------------------------------------------------===//

static void importCumSum(NodeContext &node) {
  bool exclusive = node.boolAttr("exclusive", false), reverse = node.boolAttr("reverse", false);
  int64_t axis = node.axis(node.constantInt(1), NodeContext::rank(node.operand(0)));
  node.result(0, node.create<nn::CumsumOp>(node.operand(0), axis, exclusive, reverse));
}

/// In steps of 1, 2, 4, ..: each element is multiplied with the one that many places before, which by then is a product
/// of as many.
static void importCumProd(NodeContext &node) {
  nn::Composer &f = node;
  bool exclusive = node.boolAttr("exclusive", false), reverse = node.boolAttr("reverse", false);
  Value x = node.operand(0);
  int64_t rank = NodeContext::rank(x), axis = node.axis(node.constantInt(1), rank);
  if (node.failed())
    return;
  int64_t extent = NodeContext::shape(x)[axis];
  auto shifted = [&](Value value, int64_t by) {
    Ints low(rank, 0), high(rank, 0);
    (reverse ? high : low)[axis] = by;
    return node.sliceDim(f.pad(value, low, high, 1), axis, reverse ? by : 0, extent);
  };
  Value y = exclusive && extent > 0 ? shifted(x, 1) : x;
  for (int64_t by = 1; by < extent; by *= 2)
    y = f.mul(y, shifted(y, by));
  node.result(0, y);
}

/// `sorted` = 0 leaves the order open, so a sorted result is right too.
static void importTopK(NodeContext &node) {
  Value x = node.operand(0);
  int64_t axis = node.axis(node.intAttr("axis", -1), NodeContext::rank(x));
  bool largest = node.getOpset() < 11 || node.boolAttr("largest", true);
  if (node.getOpset() >= 11)
    node.ignoreAttr("sorted");
  int64_t k = node.getOpset() >= 10 ? node.constantInt(1) : node.intAttr("k");
  if (node.failed() || !node.check(k >= 0 && k <= NodeContext::shape(x)[axis],
                                   "k = " + Twine(k) + " is outside [0, " + Twine(NodeContext::shape(x)[axis]) + "]"))
    return;
  auto results = node.createAll<nn::TopKOp>(x, k, axis, !largest);
  for (auto [i, value] : llvm::enumerate(results))
    node.result(i, value);
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

/// Of what a reduction leaves; nothing where it is over that dim.
static std::optional<int64_t> findReducedRows(NodeContext &at, unsigned operand, int64_t dim) {
  if (operand != 0)
    return std::nullopt;
  Ints dims;
  bool keepDims = at.boolAttr("keepdims", true);
  if (at.getOpType().starts_with("Arg"))
    dims.push_back(at.axis(at.intAttr("axis", 0), NodeContext::rank(at.operand(0))));
  else
    dims = readReducedDims(at).dims;
  if (llvm::is_contained(dims, dim))
    return std::nullopt;
  return dim - (keepDims ? 0 : llvm::count_if(dims, [&](int64_t other) { return other < dim; }));
}

/// Of old opsets all dims from the axis on are one row.
static std::optional<int64_t> findRowsOfSoftmax(NodeContext &node, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(node.operand(operand));
  int64_t axis = node.axis(node.intAttr("axis", node.getOpset() < 13 ? 1 : -1), rank);
  return dim < axis ? std::optional(dim) : std::nullopt;
}

static int64_t getSortedDim(NodeContext &node) {
  return node.axis(node.intAttr("axis", -1), NodeContext::rank(node.operand(0)));
}
static std::optional<int64_t> findSortedRows(NodeContext &node, unsigned operand, int64_t dim) {
  return operand != 0 || getSortedDim(node) == dim ? std::nullopt : std::optional(dim);
}
static std::optional<int64_t> findLargest(NodeContext &node, int64_t) { return getSortedDim(node); }

/// A sum up to each row does not see those behind it.
static std::optional<int64_t> findSummedRows(NodeContext &node, unsigned operand, int64_t dim) {
  return operand != 0 || node.boolAttr("reverse", false) ? std::nullopt : std::optional(dim);
}

void cleave::onnx::registerReduction(Registry &registry) {
  Arity one{1, 1}, reduced{1, 2};
  registry.add("ArgMax", one, importArg<nn::ReduceKind::Max>)
      .follow(findReducedRows)
      .mix(Mixing::Search, Identity::Least);
  registry.add("ArgMin", one, importArg<nn::ReduceKind::Min>)
      .follow(findReducedRows)
      .mix(Mixing::Search, Identity::Greatest);
  registry.add("CumProd", 26, {2, 2}, importCumProd);
  registry.add("CumSum", 11, {2, 2}, importCumSum).follow(findSummedRows);
  registry.add("Hardmax", one, importHardmax);
  registry.add("LogSoftmax", one, importSoftmax<nn::LogSoftmaxOp>).follow(findRowsOfSoftmax).mix(Mixing::Row);
  registry.add("ReduceL1", reduced, importReduceL1).follow(findReducedRows).mix(Mixing::Reduction);
  registry.add("ReduceL2", reduced, importReduceL2).follow(findReducedRows).mix(Mixing::Reduction);
  registry.add("ReduceLogSum", reduced, importReduceLogSum).follow(findReducedRows).mix(Mixing::Reduction);
  registry.add("ReduceLogSumExp", reduced, importReduceLogSumExp)
      .follow(findReducedRows)
      .mix(Mixing::Reduction, Identity::Least);
  registry.add("ReduceMax", reduced, importReduce<nn::ReduceKind::Max>)
      .follow(findReducedRows)
      .mix(Mixing::Reduction, Identity::Least);
  registry.add("ReduceMean", reduced, importReduce<nn::ReduceKind::Mean>).follow(findReducedRows).mix(Mixing::Mean);
  registry.add("ReduceMin", reduced, importReduce<nn::ReduceKind::Min>)
      .follow(findReducedRows)
      .mix(Mixing::Reduction, Identity::Greatest);
  registry.add("ReduceProd", reduced, importReduce<nn::ReduceKind::Prod>)
      .follow(findReducedRows)
      .mix(Mixing::Reduction, Identity::One);
  registry.add("ReduceSum", reduced, importReduce<nn::ReduceKind::Sum>).follow(findReducedRows).mix(Mixing::Reduction);
  registry.add("ReduceSumSquare", reduced, importReduceSumSquare).follow(findReducedRows).mix(Mixing::Reduction);
  registry.add("Softmax", one, importSoftmax<nn::SoftmaxOp>).follow(findRowsOfSoftmax).mix(Mixing::Row);
  registry.add("TopK", 1, {1, 1, 2}, importTopK).follow(findSortedRows).mix(Mixing::Sort);
  registry.add("TopK", 10, {2, 2, 2}, importTopK).follow(findSortedRows).sizedBy(1, findLargest).mix(Mixing::Sort);
}
