//===- FlashWarps.cpp - attention by products of warps --------------------===//
//
// Of the 16 queries of a warp lane 4 g + t has the rows g and g + 8, of each 8 keys or components the columns 2 t and 2 t + 1
// (Device/Fragments.h). What is a sum of one product is a row of the next one, where it is: weights are rounded to the 16 bits, or the
// tf32, that are multiplied, and go to no memory. In tf32 a lane's two neighbors are not neighbors along the depth of the
// next product; there values are taken in the order of the weights.
//
//===----------------------------------------------------------------------===//
#include "Flash.h"
#include "Fragments.h"

#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class WarpFlash : public FlashKernel {
public:
  WarpFlash(DeviceEmitter &e, nn::AttentionOp op, Operands operands, TileSink sink)
      : FlashKernel(e, op, operands, sink), fragments(e, element) {}

private:
  int64_t countLines() const override { return 2; }
  int64_t countSharers() const override { return 4; }
  Value getLine(int64_t line) override { return e.places.add(fragments.getRow(), 8 * line); }
  std::pair<int64_t, int64_t> padRow(int64_t columns, bool isValue) const override;
  int64_t getMostKeys() const override { return getBits() == 16 && std::max(size, valueSize) <= 64 ? 64 : 32; }
  void begin() override;
  Values multiplyKeys() override;
  Value getKey(int64_t number) override { return e.places.add(fragments.getColumn(), number / 2 * 8 + number % 2); }
  Values makeSums() override;
  void addValues(Value first, ValueRange weights, MutableArrayRef<Value> sums) override;
  void storeLine(Value row, ValueRange sums) override;

  /// Sums of a product, whose lines take turns by twos, as a place for each line.
  static size_t toOwn(size_t sum, size_t count) { return sum % 4 / 2 * (count / 2) + sum / 4 * 2 + sum % 2; }

  Fragments fragments;
  FragmentTile queryTile, keyTile, valueTile;
  Value places[3]; ///< of this lane's fragments of queries, keys and values
};

} // namespace

/// 16 bytes more: rows then begin in other banks.
std::pair<int64_t, int64_t> WarpFlash::padRow(int64_t columns, bool isValue) const {
  int64_t padded = llvm::alignTo(columns, isValue ? 16 : fragments.getDepth());
  return {padded, padded + 128 / getBits()};
}

void WarpFlash::begin() {
  PlaceBuilder &p = e.places;
  queryTile = {query.memory, query.pitch, /*alongDepth=*/true, /*isColumns=*/false};
  keyTile = {key.memory, key.pitch, /*alongDepth=*/true, /*isColumns=*/true};
  valueTile = {value.memory, value.pitch, /*alongDepth=*/false, /*isColumns=*/true, /*inOrderOfSums=*/true};
  places[0] = p.add(fragments.getLanePlace(queryTile), p.mul(warpRow, query.pitch));
  places[1] = fragments.getLanePlace(keyTile);
  places[2] = fragments.getLanePlace(valueTile);
}

/// Of each 8 keys four scores of this lane.
Values WarpFlash::multiplyKeys() {
  PlaceBuilder &p = e.places;
  Values scores(height / 8 * Fragments::kSums, e.elements.number(compute, 0)), sorted(scores);
  for (int64_t depth = 0; depth < query.padded; depth += fragments.getDepth()) {
    Values rows = fragments.load(queryTile, p.add(places[0], queryTile.at(0, depth)));
    for (int64_t at = 0; at < height; at += 16) {
      Values columns = fragments.load(keyTile, p.add(places[1], keyTile.at(at, depth)));
      for (int64_t half : {0, 1})
        fragments.multiply(rows, ArrayRef(columns).slice(2 * half, 2),
                           MutableArrayRef(scores).slice((at / 8 + half) * Fragments::kSums, Fragments::kSums));
    }
  }
  for (size_t i = 0; i < scores.size(); ++i)
    sorted[toOwn(i, scores.size())] = scores[i];
  return sorted;
}

Values WarpFlash::makeSums() { return Values(value.padded / 8 * Fragments::kSums, e.elements.number(compute, 0)); }

void WarpFlash::addValues(Value, ValueRange weights, MutableArrayRef<Value> sums) {
  PlaceBuilder &p = e.places;
  Values products(sums.size()), inTurn(weights.size());
  for (size_t i = 0; i < sums.size(); ++i)
    products[i] = sums[toOwn(i, sums.size())];
  for (size_t i = 0; i < weights.size(); ++i)
    inTurn[i] = weights[toOwn(i, weights.size())];
  int64_t depth = fragments.getDepth();
  for (int64_t at = 0; at < height; at += depth) {
    Values rows = fragments.toRows(ArrayRef(inTurn).slice(at / 2, depth / 2));
    for (int64_t column = 0; column < value.padded; column += 16) {
      Values columns = fragments.load(valueTile, p.add(places[2], valueTile.at(column, at)));
      for (int64_t half : {0, 1})
        fragments.multiply(rows, ArrayRef(columns).slice(2 * half, 2),
                           MutableArrayRef(products).slice((column / 8 + half) * Fragments::kSums, Fragments::kSums));
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[toOwn(i, sums.size())] = products[i];
}

/// Two neighbors of each eight, of which one or none may be there.
void WarpFlash::storeLine(Value row, ValueRange sums) {
  PlaceBuilder &p = e.places;
  for (int64_t column = 0; column < valueSize; column += 8) {
    ValueRange pair = sums.slice(column / 4, 2);
    Value at = p.add(fragments.getColumn(), column);
    bool mayEnd = column + 8 > valueSize;
    if (valueSize % 2 == 0) {
      storeAt(row, at, vector::FromElementsOp::create(e.b, e.loc, VectorType::get({2}, compute), pair), mayEnd);
      continue;
    }
    for (int64_t i : {0, 1})
      storeAt(row, p.add(at, i), pair[i], mayEnd);
  }
}

std::unique_ptr<FlashKernel> cleave::codegen::makeFlashOfWarps(DeviceEmitter &e, nn::AttentionOp op,
                                                               FlashKernel::Operands operands, TileSink sink) {
  return std::make_unique<WarpFlash>(e, op, operands, sink);
}
