//===- Resize.cpp - resampling --------------------------------------------===//
//
// Resampling is separable: dim after dim, each result position is a weighted sum of a few operand positions, its
// *taps*. With x the position in the operand that a result position maps to, the taps are the n (even) nearest, those
// before x preferred; taps outside read the border.
//
//            x = 2.3, n = 4:    1   2 | 3   4        the second is at ratio 0.3 before x
//
// Source of the formulas: the ONNX Resize operator, versions 18 and 19. They are computed in fractions, as a position that is whole, or
// halfway between two, says which one is nearest.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "Kernels.h"

#include <cmath>
#include <cstring>
#include <utility>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

/// Taps of one dim: per result position `numTaps` operand positions and weights.
struct Taps {
  int64_t numTaps = 0;
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

/// A fraction in its lowest terms, the lower one above 0.
class Ratio {
public:
  using Wide = __int128;
  Ratio(Wide value = 0) : up(value) {}
  Ratio(Wide over, Wide under) : up(under < 0 ? -over : over), down(under < 0 ? -under : under) {
    Wide a = up < 0 ? -up : up, b = down;
    while (b != 0)
      a = std::exchange(b, a % b);
    up /= a, down /= a;
  }

  friend Ratio operator*(Ratio a, Ratio b) {
    Ratio crossed(a.up, b.down), other(b.up, a.down); // smaller before they are multiplied
    return {crossed.up * other.up, crossed.down * other.down};
  }
  friend Ratio operator/(Ratio a, Ratio b) { return a * Ratio(b.down, b.up); }
  friend Ratio operator+(Ratio a, Ratio b) {
    Ratio steps(a.down, b.down); // their least common multiple is a.down * steps.down
    return {a.up * steps.down + b.up * steps.up, a.down * steps.down};
  }
  friend Ratio operator-(Ratio a, Ratio b) { return a + Ratio(-b.up, b.down); }
  friend bool operator==(Ratio a, Ratio b) { return a.up == b.up && a.down == b.down; }
  friend bool operator<(Ratio a, Ratio b) { return (a - b).up < 0; }

  Wide floor() const { return up / down - (up % down < 0); }
  double toDouble() const { return double(up) / double(down); }

private:
  Wide up, down = 1;
};

/// One dim to resample.
struct Axis {
  int64_t from, to; ///< extents
  double scale;
  Ratio exact; ///< the scale as the model means it
};

} // namespace

/// A model gives scales as f32, which are what they are, or sizes, whose quotient a double only comes close to.
static Ratio findRatio(double scale) {
  constexpr int64_t most = 1 << 20;
  if (double(float(scale)) != scale)
    for (int64_t down = 1; down <= most; ++down)
      if (double up = std::round(scale * double(down)); up < 0x1p53 && up / double(down) == scale)
        return {int64_t(up), down};
  int exponent;
  auto bits = int64_t(std::ldexp(std::frexp(scale, &exponent), 53));
  exponent = std::min(std::max(exponent - 53, -100), 60);
  Ratio power(Ratio::Wide(1) << std::abs(exponent));
  return exponent < 0 ? Ratio(bits) / power : Ratio(bits) * power;
}

/// The position in the operand that result position `i` maps to.
static Ratio getSource(nn::ResizeCoordinates mode, const Axis &axis, int64_t i) {
  Ratio half(1, 2), length = axis.exact * Ratio(axis.from); // before rounding down to the result's extent
  switch (mode) {
  case nn::ResizeCoordinates::Asymmetric:
    return Ratio(i) / axis.exact;
  case nn::ResizeCoordinates::AlignCorners:
    return length == Ratio(1) ? Ratio(0) : Ratio(i) * Ratio(axis.from - 1) / (length - Ratio(1));
  case nn::ResizeCoordinates::PytorchHalfPixel:
    if (axis.to == 1)
      return {0};
    break;
  case nn::ResizeCoordinates::HalfPixelSymmetric:
    return Ratio(axis.from, 2) * (Ratio(1) - Ratio(axis.to) / length) + (Ratio(i) + half) / axis.exact - half;
  case nn::ResizeCoordinates::HalfPixel:
    break;
  }
  return (Ratio(i) + half) / axis.exact - half;
}

/// Source positions that are far outside would not fit an index.
static Ratio clampSource(Ratio source, const Axis &axis) {
  return std::min(std::max(source, Ratio(-4 * axis.from - 4)), Ratio(8 * axis.from + 8));
}

