//===- Selection.cpp - selections of what data tell -----------------------===//
//
// NonMaxSuppression, Unique, NonZero and Compress of values that are not known at import. How many rows they find only data tell, but not more
// than a bound: results have as many rows, those that are found first, and a count beside them (PaddedRows.cpp).
//
// Boxes of all samples and classes are chosen in step, the best one that is left in each, `most` times; a row that is found goes
// to the place that a running count of them says, and all others to one behind the last, which is cut off:
//
//   found   1 0 1 1     running count before it   0 1 1 2     place   0 4 1 2
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Steps of a selection, which are some thirty ops each.
constexpr int64_t kMostChosen = 1024;

Value cleave::onnx::compactRows(NodeContext &node, Value rows, Value found, double rest) {
  nn::Composer &f = node;
  Shape shape = NodeContext::shape(rows);
  Value ones = node.cast(found, f.i64());
  Value before = node.create<nn::CumsumOp>(ones, 0, /*exclusive=*/true, /*reverse=*/false);
  if (node.failed())
    return {};
  Ints larger(shape);
  ++larger[0];
  Value place = node.reshape(f.select(found, before, double(shape[0])), {shape[0], 1});
  Value base = node.broadcast(node.scalarLike(rows, rest), larger);
  Value all = node.create<nn::ScatterNdOp>(nn::ScatterKind::Set, base, place, rows);
  return node.sliceDim(all, 0, 0, shape[0]);
}

Value cleave::onnx::countRows(NodeContext &node, Value found) {
  nn::Composer &f = node;
  return f.sum(node.cast(found, f.i64()), Ints{0});
}

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

/// Low corner, high corner and area of each box, [batch, n, 5].
static Value tabulateBoxes(NodeContext &node, bool isCentered) {
  nn::Composer &f = node;
  auto number = [&](int64_t i) { return node.sliceDim(node.operand(0), 2, i, 1); };
  SmallVector<Value> low, high;
  for (int64_t dim : {0, 1}) {
    Value first = number(dim), second = number(dim + 2);
    Value half = isCentered ? f.div(second, 2) : Value();
    low.push_back(isCentered ? f.sub(first, half) : f.min(first, second));
    high.push_back(isCentered ? f.add(first, half) : f.max(first, second));
  }
  Value area = f.mul(f.sub(high[0], low[0]), f.sub(high[1], low[1]));
  return node.concat({low[0], low[1], high[0], high[1], area}, 2);
}

/// Numbers of boxes by sample and class in the order of their choice, [batch, classes, most]; -1 where there is none left.
static Value chooseBoxes(NodeContext &node, Value table, int64_t most) {
  nn::Composer &f = node;
  Value left = node.operand(1);
  Shape shape = NodeContext::shape(left);
  int64_t batch = shape[0], count = shape[2];
  auto scalar = [&](unsigned index) { return node.reshape(node.operand(index), {}); };
  Value limit = node.hasOperand(3) ? scalar(3) : node.scalarLike(left, 0);
  if (node.hasOperand(4))
    left = f.select(f.gt(left, scalar(4)), left, -INFINITY);
  SmallVector<Value> all, chosen;
  for (int64_t i = 0; i < 5; ++i)
    all.push_back(node.reshape(node.sliceDim(table, 2, i, 1), {batch, 1, count}));
  Value place = f.iota({1, 1, count}, 2, f.i64());
  for (int64_t i = 0; i < most && !node.failed(); ++i) {
    Value best = f.reduce(nn::ReduceKind::Max, left, Ints{2}, true);
    Value at = node.create<nn::ArgReduceOp>(nn::ReduceKind::Max, left, 2, /*keepDims=*/true, /*last=*/false);
    chosen.push_back(f.select(f.gt(best, -INFINITY), at, -1));
    Value box = node.create<nn::GatherNdOp>(table, at, 1);
    auto own = [&](int64_t number) { return node.sliceDim(box, 2, number, 1); };
    auto extent = [&](int64_t dim) {
      return f.max(f.sub(f.min(all[dim + 2], own(dim + 2)), f.max(all[dim], own(dim))), 0);
    };
    Value common = f.mul(extent(0), extent(1));
    Value share = f.div(common, f.sub(f.add(all[4], own(4)), common));
    Value isHidden = f.both(f.gt(common, 0), f.gt(share, limit));
    left = f.select(f.either(isHidden, f.eq(place, at)), node.scalarLike(left, -INFINITY), left);
  }
  return node.concat(chosen, 2);
}

