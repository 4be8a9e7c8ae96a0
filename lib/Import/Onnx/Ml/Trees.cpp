//===- Trees.cpp - forests of decision trees ------------------------------===//
//
// TreeEnsemble of ai.onnx.ml 5, and its classifier and regressor of before. A forest is walked in step: each sample is at
// one node of each tree, and a step gathers feature, threshold and children of all of them. Leaves stay where they are,
// so as many steps as the deepest tree has levels are enough. What leaves add to targets is one more gather.
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include <cmath>
#include <limits>
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Elements of the table of what leaves add to targets.
constexpr int64_t kMaxForest = int64_t(1) << 26;

namespace {
/// Inner nodes first, then leaves, which are their own children.
struct Forest {
  /// What a leaf adds to which target.
  struct Weight {
    int64_t leaf, target;
    double value;
  };
  Ints roots, features, onTrue, onFalse, modes, missing;
  SmallVector<double> splits;
  SmallVector<Weight> weights;
  SmallVector<SmallVector<double>> members;
  int64_t inner = 0, depth = 0;

  int64_t countLeaves() const { return int64_t(onTrue.size()) - inner; }
};

/// How the leaves that a sample comes to are joined, by the numbers of version 5.
enum class Join { Average, Sum, Min, Max };
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

/// Nodes and leaves are in lists of their own, and a child says which it is in.
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
  forest.roots = ints("tree_roots"), forest.features = ints("nodes_featureids");
  Ints targets = ints("leaf_targetids");
  forest.splits = *splits;
  for (double mode : *modes)
    forest.modes.push_back(int64_t(mode));
  Ints onTrue = ints("nodes_truenodeids"), onFalse = ints("nodes_falsenodeids"), isTrueLeaf = ints("nodes_trueleafs"),
       isFalseLeaf = ints("nodes_falseleafs");
  size_t inner = forest.splits.size(), leaves = weights->size();
  forest.missing = node.intsAttr("nodes_missing_value_tracks_true").value_or(Ints(inner, 0));
  bool agrees =
      llvm::all_of(ArrayRef<size_t>{forest.features.size(), forest.modes.size(), onTrue.size(), onFalse.size(),
                                    isTrueLeaf.size(), isFalseLeaf.size(), forest.missing.size()},
                   [&](size_t size) { return size == inner; });
  if (!node.check(agrees && inner > 0 && leaves > 0 && targets.size() == leaves && !forest.roots.empty(),
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
    forest.weights.push_back({int64_t(i), targets[i], (*weights)[i]});
    forest.splits.push_back(0), forest.features.push_back(0), forest.modes.push_back(0), forest.missing.push_back(0);
  }
  if (!readMembers(node, forest) || !node.check(measureDepth(forest), "the nodes are not trees"))
    return std::nullopt;
  return forest;
}

/// Which samples take the true branch; only for modes that occur.
static Value takesTrue(NodeContext &node, const Forest &forest, Value at, Value value, Type type) {
  nn::Composer &f = node;
  Value split = f.gather(node.table(type, {int64_t(forest.splits.size())}, forest.splits), at, 0);
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
      Value sets = f.gather(node.table(type, {int64_t(forest.onTrue.size()), int64_t(widest)}, table), at, 0);
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

/// Walks the forest, and joins the weights of the leaves per target: [samples, targets].
static Value runForest(NodeContext &node, const Forest &forest, Join join, int64_t targets) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  Type type = NodeContext::elementType(x);
  if (!isa<FloatType>(type))
    x = node.cast(x, type = f.f32());
  if (!node.check(NodeContext::rank(x) == 2, "the input must be [samples, features]"))
    return {};
  int64_t samples = NodeContext::shape(x)[0], features = NodeContext::shape(x)[1], trees = forest.roots.size(),
          leaves = forest.countLeaves();
  auto isIn = [](int64_t i, int64_t end) { return i >= 0 && i < end; };
  if (!node.check(isIn(targets, kMaxForest / leaves + 1) && targets > 0 &&
                      llvm::all_of(forest.features, [&](int64_t i) { return isIn(i, features); }) &&
                      llvm::all_of(forest.weights, [&](auto &weight) { return isIn(weight.target, targets); }),
                  "a node's feature or a leaf's target is out of range"))
    return {};
  Value at = node.broadcast(node.reshape(node.vector(forest.roots), {1, trees}), {samples, trees});
  Value feature = node.vector(forest.features), onTrue = node.vector(forest.onTrue),
        onFalse = node.vector(forest.onFalse);
  for (int64_t level = 0; level < forest.depth && !node.failed(); ++level) {
    Value value = node.create<nn::GatherElementsOp>(x, f.gather(feature, at, 0), 1);
    at = f.select(takesTrue(node, forest, at, value, type), f.gather(onTrue, at, 0), f.gather(onFalse, at, 0));
  }
  // What a leaf adds to each target, and whether it is of it at all.
  SmallVector<double> weights(leaves * targets, 0), present(leaves * targets, 0);
  for (const Forest::Weight &weight : forest.weights) {
    weights[weight.leaf * targets + weight.target] += weight.value;
    present[weight.leaf * targets + weight.target] = 1;
  }
  Value leaf = f.sub(at, double(forest.inner));
  Value added = f.gather(node.table(type, {leaves, targets}, weights), leaf, 0);
  if (join == Join::Sum || join == Join::Average) {
    Value y = f.sum(added, Ints{1});
    return join == Join::Average ? f.div(y, double(trees)) : y;
  }
  Value isOf = f.gt(f.gather(node.table(f.f32(), {leaves, targets}, present), leaf, 0), 0.5);
  bool isMin = join == Join::Min;
  double none = isMin ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  Value y = f.reduce(isMin ? nn::ReduceKind::Min : nn::ReduceKind::Max, f.select(isOf, added, none), Ints{1});
  // A target that no leaf is of is 0, as in onnxruntime.
  return f.select(f.gt(f.reduce(nn::ReduceKind::Max, node.cast(isOf, f.i32()), Ints{1}), 0), y, 0);
}

/// Modes, splits and weights are tensors, so that they may be of the input's type.
static void importTreeEnsemble(NodeContext &node) {
  int64_t joins = node.intAttr("aggregate_function", int64_t(Join::Sum)), after = node.intAttr("post_transform", 0),
          targets = node.intAttr("n_targets", 1);
  std::optional<Forest> forest = readForest(node);
  if (!forest ||
      !node.check(joins >= 0 && joins <= int64_t(Join::Max), "attribute 'aggregate_function' is " + Twine(joins)) ||
      !node.check(after >= 0 && after <= 2,
                  "attribute 'post_transform' is " + Twine(after) + ", which is not supported"))
    return;
  static constexpr StringLiteral names[] = {"NONE", "SOFTMAX", "LOGISTIC"};
  node.result(0, applyTransform(node, runForest(node, *forest, Join(joins), targets), names[after]));
}

//===----------------------------------------------------------------------===//
// Trees before version 5
//===----------------------------------------------------------------------===//

namespace {
/// Nodes and leaves are in one list, each with the numbers of its tree and of itself in it.
class OldForest {
public:
  /// `kind` names the lists of weights: "target" or "class".
  OldForest(NodeContext &node, StringRef kind) : node(node), kind(kind.str()) {}
  std::optional<Forest> read();

private:
  bool readLists();
  bool placeNodes();
  bool readWeights();
  Ints ints(const Twine &name) { return node.intsAttr(name.str()).value_or(Ints()); }
  /// -1 if there is no such node.
  int64_t find(int64_t tree, int64_t id) const {
    auto it = places.find({tree, id});
    return it == places.end() ? -1 : it->second;
  }

