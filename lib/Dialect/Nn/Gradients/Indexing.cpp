//===- Indexing.cpp - gradients of lookups --------------------------------===//
//
// A lookup's gradient is added up where it looked; that of an update is looked up where it went. Indices have none.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

using namespace mlir;
using namespace cleave::nn;

/// Rows of a table that lie along another dim than the first are turned to the front, and the sum back.
///
///   g [before, indices, after]  ─▶  [indices, before, after]  ─scatter─▶  [dim, before, after]  ─▶  [before, dim, after]
LogicalResult GatherOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  int64_t dim = getDim(), count = Composer::rank(getIndices()), rank = Composer::rank(g.of());
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(dim, dim + count));
  llvm::append_range(order, llvm::seq<int64_t>(0, dim));
  llvm::append_range(order, llvm::seq<int64_t>(dim + count, rank));
  SmallVector<int64_t> table(Composer::shape(getInput()));
  std::rotate(table.begin(), table.begin() + dim, table.begin() + dim + 1);
  SmallVector<int64_t> back = llvm::to_vector(llvm::seq<int64_t>(1, dim + 1));
  back.push_back(0);
  llvm::append_range(back, llvm::seq<int64_t>(dim + 1, table.size()));
  Value zeros = f.broadcast(f.scalarLike(g.of(), 0), table);
  Value sum =
      f.create<ScatterNdOp>(ScatterKind::Add, zeros, f.unsqueeze(getIndices(), {count}), f.transpose(g.of(), order));
  return g.add(0, f.transpose(sum, back));
}

/// `d` at one index a line (the class of a sample), of a tensor of shape `table`: a comparison with all places, which is sharded along the
/// dim as it is, in place of a scatter. A negative index counts from the end.
static Value spreadOne(Composer &f, Shape table, Value indices, Value d, int64_t dim) {
  SmallVector<int64_t> line(table.size(), 1);
  int64_t size = line[dim] = table[dim];
  Value places = f.iota(line, dim, Composer::elementType(indices));
  Value counted = f.select(f.lt(indices, 0), f.add(indices, double(size)), indices);
  return f.select(f.eq(places, counted), d, 0);
}

LogicalResult GatherElementsOp::differentiate(GradientBuilder &g) {
  Shape table = Composer::shape(g.operand(0)), looked = Composer::shape(getIndices());
  int64_t dim = getDim();
  SmallVector<int64_t> line(table);
  line[dim] = 1;
  if (looked == Shape(line))
    return g.add(0, spreadOne(g.f, table, getIndices(), g.of(), dim));
  return g.add(0,
               g.f.create<ScatterElementsOp>(ScatterKind::Add, g.zerosLike(g.operand(0)), getIndices(), g.of(), dim));
}

/// One number for each tuple, its place among all that its components count, the last of them fastest.
static Value numberTuples(Composer &f, Value tuples, Shape extents) {
  SmallVector<int64_t> first(Composer::rank(tuples), 0), one(Composer::shape(tuples)), step(first.size(), 1);
  one.back() = 1;
  if (extents.size() == 1)
    return tuples;
  Value number;
  for (auto [component, extent] : llvm::enumerate(extents)) {
    first.back() = int64_t(component);
    Value index = f.slice(tuples, first, one, step);
    index = f.select(f.lt(index, 0), f.add(index, double(extent)), index);
    number = number ? f.add(f.mul(number, double(extent)), index) : index;
  }
  return number;
}

/// With paired dims, which samples have, tuples are added up in one dim between these and what comes after: there each sample has its
/// own places, and what is sharded, or split into microbatches, along paired dims stays so.
///
///   g [paired, tuples.., after]  ─▶  [paired, tuples, after]  ─scatter─▶  [paired, places, after]  ─▶  [paired, places.., after]
static Value addUpPaired(Composer &f, GatherNdOp gather, Value d) {
  Shape table = Composer::shape(gather.getInput()), indices = Composer::shape(gather.getIndices());
  int64_t paired = gather.getBatchDims(), length = indices.back();
  Shape extents = table.slice(paired, length), after = table.drop_front(paired + length);
  auto between = [&](int64_t count, Shape behind) {
    SmallVector<int64_t> shape(table.take_front(paired));
    shape.push_back(count);
    llvm::append_range(shape, behind);
    return shape;
  };
  int64_t count = ShapedType::getNumElements(indices.drop_back().drop_front(paired));
  SmallVector<int64_t> flat = between(ShapedType::getNumElements(extents), after), updates = between(count, after);
  Value numbers =
      f.reshape(numberTuples(f, gather.getIndices(), extents), between(count, SmallVector<int64_t>(after.size(), 1)));
  d = f.reshape(d, updates);
  Value sum = count == 1 ? spreadOne(f, flat, numbers, d, paired)
                         : f.create<ScatterElementsOp>(ScatterKind::Add, f.broadcast(f.scalarLike(d, 0), flat),
                                                       f.broadcast(numbers, updates), d, paired);
  return f.reshape(sum, table);
}

