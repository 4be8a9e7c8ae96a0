//===- Resize.cpp - where samples lie on one device -----------------------===//
//
// A dim can be cut where it is left alone, and where a nearest upscaling repeats each element a whole number of times:
// result dim = [input position, repetition], and the first is parallel. Elsewhere a sample looks across the border.
//
//===----------------------------------------------------------------------===//
#include "Rules.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

/// True if result position i of a nearest upscaling by an integer is input position i / scale, at any offset: always
/// for `floor(i / scale)`; centred coordinates lie strictly within half a step of it, so that rounding to nearest
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

ShardingRule ResizeOp::getShardingRule() {
  OpRule rule(*this);
  ArrayRef<int64_t> result = shapeOf(getResult());
  for (auto [dim, extent] : llvm::enumerate(shapeOf(getInput()))) {
    bool isLocal = getScales()[dim] == 1.0 || isRepeatingNearest(*this, extent, result[dim], getScales()[dim]);
    OpRule::Spatial spatial = rule.addSpatialDim(isLocal, extent, result[dim]);
    rule.operandDim(0, spatial.coarse).resultDim(0, spatial.fine);
  }
  return rule.finish("samples between the shards of every dim would be needed");
}
