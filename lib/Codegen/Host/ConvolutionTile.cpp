//===- ConvolutionTile.cpp - convolutions in blocks of registers ----------===//
//
// Either the result's channels are the vectors, where weights have them side by side, or windows are: whichever wastes less.
//
//   batch, groups
//     bands of rows of windows            their input is laid in planes (Window.h), in the second cache
//       by channels:                      numbers of planes times vectors of the weight
//         panels of channels
//           rows, blocks of windows       Tile.h
//       by windows:                       numbers of the weight times vectors of planes
//         blocks of windows               what one tap of many channels reads is put side by side; several taps read the same
//                                         lines, and have them in the first cache anyway
//           blocks of channels            Tile.h
//       channels, rows of windows         to the sink, vectors of windows in either case
//
//===----------------------------------------------------------------------===//
#include "ConvolutionTile.h"
#include "../Emitter.h"
#include "PairedConvolution.h"
#include "PixelTile.h"
#include "Window.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What a band's input, and its sums, may take.
static constexpr int64_t kSummedBandBytes = 256 << 10;
/// From so many channels of the result on, a block of windows is worth putting side by side.
static constexpr int64_t kManyChannels = 24;

/// Large strides would make long code: a copy for each phase.
bool cleave::codegen::canTileConvolution(nn::ConvOp op) {
  ArrayRef<int64_t> from = getShape(op.getInput());
  bool isEmpty = countElements(from) == 0 || countElements(getShape(op.getWeight())) == 0;
  return isa<FloatType>(getElementType(op.getInput())) && from.size() <= 4 && !isEmpty &&
         llvm::all_of(op.getStrides(), [](int64_t stride) { return stride <= 16; });
}

namespace {
class ConvolutionTile {
public:
  ConvolutionTile(Emitter &e, nn::ConvOp op, TileSink sink);
  void run();

private:
  bool wantsChannels();
  int64_t countVectorBytes() const { return countElements(taps) * lanes * 4; }
  Value locateWeight(Value channel, int64_t offset, ArrayRef<Value> tap);
  void tileChannels(Value group, Value member, Value row, Value column, TileShape own);
  void bandByChannels(Value group, int64_t numRows);
  void bandByWindows(Value group);
  void overRow(function_ref<void(Value, int64_t)> body);
  void handOutTurned(Value batch, Value group, Value firstRow, int64_t numRows);
  void handOut(Value batch, Value group, Value member, Value row, Value column, int64_t active, Value sum);
  void band(Value batch, Value group, Value firstRow, int64_t numRows);
  void pack(Value window, int64_t vectors);
  Value load(Value window, int64_t vector, ArrayRef<Value> tap);
  void tile(Value group, Value member, Value window, TileShape own);
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
  bool byChannels = false;
  int64_t deep = 0;          ///< channels, rounded up to vectors
  Value sums, packed, block; ///< packed: none where planes are read as they are
};
} // namespace

/// A band is bounded by its input and by its sums.
ConvolutionTile::ConvolutionTile(Emitter &e, nn::ConvOp op, TileSink sink)
    : e(e), op(op), sink(sink), rows(getWindow(op, 0, getKernel(op, 0))), columns(getWindow(op, 1, getKernel(op, 1))),
      channelsIn(getShape(op.getWeight())[1]), channelsOut(getShape(op.getWeight())[0] / op.getGroups()),
      compute(ElementBuilder::getComputeType(getElementType(op.getResult()))), lanes(e.getVectorLanes(compute)),
      weight(e, op.getWeight()),
      planes(e, op.getInput(), rows, columns, channelsIn,
             kSummedBandBytes * channelsIn * rows.stride / std::max(channelsIn * rows.stride, channelsOut)),
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
  pitch = llvm::divideCeil(most, lanes) * lanes;
  deep = llvm::divideCeil(channelsOut, lanes) * lanes;
  byChannels = wantsChannels();
  if (byChannels) {
    sums = e.allocate(compute, deep * (planes.getBand() * columns.windows + lanes));
    block = e.allocate(compute, lanes * llvm::divideCeil(columns.windows, lanes) * lanes);
  } else {
    shape = chooseTile(e.getNumRegisters(), {channelsOut, pitch / lanes, countVectorBytes()});
    sums = e.allocate(compute, channelsOut * pitch);
  }
  if (!byChannels && channelsOut >= kManyChannels && rows.kernel * columns.kernel == 1)
    packed = e.allocate(compute, countElements(taps) * shape.vectors * lanes);
  planes.fill(0);
  e.walk({result[0], int64_t(op.getGroups())}, {}, [&](ArrayRef<Value> at, Values) {
    overBlocks(e, rows.windows, planes.getBand(),
               [&](Value firstRow, int64_t numRows) { band(at[0], at[1], firstRow, numRows); });
    return Values();
  });
}

