//===- FlashLanes.cpp - attention in f32, lane by lane --------------------===//
//
// The lanes of a warp stand in four rows of eight. Lane 8 g + c has the queries g, g + 4, g + 8 and g + 12 of the warp's 16, and
//
//   scores   of the keys c, c + 8, ..: of four of the depth it loads its queries and keys, and multiplies each with each, fused
//   sums     of four components of each 32, from 4 c on: of four keys it loads weights and values likewise
//
// Lanes of one row load the same queries and weights, and keys or values side by side: no two of them want different words of one bank.
// Weights go through memory of the block; where heads are large, values come to where keys were.
//
//===----------------------------------------------------------------------===//
#include "Flash.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class LaneFlash : public FlashKernel {
public:
  using FlashKernel::FlashKernel;

private:
  int64_t countLines() const override { return kRows / kDown; }
  int64_t countSharers() const override { return kAcross; }
  Value getLine(int64_t line) override { return e.places.add(down, line * kDown); }
  std::pair<int64_t, int64_t> padRow(int64_t columns, bool isValue) const override;
  int64_t countMore() const override { return kRows * warps * getWeightsPitch(); }
  bool isApart() const override { return std::max(size, valueSize) <= 64; }
  int64_t getMostKeys() const override { return 32; }
  void begin() override;
  Values multiplyKeys() override;
  Value getKey(int64_t number) override { return e.places.add(across, number * kAcross); }
  Values makeSums() override;
  void addValues(Value first, ValueRange weights, MutableArrayRef<Value> sums) override;
  void storeLine(Value row, ValueRange sums) override;

  static constexpr int64_t kDown = 4, kAcross = 8, kWide = 4, kTogether = kAcross * kWide;
  int64_t getWeightsPitch() const { return height + kWide; }
  Value loadFour(Value memory, Value at);

  Value down, across; ///< where this lane stands
  Value weights;
};

} // namespace

/// An odd number of fours: eight rows begin in eight different groups of banks.
std::pair<int64_t, int64_t> LaneFlash::padRow(int64_t columns, bool isValue) const {
  int64_t padded = llvm::alignTo(columns, isValue ? kTogether : kWide);
  return {padded, isValue ? padded : (padded / kWide | 1) * kWide};
}

void LaneFlash::begin() {
  PlaceBuilder &p = e.places;
  Value lane = p.rem(e.getThread(), kWarp);
  down = p.div(lane, kAcross);
  across = p.rem(lane, kAcross);
  weights = e.share(compute, countMore());
  e.preferRegisters();
}

Value LaneFlash::loadFour(Value memory, Value at) {
  return e.withLanes(kWide, kWide, [&] { return e.load(memory, compute, {at, 1}); });
}

Values LaneFlash::multiplyKeys() {
  PlaceBuilder &p = e.places;
  int64_t lines = countLines(), each = height / kAcross;
  Value rowPlace = p.mul(p.add(warpRow, down), query.pitch), keyPlace = p.mul(across, key.pitch);
  return e.loop(p.number(0), p.number(query.padded), kWide, Values(lines * each, e.elements.number(compute, 0)),
                [&](Value depth, Values sums) {
                  Values rows, columns;
                  for (int64_t line = 0; line < lines; ++line)
                    rows.push_back(loadFour(query.memory, p.add(p.add(rowPlace, depth), line * kDown * query.pitch)));
                  for (int64_t i = 0; i < each; ++i)
                    columns.push_back(loadFour(key.memory, p.add(p.add(keyPlace, depth), i * kAcross * key.pitch)));
                  for (int64_t i = 0; i < kWide; ++i)
                    for (int64_t line = 0; line < lines; ++line)
                      for (int64_t column = 0; column < each; ++column) {
                        Value &sum = sums[line * each + column];
                        sum = e.elements.fma(e.takeLanes(rows[line], i, 1), e.takeLanes(columns[column], i, 1), sum);
                      }
                  return sums;
                });
}

/// A vector for each 32 components.
Values LaneFlash::makeSums() {
  Value none = e.withLanes(kWide, kWide, [&] { return e.elements.number(e.withLanes(compute), 0); });
  return Values(countLines() * value.padded / kTogether, none);
}

/// What weights are stored for is read by lanes of the same warp only, but the block waits for values, too.
void LaneFlash::addValues(Value first, ValueRange own, MutableArrayRef<Value> sums) {
  PlaceBuilder &p = e.places;
  int64_t lines = countLines(), each = height / kAcross, pitch = getWeightsPitch();
  Value rowPlace = p.mul(p.add(warpRow, down), pitch), columnPlace = p.mul(across, kWide);
  for (int64_t i = 0; i < int64_t(own.size()); ++i)
    e.store(weights, own[i], {p.add(p.add(rowPlace, across), i / each * kDown * pitch + i % each * kAcross)});
  if (!isApart()) {
    e.barrier();
    fill(value, kvHead, first, height);
  }
  e.barrier();
  int64_t vectors = value.padded / kTogether;
  Values made = e.loop(p.number(0), p.number(height), kWide, llvm::to_vector<2>(sums), [&](Value at, Values inner) {
    Values rows;
    for (int64_t line = 0; line < lines; ++line)
      rows.push_back(loadFour(weights, p.add(p.add(rowPlace, at), line * kDown * pitch)));
    Value place = p.add(p.mul(at, value.pitch), columnPlace);
    for (int64_t i = 0; i < kWide; ++i)
      for (int64_t v = 0; v < vectors; ++v) {
        Value column = loadFour(value.memory, p.add(place, i * value.pitch + v * kTogether));
        e.withLanes(kWide, kWide, [&] {
          for (int64_t line = 0; line < lines; ++line) {
            Value &sum = inner[line * vectors + v];
            sum = e.elements.fma(e.splat(e.takeLanes(rows[line], i, 1)), column, sum);
          }
          return 0;
        });
      }
    return inner;
  });
  llvm::copy(made, sums.begin());
}

/// Four neighbors at once where all of them, or none, are there.
void LaneFlash::storeLine(Value row, ValueRange sums) {
  PlaceBuilder &p = e.places;
  for (auto [number, vector] : llvm::enumerate(sums)) {
    Value column = p.add(p.mul(across, kWide), int64_t(number) * kTogether);
    bool mayEnd = (int64_t(number) + 1) * kTogether > valueSize;
    if (valueSize % kWide == 0) {
      storeAt(row, column, vector, mayEnd);
      continue;
    }
    for (int64_t i = 0; i < kWide; ++i)
      storeAt(row, p.add(column, i), e.takeLanes(vector, i, 1), mayEnd);
  }
}

std::unique_ptr<FlashKernel> cleave::codegen::makeFlashOfLanes(DeviceEmitter &e, nn::AttentionOp op,
                                                               FlashKernel::Operands operands, TileSink sink) {
  return std::make_unique<LaneFlash>(e, op, operands, sink);
}
