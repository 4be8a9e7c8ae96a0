//===- Random.cpp - random numbers, the same on any number of ranks -------===//
//
// It is written in i64 ops, whose products wrap; what is above 32 bits is masked off.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Random.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

static constexpr double kWordMask = 0xffffffff;
static constexpr uint32_t kMultiplier = 0xD256D193, kWeyl = 0x9E3779B9;
static constexpr int kRounds = 10;

uint32_t cleave::nn::makeRandomKey(StringRef text, std::optional<int64_t> seed) {
  uint32_t key = 2166136261u;
  auto add = [&](unsigned char byte) { key = (key ^ byte) * 16777619u; };
  llvm::for_each(text, add);
  for (unsigned shift = 0; seed && shift < 64; shift += 8)
    add(static_cast<unsigned char>(uint64_t(*seed) >> shift));
  return key;
}

/// Row-major, as i64; null of a shape without elements.
static Value composePlaces(Composer &f, Shape shape) {
  Value place = f.broadcast(f.position(0), SmallVector<int64_t>(shape.size(), 1));
  int64_t stride = ShapedType::getNumElements(shape);
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    if (extent == 0)
      return {};
    stride /= extent;
    SmallVector<int64_t> own(shape.size(), 1);
    own[dim] = extent;
    place = f.add(place, f.iota(own, dim, f.i64(), 0, stride));
  }
  return place;
}

std::pair<Value, Value> cleave::nn::composeRandomWords(Composer &f, Shape shape, uint32_t key, Value step) {
  Value place = composePlaces(f, shape);
  if (!place)
    return {f.broadcast(f.position(0), shape), f.broadcast(f.position(0), shape)};
  Value low = f.bitAnd(place, kWordMask), high = f.bitAnd(f.shiftRight(place, 32), kWordMask);
  if (step)
    high = f.bitXor(high, f.bitAnd(step, kWordMask));
  uint32_t roundKey = key;
  for (int round = 0; round < kRounds; ++round, roundKey += kWeyl) {
    Value product = f.mul(low, double(kMultiplier));
    Value above = f.bitAnd(f.shiftRight(product, 32), kWordMask);
    low = f.bitXor(f.bitXor(above, high), f.scalar(f.i64(), double(roundKey)));
    high = f.bitAnd(product, kWordMask);
  }
  return {low, high};
}
