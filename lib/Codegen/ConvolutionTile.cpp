//===- ConvolutionTile.cpp - convolutions in blocks of registers ----------===//
//
//   batch, groups
//     bands of rows of windows            their input is laid in planes (Window.h), in the second cache
//       blocks of windows                 what one tap of many channels reads is put side by side; several taps read the same
//                                         lines, and have them in the first cache anyway
//         blocks of channels              numbers of the weight times vectors of windows: Tile.h
//       channels, rows of windows         to the sink: the ends of rows, which hang over, are left out
//
//===----------------------------------------------------------------------===//
#include "ConvolutionTile.h"
#include "Emitter.h"
#include "Window.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What a band's input, and its sums, may take.
static constexpr int64_t kBandBytes = 256 << 10;
/// From so many channels of the result on, a block of windows is worth putting side by side.
static constexpr int64_t kManyChannels = 24;

/// Spatial dim `dim` (0 or 1, the last one) of an op on one or two of them.
template <typename OpT> static WindowDim getWindow(OpT op, int64_t dim, int64_t kernel) {
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getResult());
  int64_t s = dim - (4 - int64_t(from.size()));
  if (s < 0)
    return {};
  return {from[s + 2],         to[s + 2],           kernel, op.getStrides()[s], op.getPadsLow()[s],
          op.getPadsHigh()[s], op.getDilations()[s]};
}

/// Taps of a weight along a spatial dim; 1 along one that it lacks.
static int64_t getKernel(nn::ConvOp op, int64_t dim) {
  ArrayRef<int64_t> weight = getShape(op.getWeight());
  int64_t at = dim + 2 - (4 - int64_t(weight.size()));
  return at < 2 ? 1 : weight[at];
}

/// Large strides would make long code: a copy for each phase.
bool cleave::codegen::canTileConvolution(nn::ConvOp op) {
  ArrayRef<int64_t> from = getShape(op.getInput());
  bool isEmpty = countElements(from) == 0 || countElements(getShape(op.getWeight())) == 0;
  return isa<FloatType>(getElement(op.getInput())) && from.size() <= 4 && !isEmpty &&
         llvm::all_of(op.getStrides(), [](int64_t stride) { return stride <= 16; });
}

namespace {
class ConvolutionTile {
public:
  ConvolutionTile(Emitter &e, nn::ConvOp op, TileSink sink);
  void run();

private:
  void band(Value batch, Value group, Value firstRow, int64_t numRows);
  void pack(Value window, int64_t vectors);
  Value load(Value window, int64_t vector, ArrayRef<Value> tap);
  void tile(Value group, Value member, Value window, TileShape own);
  void handOut(Value batch, Value group, Value firstRow, int64_t numRows);
  int64_t getActive(Value window) const;

  Emitter &e;
  nn::ConvOp op;
  TileSink sink;
  WindowDim rows, columns;
  int64_t channelsIn, channelsOut; ///< of a group
  Type compute;
  int64_t lanes;
  Operand weight;
  Planes planes;
  int64_t windows = 0, pitch = 0; ///< of a band, and rounded up to vectors
  TileShape shape{1, 1};
  SmallVector<int64_t> taps;
  Value sums, packed; ///< packed: none where planes are read as they are
};
} // namespace

/// A band is bounded by its input and by its sums.
ConvolutionTile::ConvolutionTile(Emitter &e, nn::ConvOp op, TileSink sink)
    : e(e), op(op), sink(sink), rows(getWindow(op, 0, getKernel(op, 0))), columns(getWindow(op, 1, getKernel(op, 1))),
      channelsIn(getShape(op.getWeight())[1]), channelsOut(getShape(op.getWeight())[0] / op.getGroups()),
      compute(ElementBuilder::getComputeType(getElement(op.getResult()))), lanes(e.getVectorLanes(compute)),
      weight(e, op.getWeight()),
      planes(e, op.getInput(), rows, columns, channelsIn,
             kBandBytes * channelsIn * rows.stride / std::max(channelsIn * rows.stride, channelsOut)),
      taps{rows.kernel, columns.kernel, channelsIn} {}

/// Lanes that begin at `window` and exist; a block that lacks some begins at a known one.
int64_t ConvolutionTile::getActive(Value window) const {
  std::optional<int64_t> known = PlaceBuilder::getKnown(window);
  return known ? std::min(lanes, windows - *known) : lanes;
}

/// Sums of a band have memory of their own, rounded up to whole vectors.
void ConvolutionTile::run() {
  ArrayRef<int64_t> result = getShape(op.getResult());
  if (countElements(result) == 0)
    return;
  int64_t most = (planes.getBand() - 1) * planes.getPitch() + columns.windows;
  shape = chooseTile(e.getNumRegisters(), channelsOut, llvm::divideCeil(most, lanes));
  pitch = llvm::divideCeil(most, lanes) * lanes;
  sums = e.allocate(compute, channelsOut * pitch);
  if (channelsOut >= kManyChannels && rows.kernel * columns.kernel == 1)
    packed = e.allocate(compute, countElements(taps) * shape.vectors * lanes);
  planes.fill(0);
  e.walk({result[0], int64_t(op.getGroups())}, {}, [&](ArrayRef<Value> at, Values) {
    overBlocks(e, rows.windows, planes.getBand(),
               [&](Value firstRow, int64_t numRows) { band(at[0], at[1], firstRow, numRows); });
    return Values();
  });
}