/// Added up at the tuples.
LogicalResult GatherNdOp::differentiate(GradientBuilder &g) {
  if (getBatchDims() != 0)
    return g.add(0, addUpPaired(g.f, *this, g.of()));
  return g.add(0, g.f.create<ScatterNdOp>(ScatterKind::Add, g.zerosLike(g.operand(0)), getIndices(), g.of()));
}

/// Only values of a row are floats: how much of the gradient went to places that are hot, and to those that are not.
LogicalResult OneHotOp::differentiate(GradientBuilder &g) {
  Composer &f = g.f;
  Value values = g.operand(1);
  auto byValues = [&] {
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, Composer::rank(g.of())));
    Value marks = f.cast(f.iota({2}, 0, f.i64()), Composer::elementType(g.of()));
    Value hot =
        f.sum(f.mul(g.of(), f.again(*this, {g.operand(0), marks}, cast<RankedTensorType>(g.of().getType()))), all);
    return f.concat({f.reshape(f.sub(f.sum(g.of(), all), hot), {1}), f.reshape(hot, {1})}, 0);
  };
  return g.addBy(values, byValues);
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

namespace {
/// What the two kinds of scatter share: `look` reads where updates went, `scatter` updates there.
struct Update {
  ScatterKind kind;
  llvm::function_ref<Value(Value from)> look;
  llvm::function_ref<Value(ScatterKind kind, Value into, Value updates)> scatter;
};
} // namespace

/// y = x times all updates of its place. The product of all others is y / u where nothing is 0, and otherwise the product of those that
/// are not 0, if u is the only one that is.
static LogicalResult differentiateProducts(GradientBuilder &g, const Update &update) {
  Composer &f = g.f;
  Value x = g.operand(0), u = g.operand(2);
  auto byUpdates = [&] {
    Value isZero = f.eq(u, 0);
    Value rest = update.scatter(ScatterKind::Mul, x, f.select(isZero, f.scalarLike(u, 1), u));
    Value zeros = update.scatter(ScatterKind::Add, g.zerosLike(x), f.cast(isZero, Composer::elementType(u)));
    Value product = update.look(rest), count = update.look(zeros);
    Value ofZero = f.select(f.eq(count, 1), product, 0);
    Value ofOther = f.select(f.eq(count, 0), f.div(product, u), 0);
    return f.mul(update.look(g.of()), f.select(isZero, ofZero, ofOther));
  };
  return success(succeeded(g.addBy(0u, [&] { return update.scatter(ScatterKind::Mul, g.of(), u); })) &&
                 succeeded(g.addBy(2, byUpdates)));
}

/// Those that equal the result have equal shares.
static LogicalResult differentiateExtremes(GradientBuilder &g, const Update &update) {
  Composer &f = g.f;
  Value x = g.operand(0), u = g.operand(2), y = g.result();
  Type type = Composer::elementType(g.of());
  Value stays = f.cast(f.eq(x, y), type), wins = f.cast(f.eq(u, update.look(y)), type);
  Value share = f.div(g.of(), update.scatter(ScatterKind::Add, stays, wins));
  return success(succeeded(g.addBy(0u, [&] { return f.mul(share, stays); })) &&
                 succeeded(g.addBy(2, [&] { return f.mul(update.look(share), wins); })));
}

/// What is set hides what was there; what is added hides nothing.
static LogicalResult differentiateUpdate(GradientBuilder &g, const Update &update) {
  switch (update.kind) {
  case ScatterKind::Set:
    return success(
        succeeded(g.addBy(0u, [&] { return update.scatter(ScatterKind::Set, g.of(), g.zerosLike(g.operand(2))); })) &&
        succeeded(g.addBy(2, [&] { return update.look(g.of()); })));
  case ScatterKind::Add:
    return success(succeeded(g.add(0u, g.of())) && succeeded(g.addBy(2, [&] { return update.look(g.of()); })));
  case ScatterKind::Mul:
    return differentiateProducts(g, update);
  case ScatterKind::Min:
  case ScatterKind::Max:
    return differentiateExtremes(g, update);
  }
  return failure();
}

/// Along one dim.
LogicalResult ScatterElementsOp::differentiate(GradientBuilder &g) {
  int64_t dim = getDim();
  auto look = [&](Value from) { return g.f.create<GatherElementsOp>(from, getIndices(), dim); };
  auto scatter = [&](ScatterKind kind, Value into, Value updates) {
    return g.f.create<ScatterElementsOp>(kind, into, getIndices(), updates, dim);
  };
  return differentiateUpdate(g, {getKind(), look, scatter});
}

/// At tuples.
LogicalResult ScatterNdOp::differentiate(GradientBuilder &g) {
  auto look = [&](Value from) { return g.f.create<GatherNdOp>(from, getIndices(), int64_t(0)); };
  auto scatter = [&](ScatterKind kind, Value into, Value updates) {
    return g.f.create<ScatterNdOp>(kind, into, getIndices(), updates);
  };
  return differentiateUpdate(g, {getKind(), look, scatter});
}
