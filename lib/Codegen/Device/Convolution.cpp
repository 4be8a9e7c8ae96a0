//===- Convolution.cpp - convolutions on devices --------------------------===//
//
// A convolution is a product that never lies in memory: of each group pixels of the result (images, then windows) meet channels of
// the result, and the depth is what a window holds.
//
//   channels last     pixels x (taps, channels in)  *  (taps, channels in) x channels out      vectors along channels
//   channels first    channels out x (channels in, taps)  *  (channels in, taps) x pixels      vectors along pixels
//
// Where a window leaves the input there is 0: the load is of a place inside, and does not count. With few channels a group
// (depthwise) there is nothing to share, and each element walks its window (../Convolution.cpp).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "Operand.h"
#include "Templates.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class ConvolutionSource : public TileSource {
public:
  ConvolutionSource(DeviceEmitter &e, nn::ConvOp op, TileSink sink);
  void enter(Value batch) override { group = batch; }
  Value load(unsigned side, Value outer, Value depth) override;
  std::optional<Location> locate(unsigned side, Value outer, Value depth) override;
  void store(Value row, Value column, Value sums) override;

private:
  void describe();
  bool isPointwise();
  /// Where an element lies in its operand, if it lies there at all: `isThere` is none for always.
  struct Spot {
    Point point;
    Value isThere;
  };
  Spot find(unsigned side, Value outer, Value depth);
  Spot findPixel(Value pixel, Value channel, ArrayRef<Value> taps);
  Value findInRows(Value outer, Value at);
  Value clampInside(size_t dim, Value place, Value &isThere);

  DeviceEmitter &e;
  nn::ConvOp op;
  TileSink sink;
  SmallVector<int64_t> pixels, kernel; ///< images and windows; taps
  int64_t channelsIn, channelsOut;     ///< of a group
  bool areLast;                        ///< the result leaves with channels last
  bool tapsFirst;                      ///< in the depth, since channels lie side by side
  bool areRows = false;                ///< weights are rows of the depth in memory
  unsigned pixelSide;
  DeviceOperands operands;
  Value group;
};

} // namespace

ConvolutionSource::ConvolutionSource(DeviceEmitter &e, nn::ConvOp op, TileSink sink)
    : e(e), op(op), sink(sink), kernel(getShape(op.getWeight()).drop_front(2)), channelsIn(getShape(op.getWeight())[1]),
      channelsOut(getShape(op.getWeight())[0] / int64_t(op.getGroups())), areLast(leavesChannelsLast(op.getResult())),
      pixelSide(areLast ? 0 : 1), operands(e, areLast ? op.getInput() : op.getWeight(),
                                           areLast ? op.getWeight() : op.getInput(), getElementType(op.getResult())) {
  ArrayRef<int64_t> shape = getShape(op.getResult());
  pixels.push_back(shape[0]);
  llvm::append_range(pixels, shape.drop_front(2));
  tapsFirst = operands.getStride(pixelSide, 1) == 1;
  batches = op.getGroups();
  depth = channelsIn * countElements(kernel);
  element = operands.getElement();
  isShort = operands.isShort();
  describe();
}

/// Windows that are pixels, each of its own.
bool ConvolutionSource::isPointwise() {
  auto areAll = [](ArrayRef<int64_t> numbers, int64_t number) {
    return llvm::all_of(numbers, [&](int64_t other) { return other == number; });
  };
  return areAll(kernel, 1) && areAll(op.getStrides(), 1) && areAll(op.getPadsLow(), 0) && areAll(op.getPadsHigh(), 0);
}

/// Weights [out, in, taps] are rows of the depth as they lie, unless taps come first in it.
void ConvolutionSource::describe() {
  Side &input = sides[pixelSide], &weight = sides[1 - pixelSide];
  input.count = countElements(pixels);
  input.alongDepth = tapsFirst;
  input.together = tapsFirst ? channelsIn : isPointwise() ? pixels.back() : 1;
  weight.count = channelsOut;
  areRows = (!tapsFirst || countElements(kernel) == 1) && operands.isRowMajor(1 - pixelSide);
  weight.together = areRows ? depth : tapsFirst ? channelsIn : kernel.back();
  storeLanes = getStoreLanes(op, areLast ? channelsOut : pixels.back());
}

/// `place`, if it lies in the input; else another one, and `isThere` says so.
Value ConvolutionSource::clampInside(size_t dim, Value place, Value &isThere) {
  PlaceBuilder &p = e.places;
  int64_t extent = getShape(op.getInput())[dim + 2];
  if (op.getPadsLow()[dim] == 0 && op.getPadsHigh()[dim] == 0)
    return place;
  Value isInside = e.elements.both(p.isLess(p.number(-1), place), p.isLess(place, extent));
  isThere = isThere ? e.elements.both(isThere, isInside) : isInside;
  return p.clamp(place, 0, extent - 1);
}

