//===- Sampling.cpp - which positions a resize reads ----------------------===//
//
// Kernels and shards read by these tables. The evaluator (lib/Reference/Resize.cpp) has the formulas too, written apart from
// these: what kernels are held against must not share their mistakes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Sampling.h"

#include <cmath>

using namespace mlir;
using namespace cleave::nn;

namespace {

/// One dim to resample.
struct Axis {
  int64_t from, to; ///< extents
  double scale;
};
} // namespace

/// The position in the operand that result position `i` maps to.
static double getSource(ResizeCoordinates mode, Axis axis, int64_t i) {
  double length = axis.scale * axis.from, source = (i + 0.5) / axis.scale - 0.5;
  if (mode == ResizeCoordinates::Asymmetric)
    source = i / axis.scale;
  if (mode == ResizeCoordinates::AlignCorners)
    source = length == 1 ? 0 : double(i) * (axis.from - 1) / (length - 1);
  if (mode == ResizeCoordinates::PytorchHalfPixel && length == 1)
    source = -0.5;
  if (mode == ResizeCoordinates::HalfPixelSymmetric)
    source += axis.from / 2.0 * (1 - axis.to / length);
  if (std::isnan(source))
    return 0;
  return std::min(std::max(source, -4.0 * axis.from - 4), 8.0 * axis.from + 8);
}

/// The operand position that a source rounds to.
static int64_t getNearest(NearestMode mode, double source, int64_t extent) {
  double below = std::floor(source), rest = source - below;
  bool up = (mode == NearestMode::RoundPreferFloor && rest > 0.5) ||
            (mode == NearestMode::RoundPreferCeil && rest >= 0.5) || (mode == NearestMode::Ceil && rest > 0);
  return std::min(std::max<int64_t>(int64_t(below) + up, 0), extent - 1);
}

/// Of linear interpolation a tent, of cubic the usual two pieces with a free coefficient.
static double getWeight(ResizeOp op, double distance) {
  double x = std::abs(distance), a = op.getCubicCoefficient().convertToDouble();
  if (op.getMode() == ResizeMode::Linear)
    return std::max(1 - x, 0.0);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static void normalize(MutableArrayRef<double> weights) {
  double sum = 0;
  for (double weight : weights)
    sum += weight;
  for (double &weight : weights)
    weight /= sum;
}

bool cleave::nn::keepsDim(ResizeOp op, unsigned dim) {
  return op.getScales()[dim] == 1 &&
         op.getInput().getType().getDimSize(dim) == op.getResult().getType().getDimSize(dim);
}

/// The taps are the nearest, an even number, those before the source preferred.
Taps cleave::nn::getTaps(ResizeOp op, unsigned dim) {
  Axis axis{op.getInput().getType().getDimSize(dim), op.getResult().getType().getDimSize(dim), op.getScales()[dim]};
  bool isNearest = op.getMode() == ResizeMode::Nearest;
  double shrink = op.getAntialias() ? std::min(axis.scale, 1.0) : 1.0; // a filter is widened by shrinking only
  int64_t radius = op.getMode() == ResizeMode::Cubic ? 2 : 1, first = int64_t(std::floor(-radius / shrink)) + 1;
  Taps taps;
  taps.count = isNearest ? 1 : 2 - 2 * first;
  for (int64_t i = 0; i < axis.to; ++i) {
    double source = getSource(op.getCoordinates(), axis, i);
    if (isNearest) {
      taps.positions.push_back(getNearest(op.getRounding(), source, axis.from));
      taps.weights.push_back(1);
      continue;
    }
    int64_t before = int64_t(std::ceil(source)) - 1;
    double ratio = source - before; // in (0, 1]
    for (int64_t tap = first; tap < first + taps.count; ++tap) {
      bool isOutside = before + tap < 0 || before + tap >= axis.from;
      taps.positions.push_back(std::min(std::max<int64_t>(before + tap, 0), axis.from - 1));
      taps.weights.push_back(isOutside && op.getExcludeOutside() ? 0 : getWeight(op, (tap - ratio) * shrink));
    }
    if (op.getAntialias() || op.getExcludeOutside())
      normalize(MutableArrayRef(taps.weights).take_back(taps.count));
  }
  return taps;
}
