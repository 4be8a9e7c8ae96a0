//===- Resize.cpp - the lowering of resize --------------------------------===//
//
// Where a result position reads, and with which weights, is known here (Sampling.h): per dim a table of positions and one of
// weights goes into the object. A result element walks the taps of all dims that change.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "Emitter.h"
#include "Tile.h"
#include "cleave/Dialect/Nn/IR/Sampling.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// A buffer of numbers, one after the other.
template <typename T> static Value makeTable(Emitter &e, ArrayRef<T> numbers, Type type) {
  return e.makeTable(DenseElementsAttr::get(RankedTensorType::get({int64_t(numbers.size())}, type), numbers));
}

/// An element of the result. Weights are multiplied and added as f64, like the evaluator's.
static Value computeResize(Emitter &e, nn::ResizeOp op, const Point &result) {
  SmallVector<int64_t> dims, counts;
  SmallVector<Value> positions, weights;
  for (size_t dim = 0, rank = getShape(op.getInput()).size(); dim < rank; ++dim) {
    if (nn::keepsDim(op, dim))
      continue;
    nn::Taps taps = nn::getTaps(op, dim);
    dims.push_back(dim);
    counts.push_back(taps.count);
    positions.push_back(makeTable<int64_t>(e, taps.positions, e.b.getI64Type()));
    weights.push_back(makeTable<double>(e, taps.weights, e.b.getF64Type()));
  }
  Type element = getElementType(op.getInput()), f64 = e.b.getF64Type(), i64 = e.b.getI64Type();
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
  Type element = getElementType(op.getInput());
  auto put = [&](const Point &point) {
    e.store(buffers[0], computeResize(e, op, point), e.places.linearize(point, to));
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

void cleave::codegen::registerResize(LoweringTable &table) {
  table.addFill<nn::ResizeOp>(fillResize);
  table.addPull<nn::ResizeOp>([](Emitter &e, nn::ResizeOp op, const Point &point) {
    bool isApart = !isUniform(point) && !(keepsLast(op) && isUniform(Point(point.begin(), point.end() - 1)));
    Type held = ElementBuilder::getHeldType(getElementType(op.getInput()));
    return isApart ? e.perLane(held, point, [&](const Point &at) { return computeResize(e, op, at); })
                   : computeResize(e, op, point);
  });
}
