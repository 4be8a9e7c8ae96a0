//===- Window.cpp - windows over planes -----------------------------------===//
//
// An operand without padding, of stride 1, whose rows lie one behind another, is its own planes. Of others a band of rows at
// a time is copied: that costs one store an element, where each is read by all channels of the result.
//
//===----------------------------------------------------------------------===//
#include "Window.h"
#include "../Emitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

int64_t cleave::codegen::chooseBand(int64_t rows, int64_t most) {
  most = std::min(std::max<int64_t>(most, 1), rows);
  for (int64_t band = most; band * 2 > most; --band)
    if (rows % band == 0)
      return band;
  return most;
}

/// Planes of a stride of 1 need no table: a tap lies as far behind as it says.
Planes::Planes(Emitter &e, Value value, WindowDim rows, WindowDim columns, int64_t channels, int64_t bytes)
    : e(e), input(e, value), rows(rows), columns(columns), channels(channels),
      compute(ElementBuilder::getComputeType(getElementType(value))), rank(getShape(value).size()) {
  const ViewDim &along = input.getDim(rank - 1);
  bool isFull = rank == 3 || rows.extent == 1 || input.getDim(2).stride == columns.extent;
  direct = rows.isPlain() && columns.isPlain() && along.stride == 1 && isFull && compute == getElementType(value);
  int64_t rowBytes = channels * columns.extent * rows.stride * compute.getIntOrFloatBitWidth() / 8;
  band = chooseBand(rows.windows, bytes / std::max<int64_t>(rowBytes, 1));
  pitch = direct ? columns.extent : columns.countPlaces(columns.windows);
  height = direct ? rows.extent : rows.countPlaces(band);
  if (direct)
    return;
  // What vectors of the last windows read behind the planes.
  int64_t slack = 9 * e.getVectorLanes(compute);
  size = channels * rows.stride * columns.stride * height * pitch + slack;
  buffer = e.allocate(compute, size);
  if (rows.stride == 1 && columns.stride == 1)
    return;
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < rows.kernel; ++i)
    for (int64_t j = 0; j < columns.kernel; ++j) {
      int64_t row = i * rows.dilation, column = j * columns.dilation;
      int64_t phase = row % rows.stride * columns.stride + column % columns.stride;
      places.push_back((phase * height + row / rows.stride) * pitch + column / columns.stride);
    }
  auto type = RankedTensorType::get({int64_t(places.size())}, e.b.getI64Type());
  taps = e.makeTable(DenseElementsAttr::get(type, ArrayRef(places)));
}

/// Of the kernel's own planes in the compute type already.
Value Planes::load(Value place) const {
  return direct ? input.load(place) : e.load(buffer, compute, {place, e.getLanes() > 1});
}

/// The number of a window is added by the caller.
Value Planes::locate(Value channel, Value row, Value column) const {
  PlaceBuilder &p = e.places;
  Value place = direct ? p.add(origin, input.along(input.getDim(1), channel).base)
                       : p.mul(channel, rows.stride * columns.stride * height * pitch);
  if (!taps)
    return p.add(place, p.add(p.mul(row, rows.dilation * pitch), p.mul(column, columns.dilation)));
  Value tap = e.asScalar([&] { return e.load(taps, e.b.getI64Type(), {p.add(p.mul(row, columns.kernel), column)}); });
  return p.add(place, arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), tap));
}

/// Without padding all that is ever looked at is copied.
void Planes::fill(double border) {
  filled = border;
  if (direct || (rows.padLow | rows.padHigh | columns.padLow | columns.padHigh) == 0)
    return;
  int64_t lanes = e.getVectorLanes(compute);
  e.withLanes(lanes, lanes, [&] {
    Value value = e.elements.number(e.withLanes(compute), border);
    e.loop(e.places.number(0), e.places.number(size / lanes * lanes), lanes, {}, [&](Value at, Values) {
      e.store(buffer, value, {at, lanes > 1});
      return Values();
    });
    return 0;
  });
}

