//===- Tile.cpp - blocks of sums in registers -----------------------------===//
//
// A block's cost is counted per step of the depth, in quarters of half a cycle: multiplications two a cycle, loads two a cycle,
// and four cycles at least, since a sum must wait for itself. Numbers and vectors that are loaded cost a little beside that, more
// where a panel of vectors is too large for the first cache and comes from the second for every block. Which block is
// cheapest follows: 8 x 3 of 32 registers where rows abound, 14 x 2 where these leave no rest, 6 x 4 of small panels, 1 x 8 of
// one row.
//
//===----------------------------------------------------------------------===//
#include "Tile.h"
#include "Emitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What stays in the first cache beside what else is read.
static constexpr int64_t kNearBytes = 40 << 10;

/// Of one step of the depth. What does not depend on the depth (where the sums go) is spread over it: a quarter each.
static int64_t countQuarters(int64_t rows, int64_t vectors, bool isNear) {
  if (rows == 0 || vectors == 0)
    return 0;
  return 4 * std::max({rows * vectors, rows + vectors, int64_t{8}}) + 2 * rows + (isNear ? 2 : 6) * vectors + 4;
}

/// Sums, the vectors of one step and one number share the registers. Rests of rows and of vectors are code of their own, which
/// counts as much as one in 32.
TileShape cleave::codegen::chooseTile(int64_t registers, TileExtents all, int64_t most) {
  TileShape best{1, 1, INT64_MAX};
  for (int64_t wide : {3, 4, 2, 6, 8, 1})
    for (int64_t tall = 1; tall <= std::min(all.rows, most); ++tall) {
      if (wide > all.vectors || tall * wide + wide + 1 > registers)
        continue;
      int64_t cost = 0, rest = all.rows % tall, narrow = all.vectors % wide;
      bool isNear = wide * all.vectorBytes <= kNearBytes;
      for (auto [height, times] : {std::pair(tall, all.rows / tall), std::pair(rest, int64_t{1})})
        cost +=
            times * (all.vectors / wide * countQuarters(height, wide, isNear) + countQuarters(height, narrow, isNear));
      cost += cost / 32 * ((rest > 0) + (narrow > 0));
      if (cost < best.cost)
        best = {tall, wide, cost};
    }
  best.cost /= 4;
  return best;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Operand::Operand(Emitter &e, Value value)
    : e(e), view(View::get(value)), buffer(e.getBuffer(view.base)), element(getElementType(view.base)) {}

Value Operand::getOrigin() const { return e.places.number(view.offset); }

/// Neighbors in one panel are apart by a constant, if it can be proved that they are in one.
OffsetPlace Operand::along(const ViewDim &dim, Value at, int64_t offset) const {
  PlaceBuilder &p = e.places;
  if (!dim.width)
    return {p.mul(at, dim.stride), offset * dim.stride};
  int64_t divisor = PlaceBuilder::getDivisor(at);
  if (divisor % dim.width == 0)
    return {p.mul(p.div(at, dim.width), dim.panel), offset / dim.width * dim.panel + offset % dim.width * dim.stride};
  int64_t constant = 0;
  if (offset < std::gcd(divisor, dim.width))
    constant = offset * dim.stride;
  else
    at = p.add(at, offset);
  return {p.add(p.mul(p.div(at, dim.width), dim.panel), p.mul(p.rem(at, dim.width), dim.stride)), constant};
}

Value Operand::load(Value place, int64_t apart) const {
  return e.elements.widen(e.load(buffer, element, {place, e.getLanes() > 1 ? apart : 0}));
}

void Operand::prefetch(Value place, unsigned cache) const {
  memref::PrefetchOp::create(e.b, e.loc, buffer, place, /*isWrite=*/false, cache, /*isDataCache=*/true);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Vectors of a step are loaded first, then each number once, so that both stay in registers for the step alone.
Values cleave::codegen::sumTile(Emitter &e, TileShape shape, ArrayRef<int64_t> depth, Values sums,
                                function_ref<Value(int64_t, ArrayRef<Value>)> scalar,
                                function_ref<Value(int64_t, ArrayRef<Value>)> vector) {
  return e.walk(depth, sums, [&](ArrayRef<Value> k, Values carried) {
    SmallVector<Value> vectors;
    for (int64_t v = 0; v < shape.vectors; ++v)
      vectors.push_back(vector(v, k));
    for (int64_t row = 0; row < shape.rows; ++row) {
      Value number = e.asScalar([&] { return scalar(row, k); });
      Value all = e.splat(number);
      for (int64_t v = 0; v < shape.vectors; ++v) {
        Value &sum = carried[row * shape.vectors + v];
        sum = e.elements.fma(all, vectors[v], sum);
      }
    }
    return carried;
  });
}

/// Steps of a part: enough that adding its sums, and keeping others meanwhile, costs next to nothing.
static constexpr int64_t kStepsOfPart = 256;

/// Parts are along the axis at which the depth, counted from the innermost one, becomes deep; outer axes are walked around them. Sums of parts
/// that are done wait in memory, where registers do not suffice, which is what the register allocator makes of them.
Values cleave::codegen::sumDeepTile(Emitter &e, TileShape shape, ArrayRef<int64_t> depth, const Values &none,
                                    function_ref<Value(int64_t, ArrayRef<Value>)> scalar,
                                    function_ref<Value(int64_t, ArrayRef<Value>)> vector) {
  size_t axis = depth.size();
  int64_t inside = 1;
  while (axis > 0 && inside * depth[axis - 1] < kStepsOfPart)
    inside *= depth[--axis];
  if (axis == 0 || inside * depth[axis - 1] * countElements(depth.take_front(axis - 1)) < 2 * kStepsOfPart)
    return sumTile(e, shape, depth, none, scalar, vector);
  --axis;
  int64_t size = std::min<int64_t>(depth[axis], llvm::divideCeil(kStepsOfPart, inside));
  int64_t whole = depth[axis] / size * size;
  auto addPart = [&](ArrayRef<Value> outer, Value first, int64_t count, Values sums) {
    SmallVector<int64_t> extents(depth.drop_front(axis));
    extents.front() = count;
    auto locate = [&](ArrayRef<Value> inner) {
      SmallVector<Value> k(outer);
      k.push_back(e.places.add(first, inner.front()));
      llvm::append_range(k, inner.drop_front());
      return k;
    };
    Values made = sumTile(
        e, shape, extents, none, [&](int64_t row, ArrayRef<Value> k) { return scalar(row, locate(k)); },
        [&](int64_t v, ArrayRef<Value> k) { return vector(v, locate(k)); });
    for (auto [sum, part] : llvm::zip_equal(sums, made))
      sum = e.elements.add(sum, part);
    return sums;
  };
  return e.walk(depth.take_front(axis), none, [&](ArrayRef<Value> outer, Values sums) {
    sums = e.loop(e.places.number(0), e.places.number(whole), size, sums,
                  [&](Value first, Values carried) { return addPart(outer, first, size, carried); });
    int64_t rest = depth[axis] - whole;
    return rest > 0 ? addPart(outer, e.places.number(whole), rest, sums) : sums;
  });
}

/// By way of a vector of two dims, which CompileObject.cpp turns into shuffles.
Values cleave::codegen::transposeBlock(Emitter &e, ValueRange vectors) {
  int64_t size = vectors.size();
  auto type = VectorType::get({size, size}, getElementTypeOrSelf(vectors.front()));
  Value block = e.elements.number(type, 0);
  for (auto [row, vector] : llvm::enumerate(vectors))
    block = vector::InsertOp::create(e.b, e.loc, vector, block, ArrayRef<int64_t>{int64_t(row)});
  block = vector::TransposeOp::create(e.b, e.loc, block, ArrayRef<int64_t>{1, 0});
  Values turned;
  for (int64_t row = 0; row < size; ++row)
    turned.push_back(vector::ExtractOp::create(e.b, e.loc, block, ArrayRef<int64_t>{row}));
  return turned;
}

/// Two sizes at most, so that little code is made twice.
void cleave::codegen::overBlocks(Emitter &e, int64_t count, int64_t step, function_ref<void(Value, int64_t)> body) {
  int64_t whole = count / step * step;
  if (whole == step)
    body(e.places.number(0), step);
  else if (whole > 0)
    e.loop(e.places.number(0), e.places.number(whole), step, {}, [&](Value at, Values) {
      body(at, step);
      return Values();
    });
  if (count > whole)
    body(e.places.number(whole), count - whole);
}