static double getCubicWeight(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double getWeight(nn::ResizeOp op, double distance) {
  if (op.getMode() == nn::ResizeMode::Cubic)
    return getCubicWeight(distance, op.getCubicCoefficient().convertToDouble());
  return std::max(1 - std::abs(distance), 0.0);
}

static void normalize(MutableArrayRef<double> weights) {
  double sum = 0;
  for (double weight : weights)
    sum += weight;
  for (double &weight : weights)
    weight /= sum;
}

static Taps getTaps(nn::ResizeOp op, const Axis &axis) {
  // A filter is widened by shrinking only.
  double shrink = op.getAntialias() ? std::min(axis.scale, 1.0) : 1.0;
  int64_t radius = op.getMode() == nn::ResizeMode::Cubic ? 2 : 1;
  int64_t first = int64_t(std::floor(-radius / shrink)) + 1; // of the taps, from the one before x
  Taps taps;
  taps.numTaps = 2 - 2 * first;
  for (int64_t i = 0; i < axis.to; ++i) {
    Ratio source = clampSource(getSource(op.getCoordinates(), axis, i), axis);
    auto before = int64_t(source.floor());
    before -= source == Ratio(before);
    double ratio = (source - Ratio(before)).toDouble(); // in (0, 1]
    for (int64_t tap = first; tap < first + taps.numTaps; ++tap) {
      bool isOutside = before + tap < 0 || before + tap >= axis.from;
      bool isExcluded = isOutside && op.getExcludeOutside();
      taps.positions.push_back(std::min(std::max<int64_t>(before + tap, 0), axis.from - 1));
      taps.weights.push_back(isExcluded ? 0 : getWeight(op, (tap - ratio) * shrink));
    }
    if (op.getAntialias() || op.getExcludeOutside())
      normalize(MutableArrayRef(taps.weights).take_back(taps.numTaps));
  }
  return taps;
}

/// The operand position that result position `i` copies.
static int64_t getNearest(nn::ResizeOp op, const Axis &axis, int64_t i) {
  Ratio source = clampSource(getSource(op.getCoordinates(), axis, i), axis), half(1, 2);
  auto below = int64_t(source.floor());
  Ratio rest = source - Ratio(below);
  bool up = false;
  switch (op.getRounding()) {
  case nn::NearestMode::RoundPreferFloor:
    up = half < rest;
    break;
  case nn::NearestMode::RoundPreferCeil:
    up = !(rest < half);
    break;
  case nn::NearestMode::Floor:
    break;
  case nn::NearestMode::Ceil:
    up = Ratio(0) < rest;
    break;
  }
  return std::min(std::max<int64_t>(below + up, 0), axis.from - 1);
}

/// Calls `fn(axis, outer, inner)` for each dim that changes; `shape` follows the dims done.
template <typename Fn> static void forEachAxis(nn::ResizeOp op, ArrayRef<int64_t> from, ArrayRef<int64_t> to, Fn fn) {
  SmallVector<int64_t> shape(from);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (op.getScales()[dim] == 1 && from[dim] == to[dim])
      continue;
    shape[dim] = to[dim];
    double scale = op.getScales()[dim];
    fn(Axis{from[dim], to[dim], scale, findRatio(scale)}, product(ArrayRef(shape).take_front(dim)),
       product(ArrayRef(shape).drop_front(dim + 1)));
  }
}

static Tensor resizeNearest(nn::ResizeOp op, const Tensor &input) {
  int64_t elementBytes = getElementBytes(input.getElementType());
  std::vector<char> data(input.getBytes().begin(), input.getBytes().end());
  forEachAxis(op, input.getShape(), getResultType(op).getShape(), [&](const Axis &axis, int64_t outer, int64_t inner) {
    int64_t bytes = inner * elementBytes;
    std::vector<char> next(outer * axis.to * bytes);
    for (int64_t i = 0; i < axis.to; ++i) {
      int64_t source = getNearest(op, axis, i);
      for (int64_t o = 0; o < outer && bytes > 0; ++o)
        std::memcpy(&next[(o * axis.to + i) * bytes], &data[(o * axis.from + source) * bytes], bytes);
    }
    data = std::move(next);
  });
  Tensor result = Tensor::zeros(getResultType(op));
  llvm::copy(data, result.write<char>().begin());
  return result;
}

static Tensor resizeWeighted(nn::ResizeOp op, const Tensor &input) {
  std::vector<double> data(input.getNumElements());
  loadElements<double>(input, 0, data.size(), data.data());
  forEachAxis(op, input.getShape(), getResultType(op).getShape(), [&](const Axis &axis, int64_t outer, int64_t inner) {
    Taps taps = getTaps(op, axis);
    std::vector<double> next(outer * axis.to * inner, 0.0);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < axis.to; ++i)
        for (int64_t tap = i * taps.numTaps; tap < (i + 1) * taps.numTaps; ++tap)
          for (int64_t j = 0; j < inner; ++j)
            next[(o * axis.to + i) * inner + j] +=
                taps.weights[tap] * data[(o * axis.from + taps.positions[tap]) * inner + j];
    data = std::move(next);
  });
  Tensor result = Tensor::zeros(getResultType(op));
  storeElements<double>(result, 0, data.size(), data.data());
  return result;
}

static FailureOr<Tensor> resize(nn::ResizeOp op, Operands in) {
  RankedTensorType type = getResultType(op);
  if (type.getNumElements() == 0)
    return Tensor::zeros(type);
  if (in[0].getNumElements() == 0)
    return op.emitOpError("cannot resample an operand without elements");
  // A widened filter has some taps per element of the operand, unless the scale is not that of the extents.
  for (auto [dim, scale] : llvm::enumerate(op.getScales()))
    if (op.getAntialias() && scale * double(in[0].getShape()[dim]) < 0.25)
      return op.emitOpError() << "cannot resample: dim " << dim << " of size " << in[0].getShape()[dim]
                              << " has less than an element at scale " << scale;
  return op.getMode() == nn::ResizeMode::Nearest ? resizeNearest(op, in[0]) : resizeWeighted(op, in[0]);
}

void cleave::reference::registerResize(KernelTable &table) { table.add<nn::ResizeOp>(resize); }