void cleave::onnx::suppressWithinBound(NodeContext &node, int64_t most, bool isCentered) {
  nn::Composer &f = node;
  Shape shape = NodeContext::shape(node.operand(1));
  int64_t batch = shape[0], classes = shape[1], each = std::min(most, shape[2]), rows = batch * classes * each;
  if (!node.check(each <= kMostChosen, "chooses " + Twine(each) +
                                           " boxes a class of boxes that are not known at import" +
                                           ", expected at most " + Twine(kMostChosen)) ||
      !node.checkSize({rows + 1, 3}, f.i64()))
    return;
  Value chosen = chooseBoxes(node, tabulateBoxes(node, isCentered), each);
  auto column = [&](Value value) { return node.reshape(node.broadcast(value, {batch, classes, each}), {rows, 1}); };
  Value triples = node.concat(
      {column(f.iota({batch, 1, 1}, 0, f.i64())), column(f.iota({1, classes, 1}, 1, f.i64())), column(chosen)}, 1);
  Value found = node.reshape(f.ge(chosen, 0), {rows});
  node.result(0, compactRows(node, triples, found, -1));
  node.padRows({0}, countRows(node, found));
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

/// Elements in ascending order, each with its place, the first of equal ones first. `ofSorted`: which of those that differ each is.
/// Without `isSorted`, they are counted by where they are first.
void cleave::onnx::findUniqueWithinBound(NodeContext &node, bool isSorted) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  int64_t count = ShapedType::getNumElements(NodeContext::shape(x));
  x = node.reshape(x, {count});
  if (node.failed() || !node.check(count > 0, "the input is empty"))
    return;
  auto sorted = node.createAll<nn::TopKOp>(x, count, 0, /*smallest=*/true);
  if (node.failed())
    return;
  auto scatter = [&](nn::ScatterKind kind, Value places, Value updates) {
    Value base = node.broadcast(node.scalarLike(updates, 0), {count});
    return node.create<nn::ScatterNdOp>(kind, base, node.reshape(places, {count, 1}), updates);
  };
  Value differs = f.negate(f.eq(node.sliceDim(sorted[0], 0, 0, count - 1), node.sliceDim(sorted[0], 0, 1, count - 1)));
  Value first = node.cast(node.scalar(f.i64(), 1), f.boolean());
  Value isNew = count == 1 ? node.reshape(first, {1}) : node.concat({node.reshape(first, {1}), differs}, 0);
  auto number = [&](Value found) {
    return f.sub(node.create<nn::CumsumOp>(node.cast(found, f.i64()), 0, false, false), 1);
  };
  Value ofSorted = number(isNew), inverse = scatter(nn::ScatterKind::Set, sorted[1], ofSorted);
  Value values = compactRows(node, sorted[0], isNew, 0), places = compactRows(node, sorted[1], isNew, -1);
  if (!isSorted) {
    Value isFirst = scatter(nn::ScatterKind::Set, sorted[1], node.cast(isNew, f.i64()));
    isFirst = f.gt(isFirst, 0);
    inverse = f.gather(number(isFirst), f.gather(places, inverse, 0), 0);
    values = compactRows(node, x, isFirst, 0);
    places = compactRows(node, f.iota({count}, 0, f.i64()), isFirst, -1);
  }
  Value ones = node.broadcast(node.scalar(f.i64(), 1), {count});
  node.result(0, values);
  node.result(1, places);
  node.result(2, inverse);
  node.result(3, scatter(nn::ScatterKind::Add, inverse, ones));
  node.padRows({0, 1, 3}, countRows(node, isNew));
}

//===----------------------------------------------------------------------===//
// NonZero, Compress
//===----------------------------------------------------------------------===//

/// Places [rank, n], of which the columns that are found come first; all in row-major order.
void cleave::onnx::findNonZeroWithinBound(NodeContext &node) {
  nn::Composer &f = node;
  Value x = node.operand(0);
  Shape shape = NodeContext::shape(x);
  int64_t count = ShapedType::getNumElements(shape), rank = shape.size();
  if (!node.check(rank > 0 && count > 0, "of a value that is not known at import it must have dims and elements") ||
      !node.checkSize({count + 1, rank}, f.i64()))
    return;
  SmallVector<Value> columns;
  for (int64_t dim = 0; dim < rank; ++dim) {
    Ints along(rank, 1);
    along[dim] = shape[dim];
    columns.push_back(node.reshape(node.broadcast(f.iota(along, dim, f.i64()), shape), {count, 1}));
  }
  Value found = node.reshape(x, {count});
  if (!NodeContext::elementType(x).isInteger(1))
    found = f.negate(f.eq(found, 0)); // What is no number is not zero.
  node.result(0, node.transpose(compactRows(node, node.concat(columns, 1), found, 0), {1, 0}));
  node.padRows({0}, countRows(node, found), 1);
}

/// Slices along `axis` where the condition holds; behind its end it does not.
void cleave::onnx::compressWithinBound(NodeContext &node, Value input, int64_t axis) {
  Value found = node.operand(1);
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, NodeContext::rank(input)));
  std::swap(order[0], order[axis]);
  Value rows = node.sliceDim(node.transpose(input, order), 0, 0, NodeContext::shape(found)[0]);
  node.result(0, node.transpose(compactRows(node, rows, found, 0), order));
  node.padRows({0}, countRows(node, found), axis);
}