/// The elements of one row that fall on a phase of the columns; padding beside them is there already.
void Planes::layRow(Value source, Value target, int64_t phase) {
  PlaceBuilder &p = e.places;
  const ViewDim &along = input.getDim(rank - 1);
  int64_t first = llvm::divideCeil(std::max<int64_t>(columns.padLow - phase, 0), columns.stride);
  int64_t end = std::min(pitch, (columns.extent - 1 + columns.padLow - phase) / columns.stride + 1);
  if (columns.extent - 1 + columns.padLow < phase)
    return;
  int64_t lanes = e.getVectorLanes(compute);
  auto copy = [&](Value at, int64_t wide, int64_t active) {
    e.withLanes(wide, active, [&] {
      Value column = p.add(p.mul(p.add(at, first), columns.stride), phase - columns.padLow);
      Value value = input.load(p.add(source, p.mul(column, along.stride)), columns.stride * along.stride);
      e.store(buffer, value, {p.add(p.add(target, at), first), wide > 1});
      return 0;
    });
  };
  // Every second element of two vectors.
  auto copyPaired = [&](Value at) {
    e.withLanes(lanes, lanes, [&] {
      SmallVector<int64_t> even;
      for (int64_t lane = 0; lane < lanes; ++lane)
        even.push_back(2 * lane);
      Value from = p.add(source, p.add(p.mul(p.add(at, first), 2), phase - columns.padLow));
      Value low = input.load(from), high = input.load(p.add(from, lanes));
      e.store(buffer, vector::ShuffleOp::create(e.b, e.loc, low, high, even), {p.add(p.add(target, at), first), 1});
      return 0;
    });
  };
  if (end <= first)
    return;
  int64_t count = end - first, whole = count / lanes * lanes, paired = 0;
  // Vectors both of whose halves lie in the row.
  if (columns.stride == 2 && along.stride == 1 && lanes > 1)
    paired = std::max<int64_t>((columns.extent - (first * 2 + phase - columns.padLow)) / (2 * lanes), 0) * lanes;
  paired = std::min(paired, whole);
  if (paired > 0)
    e.loop(p.number(0), p.number(paired), lanes, {}, [&](Value at, Values) {
      copyPaired(at);
      return Values();
    });
  if (whole > paired)
    e.loop(p.number(paired), p.number(whole), lanes, {}, [&](Value at, Values) {
      copy(at, lanes, lanes);
      return Values();
    });
  if (count > whole)
    copy(p.number(whole), lanes, count - whole);
}

/// One row.
void Planes::layBorder(Value target) {
  int64_t lanes = e.getVectorLanes(compute), whole = pitch / lanes * lanes;
  auto store = [&](Value at, int64_t active) {
    e.withLanes(lanes, active, [&] {
      e.store(buffer, e.elements.number(e.withLanes(compute), filled), {e.places.add(target, at), lanes > 1});
      return 0;
    });
  };
  if (whole > 0)
    overBlocks(e, whole, lanes, [&](Value at, int64_t) { store(at, lanes); });
  if (pitch > whole)
    store(e.places.number(whole), pitch - whole);
}

/// Rows outside of the operand are all border. Its own planes need a place alone.
void Planes::lay(Value batch, Value firstChannel, Value firstRow, int64_t numRows) {
  PlaceBuilder &p = e.places;
  auto along = [&](int64_t dim, Value at) { return input.along(input.getDim(dim), at).base; };
  Value start = p.add(p.add(input.getOrigin(), along(0, batch)), along(1, firstChannel));
  if (direct) {
    origin = p.add(start, rank == 4 ? along(2, firstRow) : p.number(0));
    return;
  }
  int64_t planeSize = height * pitch;
  e.walk({channels, rows.stride, rows.countPlaces(numRows)}, {}, [&](ArrayRef<Value> at, Values) {
    Value row = p.add(p.add(p.mul(p.add(firstRow, at[2]), rows.stride), at[1]), -rows.padLow);
    Value plane = p.add(p.mul(at[0], rows.stride), at[1]);
    Value inside = e.elements.both(p.isLess(p.number(-1), row), p.isLess(row, rows.extent));
    auto each = [&](Value source) {
      for (int64_t phase = 0; phase < columns.stride; ++phase) {
        Value target = p.add(p.mul(p.add(p.mul(plane, columns.stride), phase), planeSize), p.mul(at[2], pitch));
        layRow(source, target, phase);
      }
    };
    Value known = p.clamp(row, 0, rows.extent - 1);
    Value source = p.add(p.add(start, along(1, at[0])), rank == 4 ? along(2, known) : p.number(0));
    if (rows.padLow == 0 && rows.padHigh == 0) {
      each(source);
    } else {
      e.when(inside, [&] { each(source); });
      e.when(e.elements.compare(ElementBuilder::Relation::Eq, inside, 0.0), [&] {
        e.loop(columns.stride, [&](Value phase) {
          layBorder(p.add(p.mul(p.add(p.mul(plane, columns.stride), phase), planeSize), p.mul(at[2], pitch)));
        });
      });
    }
    return Values();
  });
}
