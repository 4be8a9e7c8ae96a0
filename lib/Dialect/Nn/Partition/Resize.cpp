//===- Resize.cpp - more than a rank's part, and then that ----------------===//
//
// A rank's positions of the result are samples of its own piece and of some positions around it. What these make in
// front of the rank's part and behind it is dropped:
//
//   reads       [. 0 0 1]              rank 0 of a resize to twice the size, one position more on each side
//   makes       [- - 0 0 0 0 - -]
//
// Where samples lie otherwise on each rank, or its piece begins between two positions (7 rows to 14 on 2 ranks), tables say what they are made of: a rank takes its own entries of them, and adds up
// what it gathers by these, each times its weight.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Sampling.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

/// Tap `tap` of every position of the whole result: where it lies in what the position's rank reads. Taps without weight, which
/// nobody sent, are those of others.
static SmallVector<int64_t> getPlaces(const Taps &taps, int64_t tap, const LocalBuilder::ReadDim &at, int64_t made) {
  SmallVector<int64_t> places;
  int64_t size = at.window.high - at.window.low;
  for (int64_t entry = tap; entry < static_cast<int64_t>(taps.positions.size()); entry += taps.count) {
    int64_t piece = entry / taps.count / made, used = entry;
    // What nobody sent may be NaN, also times 0: a tap without weight looks where another one of its sample does.
    for (int64_t other = entry - tap; taps.weights[used] == 0 && other < entry - tap + taps.count; ++other)
      used = taps.weights[other] != 0 ? other : used;
    places.push_back(std::clamp<int64_t>(taps.positions[used] - at.window.startOf(piece), 0, size - 1));
  }
  return places;
}

/// A rank's `made` samples along a dim.
static Value sample(LocalBuilder &build, ResizeOp op, Value value, const LocalBuilder::ReadDim &at, int64_t made) {
  Builder &builder = build.context.builder;
  Taps taps = getTaps(op, at.dim);
  bool isNearest = op.getMode() == ResizeMode::Nearest;
  // Integers are rounded once, at the end, as the whole op would.
  bool isInteger = isa<IntegerType>(getElementType(value));
  if (!isNearest)
    value = isInteger ? build.cast(value, builder.getF64Type()) : build.widen(value);
  int64_t rank = getShape(value).size(), whole = taps.positions.size() / taps.count;
  SmallVector<int64_t> alongDim(rank - at.dim, 1);
  alongDim[0] = made;
  Value sum;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    auto places = DenseElementsAttr::get(RankedTensorType::get({whole}, builder.getI64Type()),
                                         ArrayRef<int64_t>(getPlaces(taps, tap, at, made)));
    Value taken = build.gather(value, build.ownPart(places, at.axes), at.dim);
    if (isNearest)
      return taken;
    Type element = getElementType(value);
    SmallVector<Attribute> weights;
    for (int64_t entry = tap; entry < static_cast<int64_t>(taps.weights.size()); entry += taps.count)
      weights.push_back(builder.getFloatAttr(element, taps.weights[entry]));
    Value weight = build.ownPart(DenseElementsAttr::get(RankedTensorType::get({whole}, element), weights), at.axes);
    Value term = build.mul(taken, build.reshape(weight, alongDim));
    sum = sum ? build.add(sum, term) : term;
  }
  return sum;
}

LogicalResult ResizeOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  auto read = build.readWindows(/*fill=*/{});
  RankedTensorType type = context.resultTypes.front();
  SmallVector<double> scales(getScales());
  for (const LocalBuilder::ReadDim &at : read) {
    ShardSampling sampling = *getShardSampling(*this, at.dim);
    int64_t made = type.getDimSize(at.dim);
    bool isShifted = at.window.step * sampling.slide.share != made * sampling.slide.stride;
    if (sampling.byTable || isShifted) {
      context.operands[0] = sample(build, *this, context.operands[0], at, made);
      scales[at.dim] = 1;
    }
  }
  Type element = getElementType(context.operands[0]);
  llvm::erase_if(read, [&](const LocalBuilder::ReadDim &at) { return scales[at.dim] == 1; });
  SmallVector<int64_t> shape(type.getShape()), starts(shape.size(), 0), steps(shape.size(), 1);
  for (const LocalBuilder::ReadDim &at : read) {
    // Both are whole numbers, as the rule sees to it.
    int64_t own = at.window.step, made = type.getDimSize(at.dim);
    shape[at.dim] = (at.window.high - at.window.low) * made / own;
    starts[at.dim] = -at.window.low * made / own;
  }
  Value result = context.operands[0];
  if (llvm::any_of(scales, [](double scale) { return scale != 1; })) {
    auto clone = cast<ResizeOp>(cloneLocal(*this, context));
    clone.setScales(scales);
    clone.getResult().setType(RankedTensorType::get(shape, element));
    result = clone;
  }
  result = context.builder.createOrFold<SliceOp>(context.loc, result, starts, type.getShape(), steps);
  results.push_back(build.cast(result, type.getElementType()));
  return success();
}
