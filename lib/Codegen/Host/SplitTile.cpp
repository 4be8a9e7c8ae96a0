//===- SplitTile.cpp - products of f32 by tiles of bf16 -------------------===//
//
// The three products are one sum: its depth has another dim in front, of which each index says what parts meet.
//
//   index    numbers   pairs
//     0       high      high
//     1       high      low
//     2       low       high
//
//===----------------------------------------------------------------------===//
#include "SplitTile.h"
#include "../Emitter.h"
#include "PairTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// In front of the first row there is room for those that a tile computes a second time.
SplitTile::SplitTile(Emitter &e, ArrayRef<int64_t> depth, int64_t rows, int64_t vectors) : e(e), depth(depth), size(1) {
  for (int64_t extent : depth)
    size *= extent;
  numbersPart = (rows + kTileRows) * size;
  pairsPart = vectors * size / 2 * kTileRows;
  numbers = e.allocate(e.b.getI16Type(), 2 * numbersPart);
  pairs = e.allocate(e.b.getI32Type(), 2 * pairsPart);
}

/// What the high part leaves is exact; the low part rounds it.
std::pair<Value, Value> SplitTile::split(Value vector) {
  auto words = VectorType::get({kTileRows}, e.b.getI32Type());
  Value high = roundToHalves(e, vector);
  Value bits =
      arith::ShLIOp::create(e.b, e.loc, arith::ExtUIOp::create(e.b, e.loc, words, high), e.elements.integer(words, 16));
  return {high, roundToHalves(e, e.elements.sub(vector, e.elements.bitcast(bits, e.b.getF32Type())))};
}

void SplitTile::setNumbers(int64_t rows, function_ref<Value(Value, ArrayRef<Value>)> load) {
  PlaceBuilder &p = e.places;
  SmallVector<int64_t> steps(depth);
  steps.back() /= kTileRows;
  e.loop(rows, [&](Value row) {
    e.walk(steps, {}, [&](ArrayRef<Value> step, Values) {
      SmallVector<Value> k(step);
      k.back() = p.mul(k.back(), kTileRows);
      Value place = p.add(p.mul(p.add(row, kTileRows), size), p.linearize(k, depth));
      e.withLanes(kTileRows, kTileRows, [&] {
        auto [high, low] = split(load(row, k));
        e.store(numbers, high, {place, 1});
        e.store(numbers, low, {p.add(place, numbersPart), 1});
        return 0;
      });
      return Values();
    });
  });
}

void SplitTile::setVectors(int64_t vectors, function_ref<Value(int64_t, ArrayRef<Value>)> load) {
  PlaceBuilder &p = e.places;
  auto words = VectorType::get({kTileRows}, e.b.getI32Type());
  auto join = [&](Value even, Value odd) {
    Value upper = arith::ShLIOp::create(e.b, e.loc, arith::ExtUIOp::create(e.b, e.loc, words, odd),
                                        e.elements.integer(words, 16));
    return arith::OrIOp::create(e.b, e.loc, arith::ExtUIOp::create(e.b, e.loc, words, even), upper).getResult();
  };
  SmallVector<int64_t> steps(depth);
  steps.back() /= 2;
  e.walk(steps, {}, [&](ArrayRef<Value> step, Values) {
    SmallVector<Value> even(step), odd(step);
    even.back() = p.mul(step.back(), 2);
    odd.back() = p.add(even.back(), 1);
    for (int64_t v = 0; v < vectors; ++v) {
      Value first = load(v, even), second = load(v, odd);
      Value place = p.add(p.mul(p.linearize(step, steps), kTileRows), v * size / 2 * kTileRows);
      e.withLanes(kTileRows, kTileRows, [&] {
        auto [high, low] = split(first);
        auto [nextHigh, nextLow] = split(second);
        e.store(pairs, join(high, nextHigh), {place, 1});
        e.store(pairs, join(low, nextLow), {p.add(place, pairsPart), 1});
        return 0;
      });
    }
    return Values();
  });
}

void SplitTile::multiply(TileShape shape, int64_t allRows, Value row, Value out, Value place, int64_t outApart) {
  PlaceBuilder &p = e.places;
  auto number = [&](int64_t r, ArrayRef<Value> k) {
    Value part = p.mul(p.div(k.front(), 2), numbersPart);
    return p.add(p.add(p.mul(p.add(row, kTileRows), size), p.add(part, k.back())), r * size);
  };
  auto vector = [&](int64_t v, ArrayRef<Value> k) {
    Value part = p.mul(p.rem(k.front(), 2), pairsPart);
    return p.add(p.add(part, p.mul(p.div(k.back(), 2), kTileRows)), v * size / 2 * kTileRows);
  };
  multiplyPairs(e, {shape, allRows, {3, size}, Value(), numbers, size, number, pairs, vector, out, place, outApart});
}
