//===- PairedConvolution.cpp - convolutions of bf16 -----------------------===//
//
// Where input and result have channels last, a window's pixels are a row of numbers for each row of the kernel, and
// windows next to each other begin some pixels apart: a block of windows by vectors of channels is a product of PairTile.h,
// whose depth is rows of the kernel, taps, and channels in.
//
//   images
//     bands of rows of windows          where there is padding, their input is copied into memory with the borders, once
//       panels of channels              two vectors
//         lines of windows              all rows of a band are one line where that computes less than their ends waste:
//           blocks of windows           PairTile.h; 32 windows
//         windows, vectors of channels  to the sink
//
//   a line over the ends of rows, kernel 3, padding 1        . x x x x .
//   windows 4 and 5 hang over; nobody looks at them          . x x x x .
//
//===----------------------------------------------------------------------===//
#include "PairedConvolution.h"
#include "../Emitter.h"
#include "PairTile.h"
#include "PixelTile.h"
#include "Window.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What a band's input may take in the second cache.
static constexpr int64_t kPairedBandBytes = 384 << 10;

namespace {
class PairedConvolution {
public:
  PairedConvolution(Emitter &e, nn::ConvOp op, TileSink sink);
  void run();

private:
  void chooseLines();
  void clear();
  void copyBand(Value batch, Value firstRow, int64_t numRows);
  void band(Value batch, Value firstRow, int64_t numRows);
  void block(Value batch, Value firstRow, Value line, Value window, int64_t height, Value member, int64_t vectors);
  void handOut(const Point &pixel, Value r, Value member, int64_t vectors);
  Value locateNumber(Value from, int64_t window, ArrayRef<Value> k);
  Value locateVector(Value member, int64_t v, ArrayRef<Value> k);

  Emitter &e;
  nn::ConvOp op;
  TileSink sink;
  WindowDim rows, columns;
  Operand input, weight;
  ArrayRef<int64_t> result;
  int64_t images, depth, channels, lanes;
  Type f32, i16;
  bool copies;          ///< there is padding
  int64_t bandRows;     ///< rows of windows
  int64_t width, pitch; ///< pixels of a row of the band's input; places from one row of it to the next
  bool isOneLine;
  int64_t allWindows; ///< of the longest line
  /// Rows of a block; places in front of what is laid, for windows that a tile of a short last line computes needlessly.
  int64_t tall, front;
  Value source, sums;
};
} // namespace

/// Rows of input that so many rows of windows see.
static int64_t countRows(const WindowDim &rows, int64_t windows) {
  return (windows - 1) * rows.stride + (rows.kernel - 1) * rows.dilation + 1;
}

PairedConvolution::PairedConvolution(Emitter &e, nn::ConvOp op, TileSink sink)
    : e(e), op(op), sink(sink), rows(getWindow(op, 0, getKernel(op, 0))), columns(getWindow(op, 1, getKernel(op, 1))),
      input(e, op.getInput()), weight(e, op.getWeight()), result(getShape(op.getResult())), images(result[0]),
      depth(getShape(op.getWeight())[1]), channels(result[1]), lanes(e.getVectorLanes(e.b.getF32Type())),
      f32(e.b.getF32Type()), i16(e.b.getI16Type()),
      copies(rows.padLow + rows.padHigh + columns.padLow + columns.padHigh > 0) {
  tall = canTile(e, depth) ? 2 * kTileRows : 12;
  front = copies ? kTileRows * columns.stride * depth : 0;
  width = columns.extent + columns.padLow + columns.padHigh;
  pitch = copies ? width * depth : input.getDim(2).stride;
  bandRows = std::clamp<int64_t>((kPairedBandBytes / (width * depth * 2) - rows.kernel) / rows.stride, 1, rows.windows);
  if (!copies)
    bandRows = rows.windows;
  chooseLines();
}

/// Windows of one line lie at one distance, also from row to row: with a stride of 1 they do, where rows of pixels have no gaps.
/// Pixels without neighbors are one line for all images.
void PairedConvolution::chooseLines() {
  bool hasNoGaps = rows.stride == 1 && columns.stride == 1 && pitch == width * depth;
  bool isPointwise = hasNoGaps && !copies && rows.kernel * columns.kernel == 1;
  if (isPointwise && (images == 1 || input.getDim(0).stride == rows.extent * pitch)) {
    rows.windows = rows.extent *= images;
    bandRows = rows.windows;
    images = 1;
  }
  int64_t tiles = bandRows * ((columns.windows + kTileRows - 1) / kTileRows);
  int64_t inOneLine = (bandRows - 1) * width + columns.windows;
  isOneLine = hasNoGaps && (inOneLine + kTileRows - 1) / kTileRows <= tiles;
  allWindows = isOneLine ? inOneLine : columns.windows;
}