  NodeContext &node;
  std::string kind;
  Forest forest;
  Ints trees, ids, features, onTrue, onFalse, missing;
  SmallVector<double> values;
  SmallVector<StringRef> modes;
  /// Where a node stands in the forest.
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
};
} // namespace

/// All lists of nodes are as long as that of the modes.
bool OldForest::readLists() {
  trees = ints("nodes_treeids"), ids = ints("nodes_nodeids"), features = ints("nodes_featureids");
  onTrue = ints("nodes_truenodeids"), onFalse = ints("nodes_falsenodeids");
  values = node.floatsAttr("nodes_values").value_or(SmallVector<double>());
  modes = node.stringsAttr("nodes_modes").value_or(SmallVector<StringRef>());
  size_t count = modes.size();
  missing = node.intsAttr("nodes_missing_value_tracks_true").value_or(Ints(count, 0));
  node.ignoreAttr("nodes_hitrates"); // How often a node is met.
  bool agrees = values.size() == count;
  for (const Ints *list : {&trees, &ids, &features, &onTrue, &onFalse, &missing})
    agrees &= list->size() == count;
  return !node.failed() && node.check(count > 0 && agrees, "the lists of nodes or leaves differ in length");
}

/// Inner nodes are numbered first. The first node of a tree is its root.
bool OldForest::placeNodes() {
  static constexpr StringLiteral known[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                            "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  size_t count = modes.size();
  for (bool wantsLeaves : {false, true})
    for (size_t i = 0; i < count; ++i)
      if ((modes[i] == "LEAF") == wantsLeaves)
        places.try_emplace({trees[i], ids[i]}, int64_t(places.size()));
  if (!node.check(places.size() == count, "a node is there twice"))
    return false;
  for (Ints *list : {&forest.features, &forest.onTrue, &forest.onFalse, &forest.modes, &forest.missing})
    list->resize(count, 0);
  forest.splits.resize(count, 0);
  for (size_t i = 0; i < count; ++i) {
    int64_t place = find(trees[i], ids[i]);
    if (!llvm::is_contained(Shape(trees).take_front(i), trees[i]))
      forest.roots.push_back(place);
    forest.onTrue[place] = forest.onFalse[place] = place;
    if (modes[i] == "LEAF")
      continue;
    const auto *mode = llvm::find(known, modes[i]);
    if (!node.check(mode != std::end(known), "a node's mode is '" + modes[i] + "', which is not known"))
      return false;
    ++forest.inner;
    forest.modes[place] = mode - known, forest.features[place] = features[i];
    forest.splits[place] = values[i], forest.missing[place] = missing[i];
    forest.onTrue[place] = find(trees[i], onTrue[i]), forest.onFalse[place] = find(trees[i], onFalse[i]);
  }
  return true;
}

/// A leaf may have weights for any number of targets.
bool OldForest::readWeights() {
  Ints ofTrees = ints(kind + "_treeids"), ofNodes = ints(kind + "_nodeids"), targets = ints(kind + "_ids");
  SmallVector<double> weights = node.floatsAttr(kind + "_weights").value_or(SmallVector<double>());
  size_t count = weights.size();
  if (node.failed() || !node.check(ofTrees.size() == count && ofNodes.size() == count && targets.size() == count,
                                   "the lists of weights differ in length"))
    return false;
  for (size_t i = 0; i < count; ++i) {
    int64_t leaf = find(ofTrees[i], ofNodes[i]) - forest.inner;
    if (!node.check(leaf >= 0, "a weight is of no leaf"))
      return false;
    forest.weights.push_back({leaf, targets[i], weights[i]});
  }
  return true;
}

std::optional<Forest> OldForest::read() {
  bool isFine = readLists() && placeNodes() && readWeights() &&
                node.check(forest.countLeaves() > 0 && measureDepth(forest), "the nodes are not trees");
  return isFine ? std::optional(std::move(forest)) : std::nullopt;
}

/// The scores of all samples in f32, with the model's own constants.
static Value addBase(NodeContext &node, Value scores, int64_t count) {
  nn::Composer &f = node;
  SmallVector<double> base = node.floatsAttr("base_values").value_or(SmallVector<double>());
  scores = node.cast(scores, f.f32());
  if (base.empty() || !node.check(int64_t(base.size()) == count,
                                  "there are " + Twine(base.size()) + " base values, expected " + Twine(count)))
    return scores;
  return f.add(scores, node.table(f.f32(), {count}, base));
}

/// `aggregate_function` is a word here, and a number in version 5.
static void importTreeRegressor(NodeContext &node) {
  static constexpr StringLiteral joins[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  StringRef join = node.stringAttr("aggregate_function", StringRef("SUM")),
            after = node.stringAttr("post_transform", StringRef("NONE"));
  int64_t targets = node.intAttr("n_targets", 1);
  const auto *known = llvm::find(joins, join);
  std::optional<Forest> forest = OldForest(node, "target").read();
  if (!forest ||
      !node.check(known != std::end(joins), "attribute 'aggregate_function' is '" + join + "', which is not known"))
    return;
  Value scores = runForest(node, *forest, Join(known - joins), targets);
  node.result(0, applyTransform(node, addBase(node, scores, targets), after));
}

/// The label with the largest score. Two classes, but weights of one only: its score decides, against one half where all
/// weights are shares, else against 0.
static void importTreeClassifier(NodeContext &node) {
  nn::Composer &f = node;
  node.check(!node.hasAttr("classlabels_strings"), "labels that are strings are not supported");
  Ints labels = node.intsAttr("classlabels_int64s").value_or(Ints());
  StringRef after = node.stringAttr("post_transform", StringRef("NONE"));
  std::optional<Forest> forest = OldForest(node, "class").read();
  if (!forest || !node.check(!labels.empty() && !forest->weights.empty(), "there are no labels, or no weights"))
    return;
  int64_t first = forest->weights.front().target;
  bool isBinary =
      labels.size() == 2 && llvm::all_of(forest->weights, [&](auto &weight) { return weight.target == first; });
  bool isShare = llvm::all_of(forest->weights, [](auto &weight) { return weight.value >= 0; });
  if (isBinary)
    for (Forest::Weight &weight : forest->weights)
      weight.target = 0;
  int64_t count = isBinary ? 1 : int64_t(labels.size());
  Value scores = addBase(node, runForest(node, *forest, Join::Sum, count), count), best;
  if (!isBinary) {
    best = node.create<nn::ArgReduceOp>(nn::ReduceKind::Max, scores, 1, false, false);
    scores = applyTransform(node, scores, after);
  } else if (scores) {
    bool isLogistic = after == "LOGISTIC" && !isShare;
    node.check(after == "NONE" || isLogistic,
               "attribute 'post_transform' is " + after + ", which is not supported of two classes with one score");
    best = node.reshape(node.cast(f.gt(scores, isShare ? 0.5 : 0.0), f.i64()), {NodeContext::shape(scores)[0]});
    scores = node.concat({isShare ? f.sub(1, scores) : f.neg(scores), scores}, 1);
    scores = isLogistic ? f.sigmoid(scores) : scores;
  }
  node.result(0, f.gather(node.vector(labels), best, 0));
  node.result(1, scores);
}

void cleave::onnx::registerTrees(Registry &registry) {
  Arity one{1, 1};
  registry.add("ai.onnx.ml.TreeEnsemble", 5, one, importTreeEnsemble);
  registry.add("ai.onnx.ml.TreeEnsembleClassifier", {1, 1, 2}, importTreeClassifier);
  registry.add("ai.onnx.ml.TreeEnsembleRegressor", one, importTreeRegressor);
}
