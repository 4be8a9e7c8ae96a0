//===- PixelTile.cpp - windows with channels side by side -----------------===//
//
//   images
//     bands of rows of windows              one row; of many weights as many as the second cache holds the input of
//       panels of channels                  the weights of one stay there, too
//         rows of windows
//           blocks of windows x vectors of channels, in registers
//             taps, and in a convolution the channels of a pixel
//
// What is added up of a tap is one of three: numbers of pixels times vectors of weights, vectors of pixels times vectors of
// weights (one channel a group), or vectors of pixels alone (pools).
//
// A block that hangs over a border stands at a known column, and which of its windows have a tap is known too:
//
//   pad  x0  x1  x2  x3  ..        windows 0, 1, 2 of kernel 3, padding 1
//   tap 0:     1, 2
//   tap 1:  0, 1, 2                taps in a row that the same windows have are one loop
//   tap 2:  0, 1, 2
// Taps outside of the first or last row are not walked at all.
//
//===----------------------------------------------------------------------===//
#include "PixelTile.h"
#include "../Emitter.h"
#include "PoolTile.h"
#include "Window.h"

#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// What a band's input may take, where weights of more than a part of the second cache are read for each band anew.
static constexpr int64_t kPixelBandBytes = 512 << 10, kMostWeightBytes = 64 << 10;
/// Blocks of windows are no taller; more would read too many streams.
static constexpr int64_t kMostWindows = 14;
/// Channels of a pixel that need no loop.
static constexpr int64_t kFewChannels = 4;

//===----------------------------------------------------------------------===//
// When
//===----------------------------------------------------------------------===//

/// Blocks at borders are code of their own, as are taps that some of their windows lack.
static bool hasShortBorders(const WindowDim &columns) {
  return columns.padLow + columns.padHigh <= 32 && columns.kernel <= 16;
}

static bool areChannelsApart(Value input) { return View::get(input).dims[1].stride != 1; }

bool cleave::codegen::isByPixels(Emitter &e, nn::ConvOp op) {
  int64_t lanes = e.getVectorLanes(ElementBuilder::getComputeType(getElementType(op.getResult())));
  ViewDim dim = View::get(op.getWeight()).dims[0];
  bool isSideBySide = dim.stride == 1 && dim.width % lanes == 0;
  ArrayRef<int64_t> weight = getShape(op.getWeight());
  bool isDeep = op.getGroups() > 1;
  if (!hasShortBorders(getWindow(op, 1, getKernel(op, 1))))
    return false;
  if (isDeep &&
      (int64_t(op.getGroups()) != weight[0] || weight[1] != 1 || dim.width || areChannelsApart(op.getInput())))
    return false;
  return isSideBySide && lanes > 1 && leavesChannelsLast(op.getResult());
}

