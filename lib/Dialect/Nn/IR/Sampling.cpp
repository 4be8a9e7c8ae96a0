//===- Sampling.cpp - which positions a resize reads ----------------------===//
//
// Kernels and shards read by these tables. The evaluator (lib/Reference/Resize.cpp) has the formulas too, written apart from
// these: what kernels are held against must not share their mistakes.
//
// Nearest samples jump where a position is whole, or half of a step on: there the last bit of a quotient decides. So positions are
// fractions. A scale stands for one, exactly: the quotient of two sizes, which its double is the closest to, or a number of f32.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Sampling.h"
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace cleave::nn;

namespace {

/// Products of extents, scales' terms and positions fit.
using Wide = __int128;

/// A number above 0.
struct Fraction {
  int64_t above, below;
};

/// One dim to resample.
struct Axis {
  int64_t from, to; ///< extents
  Fraction scale;
};

/// A position in the operand: a whole one, and what is to be gone from there, from 0 up to 1 without it.
struct Source {
  int64_t whole;
  Wide rest, of; ///< a fraction

  double getRest() const { return static_cast<double>(rest) / static_cast<double>(of); }
};
} // namespace

/// The simplest fraction whose quotient is `scale`: the last but the terms that only say how a double rounded it. What takes more than
/// 62 bits is cut off there.
static Fraction toFraction(double scale) {
  int exponent;
  auto above = static_cast<int64_t>(std::ldexp(std::frexp(scale, &exponent), 53));
  int zeros = llvm::countr_zero(static_cast<uint64_t>(above));
  above >>= zeros;
  exponent += zeros - 53;
  if (exponent >= 0)
    return {above << std::min(exponent, 62 - (53 - zeros)), 1};
  int shift = std::max(-exponent - 62, 0);
  above = std::max<int64_t>(shift < 63 ? above >> shift : 0, 1);
  Fraction whole{above, int64_t(1) << std::min(-exponent, 62)};
  // Convergents of the continued fraction, of which each is closer than the one before it.
  Fraction now{1, 0}, last{0, 1}, rest = whole;
  while (rest.below != 0) {
    int64_t term = rest.above / rest.below;
    Fraction next{term * now.above + last.above, term * now.below + last.below};
    if (static_cast<double>(next.above) / static_cast<double>(next.below) == scale)
      return next;
    last = std::exchange(now, next);
    rest = {rest.below, rest.above % rest.below};
  }
  return whole;
}

/// The position in the operand that result position `i` maps to, as above / below.
static std::pair<Wide, Wide> getQuotient(ResizeCoordinates mode, Axis axis, int64_t i) {
  // The result is `from * above / below` long before it is rounded down.
  Wide above = axis.scale.above, below = axis.scale.below, length = axis.from * above;
  switch (mode) {
  case ResizeCoordinates::Asymmetric:
    return {i * below, above};
  case ResizeCoordinates::AlignCorners:
    return length == below ? std::pair<Wide, Wide>(0, 1) : std::pair(i * Wide(axis.from - 1) * below, length - below);
  case ResizeCoordinates::HalfPixelSymmetric:
    return {(2 * Wide(i) + 1) * below - above + length - axis.to * below, 2 * above};
  case ResizeCoordinates::PytorchHalfPixel:
    if (axis.to == 1)
      return {0, 1};
    break;
  case ResizeCoordinates::HalfPixel:
    break;
  }
  return {(2 * Wide(i) + 1) * below - above, 2 * above};
}

/// What is far outside reads the border, as what is less far does.
static Source getSource(ResizeCoordinates mode, Axis axis, int64_t i) {
  auto [above, below] = getQuotient(mode, axis, i);
  if (below < 0)
    above = -above, below = -below;
  Wide whole = above / below - (above % below < 0), least = -4 * Wide(axis.from) - 4, most = 8 * Wide(axis.from) + 8;
  if (whole < least || whole >= most)
    return {static_cast<int64_t>(whole < least ? least : most), 0, 1};
  return {static_cast<int64_t>(whole), above - whole * below, below};
}

/// The operand position that a source rounds to.
static int64_t getNearest(NearestMode mode, const Source &source, int64_t extent) {
  Wide twice = 2 * source.rest;
  bool up = (mode == NearestMode::RoundPreferFloor && twice > source.of) ||
            (mode == NearestMode::RoundPreferCeil && twice >= source.of) ||
            (mode == NearestMode::Ceil && source.rest > 0);
  return std::min(std::max<int64_t>(source.whole + up, 0), extent - 1);
}

double cleave::nn::getSampleWeight(ResizeMode mode, double cubic, double distance) {
  assert(mode != ResizeMode::Nearest && "nearest elements have no weights");
  double x = std::abs(distance), a = cubic;
  if (mode == ResizeMode::Linear)
    return std::max(1 - x, 0.0);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Their sum becomes 1.
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
  assert(op.getInput().getType().getDimSize(dim) > 0 && "nothing to sample");
  double scale = op.getScales()[dim];
  Axis axis{op.getInput().getType().getDimSize(dim), op.getResult().getType().getDimSize(dim), toFraction(scale)};
  bool isNearest = op.getMode() == ResizeMode::Nearest;
  double shrink = op.getAntialias() ? std::min(scale, 1.0) : 1.0; // a filter is widened by shrinking only
  double cubic = op.getCubicCoefficient().convertToDouble();
  int64_t radius = op.getMode() == ResizeMode::Cubic ? 2 : 1, first = int64_t(std::floor(-radius / shrink)) + 1;
  Taps taps;
  taps.count = isNearest ? 1 : 2 - 2 * first;
  for (int64_t i = 0; i < axis.to; ++i) {
    Source source = getSource(op.getCoordinates(), axis, i);
    if (isNearest) {
      taps.positions.push_back(getNearest(op.getRounding(), source, axis.from));
      taps.weights.push_back(1);
      continue;
    }
    bool isFull = source.rest == 0;
    int64_t before = isFull ? source.whole - 1 : source.whole;
    double ratio = isFull ? 1 : source.getRest(); // in (0, 1]
    for (int64_t tap = first; tap < first + taps.count; ++tap) {
      bool isOutside = before + tap < 0 || before + tap >= axis.from;
      taps.positions.push_back(std::min(std::max<int64_t>(before + tap, 0), axis.from - 1));
      taps.weights.push_back(
          isOutside && op.getExcludeOutside() ? 0 : getSampleWeight(op.getMode(), cubic, (tap - ratio) * shrink));
    }
    if (op.getAntialias() || op.getExcludeOutside())
      normalize(MutableArrayRef(taps.weights).take_back(taps.count));
  }
  return taps;
}