/// Windows that hang over the ends of rows, and lanes that no channel has, count; so do stores, which are turned once by channels.
bool ConvolutionTile::wantsChannels() {
  const ViewDim &dim = weight.getDim(0);
  bool isSideBySide = dim.stride == 1 && dim.width % lanes == 0 && (dim.width == 0 || op.getGroups() == 1);
  if (!isSideBySide || channelsOut < lanes / 2 || lanes < 4)
    return false;
  int64_t registers = e.getNumRegisters(), steps = countElements(taps), band = planes.getBand();
  bool isFlat = planes.getPitch() == columns.windows;
  int64_t windowsARow = columns.windows * (isFlat ? band : 1);
  int64_t bytes = countVectorBytes();
  int64_t channels = chooseTile(registers, {windowsARow, deep / lanes, bytes}).cost * (isFlat ? 1 : band);
  int64_t others = chooseTile(registers, {channelsOut, pitch / lanes, bytes}).cost,
          outputs = band * columns.windows * channelsOut;
  // Several taps find numbers where the one before was; numbers of one tap are lines apart.
  int64_t percent = rows.kernel * columns.kernel > 1 ? 105 : 100;
  return channels * steps + outputs / 2 < others * steps * percent / 100 + outputs / 8;
}

/// What is laid in planes is read by all channels of the group.
void ConvolutionTile::band(Value batch, Value group, Value firstRow, int64_t numRows) {
  windows = (numRows - 1) * planes.getPitch() + columns.windows;
  planes.lay(batch, e.places.mul(group, channelsIn), firstRow, numRows);
  if (byChannels) {
    bandByChannels(group, numRows);
    return handOutTurned(batch, group, firstRow, numRows);
  }
  bandByWindows(group);
  e.walk({channelsOut, numRows}, {}, [&](ArrayRef<Value> at, Values) {
    overRow([&](Value column, int64_t active) {
      PlaceBuilder &p = e.places;
      Value from = p.add(p.add(p.mul(at[0], pitch), p.mul(at[1], planes.getPitch())), column);
      Value sum = e.withLanes(lanes, active, [&] { return e.load(sums, compute, {from, lanes > 1}); });
      handOut(batch, group, at[0], p.add(firstRow, at[1]), column, active, sum);
    });
    return Values();
  });
}

/// Windows outside, channels inside: the windows of a block stay in the caches.
void ConvolutionTile::bandByWindows(Value group) {
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
}

/// A panel of weights stays in the second cache for all windows of the band. Where rows have no ends that hang over, they are one.
void ConvolutionTile::bandByChannels(Value group, int64_t numRows) {
  bool isFlat = planes.getPitch() == columns.windows;
  int64_t inRow = isFlat ? numRows * columns.windows : columns.windows;
  shape = chooseTile(e.getNumRegisters(), {inRow, deep / lanes, countVectorBytes()});
  auto panelAt = [&](Value member, int64_t vectors) {
    e.loop(isFlat ? 1 : numRows, [&](Value row) {
      overBlocks(e, inRow, shape.rows,
                 [&](Value column, int64_t height) { tileChannels(group, member, row, column, {height, vectors}); });
    });
  };
  int64_t size = shape.vectors * lanes, whole = channelsOut / size * size;
  if (whole > 0)
    overBlocks(e, whole, size, [&](Value member, int64_t) { panelAt(member, shape.vectors); });
  if (channelsOut > whole)
    panelAt(e.places.number(whole), llvm::divideCeil(channelsOut - whole, lanes));
}

/// Where the weight of a channel lies for a tap.
Value ConvolutionTile::locateWeight(Value channel, int64_t offset, ArrayRef<Value> tap) {
  PlaceBuilder &p = e.places;
  int64_t rank = getShape(op.getWeight()).size();
  OffsetPlace place = weight.along(weight.getDim(0), channel, offset);
  Value at = p.add(place.base, weight.along(weight.getDim(1), tap[2]).base);
  if (rank == 4)
    at = p.add(at, weight.along(weight.getDim(2), tap[0]).base);
  at = p.add(at, weight.along(weight.getDim(rank - 1), tap[1]).base);
  return p.add(p.add(weight.getOrigin(), at), place.constant);
}

/// Panels are filled up; without them, lanes behind the last channel are not read.
void ConvolutionTile::tileChannels(Value group, Value member, Value row, Value column, TileShape own) {
  PlaceBuilder &p = e.places;
  Value channel = p.add(p.mul(group, channelsOut), member), first = p.add(p.mul(row, planes.getPitch()), column);
  auto scalar = [&](int64_t r, ArrayRef<Value> tap) {
    return planes.load(p.add(p.add(planes.locate(tap[2], tap[0], tap[1]), first), r));
  };
  auto vector = [&](int64_t v, ArrayRef<Value> tap) {
    std::optional<int64_t> known = PlaceBuilder::getKnown(member);
    bool isSplit = known && !weight.getDim(0).width;
    int64_t active = isSplit ? std::min(lanes, channelsOut - *known - v * lanes) : lanes;
    return e.withLanes(lanes, active, [&] { return weight.load(locateWeight(channel, v * lanes, tap)); });
  };
  e.withLanes(lanes, lanes, [&] {
    Values none(own.rows * own.vectors, e.elements.number(e.withLanes(compute), 0));
    Values made = sumDeepTile(e, own, taps, none, scalar, vector);
    Value to = p.add(p.mul(p.add(p.mul(row, columns.windows), column), deep), member);
    for (auto [i, sum] : llvm::enumerate(made)) {
      int64_t r = int64_t(i) / own.vectors, v = int64_t(i) % own.vectors;
      e.store(sums, sum, {p.add(to, r * deep + v * lanes), 1});
    }
    return 0;
  });
}

