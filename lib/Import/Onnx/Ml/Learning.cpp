//===- Learning.cpp - the models of ai.onnx.ml ----------------------------===//
//
// Scalers and linear models as scikit-learn's converters write them; those of strings are refused. Attributes hold the
// numbers, which become constants. Trees are in Trees.cpp.
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

Value cleave::onnx::applyTransform(NodeContext &node, Value scores, StringRef name) {
  nn::Composer &f = node;
  if (name == "NONE")
    return scores;
  if (name == "LOGISTIC")
    return f.sigmoid(scores);
  if (name == "SOFTMAX")
    return node.create<nn::SoftmaxOp>(scores, NodeContext::rank(scores) - 1);
  node.check(false, "attribute 'post_transform' is " + name + ", which is not supported");
  return {};
}

/// Elements of the last dim, by a list of places.
static void importArrayFeatureExtractor(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0), places = node.operand(1);
  int64_t count = ShapedType::getNumElements(NodeContext::shape(places)), rank = NodeContext::rank(x);
  if (!node.check(rank > 0, "the input is a scalar"))
    return;
  Value y = f.gather(x, node.reshape(places, {count}), rank - 1);
  node.result(0, rank == 1 ? node.reshape(y, {1, count}) : y);
}

/// 1 above the threshold, else 0, in the input's type.
static void importBinarizer(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  double threshold = node.floatAttr("threshold", 0);
  node.result(0, node.cast(f.gt(x, node.scalarLike(x, threshold)), NodeContext::elementType(x)));
}

/// `x / norm(x)` per row, and x where that is 0.
static void importNormalizer(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.cast(node.operand(0), f.f32());
  StringRef norm = node.stringAttr("norm", StringRef("MAX"));
  if (!node.check(NodeContext::rank(x) == 1 || NodeContext::rank(x) == 2, "the input must have 1 or 2 dims"))
    return;
  Ints dims{NodeContext::rank(x) - 1};
  Value size;
  if (norm == "MAX")
    size = f.reduce(nn::ReduceKind::Max, x, dims, true);
  else if (norm == "L1")
    size = f.sum(f.abs(x), dims, true);
  else if (norm == "L2")
    size = f.sqrt(f.sum(f.square(x), dims, true));
  else
    node.check(false, "attribute 'norm' is '" + norm + "', expected 'MAX', 'L1' or 'L2'");
  node.result(0, f.div(x, f.select(f.eq(size, 0), node.scalar(f.f32(), 1), size)));
}

/// `(x - offset) * scale`, of one number or one per feature each.
static void importScaler(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.cast(node.operand(0), f.f32());
  auto numbers = [&](StringRef name, double fallback) -> Value {
    SmallVector<double> list = node.floatsAttr(name).value_or(SmallVector<double>{fallback});
    bool fits = list.size() == 1 || (NodeContext::rank(x) > 0 && int64_t(list.size()) == NodeContext::shape(x).back());
    if (!node.check(fits, "attribute '" + name + "' does not have one number, or one per feature"))
      return {};
    return node.table(f.f32(), {int64_t(list.size())}, list);
  };
  Value offset = numbers("offset", 0), scale = numbers("scale", 1);
  node.result(0, f.mul(f.sub(x, offset), scale));
}

//===----------------------------------------------------------------------===//
// Linear models
//===----------------------------------------------------------------------===//

/// `x W^T + b`, [samples, rows]; one row per class or target.
static Value applyLinear(NodeContext &node, int64_t rows) {
  nn::Composer &f = node;
  Value x = node.cast(node.operand(0), f.f32());
  if (NodeContext::rank(x) == 1)
    x = node.unsqueeze(x, {0});
  SmallVector<double> weights = node.floatsAttr("coefficients").value_or(SmallVector<double>());
  std::optional<SmallVector<double>> bias = node.floatsAttr("intercepts");
  if (node.failed() ||
      !node.check(NodeContext::rank(x) == 2 && rows > 0 && int64_t(weights.size()) == rows * NodeContext::shape(x)[1] &&
                      (!bias || int64_t(bias->size()) == rows),
                  "coefficients or intercepts are not those of " + Twine(rows) + " rows of features"))
    return {};
  Value y = f.einsum({x, node.table(f.f32(), {rows, NodeContext::shape(x)[1]}, weights)}, "nf,cf->nc");
  return bias ? f.add(y, node.table(f.f32(), {rows}, *bias)) : y;
}

/// One result per target.
static void importLinearRegressor(NodeContext &node) {
  int64_t targets = node.intAttr("targets", 1);
  StringRef after = node.stringAttr("post_transform", StringRef("NONE"));
  node.result(0, applyTransform(node, applyLinear(node, targets), after));
}

/// The label of the largest score. One row of coefficients with two labels is the score of the second: the first has the
/// rest.
static void importLinearClassifier(NodeContext &node) {
  nn::Composer &f = node;
  node.check(!node.hasAttr("classlabels_strings"), "labels that are strings are not supported");
  std::optional<Ints> labels = node.intsAttr("classlabels_ints");
  StringRef after = node.stringAttr("post_transform", StringRef("NONE"));
  node.ignoreAttr("multi_class"); // How it was trained.
  if (node.failed() || !node.check(labels && !labels->empty(), "'classlabels_ints' is missing"))
    return;
  int64_t rows = node.floatsAttr("intercepts").value_or(SmallVector<double>()).size();
  if (rows == 0)
    rows = labels->size();
  Value scores = applyLinear(node, rows);
  bool isBinary = rows == 1 && labels->size() == 2;
  if (!node.check(isBinary || rows == int64_t(labels->size()),
                  "there are " + Twine(labels->size()) + " labels for " + Twine(rows) + " rows of coefficients"))
    return;
  Value best;
  if (isBinary) {
    Value second = applyTransform(node, scores, after);
    Value first = after == "NONE" ? f.neg(second) : f.sub(1, second);
    best = node.reshape(node.cast(f.gt(scores, 0), f.i64()), {NodeContext::shape(scores)[0]});
    scores = node.concat({first, second}, 1);
  } else {
    best = node.create<nn::ArgReduceOp>(nn::ReduceKind::Max, scores, 1, false, false);
    scores = applyTransform(node, scores, after);
  }
  node.result(0, f.gather(node.vector(*labels), best, 0));
  node.result(1, scores);
}

void cleave::onnx::registerLearning(Registry &registry) {
  Arity one{1, 1};
  registry.add("ai.onnx.ml.ArrayFeatureExtractor", {2, 2}, importArrayFeatureExtractor);
  registry.add("ai.onnx.ml.Binarizer", one, importBinarizer);
  registry.add("ai.onnx.ml.LinearClassifier", {1, 1, 2}, importLinearClassifier);
  registry.add("ai.onnx.ml.LinearRegressor", one, importLinearRegressor);
  registry.add("ai.onnx.ml.Normalizer", one, importNormalizer);
  registry.add("ai.onnx.ml.Scaler", one, importScaler);
}
