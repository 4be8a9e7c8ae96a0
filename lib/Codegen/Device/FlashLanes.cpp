//===- FlashLanes.cpp - attention in f32, lane by lane --------------------===//
//
// Of the 16 queries of a warp a lane has four, and of a tile every eighth key (LaneTiles.h). Where heads are large, values come to where
// keys were.
//
//===----------------------------------------------------------------------===//
#include "Flash.h"
#include "LaneTiles.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class LaneFlash : public FlashKernel {
public:
  using FlashKernel::FlashKernel;

private:
  int64_t countLines() const override { return kRows / LaneTiles::kDown; }
  int64_t countSharers() const override { return LaneTiles::kAcross; }
  Value getLine(int64_t line) override { return e.places.add(tiles->down, line * LaneTiles::kDown); }
  std::pair<int64_t, int64_t> padRow(int64_t columns, bool isValue) const override;
  int64_t countMore() const override { return kRows * warps * LaneTiles::getFactorPitch(height); }
  bool isApart() const override { return std::max(size, valueSize) <= 64; }
  int64_t getMostKeys() const override { return 32; }
  void begin() override;
  Values multiplyKeys() override { return tiles->multiply(getRows(query), getRows(key), query.padded); }
  Value getKey(int64_t number) override { return e.places.add(tiles->across, number * LaneTiles::kAcross); }
  Values makeSums() override { return tiles->makeSums(value.padded); }
  void addValues(Value first, ValueRange weights, MutableArrayRef<Value> sums) override;
  void storeLine(Value row, ValueRange sums) override;

  static LaneTiles::Rows getRows(const Side &side) { return {side.memory, side.pitch}; }

  std::optional<LaneTiles> tiles; ///< once places are known
  Value weights;
};

} // namespace

/// An odd number of fours: eight rows begin in eight different groups of banks.
std::pair<int64_t, int64_t> LaneFlash::padRow(int64_t columns, bool isValue) const {
  constexpr int64_t kWide = LaneTiles::kWide;
  int64_t padded = llvm::alignTo(columns, isValue ? LaneTiles::kTogether : kWide);
  return {padded, isValue ? padded : (padded / kWide | 1) * kWide};
}

void LaneFlash::begin() {
  tiles.emplace(e, compute, warpRow, countLines(), height);
  weights = e.share(compute, countMore());
  e.preferRegisters();
}

/// What weights are stored for is read by lanes of the same warp only, but the block waits for values, too.
void LaneFlash::addValues(Value first, ValueRange own, MutableArrayRef<Value> sums) {
  tiles->keep(weights, own);
  if (!isApart()) {
    e.barrier();
    fill(value, kvHead, first, height);
  }
  e.barrier();
  tiles->addRows(weights, getRows(value), value.padded, sums);
}

/// Four neighbors at once where all of them, or none, are there.
void LaneFlash::storeLine(Value row, ValueRange sums) {
  constexpr int64_t kWide = LaneTiles::kWide, kTogether = LaneTiles::kTogether;
  PlaceBuilder &p = e.places;
  for (auto [number, vector] : llvm::enumerate(sums)) {
    Value column = p.add(p.mul(tiles->across, kWide), int64_t(number) * kTogether);
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