void PairedConvolution::run() {
  if (countElements(result) == 0)
    return;
  source = copies ? e.allocate(i16, front + countRows(rows, bandRows) * pitch) : input.getBuffer();
  sums = e.allocate(f32, 3 * kTileRows * 2 * lanes);
  if (copies)
    clear();
  e.loop(images, [&](Value batch) {
    overBlocks(e, rows.windows, bandRows, [&](Value firstRow, int64_t numRows) { band(batch, firstRow, numRows); });
  });
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

/// Borders at the sides are never written again.
void PairedConvolution::clear() {
  Type type = VectorType::get({lanes}, i16);
  int64_t count = front + countRows(rows, bandRows) * pitch, whole = count / lanes * lanes;
  e.withLanes(lanes, lanes, [&] {
    return e.loop(e.places.number(0), e.places.number(whole), lanes, {}, [&](Value at, Values) {
      e.store(source, e.elements.integer(type, 0), {at, 1});
      return Values();
    });
  });
  e.asScalar([&] {
    return e.loop(e.places.number(whole), e.places.number(count), 1, {}, [&](Value at, Values) {
      e.store(source, e.elements.integer(i16, 0), {at});
      return Values();
    });
  });
}

/// Rows of the image as they are; rows outside of it are zeros, which a band before may have written over.
void PairedConvolution::copyBand(Value batch, Value firstRow, int64_t numRows) {
  PlaceBuilder &p = e.places;
  int64_t count = columns.extent * depth;
  Value image = p.add(input.getOrigin(), input.along(input.getDim(0), batch).base);
  Value first = p.add(p.mul(firstRow, rows.stride), -rows.padLow);
  bool isFull = bandRows == rows.windows && images == 1;
  e.loop(countRows(rows, numRows), [&](Value row) {
    Value from = p.add(first, row),
          isInside = e.elements.both(p.isLess(p.number(-1), from), p.isLess(from, rows.extent));
    Value place = p.add(image, p.mul(p.clamp(from, 0, rows.extent - 1), input.getDim(2).stride));
    Value to = p.add(p.mul(row, pitch), front + columns.padLow * depth);
    auto overVectors = [&](function_ref<Value(Value)> load) {
      auto copy = [&](Value at, int64_t active) {
        e.withLanes(2 * lanes, active, [&] {
          e.store(source, load(at), {p.add(to, at), 1});
          return 0;
        });
      };
      int64_t whole = count / (2 * lanes) * (2 * lanes);
      if (whole > 0)
        e.loop(p.number(0), p.number(whole), 2 * lanes, {}, [&](Value at, Values) {
          copy(at, 2 * lanes);
          return Values();
        });
      if (count > whole)
        copy(p.number(whole), count - whole);
    };
    e.when(isInside,
           [&] { overVectors([&](Value at) { return e.load(input.getBuffer(), i16, {p.add(place, at), 1}); }); });
    if (isFull)
      return;
    Value isOutside = e.elements.exclusive(isInside, e.elements.integer(e.b.getI1Type(), 1));
    e.when(isOutside,
           [&] { overVectors([&](Value) { return e.elements.integer(VectorType::get({2 * lanes}, i16), 0); }); });
  });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Panels outside, so that their weights stay in the second cache for all windows of a band.
void PairedConvolution::band(Value batch, Value firstRow, int64_t numRows) {
  PlaceBuilder &p = e.places;
  if (copies)
    copyBand(batch, firstRow, numRows);
  int64_t inLine = isOneLine ? (numRows - 1) * width + columns.windows : columns.windows;
  auto panelAt = [&](Value member, int64_t vectors) {
    e.loop(isOneLine ? 1 : numRows, [&](Value line) {
      overBlocks(e, inLine, tall,
                 [&](Value window, int64_t height) { block(batch, firstRow, line, window, height, member, vectors); });
    });
  };
  int64_t size = 2 * lanes, whole = channels / size * size;
  if (whole > 0)
    overBlocks(e, whole, size, [&](Value member, int64_t) { panelAt(member, 2); });
  if (channels > whole)
    panelAt(p.number(whole), llvm::divideCeil(channels - whole, lanes));
}

/// Tap (i, j) and channel c of a window.
Value PairedConvolution::locateNumber(Value from, int64_t window, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  Value at = p.add(p.mul(k[0], rows.dilation * pitch), p.mul(k[1], columns.dilation * depth));
  return p.add(p.add(p.add(from, at), k[2]), window * columns.stride * depth);
}

Value PairedConvolution::locateVector(Value member, int64_t v, ArrayRef<Value> k) {
  PlaceBuilder &p = e.places;
  OffsetPlace channel = weight.along(weight.getDim(0), member, v * lanes);
  Value at = p.add(weight.getOrigin(), channel.base);
  for (auto [dim, index] : llvm::zip_equal(ArrayRef<int64_t>{2, 3, 1}, k))
    at = p.add(at, weight.along(weight.getDim(dim), index).base);
  return p.add(at, channel.constant);
}

/// Windows of a line over ends of rows that hang over are left out.
void PairedConvolution::block(Value batch, Value firstRow, Value line, Value window, int64_t height, Value member,
                              int64_t vectors) {
  PlaceBuilder &p = e.places;
  int64_t apart = vectors * lanes;
  Value from = p.add(p.add(p.mul(line, rows.stride * pitch), p.mul(window, columns.stride * depth)), front);
  if (!copies) {
    from = p.add(from, p.add(input.getOrigin(), p.mul(batch, input.getDim(0).stride)));
    from = p.add(from, p.mul(firstRow, rows.stride * pitch));
  }
  auto number = [&](int64_t r, ArrayRef<Value> k) { return locateNumber(from, r, k); };
  auto vector = [&](int64_t v, ArrayRef<Value> k) { return locateVector(member, v, k); };
  PairBlock product{{height, vectors},
                    allWindows,
                    {rows.kernel, columns.kernel, depth},
                    {},
                    source,
                    columns.stride * depth,
                    number,
                    weight.getBuffer(),
                    vector,
                    sums,
                    p.number(kTileRows * apart),
                    apart};
  multiplyPairs(e, product);
  e.loop(height, [&](Value r) {
    Value at = p.add(window, r), column = at, row = p.add(firstRow, line), image = batch;
    auto out = [&] { handOut({{image}, {}, {row}, {column}}, r, member, vectors); };
    if (!isOneLine)
      return out();
    row = p.add(firstRow, p.div(at, width));
    column = p.rem(at, width);
    if (images != result[0]) {
      image = p.div(row, result[2]);
      row = p.rem(row, result[2]);
    }
    width == columns.windows ? out() : e.when(p.isLess(column, columns.windows), out);
  });
}

/// The bias is added last.
void PairedConvolution::handOut(const Point &pixel, Value r, Value member, int64_t vectors) {
  PlaceBuilder &p = e.places;
  for (int64_t v = 0; v < vectors; ++v) {
    Value at = p.add(p.mul(p.add(r, kTileRows), vectors * lanes), v * lanes);
    Value sum = e.withLanes(lanes, lanes, [&] { return e.load(sums, f32, {at, 1}); });
    std::optional<int64_t> known = PlaceBuilder::getKnown(member);
    e.withLanes(lanes, known ? std::min(lanes, channels - *known - v * lanes) : lanes, [&] {
      Point point = pixel;
      point[1] = {p.add(member, v * lanes), 1};
      if (op.getBias())
        sum = e.elements.add(sum, e.elements.widen(e.eval(op.getBias(), {point[1]})));
      sink(point, sum);
      return 0;
    });
  }
}

//===----------------------------------------------------------------------===//
// Who may
//===----------------------------------------------------------------------===//

/// Numbers of a pixel side by side, weights in panels of pairs, tiles or dots for all of them.
bool cleave::codegen::isByPairs(Emitter &e, nn::ConvOp op) {
  ArrayRef<int64_t> weight = getShape(op.getWeight());
  if (weight.size() != 4 || op.getGroups() != 1 || !leavesChannelsLast(op.getResult()))
    return false;
  View in = View::get(op.getInput()), by = View::get(op.getWeight());
  int64_t lanes = e.getVectorLanes(e.b.getF32Type());
  bool isNarrow =
      getElementType(in.base).isBF16() && getElementType(by.base).isBF16() && getElementType(op.getResult()).isF32();
  bool isPaired = by.dims[0].width == lanes && by.dims[0].stride == 2 && by.dims[1].width == 2 &&
                  by.dims[1].panel == 2 * lanes && weight[1] % 2 == 0;
  return isNarrow && isPaired && lanes == kTileRows && in.dims[1].stride == 1 && in.dims[3].stride == weight[1] &&
         llvm::all_of(in.dims, [](const ViewDim &dim) { return dim.width == 0; });
}

void cleave::codegen::runByPairs(Emitter &e, nn::ConvOp op, TileSink sink) { PairedConvolution(e, op, sink).run(); }
