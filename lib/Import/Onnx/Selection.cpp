//===- Selection.cpp - results as long as values say ----------------------===//
//
// NonMaxSuppression and Unique choose elements, and how many is known only with the values. Where these are known (constants,
// or inputs whose arrays are given) so are results; what is computed has a bound (Bounded/Selection.cpp). Unique still gathers what it found from its operand. TfIdfVectorizer counts n-grams, which has a
// known shape: windows of the sequence are compared with all n-grams at once.
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "NodeContext.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// The elements of an operand that must be known, in a type that holds those of all types exactly.
static std::optional<std::vector<long double>> readNumbers(NodeContext &node, unsigned index) {
  nn::Composer &f = node;
  Value value = node.operand(index);
  if (!node.tryConstant(index)) {
    node.check(node.failed(), "its result's shape depends on the values of operand " + Twine(index) +
                                  ", which must be known at import" + node.explainUnknown());
    return std::nullopt;
  }
  Type type = NodeContext::elementType(value);
  bool isFloat = isa<FloatType>(type), isLargest = type.isUnsignedInteger(64);
  Type wide = isFloat ? Type(node.getBuilder().getF64Type()) : isLargest ? type : f.i64();
  auto tensor = node.tryConstantOf(node.cast(value, wide));
  if (!node.check(tensor.has_value(), "the values of operand " + Twine(index) + " are too many to be read at import"))
    return std::nullopt;
  std::vector<long double> numbers;
  if (isFloat)
    llvm::append_range(numbers, tensor->as<double>());
  else if (isLargest)
    llvm::append_range(numbers, tensor->as<uint64_t>());
  else
    llvm::append_range(numbers, tensor->as<int64_t>());
  return numbers;
}

/// Results are those for these values: computed ones are not asked for, though a program of few ops could be run at import.
static bool isComputed(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return op && !nn::isData(op);
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

/// Which places hold what is known at import; the elements are gathered from the operand, so that it is still read.
static void importUnique(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  bool isSorted = node.boolAttr("sorted", true), isFlat = !node.hasAttr("axis");
  if (isFlat && isComputed(x))
    return findUniqueWithinBound(node, isSorted);
  if (isFlat)
    x = node.reshape(x, {ShapedType::getNumElements(NodeContext::shape(x))});
  int64_t axis = isFlat ? 0 : node.axis(node.intAttr("axis"), NodeContext::rank(x));
  std::optional<std::vector<long double>> numbers = node.failed() ? std::nullopt : readNumbers(node, 0);
  if (!numbers)
    return;
  Shape shape = NodeContext::shape(x);
  int64_t outer = ShapedType::getNumElements(shape.take_front(axis)), count = shape[axis],
          inner = ShapedType::getNumElements(shape.drop_front(axis + 1));
  // Slices in ascending order, each with the places where it occurs.
  std::map<std::vector<long double>, Ints> found;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<long double> slice;
    for (int64_t o = 0; o < outer; ++o)
      slice.insert(slice.end(), numbers->begin() + (o * count + i) * inner,
                   numbers->begin() + (o * count + i + 1) * inner);
    found[slice].push_back(i);
  }
  SmallVector<Ints> places;
  for (auto &entry : found)
    places.push_back(entry.second);
  if (!isSorted)
    llvm::sort(places, [](const Ints &a, const Ints &b) { return a.front() < b.front(); });
  Ints firsts, inverse(count, 0), counts;
  for (auto [i, list] : llvm::enumerate(places)) {
    firsts.push_back(list.front());
    counts.push_back(list.size());
    for (int64_t place : list)
      inverse[place] = i;
  }
  node.result(0, f.gather(x, node.vector(firsts), axis));
  node.result(1, node.vector(firsts));
  node.result(2, node.vector(inverse));
  node.result(3, node.vector(counts));
}

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

namespace {
struct Box {
  float low[2], high[2];
};
} // namespace

/// Intersection over union, in f32 as those compute it whose choices are compared.
static float overlap(const Box &a, const Box &b) {
  float common = 1, first = 1, second = 1;
  for (int dim : {0, 1}) {
    float low = std::max(a.low[dim], b.low[dim]), high = std::min(a.high[dim], b.high[dim]);
    if (high <= low)
      return 0;
    common *= high - low;
    first *= a.high[dim] - a.low[dim];
    second *= b.high[dim] - b.low[dim];
  }
  float all = first + second - common;
  return common <= 0 || first <= 0 || second <= 0 || all <= 0 ? 0 : common / all;
}

