//===- Learning.cpp - the models of ai.onnx.ml ----------------------------===//
//
// Scalers, linear models and trees as scikit-learn's and XGBoost's converters write them; those of strings are refused.
// A forest is walked in step: each sample is at one node of each tree, and a step gathers feature, threshold and
// children of all of them. Leaves stay where they are, so as many steps as the deepest tree has levels are enough.
//
//===----------------------------------------------------------------------===//
#include "Composer.h"
#include "Registry.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// What scores become behind a model. Between 'NONE' and the others names and numbers are both in use.
static Value applyTransform(NodeContext &node, Value scores, StringRef name) {
  Composer f(node);
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
  Composer f(node);
  Value x = node.operand(0), places = node.operand(1);
  int64_t count = ShapedType::getNumElements(NodeContext::shape(places)), rank = NodeContext::rank(x);
  if (!node.check(rank > 0, "the input is a scalar"))
    return;
  Value y = f.gather(x, node.reshape(places, {count}), rank - 1);
  node.result(0, rank == 1 ? node.reshape(y, {1, count}) : y);
}

static void importBinarizer(NodeContext &node) {
  Composer f(node);
  Value x = node.operand(0);
  double threshold = node.floatAttr("threshold", 0);
  node.result(0, node.cast(f.gt(x, node.scalarLike(x, threshold)), NodeContext::elementType(x)));
}

/// `x / norm(x)` per row, and x where that is 0.
static void importNormalizer(NodeContext &node) {
  Composer f(node);
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
  Composer f(node);
  Value x = node.cast(node.operand(0), f.f32());
  auto numbers = [&](StringRef name, double fallback) -> Value {
    SmallVector<double> list = node.floatsAttr(name).value_or(SmallVector<double>{fallback});
    bool fits = list.size() == 1 || (NodeContext::rank(x) > 0 && int64_t(list.size()) == NodeContext::shape(x).back());
    if (!node.check(fits, "attribute '" + name + "' does not have one number, or one per feature"))
      return {};
    return f.table(f.f32(), {int64_t(list.size())}, list);
  };
  Value offset = numbers("offset", 0), scale = numbers("scale", 1);
  node.result(0, f.mul(f.sub(x, offset), scale));
}

//===----------------------------------------------------------------------===//
// Linear models
//===----------------------------------------------------------------------===//

/// `x W^T + b`, [samples, rows]; one row per class or target.
static Value applyLinear(NodeContext &node, int64_t rows) {
  Composer f(node);
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
  Value y = f.einsum({x, f.table(f.f32(), {rows, NodeContext::shape(x)[1]}, weights)}, "nf,cf->nc");
  return bias ? f.add(y, f.table(f.f32(), {rows}, *bias)) : y;
}

static void importLinearRegressor(NodeContext &node) {
  int64_t targets = node.intAttr("targets", 1);
  StringRef after = node.stringAttr("post_transform", StringRef("NONE"));
  node.result(0, applyTransform(node, applyLinear(node, targets), after));
}