bool cleave::codegen::isByPixels(Emitter &e, nn::PoolOp op) {
  int64_t lanes = e.getVectorLanes(ElementBuilder::getComputeType(getElementType(op.getResult())));
  return lanes > 1 && hasShortBorders(getPoolWindow(op, 1)) && !areChannelsApart(op.getInput()) &&
         leavesChannelsLast(op.getResult());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {

/// Taps [first, end) of a row of a kernel, which windows [low, high) of a block have.
struct TapRun {
  int64_t first, end, low, high;
};

class PixelTile {
public:
  PixelTile(Emitter &e, Operation *op, WindowDim rows, WindowDim columns, TileSink sink);
  virtual ~PixelTile() = default;
  void run();

protected:
  /// The shape of blocks of a row of windows by so many vectors.
  virtual TileShape chooseShape(int64_t vectors) = 0;
  /// What a band's input may take.
  virtual int64_t getBandBytes() { return 0; }
  /// What sums are before the first tap.
  virtual double getIdentity() const { return 0; }
  /// Sums of windows [run.low, run.high) and the taps of a run in a row; `pixel` is where the first channel of window 0 is at tap 0.
  virtual Values addRun(const TapRun &run, Value tapRow, Value pixel, Value member, TileShape own, Values sums) = 0;
  /// The element that `sum` comes to, in the compute type.
  virtual Value finish(Value sum, const Point &point) = 0;

  int64_t getActive(Value member, int64_t vector) const;
  /// How far a window, and a tap, are from the one before.
  int64_t getWindowStep() const { return columns.stride * along.stride; }
  int64_t getTapStep() const { return columns.dilation * along.stride; }

  Emitter &e;
  Operation *op;
  WindowDim rows, columns;
  TileSink sink;
  Operand input;
  ViewDim along;
  ArrayRef<int64_t> result; ///< its shape
  int64_t channels;
  Type compute;
  int64_t lanes;

private:
  SmallVector<TapRun> findRuns(std::optional<int64_t> column, int64_t height) const;
  bool isInside(int64_t column, int64_t height) const;
  void overRow(function_ref<void(Value, int64_t)> body);
  void panel(Value batch, Value member, int64_t vectors, Value row);
  void tile(Value batch, Value member, Value row, Value column, TileShape own);
  void handOut(Value batch, Value member, Value row, Value column, TileShape own, const Values &sums);
  void handOut(Value batch, Value member, Value row, Value column, int64_t vectors, function_ref<Value(int64_t)> sum);
  bool isCheap() const;
  bool readsMore() const;
  void askAhead(Value batch, Value member, Value row, Value column, TileShape own);

  TileShape shape{1, 1};
  Value block; ///< sums on their way out; none where they go from registers
};

} // namespace

PixelTile::PixelTile(Emitter &e, Operation *op, WindowDim rows, WindowDim columns, TileSink sink)
    : e(e), op(op), rows(rows), columns(columns), sink(sink), input(e, op->getOperand(0)),
      along(input.getDim(getShape(op->getOperand(0)).size() - 1)), result(getShape(op->getResult(0))),
      channels(result[1]), compute(ElementBuilder::getComputeType(getElementType(op->getResult(0)))),
      lanes(e.getVectorLanes(compute)) {}

/// A block that lacks lanes begins at a known channel.
int64_t PixelTile::getActive(Value member, int64_t vector) const {
  std::optional<int64_t> known = PlaceBuilder::getKnown(member);
  return known ? std::min(lanes, channels - *known - vector * lanes) : lanes;
}

/// True if what follows is a few instructions a vector: then there is no loop around it.
bool PixelTile::isCheap() const {
  return llvm::all_of(op->getBlock()->without_terminator(), [&](Operation &other) {
    return &other == op || !getLowerings().find(&other)->element || other.hasTrait<nn::OneInstruction>();
  });
}

/// True if what follows reads a tensor that is too large for caches, such as a residual.
bool PixelTile::readsMore() const {
  llvm::DenseSet<Value> own;
  for (Value operand : op->getOperands())
    own.insert(View::get(operand).base);
  return llvm::any_of(op->getBlock()->getArguments(), [&](Value argument) {
    return !own.contains(argument) && Emitter::isLarge(e.getBuffer(argument));
  });
}

/// Of small images some are a band: the weights of a panel serve them all.
void PixelTile::run() {
  if (countElements(result) == 0)
    return;
  shape = chooseShape(llvm::divideCeil(channels, lanes));
  if (shape.rows > 1 && !isCheap())
    block = e.allocate(compute, shape.rows * shape.vectors * lanes);
  int64_t rowBytes = getShape(op->getOperand(0))[1] * columns.extent * rows.stride * 4;
  int64_t most = std::max<int64_t>(getBandBytes() / std::max<int64_t>(rowBytes, 1), 1);
  int64_t band = chooseBand(rows.windows, most), images = chooseBand(result[0], most / rows.windows);
  int64_t size = shape.vectors * lanes, whole = channels / size * size;
  overBlocks(e, result[0], images, [&](Value firstImage, int64_t numImages) {
    overBlocks(e, rows.windows, band, [&](Value firstRow, int64_t numRows) {
      auto panelAt = [&](Value member, int64_t vectors) {
        e.walk({numImages, numRows}, {}, [&](ArrayRef<Value> at, Values) {
          panel(e.places.add(firstImage, at[0]), member, vectors, e.places.add(firstRow, at[1]));
          return Values();
        });
      };
      if (whole > 0)
        overBlocks(e, whole, size, [&](Value member, int64_t) { panelAt(member, shape.vectors); });
      if (channels > whole)
        panelAt(e.places.number(whole), llvm::divideCeil(channels - whole, lanes));
    });
  });
}

/// A row of windows.
void PixelTile::panel(Value batch, Value member, int64_t vectors, Value row) {
  overRow([&](Value column, int64_t height) { tile(batch, member, row, column, {height, vectors}); });
}

/// True if all windows of a block have all taps.
bool PixelTile::isInside(int64_t column, int64_t height) const {
  int64_t last = (column + height - 1) * columns.stride - columns.padLow + (columns.kernel - 1) * columns.dilation;
  return column * columns.stride >= columns.padLow && last < columns.extent;
}

/// Blocks at borders stand at known columns, those in between in a loop.
void PixelTile::overRow(function_ref<void(Value, int64_t)> body) {
  int64_t count = columns.windows, step = shape.rows, first = 0;
  auto at = [&](int64_t column) { body(e.places.number(column), std::min(step, count - column)); };
  for (; first < count && !(first + step <= count && isInside(first, step)); first += step)
    at(first);
  int64_t end = first;
  while (end + step <= count && isInside(end, step))
    end += step;
  if (end == first + step)
    at(first);
  else if (end > first)
    e.loop(e.places.number(first), e.places.number(end), step, {}, [&](Value column, Values) {
      body(column, step);
      return Values();
    });
  for (; end < count; end += step)
    at(end);
}

/// Nothing known of the column: the block is inside.
SmallVector<TapRun> PixelTile::findRuns(std::optional<int64_t> column, int64_t height) const {
  if (!column)
    return {{0, columns.kernel, 0, height}};
  SmallVector<TapRun> runs;
  for (int64_t tap = 0; tap < columns.kernel; ++tap) {
    auto isThere = [&](int64_t window) {
      int64_t place = (*column + window) * columns.stride + tap * columns.dilation - columns.padLow;
      return place >= 0 && place < columns.extent;
    };
    int64_t low = 0, high = height;
    while (low < high && !isThere(low))
      ++low;
    while (low < high && !isThere(high - 1))
      --high;
    if (low == high)
      continue;
    if (!runs.empty() && runs.back().end == tap && runs.back().low == low && runs.back().high == high)
      runs.back().end = tap + 1;
    else
      runs.push_back({tap, tap + 1, low, high});
  }
  return runs;
}

/// What will be read of a block when its sums are there.
void PixelTile::askAhead(Value batch, Value member, Value row, Value column, TileShape own) {
  e.ask([&] {
    e.loop(own.rows, [&](Value window) {
      handOut(batch, member, row, e.places.add(column, window), own.vectors,
              [&](int64_t) { return e.elements.number(e.withLanes(compute), 0); });
    });
  });
}

void PixelTile::tile(Value batch, Value member, Value row, Value column, TileShape own) {
  PlaceBuilder &p = e.places;
  batch = p.hide(batch);
  if (readsMore())
    askAhead(batch, member, row, column, own);
  int64_t rank = result.size();
  SmallVector<TapRun> runs = findRuns(PlaceBuilder::getKnown(column), own.rows);
  Value first = p.add(p.mul(row, rows.stride), -rows.padLow);
  Value place = p.add(input.getOrigin(), input.along(input.getDim(0), batch).base);
  place = p.add(place, p.add(p.mul(column, getWindowStep()), -columns.padLow * along.stride));
  // Taps that are inside: first + tap * dilation in [0, extent). Where the row of windows is a known number, so are they.
  Value low = p.number(0), high = p.number(rows.kernel);
  if (rows.padLow > 0)
    low = p.div(p.clamp(p.add(p.mul(first, -1), rows.dilation - 1), 0, rows.kernel * rows.dilation), rows.dilation);
  if (rows.padHigh > 0)
    high = p.div(p.clamp(p.add(p.mul(first, -1), rows.extent + rows.dilation - 1), 0, rows.kernel * rows.dilation),
                 rows.dilation);
  Values sums = e.withLanes(lanes, lanes, [&] {
    Values none(own.rows * own.vectors, e.elements.number(e.withLanes(compute), getIdentity()));
    auto overTaps = [&](Value tapRow, Values carried) {
      Value pixel = place;
      if (rank == 4)
        pixel = p.add(pixel, input.along(input.getDim(2), p.add(first, p.mul(tapRow, rows.dilation))).base);
      for (const TapRun &run : runs) {
        Values part;
        for (int64_t window = run.low; window < run.high; ++window)
          llvm::append_range(part, ArrayRef(carried).slice(window * own.vectors, own.vectors));
        part = addRun(run, tapRow, pixel, member, own, part);
        std::copy(part.begin(), part.end(), carried.begin() + run.low * own.vectors);
      }
      return carried;
    };
    std::optional<int64_t> from = PlaceBuilder::getKnown(low), to = PlaceBuilder::getKnown(high);
    if (!from || !to)
      return e.loop(low, high, 1, none, overTaps);
    return e.loop(*to - *from, none, [&](Value tap, Values carried) { return overTaps(p.add(tap, *from), carried); });
  });
  handOut(batch, member, row, column, own, sums);
}

/// From registers, or window by window from memory.
void PixelTile::handOut(Value batch, Value member, Value row, Value column, TileShape own, const Values &sums) {
  PlaceBuilder &p = e.places;
  if (!block || own.rows == 1) {
    for (int64_t window = 0; window < own.rows; ++window)
      handOut(batch, member, row, p.add(column, window), own.vectors,
              [&](int64_t v) { return sums[window * own.vectors + v]; });
    return;
  }
  e.withLanes(lanes, lanes, [&] {
    for (auto [i, sum] : llvm::enumerate(sums))
      e.store(block, sum, {p.number(int64_t(i) * lanes), 1});
    return 0;
  });
  e.loop(own.rows, [&](Value window) {
    handOut(batch, member, row, p.add(column, window), own.vectors, [&](int64_t v) {
      Value at = p.add(p.mul(window, own.vectors * lanes), v * lanes);
      return e.withLanes(lanes, lanes, [&] { return e.load(block, compute, {at, 1}); });
    });
  });
}

/// One pixel.
void PixelTile::handOut(Value batch, Value member, Value row, Value column, int64_t vectors,
                        function_ref<Value(int64_t)> sum) {
  Type held = ElementBuilder::getHeldType(getElementType(op->getResult(0)));
  for (int64_t v = 0; v < vectors; ++v)
    e.withLanes(lanes, getActive(member, v), [&] {
      Point point{{batch}, {e.places.add(member, v * lanes), 1}, {row}, {column}};
      if (result.size() == 3)
        point.erase(point.begin() + 2);
      sink(point, e.elements.narrow(finish(sum(v), point), held));
      return 0;
    });
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {

class PixelConvolution : public PixelTile {
public:
  PixelConvolution(Emitter &e, nn::ConvOp op, TileSink sink)
      : PixelTile(e, op, getWindow(op, 0, getKernel(op, 0)), getWindow(op, 1, getKernel(op, 1)), sink), conv(op),
        weight(e, op.getWeight()), rank(result.size()), depth(getShape(op.getWeight())[1]),
        byChannel(op.getGroups() > 1) {}

private:
  TileShape chooseShape(int64_t vectors) override;
  int64_t getBandBytes() override {
    return countElements(getShape(conv.getWeight())) * 4 > kMostWeightBytes ? kPixelBandBytes : 0;
  }
  Values addRun(const TapRun &run, Value tapRow, Value pixel, Value member, TileShape own, Values sums) override;
  Value finish(Value sum, const Point &point) override;
  Value loadWeight(Value place, Value member, int64_t vector);
  Values addPixels(const TapRun &run, Value from, Value weights, Value member, TileShape own, Values sums);
  nn::ConvOp conv;
  Operand weight;
  int64_t rank, depth;
  bool byChannel; ///< each has its own weights
};

} // namespace

/// Pixels a multiple of a page apart would fall on the same lines of the first cache.
TileShape PixelConvolution::chooseShape(int64_t vectors) {
  int64_t bytes = getWindowStep() * compute.getIntOrFloatBitWidth() / 8, most = bytes % 4096 == 0 ? 8 : kMostWindows;
  int64_t taps = countElements(getShape(conv.getWeight())) / channels;
  return chooseTile(e.getNumRegisters(), {columns.windows, byChannel ? 1 : vectors, taps * lanes * 4}, most);
}

/// Vectors of weights at a place of channel `member`; panels are filled up, else lanes behind the last one are not read.
Value PixelConvolution::loadWeight(Value place, Value member, int64_t vector) {
  OffsetPlace channel = weight.along(weight.getDim(0), member, vector * lanes);
  int64_t active = weight.getDim(0).width ? lanes : getActive(member, vector);
  Value at = e.places.add(e.places.add(place, channel.base), channel.constant);
  return e.withLanes(lanes, active, [&] { return weight.load(at); });
}

/// Taps of a row and channels are one loop where both operands have them one behind another.
Values PixelConvolution::addRun(const TapRun &run, Value tapRow, Value pixel, Value member, TileShape own,
                                Values sums) {
  PlaceBuilder &p = e.places;
  const ViewDim &byTap = weight.getDim(rank - 1), &deep = weight.getDim(1), &channel = input.getDim(1);
  Value weights = weight.getOrigin();
  if (rank == 4)
    weights = p.add(weights, weight.along(weight.getDim(2), tapRow).base);
  int64_t count = run.end - run.first;
  bool isPointwise = rows.kernel * columns.kernel == 1 && columns.stride == 1 && channel.stride == 1;
  auto at = [&](Value tap, Value c, Values carried) {
    Value from = p.add(p.add(pixel, p.mul(tap, getTapStep())), p.mul(c, channel.stride));
    // Pixels that are read once a panel: in as many steps as a pixel has channels all of the next block's are asked for.
    if (isPointwise)
      input.prefetch(p.add(p.add(pixel, own.rows * getWindowStep()), p.mul(c, own.rows)), kFirstCache);
    Value place = p.add(p.add(weights, p.mul(tap, byTap.stride)), p.mul(c, deep.stride));
    return addPixels(run, from, place, member, own, carried);
  };
  auto tapAt = [&](Value step) { return p.add(step, run.first); };
  if (byChannel)
    return e.loop(count, sums, [&](Value step, Values carried) {
      Value from = p.add(p.add(pixel, p.mul(tapAt(step), getTapStep())), p.mul(member, channel.stride));
      return addPixels(run, from, p.add(weights, p.mul(tapAt(step), byTap.stride)), member, own, carried);
    });
  if (getTapStep() == depth * channel.stride && byTap.stride == depth * deep.stride)
    return e.loop(count * depth, sums,
                  [&](Value step, Values carried) { return at(p.number(run.first), step, carried); });
  return e.loop(count, sums, [&](Value step, Values carried) {
    if (depth > kFewChannels)
      return e.loop(depth, carried, [&](Value c, Values inner) { return at(tapAt(step), c, inner); });
    for (int64_t c = 0; c < depth; ++c)
      carried = at(tapAt(step), p.number(c), carried);
    return carried;
  });
}

/// One number of each window, or one vector.
Values PixelConvolution::addPixels(const TapRun &run, Value from, Value weights, Value member, TileShape own,
                                   Values sums) {
  SmallVector<Value> vectors;
  for (int64_t v = 0; v < own.vectors; ++v)
    vectors.push_back(loadWeight(weights, member, v));
  for (int64_t window = run.low; window < run.high; ++window) {
    Value place = e.places.add(from, window * getWindowStep());
    Value number = byChannel ? Value() : e.splat(e.asScalar([&] { return input.load(place); }));
    for (int64_t v = 0; v < own.vectors; ++v) {
      Value &sum = sums[(window - run.low) * own.vectors + v];
      Value x = byChannel ? e.withLanes(lanes, getActive(member, v),
                                        [&] { return input.load(e.places.add(place, v * lanes)); })
                          : number;
      sum = e.elements.fma(x, vectors[v], sum);
    }
  }
  return sums;
}

/// The bias is added last.
Value PixelConvolution::finish(Value sum, const Point &point) {
  return conv.getBias() ? e.elements.add(sum, e.elements.widen(e.eval(conv.getBias(), {point[1]}))) : sum;
}

void cleave::codegen::runByPixels(Emitter &e, nn::ConvOp op, TileSink sink) { PixelConvolution(e, op, sink).run(); }

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

namespace {

class PixelPool : public PixelTile {
public:
  PixelPool(Emitter &e, nn::PoolOp op, TileSink sink)
      : PixelTile(e, op, getPoolWindow(op, 0), getPoolWindow(op, 1), sink), counts(PoolCounts::get(e, op)) {}

private:
  /// Four sums, of one window if it has as many: then pixels are read from end to end.
  TileShape chooseShape(int64_t vectors) override {
    int64_t wide = std::min<int64_t>(vectors, 4);
    return {std::min(columns.windows, 4 / wide), wide};
  }
  double getIdentity() const override { return counts ? 0 : -INFINITY; }
  Values addRun(const TapRun &run, Value tapRow, Value pixel, Value member, TileShape own, Values sums) override;
  Value finish(Value sum, const Point &point) override;

  std::optional<PoolCounts> counts; ///< none: maxima
};

} // namespace

Values PixelPool::addRun(const TapRun &run, Value, Value pixel, Value member, TileShape own, Values sums) {
  PlaceBuilder &p = e.places;
  return e.loop(run.end - run.first, sums, [&](Value step, Values carried) {
    Value from = p.add(p.add(pixel, p.mul(p.add(step, run.first), getTapStep())), member);
    for (auto [i, sum] : llvm::enumerate(carried)) {
      int64_t window = run.low + int64_t(i) / own.vectors, v = int64_t(i) % own.vectors;
      Value place = p.add(from, window * getWindowStep() + v * lanes);
      Value x = e.withLanes(lanes, getActive(member, v), [&] { return input.load(place); });
      sum = counts ? e.elements.add(sum, x) : e.elements.extremum(true, sum, x, false);
    }
    return carried;
  });
}

Value PixelPool::finish(Value sum, const Point &point) {
  if (!counts)
    return sum;
  Value row = point.size() == 4 ? point[2].base : e.places.number(0);
  return e.elements.divide(sum, counts->load(e, row, point.back()), false);
}

void cleave::codegen::runByPixels(Emitter &e, nn::PoolOp op, TileSink sink) { PixelPool(e, op, sink).run(); }
