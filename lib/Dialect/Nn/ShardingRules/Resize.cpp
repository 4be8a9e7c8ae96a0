//===- Resize.cpp - where samples lie on one device -----------------------===//
//
// A dim can be cut where it is left alone, and where a nearest upscaling repeats each element a whole number of times:
// result dim = [input position, repetition], and the first is parallel. Elsewhere a sample looks across the border: input
// and result are cut together. Where all ranks sample alike, at positions that differ by whole steps, the op does it; else each
// rank has tables of what its samples are made of:
//
//   aligned corners, 4 to 8      result o at 3/7 o:   0  .43 .86 1.29|1.71 2.14 2.57  3
//                                rank 0 reads 0 1 2                   rank 1 reads 1 2 3
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "Rules.h"
#include "cleave/Dialect/Nn/IR/Sampling.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// True if result position i of a nearest upscaling by an integer is input position i / scale, at any offset: always
/// for `floor(i / scale)`; centered coordinates lie strictly within half a step of it, so that rounding to nearest
/// agrees.
static bool isRepeatingNearest(ResizeOp op, int64_t input, int64_t result, double scale) {
  if (op.getMode() != ResizeMode::Nearest || input < 1 || result % input != 0 ||
      scale != static_cast<double>(result / input))
    return false;
  bool isRounded =
      op.getRounding() == NearestMode::RoundPreferFloor || op.getRounding() == NearestMode::RoundPreferCeil;
  switch (op.getCoordinates()) {
  case ResizeCoordinates::Asymmetric:
    return op.getRounding() == NearestMode::Floor;
  case ResizeCoordinates::HalfPixel:
  case ResizeCoordinates::PytorchHalfPixel:
  case ResizeCoordinates::HalfPixelSymmetric:
    return isRounded;
  case ResizeCoordinates::AlignCorners:
    return false;
  }
  return false;
}

/// Where result position o lies in the input, for o = 0 and o = -1: positions repeat with the period of the shards.
static double getPosition(ResizeOp op, int64_t o, double scale) {
  double position = static_cast<double>(o);
  return op.getCoordinates() == ResizeCoordinates::Asymmetric ? position / scale : (position + 0.5) / scale - 0.5;
}

/// True if the ratio of extents is the scale, and samples are taken by that alone. Nearest samples jump, so that positions
/// have to be exact, which quotients by whole numbers and by powers of two are.
static bool samplesAlike(ResizeOp op, int64_t input, int64_t result, double scale) {
  if (static_cast<double>(input) * scale != static_cast<double>(result) || op.getExcludeOutside() ||
      op.getCoordinates() == ResizeCoordinates::AlignCorners || (op.getAntialias() && scale < 1))
    return false;
  // Of a piece that becomes one position, that is the middle.
  if (op.getCoordinates() == ResizeCoordinates::PytorchHalfPixel && scale < 1)
    return false;
  int exponent;
  return op.getMode() != ResizeMode::Nearest || std::floor(scale) == scale || std::frexp(scale, &exponent) == 0.5;
}

/// What a rank reads around its own piece, rounded up to what makes whole positions of the result.
static SlidingDim getSlide(ResizeOp op, int64_t input, int64_t result, double scale) {
  int64_t common = std::gcd(input, result);
  SlidingDim slide;
  slide.stride = input / common;
  slide.share = result / common;
  slide.beyond = Beyond::Nearest;
  NearestMode rounding = op.getRounding();
  bool isFloor = op.getMode() == ResizeMode::Nearest && rounding == NearestMode::Floor;
  int64_t left = op.getMode() == ResizeMode::Cubic ? 1 : 0, right = isFloor ? 0 : left + 1;
  auto below = static_cast<int64_t>(std::floor(getPosition(op, 0, scale))) - left;
  auto above = static_cast<int64_t>(std::floor(getPosition(op, -1, scale))) + right + 1;
  auto roundUp = [&](int64_t count) {
    return llvm::divideCeil(std::max<int64_t>(count, 0), slide.stride) * slide.stride;
  };
  slide.low = -static_cast<int64_t>(roundUp(-below));
  slide.high = static_cast<int64_t>(roundUp(above));
  return slide;
}

/// The least that the smallest shards read around their own pieces, and so the most that larger ones do: what a larger one
/// reads at its ends, one of the smallest reads there.
static SlidingDim getReach(ResizeOp op, unsigned dim) {
  int64_t input = getShape(op.getInput())[dim], result = getShape(op.getResult())[dim],
          common = std::gcd(input, result);
  SlidingDim slide;
  slide.stride = input / common;
  slide.share = result / common;
  slide.beyond = Beyond::Nearest;
  slide.low = input;
  slide.high = -input;
  Taps taps = getTaps(op, dim);
  for (auto [number, position] : llvm::enumerate(taps.positions)) {
    int64_t shard = static_cast<int64_t>(number) / taps.count / slide.share;
    if (taps.weights[number] == 0)
      continue;
    slide.low = std::min(slide.low, position - shard * slide.stride);
    slide.high = std::max(slide.high, position + 1 - (shard + 1) * slide.stride);
  }
  return slide;
}

std::optional<ShardSampling> cleave::nn::getShardSampling(ResizeOp op, unsigned dim) {
  int64_t input = getShape(op.getInput())[dim], result = getShape(op.getResult())[dim];
  double scale = op.getScales()[dim];
  bool isTabled = scale * static_cast<double>(input) >= 0.25;
  if (std::gcd(input, result) < 2 || result == 0 || !isTabled)
    return std::nullopt;
  SlidingDim least = getReach(op, dim);
  // Sums of integers are rounded once, after the last dim, and of the same terms in the same order: the first dim goes first.
  bool isExact = op.getMode() == ResizeMode::Nearest || isa<FloatType>(getElementType(op.getInput())) ||
                 llvm::all_of(llvm::seq(dim), [&](unsigned before) { return keepsDim(op, before); });
  if (samplesAlike(op, input, result, scale))
    if (SlidingDim alike = getSlide(op, input, result, scale); alike == least || !isExact) {
      alike.isTabled = isExact;
      return ShardSampling{alike, /*byTable=*/false};
    }
  // On two ranks, each would read more than there is.
  if (!isExact || least.high - least.low > input / 2)
    return std::nullopt;
  least.isTabled = true;
  return ShardSampling{least, /*byTable=*/true};
}

ShardingRule ResizeOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> result = getShape(getResult());
  for (auto [dim, extent] : llvm::enumerate(getShape(getInput()))) {
    double scale = getScales()[dim];
    bool isLocal = scale == 1.0 || isRepeatingNearest(*this, extent, result[dim], scale);
    std::optional<ShardSampling> sampling = isLocal ? std::nullopt : getShardSampling(*this, dim);
    if (!sampling) {
      OpRule::Spatial spatial = rule.addSpatialDim(isLocal, extent, result[dim]);
      rule.operandDim(0, spatial.coarse).resultDim(0, spatial.fine);
      continue;
    }
    OpRule::Windowed factors = rule.addWindowDim(extent, result[dim], sampling->slide);
    rule.operandDim(0, factors.input).resultDim(0, factors.result);
  }
  rule.addExchange();
  return rule.finish("samples between the shards of every dim would be needed");
}