ConvolutionSource::Spot ConvolutionSource::findPixel(Value pixel, Value channel, ArrayRef<Value> taps) {
  PlaceBuilder &p = e.places;
  SmallVector<Value> window = p.delinearize(pixel, pixels);
  Spot spot{{{window[0]}, {p.add(p.mul(group, channelsIn), channel)}}, {}};
  for (size_t dim = 0; dim < kernel.size(); ++dim) {
    Value place = p.add(p.mul(window[dim + 1], op.getStrides()[dim]),
                        p.add(p.mul(taps[dim], op.getDilations()[dim]), -op.getPadsLow()[dim]));
    spot.point.push_back({clampInside(dim, place, spot.isThere)});
  }
  return spot;
}

ConvolutionSource::Spot ConvolutionSource::find(unsigned side, Value outer, Value depth) {
  PlaceBuilder &p = e.places;
  SmallVector<int64_t> extents(kernel);
  extents.insert(tapsFirst ? extents.end() : extents.begin(), channelsIn);
  SmallVector<Value> at = p.delinearize(depth, extents);
  Value channel = tapsFirst ? at.back() : at.front();
  ArrayRef<Value> taps = tapsFirst ? ArrayRef(at).drop_back() : ArrayRef(at).drop_front();
  bool isWide = e.getLanes() > 1;
  if (side == pixelSide) {
    Spot spot = findPixel(outer, channel, taps);
    (tapsFirst ? spot.point[1] : spot.point.back()).lane = isWide;
    return spot;
  }
  Spot spot{{{p.add(p.mul(group, channelsOut), outer)}, {channel}}, {}};
  for (Value tap : taps)
    spot.point.push_back({tap});
  (tapsFirst ? spot.point[1] : spot.point.back()).lane = isWide;
  return spot;
}

/// Of weights that are rows.
Value ConvolutionSource::findInRows(Value outer, Value at) {
  PlaceBuilder &p = e.places;
  return p.add(p.mul(p.add(p.mul(group, channelsOut), outer), depth), at);
}

Value ConvolutionSource::load(unsigned side, Value outer, Value depth) {
  if (areRows && side != pixelSide)
    return operands.loadRowMajor(side, findInRows(outer, depth));
  Spot spot = find(side, outer, depth);
  Value value = operands.load(side, spot.point);
  if (!spot.isThere)
    return value;
  return arith::SelectOp::create(e.b, e.loc, spot.isThere, value, e.elements.like(value, 0));
}

std::optional<TileSource::Location> ConvolutionSource::locate(unsigned side, Value outer, Value depth) {
  if (areRows && side != pixelSide)
    return operands.locateRowMajor(side, findInRows(outer, depth));
  Spot spot = e.withLanes(2, 2, [&] { return find(side, outer, depth); });
  std::optional<Location> location = operands.locate(side, spot.point);
  if (location)
    location->isThere = spot.isThere;
  return location;
}

/// With the bias of its channel, and rounded once.
void ConvolutionSource::store(Value row, Value column, Value sums) {
  PlaceBuilder &p = e.places;
  int64_t lane = e.getLanes() > 1;
  SmallVector<Value> window = p.delinearize(areLast ? row : column, pixels);
  Index channel{p.add(p.mul(group, channelsOut), areLast ? column : row), areLast ? lane : 0};
  Point point{{window[0]}, channel};
  for (Value place : ArrayRef(window).drop_front())
    point.push_back({place});
  if (!areLast)
    point.back().lane = lane;
  if (Value bias = op.getBias())
    sums = e.elements.add(sums, e.elements.widen(e.eval(bias, {channel})));
  sink(point, e.elements.narrow(sums, ElementBuilder::getHeldType(getElementType(op.getResult()))));
}

/// Groups of few channels leave most of a block empty.
bool cleave::codegen::canRunDeviceConvolution(nn::ConvOp op) {
  ArrayRef<int64_t> weight = getShape(op.getWeight());
  int64_t groups = op.getGroups();
  return isa<FloatType>(getElementType(op.getResult())) && weight.size() > 2 && countElements(weight) > 0 &&
         (groups == 1 || (weight[0] / groups >= 8 && countElements(weight.drop_front()) >= 8));
}

void cleave::codegen::runDeviceConvolution(Emitter &emitter, nn::ConvOp op, TileSink sink) {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  auto &e = static_cast<DeviceEmitter &>(emitter);
  ConvolutionSource source(e, op, sink);
  runTile(e, source);
}