/// Squares of windows and channels are turned, for a row of windows and a vector of channels at a time, then go out channel by
/// channel. Lanes behind the last window of a row, and behind the last channel, are turned too, and stay.
void ConvolutionTile::handOutTurned(Value batch, Value group, Value firstRow, int64_t numRows) {
  PlaceBuilder &p = e.places;
  int64_t length = llvm::divideCeil(columns.windows, lanes) * lanes;
  auto turn = [&](Value row, Value column, Value member) {
    Value from = p.add(p.mul(p.add(p.mul(row, columns.windows), column), deep), member);
    Values vectors;
    for (int64_t window = 0; window < lanes; ++window)
      vectors.push_back(e.load(sums, compute, {p.add(from, window * deep), 1}));
    for (auto [channel, vector] : llvm::enumerate(transposeBlock(e, vectors)))
      e.store(block, vector, {p.add(column, int64_t(channel) * length), 1});
  };
  e.loop(p.number(0), p.number(deep), lanes, {}, [&](Value member, Values) {
    e.loop(numRows, [&](Value row) {
      e.withLanes(lanes, lanes, [&] {
        return e.loop(p.number(0), p.number(length), lanes, {}, [&](Value column, Values) {
          turn(row, column, member);
          return Values();
        });
      });
      Value channels = p.clamp(p.add(p.mul(member, -1), channelsOut), 0, lanes);
      e.loop(p.number(0), channels, 1, {}, [&](Value channel, Values) {
        overRow([&](Value column, int64_t active) {
          Value at = p.add(p.mul(channel, length), column);
          Value sum = e.withLanes(lanes, active, [&] { return e.load(block, compute, {at, 1}); });
          handOut(batch, group, p.add(member, channel), p.add(firstRow, row), column, active, sum);
        });
        return Values();
      });
    });
    return Values();
  });
}

/// Vectors of a row of windows.
void ConvolutionTile::overRow(function_ref<void(Value, int64_t)> body) {
  int64_t whole = columns.windows / lanes * lanes;
  if (whole > 0)
    overBlocks(e, whole, lanes, [&](Value column, int64_t) { body(column, lanes); });
  if (columns.windows > whole)
    body(e.places.number(whole), columns.windows - whole);
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
    Value to = e.places.mul(e.places.linearize(tap, taps), lanes);
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
  Value channel = p.add(p.mul(group, channelsOut), member);
  auto scalar = [&](int64_t r, ArrayRef<Value> k) { return weight.load(locateWeight(channel, r, k)); };
  auto vector = [&](int64_t v, ArrayRef<Value> k) {
    if (!packed)
      return load(window, v, k);
    Value at = p.mul(p.linearize(k, taps), lanes);
    return e.load(packed, compute, {p.add(at, v * countElements(taps) * lanes), lanes > 1});
  };
  e.withLanes(lanes, lanes, [&] {
    Values none(own.rows * own.vectors, e.elements.number(e.withLanes(compute), 0));
    Values made = sumDeepTile(e, own, taps, none, scalar, vector);
    Value to = p.add(p.mul(member, pitch), window);
    for (auto [i, sum] : llvm::enumerate(made)) {
      int64_t r = int64_t(i) / own.vectors, v = int64_t(i) % own.vectors;
      e.store(sums, sum, {p.add(to, r * pitch + v * lanes), lanes > 1});
    }
    return 0;
  });
}

/// The bias is added last.
void ConvolutionTile::handOut(Value batch, Value group, Value member, Value row, Value column, int64_t active,
                              Value sum) {
  Point point{{batch}, {e.places.add(e.places.mul(group, channelsOut), member)}, {row}, {column, lanes > 1}};
  if (getShape(op.getResult()).size() == 3)
    point.erase(point.begin() + 2);
  e.withLanes(lanes, active, [&] {
    if (op.getBias())
      sum = e.elements.add(sum, e.elements.widen(e.eval(op.getBias(), {point[1]})));
    sink(point, e.elements.narrow(sum, ElementBuilder::getHeldType(getElementType(op.getResult()))));
    return 0;
  });
}

void cleave::codegen::runConvolution(Emitter &e, nn::ConvOp op, TileSink sink) {
  if (isByPairs(e, op))
    runByPairs(e, op, sink);
  else
    isByPixels(e, op) ? runByPixels(e, op, sink) : ConvolutionTile(e, op, sink).run();
}
