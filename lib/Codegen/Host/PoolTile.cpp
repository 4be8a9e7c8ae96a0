//===- PoolTile.cpp - pools by vectors of windows -------------------------===//
//
// Channel by channel: its planes (Window.h) are laid with what padding counts as, then some vectors of windows at a time walk the
// taps. How many elements an average is over is a product of two numbers, of the row and of the column, which are tables.
//
//===----------------------------------------------------------------------===//
#include "PoolTile.h"
#include "../Emitter.h"
#include "PixelTile.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Vectors of windows at a time, so that one need not wait for another.
static constexpr int64_t kVectors = 4;

bool cleave::codegen::canTilePool(nn::PoolOp op) {
  ArrayRef<int64_t> from = getShape(op.getInput());
  return isa<FloatType>(getElementType(op.getInput())) && op.getKind() != nn::PoolKind::Lp && from.size() <= 4 &&
         countElements(from) != 0 && llvm::all_of(op.getStrides(), [](int64_t stride) { return stride <= 16; });
}

/// The last window may hang over the padded end.
WindowDim cleave::codegen::getPoolWindow(nn::PoolOp op, int64_t dim) {
  int64_t s = dim - (4 - int64_t(getShape(op.getInput()).size()));
  WindowDim window = getWindow(op, dim, s < 0 ? 1 : op.getKernel()[s]);
  int64_t end = (window.windows - 1) * window.stride + (window.kernel - 1) * window.dilation + 1;
  window.padHigh = std::max(window.padHigh, end - window.extent - window.padLow);
  return window;
}

namespace {
class PoolTile {
public:
  PoolTile(Emitter &e, nn::PoolOp op, TileSink sink)
      : e(e), op(op), sink(sink), rows(getPoolWindow(op, 0)), columns(getPoolWindow(op, 1)),
        compute(ElementBuilder::getComputeType(getElementType(op.getInput()))), lanes(e.getVectorLanes(compute)),
        planes(e, op.getInput(), rows, columns, 1, 64 << 10) {}
  void run();

private:
  void row(Value batch, Value channel, Value firstRow, Value row);
  void vectors(ArrayRef<Value> at, Value column, int64_t count, int64_t active);

  Emitter &e;
  nn::PoolOp op;
  TileSink sink;
  WindowDim rows, columns;
  Type compute;
  int64_t lanes;
  Planes planes;
  std::optional<PoolCounts> counts; ///< none: maxima
};
} // namespace

/// Of each window along a dim, how many taps count in an average: those inside, or inside of the padding too.
static Value countTaps(Emitter &e, nn::PoolOp op, const WindowDim &window, int64_t padHigh) {
  SmallVector<Attribute> counts;
  bool all = op.getCountPads();
  Type compute = ElementBuilder::getComputeType(getElementType(op.getInput()));
  int64_t first = all ? 0 : window.padLow, end = window.padLow + window.extent + (all ? padHigh : 0);
  for (int64_t at = 0; at < window.windows; ++at) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < window.kernel; ++tap) {
      int64_t place = at * window.stride + tap * window.dilation;
      count += place >= first && place < end;
    }
    counts.push_back(e.b.getFloatAttr(compute, double(count)));
  }
  return e.makeTable(DenseElementsAttr::get(RankedTensorType::get({window.windows}, compute), counts));
}

std::optional<PoolCounts> PoolCounts::get(Emitter &e, nn::PoolOp op) {
  if (op.getKind() == nn::PoolKind::Max)
    return std::nullopt;
  ArrayRef<int64_t> highs = op.getPadsHigh();
  return PoolCounts{countTaps(e, op, getPoolWindow(op, 0), highs.size() > 1 ? highs[0] : 0),
                    countTaps(e, op, getPoolWindow(op, 1), highs.back())};
}

/// Of a row of windows, the column may be many.
Value PoolCounts::load(Emitter &e, Value row, Index column) const {
  auto loadFrom = [&](Value table, Index at) {
    return e.load(table, cast<MemRefType>(table.getType()).getElementType(), at);
  };
  auto spread = [&](Value table, Value at) { return e.splat(e.asScalar([&] { return loadFrom(table, {at}); })); };
  return e.elements.mul(spread(rows, row), column.lane ? loadFrom(columns, column) : spread(columns, column.base));
}

void PoolTile::run() {
  ArrayRef<int64_t> shape = getShape(op.getResult());
  if (countElements(shape) == 0)
    return;
  counts = PoolCounts::get(e, op);
  planes.fill(counts ? 0 : -INFINITY);
  e.walk({shape[0], shape[1]}, {}, [&](ArrayRef<Value> at, Values) {
    overBlocks(e, rows.windows, planes.getBand(), [&](Value firstRow, int64_t numRows) {
      planes.lay(at[0], at[1], firstRow, numRows);
      e.loop(numRows, [&](Value next) { row(at[0], at[1], firstRow, next); });
    });
    return Values();
  });
}

/// Some vectors at a time, then single ones, then the rest of one.
void PoolTile::row(Value batch, Value channel, Value firstRow, Value row) {
  SmallVector<Value> at{batch, channel, firstRow, row};
  int64_t size = kVectors * lanes, many = columns.windows / size * size, whole = columns.windows / lanes * lanes;
  if (many > 0)
    overBlocks(e, many, size, [&](Value column, int64_t) { vectors(at, column, kVectors, lanes); });
  if (whole > many)
    vectors(at, e.places.number(many), (whole - many) / lanes, lanes);
  if (columns.windows > whole)
    vectors(at, e.places.number(whole), 1, columns.windows - whole);
}

/// Lanes behind the last window exist where planes are the kernel's own.
void PoolTile::vectors(ArrayRef<Value> at, Value column, int64_t count, int64_t active) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  bool isMax = !counts;
  Value first = p.add(p.mul(at[3], planes.getPitch()), column);
  e.withLanes(lanes, active, [&] {
    Values none(count, m.number(e.withLanes(compute), isMax ? -INFINITY : 0));
    Values pooled = e.walk({rows.kernel, columns.kernel}, none, [&](ArrayRef<Value> tap, Values carried) {
      Value from = p.add(planes.locate(p.number(0), tap[0], tap[1]), first);
      for (auto [v, carry] : llvm::enumerate(carried)) {
        Value place = p.add(from, int64_t(v) * lanes);
        Value x = e.withLanes(lanes, planes.isDirect() ? active : lanes, [&] { return planes.load(place); });
        carry = isMax ? m.extremum(true, carry, x, false) : m.add(carry, x);
      }
      return carried;
    });
    for (auto [v, value] : llvm::enumerate(pooled)) {
      Value here = p.add(column, int64_t(v) * lanes), row = p.add(at[2], at[3]);
      if (counts)
        value = m.divide(value, counts->load(e, row, {here, lanes > 1}), false);
      Point point{{at[0]}, {at[1]}, {row}, {here, lanes > 1}};
      if (getShape(op.getResult()).size() == 3)
        point.erase(point.begin() + 2);
      sink(point, m.narrow(value, ElementBuilder::getHeldType(getElementType(op.getResult()))));
    }
    return 0;
  });
}

void cleave::codegen::runPool(Emitter &e, nn::PoolOp op, TileSink sink) {
  isByPixels(e, op) ? runByPixels(e, op, sink) : PoolTile(e, op, sink).run();
}