/// Four numbers: two corners, or the center and the sizes.
static Box makeBox(const long double *numbers, bool isCentered) {
  Box box;
  for (int dim : {0, 1}) {
    float first = float(numbers[dim]), second = float(numbers[dim + 2]);
    box.low[dim] = isCentered ? first - second / 2 : std::min(first, second);
    box.high[dim] = isCentered ? first + second / 2 : std::max(first, second);
  }
  return box;
}

/// Boxes of one class, best first, without those that overlap one that is chosen.
static Ints choose(ArrayRef<Box> boxes, const long double *scores, int64_t most, float limit,
                   std::optional<float> least) {
  Ints order, chosen;
  for (int64_t i = 0; i < int64_t(boxes.size()); ++i)
    if (!least || float(scores[i]) > *least)
      order.push_back(i);
  llvm::sort(order, [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  for (int64_t i : order) {
    if (int64_t(chosen.size()) >= most)
      break;
    if (llvm::none_of(chosen, [&](int64_t other) { return overlap(boxes[i], boxes[other]) > limit; }))
      chosen.push_back(i);
  }
  return chosen;
}

/// Operands: boxes [batch, n, 4], scores [batch, classes, n], how many per class, the largest overlap, the least score.
static void importNonMaxSuppression(NodeContext &node) {
  bool isCentered = node.boolAttr("center_point_box", false);
  Shape boxShape = NodeContext::shape(node.operand(0)), shape = NodeContext::shape(node.operand(1));
  if (!node.check(boxShape.size() == 3 && boxShape[2] == 4 && shape.size() == 3 && shape[0] == boxShape[0] &&
                      shape[2] == boxShape[1],
                  "the boxes must be [batch, count, 4], and the scores [batch, classes, count]"))
    return;
  int64_t most = node.hasOperand(2) ? node.constantInt(2) : 0;
  if (node.failed())
    return;
  // Of nothing, nothing is chosen, whatever the values.
  if (most <= 0 || ShapedType::getNumElements(shape) == 0)
    return node.result(0, node.reshape(node.vector(Ints()), {0, 3}));
  if (isComputed(node.operand(0)) || isComputed(node.operand(1)))
    return suppressWithinBound(node, most, isCentered);
  auto boxes = readNumbers(node, 0);
  auto scores = boxes ? readNumbers(node, 1) : std::nullopt;
  if (!scores)
    return;
  auto scalar = [&](unsigned index) -> std::optional<float> {
    SmallVector<double> values = node.hasOperand(index) ? node.constantFloats(index) : SmallVector<double>();
    return values.empty() ? std::nullopt : std::optional(float(values[0]));
  };
  float limit = scalar(3).value_or(0);
  std::optional<float> least = scalar(4);
  if (node.failed())
    return;
  Ints found;
  for (int64_t batch = 0; batch < shape[0]; ++batch) {
    SmallVector<Box> own;
    for (int64_t i = 0; i < shape[2]; ++i)
      own.push_back(makeBox(boxes->data() + (batch * shape[2] + i) * 4, isCentered));
    for (int64_t kind = 0; kind < shape[1]; ++kind)
      for (int64_t i : choose(own, scores->data() + (batch * shape[1] + kind) * shape[2], most, limit, least))
        found.append({batch, kind, i});
  }
  node.result(0, node.reshape(node.vector(found), {int64_t(found.size()) / 3, 3}));
}

//===----------------------------------------------------------------------===//
// TfIdfVectorizer
//===----------------------------------------------------------------------===//

namespace {
/// n-grams of one length: their numbers in a row, and the columns in which they are counted.
struct Grams {
  int64_t length;
  Ints numbers, columns;
};
} // namespace

/// Comparisons that are made at most: of windows with n-grams.
constexpr int64_t kMaxComparisons = int64_t(1) << 26;

/// The pool holds all n-grams of length 1, then those of length 2, and so on; only lengths in range are counted.
static std::optional<SmallVector<Grams>> readGrams(NodeContext &node, Shape columns) {
  if (!node.check(!node.hasAttr("pool_strings"), "strings are not supported"))
    return std::nullopt;
  Ints starts = node.intsAttr("ngram_counts").value_or(Ints()), pool = node.intsAttr("pool_int64s").value_or(Ints());
  int64_t least = node.intAttr("min_gram_length"), most = node.intAttr("max_gram_length"), next = 0;
  SmallVector<Grams> all;
  for (auto [i, start] : llvm::enumerate(starts)) {
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : int64_t(pool.size()), length = int64_t(i) + 1;
    if (!node.check(start >= 0 && start <= end && end <= int64_t(pool.size()) && (end - start) % length == 0,
                    "'ngram_counts' does not fit 'pool_int64s'"))
      return std::nullopt;
    Grams grams{length, Ints(Shape(pool).slice(start, end - start)), {}};
    for (int64_t gram = 0; gram < (end - start) / length; ++gram, ++next) {
      if (!node.check(next < int64_t(columns.size()), "'ngram_indexes' has fewer entries than there are n-grams"))
        return std::nullopt;
      grams.columns.push_back(columns[next]);
    }
    if (length >= least && length <= most && !grams.columns.empty())
      all.push_back(grams);
  }
  return node.failed() ? std::nullopt : std::optional(all);
}

/// Windows [batch, places, n] equal n-grams [grams, n]; sums over places go to the columns of the n-grams.
static void importTfIdf(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  Shape shape = NodeContext::shape(x);
  StringRef mode = node.stringAttr("mode");
  int64_t skips = node.intAttr("max_skip_count");
  Ints columns = node.intsAttr("ngram_indexes").value_or(Ints());
  SmallVector<double> weights = node.floatsAttr("weights").value_or(SmallVector<double>());
  std::optional<SmallVector<Grams>> all = readGrams(node, columns);
  if (!all ||
      !node.check(llvm::is_contained({"TF", "IDF", "TFIDF"}, mode),
                  "attribute 'mode' is '" + mode + "', which is not known") ||
      !node.check((shape.size() == 1 || shape.size() == 2) && skips >= 0 && skips < (1 << 20),
                  "the input must have 1 or 2 dims") ||
      !node.check(!columns.empty() && llvm::all_of(columns, [](int64_t c) { return c >= 0 && c < (1 << 24); }) &&
                      (weights.empty() || weights.size() == columns.size()),
                  "'ngram_indexes' or 'weights' are out of range"))
    return;
  int64_t batch = shape.size() == 2 ? shape[0] : 1, length = shape.back(), width = *llvm::max_element(columns) + 1,
          work = 0;
  Value tokens = node.cast(node.reshape(x, {batch, length}), f.i64());
  Value counts = node.broadcast(node.scalar(f.f32(), 0), {batch, width});
  for (const Grams &grams : *all)
    for (int64_t step = 1; step <= (grams.length == 1 ? 1 : skips + 1); ++step) {
      int64_t places = length - (grams.length - 1) * step, number = grams.columns.size();
      if (places <= 0 || node.failed())
        continue;
      work += batch * places * number * grams.length;
      if (!node.check(work <= kMaxComparisons, "more than " + Twine(kMaxComparisons) + " comparisons with n-grams"))
        return;
      Value place = f.add(f.iota({places, 1}, 0, f.i64()), f.iota({1, grams.length}, 1, f.i64(), 0, step));
      Value windows = node.unsqueeze(f.gather(tokens, place, 1), {2});
      Value table = node.reshape(node.vector(grams.numbers), {number, grams.length});
      Value same = node.cast(f.eq(windows, table), f.f32());
      Value found = f.sum(f.reduce(nn::ReduceKind::Min, same, Ints{3}), Ints{1});
      Value homes =
          node.create<nn::OneHotOp>(node.vector(grams.columns), node.cast(node.vector({0, 1}), f.f32()), width, 1);
      counts = f.add(counts, f.einsum({found, homes}, "bg,gc->bc"));
    }
  Value y = counts;
  if (mode != "TF") {
    SmallVector<double> factors(width, 1);
    for (auto [column, weight] : llvm::zip(columns, weights))
      factors[column] = weight;
    Value factor = node.table(f.f32(), {width}, factors);
    y = mode == "TFIDF" ? f.mul(counts, factor) : f.mul(node.cast(f.gt(counts, 0), f.f32()), factor);
  }
  node.result(0, shape.size() == 2 ? y : node.reshape(y, {width}));
}

void cleave::onnx::registerSelection(Registry &registry) {
  registry.add("NonMaxSuppression", 10, {2, 5}, importNonMaxSuppression).mix(Mixing::Selection);
  registry.add("TfIdfVectorizer", 9, {1, 1}, importTfIdf);
  registry.add("Unique", 11, {1, 1, 4}, importUnique);
}