/// Windows outside, channels inside: the windows of a block stay in the caches.
void ConvolutionTile::band(Value batch, Value group, Value firstRow, int64_t numRows) {
  windows = (numRows - 1) * planes.getPitch() + columns.windows;
  planes.lay(batch, e.places.mul(group, channelsIn), firstRow, numRows);
  int64_t size = shape.vectors * lanes, whole = windows / size * size;
  auto blockAt = [&](Value window, int64_t vectors) {
    if (packed)
      pack(window, vectors);
    overBlocks(e, channelsOut, shape.rows,
               [&](Value member, int64_t height) { tile(group, member, window, {height, vectors}); });
  };
  if (whole > 0)
    overBlocks(e, whole, size, [&](Value window, int64_t) { blockAt(window, shape.vectors); });
  if (windows > whole)
    blockAt(e.places.number(whole), llvm::divideCeil(windows - whole, lanes));
  handOut(batch, group, firstRow, numRows);
}

/// Lanes behind the last window exist where planes are the kernel's own.
Value ConvolutionTile::load(Value window, int64_t vector, ArrayRef<Value> tap) {
  PlaceBuilder &p = e.places;
  Value at = p.add(p.add(planes.locate(tap[2], tap[0], tap[1]), window), vector * lanes);
  int64_t active = planes.isDirect() ? getActive(p.add(window, vector * lanes)) : lanes;
  return e.withLanes(lanes, active, [&] { return planes.load(at); });
}

/// What a block of windows reads, in the order in which it is read: each vector of the block goes on side by side, as in
/// panels, since loads then follow each other line by line.
void ConvolutionTile::pack(Value window, int64_t vectors) {
  e.walk(taps, {}, [&](ArrayRef<Value> tap, Values) {
    Value to = e.places.mul(e.places.linearise(tap, taps), lanes);
    e.withLanes(lanes, lanes, [&] {
      for (int64_t v = 0; v < vectors; ++v)
        e.store(packed, load(window, v, tap), {e.places.add(to, v * countElements(taps) * lanes), lanes > 1});
      return 0;
    });
    return Values();
  });
}

/// Depth in the order of packed weights: taps, then channels.
void ConvolutionTile::tile(Value group, Value member, Value window, TileShape own) {
  PlaceBuilder &p = e.places;
  int64_t rank = getShape(op.getWeight()).size();
  Value channel = p.add(p.mul(group, channelsOut), member);
  auto scalar = [&](int64_t r, ArrayRef<Value> k) {
    Place place = weight.along(weight.getDim(0), channel, r);
    Value at = p.add(place.base, weight.along(weight.getDim(1), k[2]).base);
    if (rank == 4)
      at = p.add(at, weight.along(weight.getDim(2), k[0]).base);
    at = p.add(at, weight.along(weight.getDim(rank - 1), k[1]).base);
    return weight.load(p.add(p.add(weight.getOrigin(), at), place.constant));
  };
  auto vector = [&](int64_t v, ArrayRef<Value> k) {
    if (!packed)
      return load(window, v, k);
    Value at = p.mul(p.linearise(k, taps), lanes);
    return e.load(packed, compute, {p.add(at, v * countElements(taps) * lanes), lanes > 1});
  };
  e.withLanes(lanes, lanes, [&] {
    Values none(own.rows * own.vectors, e.elements.number(e.withLanes(compute), 0));
    Values made = sumTile(e, own, taps, none, scalar, vector);
    Value to = p.add(p.mul(member, pitch), window);
    for (auto [i, sum] : llvm::enumerate(made)) {
      int64_t r = int64_t(i) / own.vectors, v = int64_t(i) % own.vectors;
      e.store(sums, sum, {p.add(to, r * pitch + v * lanes), lanes > 1});
    }
    return 0;
  });
}

/// Row by row of the band; the bias is added last.
void ConvolutionTile::handOut(Value batch, Value group, Value firstRow, int64_t numRows) {
  PlaceBuilder &p = e.places;
  bool isFlat = getShape(op.getResult()).size() == 3;
  auto vectorAt = [&](Value member, Value row, Value column, int64_t active) {
    Value from = p.add(p.add(p.mul(member, pitch), p.mul(row, planes.getPitch())), column);
    Value sum = e.withLanes(lanes, active, [&] { return e.load(sums, compute, {from, lanes > 1}); });
    Point point{{batch}, {p.add(p.mul(group, channelsOut), member)}, {p.add(firstRow, row)}, {column, lanes > 1}};
    if (isFlat)
      point.erase(point.begin() + 2);
    e.withLanes(lanes, active, [&] {
      if (op.getBias())
        sum = e.elements.add(sum, e.elements.widen(e.eval(op.getBias(), {point[1]})));
      sink(point, e.elements.narrow(sum, ElementBuilder::getHeldType(getElement(op.getResult()))));
      return 0;
    });
  };
  int64_t whole = columns.windows / lanes * lanes;
  e.walk({channelsOut, numRows}, {}, [&](ArrayRef<Value> at, Values) {
    if (whole > 0)
      overBlocks(e, whole, lanes, [&](Value column, int64_t) { vectorAt(at[0], at[1], column, lanes); });
    if (columns.windows > whole)
      vectorAt(at[0], at[1], p.number(whole), columns.windows - whole);
    return Values();
  });
}

void cleave::codegen::runConvolution(Emitter &e, nn::ConvOp op, TileSink sink) { ConvolutionTile(e, op, sink).run(); }
