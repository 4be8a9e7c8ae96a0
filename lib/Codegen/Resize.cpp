//===- Resize.cpp - the form of resize ------------------------------------===//
//
// Where a result position reads, and with which weights, is known here: per dim a table of positions and one of weights
// goes into the object. A result element walks the taps of all dims that change.
//
// The evaluator (lib/Reference/Resize.cpp) has these formulas too, written apart from these: what kernels are held against must
// not share their mistakes.
//
// Source of the formulas: the ONNX Resize operator, versions 18 and 19.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "Tile.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

/// One dim to resample.
struct Axis {
  int64_t from, to; ///< extents
  double scale;
};

/// Taps of one dim: per result position `count` operand positions and weights.
struct Taps {
  int64_t count = 1;
  SmallVector<int64_t> positions;
  SmallVector<double> weights;
};

} // namespace

/// The position in the operand that result position `i` maps to.
static double getSource(nn::ResizeCoordinates mode, Axis axis, int64_t i) {
  double length = axis.scale * axis.from, source = (i + 0.5) / axis.scale - 0.5;
  if (mode == nn::ResizeCoordinates::Asymmetric)
    source = i / axis.scale;
  if (mode == nn::ResizeCoordinates::AlignCorners)
    source = length == 1 ? 0 : double(i) * (axis.from - 1) / (length - 1);
  if (mode == nn::ResizeCoordinates::PytorchHalfPixel && length == 1)
    source = -0.5;
  if (mode == nn::ResizeCoordinates::HalfPixelSymmetric)
    source += axis.from / 2.0 * (1 - axis.to / length);
  if (std::isnan(source))
    return 0;
  return std::min(std::max(source, -4.0 * axis.from - 4), 8.0 * axis.from + 8);
}

/// The operand position that a source rounds to.
static int64_t getNearest(nn::NearestMode mode, double source, int64_t extent) {
  double below = std::floor(source), rest = source - below;
  bool up = (mode == nn::NearestMode::RoundPreferFloor && rest > 0.5) ||
            (mode == nn::NearestMode::RoundPreferCeil && rest >= 0.5) || (mode == nn::NearestMode::Ceil && rest > 0);
  return std::min(std::max<int64_t>(int64_t(below) + up, 0), extent - 1);
}

/// Of linear interpolation a tent, of cubic the usual two pieces with a free coefficient.
static double getWeight(nn::ResizeOp op, double distance) {
  double x = std::abs(distance), a = op.getCubicCoefficient().convertToDouble();
  if (op.getMode() == nn::ResizeMode::Linear)
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

/// The taps are the nearest, an even number, those before the source preferred.
static Taps getTaps(nn::ResizeOp op, Axis axis) {
  bool isNearest = op.getMode() == nn::ResizeMode::Nearest;
  double shrink = op.getAntialias() ? std::min(axis.scale, 1.0) : 1.0; // a filter is widened by shrinking only
  int64_t radius = op.getMode() == nn::ResizeMode::Cubic ? 2 : 1, first = int64_t(std::floor(-radius / shrink)) + 1;
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

/// A buffer of numbers, one after the other.
template <typename T> static Value makeTable(Emitter &e, ArrayRef<T> numbers, Type type) {
  return e.makeTable(DenseElementsAttr::get(RankedTensorType::get({int64_t(numbers.size())}, type), numbers));
}

/// An element of the result. Weights are multiplied and added as f64, like the evaluator's.
static Value computeResize(Emitter &e, nn::ResizeOp op, const Point &result) {
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getResult());
  SmallVector<int64_t> dims, counts;
  SmallVector<Value> positions, weights;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (op.getScales()[dim] == 1 && from[dim] == to[dim])
      continue;
    Taps taps = getTaps(op, {from[dim], to[dim], op.getScales()[dim]});
    dims.push_back(dim);
    counts.push_back(taps.count);
    positions.push_back(makeTable<int64_t>(e, taps.positions, e.b.getI64Type()));
    weights.push_back(makeTable<double>(e, taps.weights, e.b.getF64Type()));
  }
  Type element = getElement(op.getInput()), f64 = e.b.getF64Type(), i64 = e.b.getI64Type();
  auto read = [&](const Point &point, ArrayRef<Value> taps, Value &factor) {
    Point at = point;
    for (size_t i = 0; i < dims.size(); ++i) {
      Value entry = e.places.add(e.places.mul(point[dims[i]].base, counts[i]), taps[i]);
      Value place = e.asScalar([&] { return e.load(positions[i], i64, {entry}); });
      at[dims[i]] = {arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), place)};
      Value weight = e.asScalar([&] { return e.load(weights[i], f64, {entry}); });
      factor = factor ? e.elements.mul(factor, weight) : weight;
    }
    return e.eval(op.getInput(), at);
  };
  Value factor;
  if (op.getMode() == nn::ResizeMode::Nearest)
    return read(result, SmallVector<Value>(dims.size(), e.places.number(0)), factor);
  Values sum = e.walk(counts, {e.elements.number(e.withLanes(f64), 0)}, [&](ArrayRef<Value> taps, Values carried) {
    Value product;
    Value x = e.elements.convert(read(result, taps, product), element, f64);
    return Values{product ? e.elements.fma(x, e.splat(product), carried[0]) : e.elements.add(carried[0], x)};
  });
  return e.elements.convert(sum[0], f64, element);
}

/// Lanes stay together along a last dim that keeps its extent.
static bool keepsLast(nn::ResizeOp op) {
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getResult());
  return !to.empty() && op.getScales().back() == 1 && from.back() == to.back();
}

static void fillResize(Emitter &e, nn::ResizeOp op, ValueRange buffers) {
  ArrayRef<int64_t> to = getShape(op.getResult());
  Type element = getElement(op.getInput());
  auto put = [&](const Point &point) {
    e.store(buffers[0], computeResize(e, op, point), e.places.linearise(point, to));
  };
  // A last dim that keeps its extent is walked by vectors.
  bool isNearest = op.getMode() == nn::ResizeMode::Nearest;
  int64_t extent = to.empty() ? 1 : to.back();
  int64_t lanes = e.getVectorLanes(isNearest ? ElementBuilder::getComputeType(element) : Type(e.b.getF64Type()));
  if (extent == 1 || !keepsLast(op))
    return e.overAll(to, put);
  e.overAll(to.drop_back(), [&](const Point &outer) {
    overBlocks(e, extent, lanes, [&](Value at, int64_t active) {
      e.withLanes(lanes, active, [&] {
        Point point = outer;
        point.push_back({at, 1});
        put(point);
        return 0;
      });
    });
  });
}

void cleave::codegen::registerResize(FormTable &table) {
  table.addFill<nn::ResizeOp>(fillResize);
  table.addPull<nn::ResizeOp>([](Emitter &e, nn::ResizeOp op, const Point &point) {
    bool isApart = !isUniform(point) && !(keepsLast(op) && isUniform(Point(point.begin(), point.end() - 1)));
    Type held = ElementBuilder::getHeldType(getElement(op.getInput()));
    return isApart ? e.perLane(held, point, [&](const Point &at) { return computeResize(e, op, at); })
                   : computeResize(e, op, point);
  });
}
