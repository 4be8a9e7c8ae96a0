//===- LaneTiles.cpp - products of tiles by lanes, in f32 -----------------===//
//
// What it loads of each operand is four wide, and each number is used as often as there are rows of the other operand.
//
//===----------------------------------------------------------------------===//
#include "LaneTiles.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

LaneTiles::LaneTiles(DeviceEmitter &e, Type compute, Value warpRow, int64_t lines, int64_t height)
    : e(e), compute(compute), warpRow(warpRow), lines(lines), height(height) {
  Value lane = e.places.rem(e.getThread(), kWarp);
  down = e.places.div(lane, kAcross);
  across = e.places.rem(lane, kAcross);
}

Value LaneTiles::loadFour(Value memory, Value at) {
  return e.withLanes(kWide, kWide, [&] { return e.load(memory, compute, {at, 1}); });
}

/// Four elements from `at` on, of each own row of the lane.
Values LaneTiles::loadLines(Rows rows, Value at) {
  PlaceBuilder &p = e.places;
  Value place = p.add(p.mul(p.add(warpRow, down), rows.pitch), at);
  Values loaded;
  for (int64_t line = 0; line < lines; ++line)
    loaded.push_back(loadFour(rows.memory, p.add(place, line * kDown * rows.pitch)));
  return loaded;
}

Values LaneTiles::multiply(Rows own, Rows tile, int64_t depth) {
  PlaceBuilder &p = e.places;
  int64_t each = countEach();
  Value tilePlace = p.mul(across, tile.pitch);
  Values none(lines * each, e.elements.number(compute, 0));
  return e.loop(p.number(0), p.number(depth), kWide, none, [&](Value at, Values sums) {
    Values rows = loadLines(own, at), columns;
    for (int64_t i = 0; i < each; ++i)
      columns.push_back(loadFour(tile.memory, p.add(p.add(tilePlace, at), i * kAcross * tile.pitch)));
    for (int64_t i = 0; i < kWide; ++i)
      for (int64_t line = 0; line < lines; ++line)
        for (int64_t column = 0; column < each; ++column) {
          Value &sum = sums[line * each + column];
          sum = e.elements.fma(e.takeLanes(rows[line], i, 1), e.takeLanes(columns[column], i, 1), sum);
        }
    return sums;
  });
}

void LaneTiles::keep(Value factors, ValueRange numbers) {
  PlaceBuilder &p = e.places;
  int64_t each = countEach(), pitch = getFactorPitch(height);
  Value place = p.add(p.mul(p.add(warpRow, down), pitch), across);
  for (auto [number, value] : llvm::enumerate(numbers)) {
    int64_t i = number;
    e.store(factors, value, {p.add(place, i / each * kDown * pitch + i % each * kAcross)});
  }
}

Values LaneTiles::makeSums(int64_t padded) {
  Value none = e.withLanes(kWide, kWide, [&] { return e.elements.number(e.withLanes(compute), 0); });
  return Values(lines * countVectors(padded), none);
}

void LaneTiles::addRows(Value factors, Rows tile, int64_t padded, MutableArrayRef<Value> sums) {
  PlaceBuilder &p = e.places;
  int64_t vectors = countVectors(padded);
  Value columnPlace = p.mul(across, kWide);
  Values made = e.loop(p.number(0), p.number(height), kWide, llvm::to_vector<2>(sums), [&](Value at, Values inLoop) {
    Values rows = loadLines({factors, getFactorPitch(height)}, at);
    Value place = p.add(p.mul(at, tile.pitch), columnPlace);
    for (int64_t i = 0; i < kWide; ++i)
      for (int64_t v = 0; v < vectors; ++v) {
        Value column = loadFour(tile.memory, p.add(place, i * tile.pitch + v * kTogether));
        e.withLanes(kWide, kWide, [&] {
          for (int64_t line = 0; line < lines; ++line) {
            Value &sum = inLoop[line * vectors + v];
            sum = e.elements.fma(e.splat(e.takeLanes(rows[line], i, 1)), column, sum);
          }
          return 0;
        });
      }
    return inLoop;
  });
  llvm::copy(made, sums.begin());
}