/// The label of the largest score. One row of coefficients with two labels is the score of the second: the first has the
/// rest.
static void importLinearClassifier(NodeContext &node) {
  Composer f(node);
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

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

namespace {
/// Inner nodes first, then leaves, which are their own children.
struct Forest {
  Ints roots, features, onTrue, onFalse, modes, missing, targets;
  SmallVector<double> splits, weights;
  SmallVector<SmallVector<double>> members;
  int64_t inner = 0, depth = 0;
};
} // namespace

/// The elements of a tensor attribute as doubles; nothing if it is not there.
static std::optional<SmallVector<double>> readTensorAttr(NodeContext &node, StringRef name) {
  if (!node.hasAttr(name))
    return std::nullopt;
  Value value = node.cast(node.tensorAttr(name, /*isOutput=*/false), node.getBuilder().getF64Type());
  auto tensor = node.failed() ? std::nullopt : node.tryConstantOf(value);
  if (!node.check(tensor.has_value(), "attribute '" + name + "' is too large"))
    return std::nullopt;
  return SmallVector<double>(tensor->as<double>());
}

/// Levels below the roots; false where a child is no node, or its own ancestor.
static bool measureDepth(Forest &forest) {
  SmallVector<std::pair<int64_t, int64_t>> stack;
  for (int64_t root : forest.roots)
    stack.push_back({root, 0});
  int64_t nodes = forest.onTrue.size(), visits = 0;
  while (!stack.empty()) {
    auto [at, level] = stack.pop_back_val();
    if (at < 0 || at >= nodes || level > forest.inner || ++visits > 4 * (nodes + int64_t(forest.roots.size())))
      return false;
    if (at >= forest.inner)
      continue;
    forest.depth = std::max(forest.depth, level + 1);
    stack.push_back({forest.onTrue[at], level + 1});
    stack.push_back({forest.onFalse[at], level + 1});
  }
  return true;
}

/// Sets of numbers, each ended by a NaN, in the order of the nodes that ask for one.
static bool readMembers(NodeContext &node, Forest &forest) {
  constexpr int64_t kMember = 6;
  forest.members.resize(forest.inner);
  std::optional<SmallVector<double>> all = readTensorAttr(node, "membership_values");
  size_t next = 0;
  for (int64_t i = 0; i < forest.inner; ++i) {
    if (forest.modes[i] != kMember)
      continue;
    for (; all && next < all->size() && !std::isnan((*all)[next]); ++next)
      forest.members[i].push_back((*all)[next]);
    if (!node.check(all && next++ < all->size(),
                    "'membership_values' does not have one set per node that asks for one"))
      return false;
  }
  return !node.failed();
}

static std::optional<Forest> readForest(NodeContext &node) {
  Forest forest;
  auto ints = [&](StringRef name) { return node.intsAttr(name).value_or(Ints()); };
  std::optional<SmallVector<double>> splits = readTensorAttr(node, "nodes_splits"),
                                     modes = readTensorAttr(node, "nodes_modes"),
                                     weights = readTensorAttr(node, "leaf_weights");
  node.ignoreAttr("nodes_hitrates"); // How often a node is met.
  if (node.failed() ||
      !node.check(splits && modes && weights, "'nodes_splits', 'nodes_modes' or 'leaf_weights' is missing"))
    return std::nullopt;
  forest.roots = ints("tree_roots"), forest.features = ints("nodes_featureids"),
  forest.targets = ints("leaf_targetids");
  forest.splits = *splits, forest.weights = *weights;
  for (double mode : *modes)
    forest.modes.push_back(int64_t(mode));
  Ints onTrue = ints("nodes_truenodeids"), onFalse = ints("nodes_falsenodeids"), isTrueLeaf = ints("nodes_trueleafs"),
       isFalseLeaf = ints("nodes_falseleafs");
  size_t inner = forest.splits.size(), leaves = forest.weights.size();
  forest.missing = node.intsAttr("nodes_missing_value_tracks_true").value_or(Ints(inner, 0));
  bool agrees =
      llvm::all_of(ArrayRef<size_t>{forest.features.size(), forest.modes.size(), onTrue.size(), onFalse.size(),
                                    isTrueLeaf.size(), isFalseLeaf.size(), forest.missing.size()},
                   [&](size_t size) { return size == inner; });
  if (!node.check(agrees && inner > 0 && leaves > 0 && forest.targets.size() == leaves && !forest.roots.empty(),
                  "the lists of nodes or leaves differ in length"))
    return std::nullopt;
  forest.inner = inner;
  for (size_t i = 0; i < inner; ++i) {
    forest.onTrue.push_back(onTrue[i] + (isTrueLeaf[i] ? forest.inner : 0));
    forest.onFalse.push_back(onFalse[i] + (isFalseLeaf[i] ? forest.inner : 0));
    if (!node.check(forest.modes[i] >= 0 && forest.modes[i] <= 6, "a node's mode is " + Twine(forest.modes[i])))
      return std::nullopt;
  }
  for (size_t i = 0; i < leaves; ++i) {
    forest.onTrue.push_back(forest.inner + i);
    forest.onFalse.push_back(forest.inner + i);
    forest.splits.push_back(0), forest.features.push_back(0), forest.modes.push_back(0), forest.missing.push_back(0);
  }
  if (!readMembers(node, forest) || !node.check(measureDepth(forest), "the nodes are no trees"))
    return std::nullopt;
  return forest;
}

/// Which samples take the true branch; only for modes that occur.
static Value takesTrue(NodeContext &node, const Forest &forest, Value at, Value value, Type type) {
  Composer f(node);
  Value split = f.gather(f.table(type, {int64_t(forest.splits.size())}, forest.splits), at, 0);
  Value mode = f.gather(node.vector(forest.modes), at, 0), result;
  for (int64_t kind = 0; kind <= 6 && !node.failed(); ++kind) {
    if (!llvm::is_contained(Shape(forest.modes).take_front(forest.inner), kind))
      continue;
    Value holds;
    if (kind == 6) {
      size_t widest = 1;
      for (const auto &set : forest.members)
        widest = std::max(widest, set.size());
      // Shorter sets are filled up with NaN, which nothing equals.
      SmallVector<double> table(forest.onTrue.size() * widest, std::nan(""));
      for (auto [i, set] : llvm::enumerate(forest.members))
        llvm::copy(set, table.begin() + i * widest);
      Value sets = f.gather(f.table(type, {int64_t(forest.onTrue.size()), int64_t(widest)}, table), at, 0);
      Value hits = node.cast(f.eq(sets, node.unsqueeze(value, {2})), f.i32());
      holds = f.gt(f.reduce(nn::ReduceKind::Max, hits, Ints{2}), 0);
    } else {
      holds = kind == 0   ? f.le(value, split)
              : kind == 1 ? f.lt(value, split)
              : kind == 2 ? f.ge(value, split)
              : kind == 3 ? f.gt(value, split)
              : kind == 4 ? f.eq(value, split)
                          : f.negate(f.eq(value, split));
    }
    result = result ? f.select(f.eq(mode, double(kind)), holds, result) : holds;
  }
  if (llvm::is_contained(forest.missing, 1)) {
    Value tracks = f.eq(f.gather(node.vector(forest.missing), at, 0), 1);
    result = f.either(result, f.both(tracks, node.create<nn::IsNanOp>(value)));
  }
  return result;
}

/// Operand: x [samples, features]. Weights of the leaves are joined per target.
static void importTreeEnsemble(NodeContext &node) {
  Composer f(node);
  Value x = node.operand(0);
  int64_t joins = node.intAttr("aggregate_function", 1), after = node.intAttr("post_transform", 0),
          targets = node.intAttr("n_targets", 1);
  std::optional<Forest> forest = readForest(node);
  if (!forest || !node.check(NodeContext::rank(x) == 2, "the input must be [samples, features]") ||
      !node.check(joins >= 0 && joins <= 3, "attribute 'aggregate_function' is " + Twine(joins)) ||
      !node.check(after >= 0 && after <= 2,
                  "attribute 'post_transform' is " + Twine(after) + ", which is not supported"))
    return;
  Type type = NodeContext::elementType(x);
  int64_t samples = NodeContext::shape(x)[0], trees = forest->roots.size();
  auto inRange = [](Shape list, int64_t end) {
    return llvm::all_of(list, [&](int64_t i) { return i >= 0 && i < end; });
  };
  if (!node.check(inRange(forest->features, NodeContext::shape(x)[1]) && inRange(forest->targets, targets),
                  "a node's feature or a leaf's target is out of range"))
    return;
  Value at = node.broadcast(node.reshape(node.vector(forest->roots), {1, trees}), {samples, trees});
  Value features = node.vector(forest->features), onTrue = node.vector(forest->onTrue),
        onFalse = node.vector(forest->onFalse);
  for (int64_t level = 0; level < forest->depth && !node.failed(); ++level) {
    Value value = node.create<nn::GatherElementsOp>(x, f.gather(features, at, 0), 1);
    at = f.select(takesTrue(node, *forest, at, value, type), f.gather(onTrue, at, 0), f.gather(onFalse, at, 0));
  }
  Value leaf = f.sub(at, double(forest->inner));
  Value weight = f.gather(f.table(type, {int64_t(forest->weights.size())}, forest->weights), leaf, 0);
  Value target = f.gather(node.vector(forest->targets), leaf, 0);
  Value isOwn = f.eq(node.unsqueeze(target, {2}), f.iota({1, 1, targets}, 2, f.i64()));
  Value y;
  if (joins <= 1) {
    y = f.sum(f.select(isOwn, node.unsqueeze(weight, {2}), 0), Ints{1});
    y = joins == 0 ? f.div(y, double(trees)) : y;
  } else {
    double none = type.isF64() ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    Value all = f.select(isOwn, node.unsqueeze(weight, {2}), joins == 2 ? none : -none);
    y = f.reduce(joins == 2 ? nn::ReduceKind::Min : nn::ReduceKind::Max, all, Ints{1});
    // A target that no leaf is of is 0, as in onnxruntime.
    Value hits = f.reduce(nn::ReduceKind::Max, node.cast(isOwn, f.i32()), Ints{1});
    y = f.select(f.gt(hits, 0), y, 0);
  }
  static constexpr StringLiteral names[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  node.result(0, applyTransform(node, y, names[after]));
}

void cleave::onnx::registerLearning(Registry &registry) {
  Arity one{1, 1};
  registry.add("ai.onnx.ml.ArrayFeatureExtractor", {2, 2}, importArrayFeatureExtractor);
  registry.add("ai.onnx.ml.Binarizer", one, importBinarizer);
  registry.add("ai.onnx.ml.LinearClassifier", {1, 1, 2}, importLinearClassifier);
  registry.add("ai.onnx.ml.LinearRegressor", one, importLinearRegressor);
  registry.add("ai.onnx.ml.Normalizer", one, importNormalizer);
  registry.add("ai.onnx.ml.Scaler", one, importScaler);
  registry.add("ai.onnx.ml.TreeEnsemble", 5, one, importTreeEnsemble);
}
