//===- Movement.cpp - lowerings of ops that move elements -----------------===//
//
// Each rewrites the point. Where neighboring lanes of the result are not neighbors in one operand, and that cannot be
// proved otherwise, each lane goes by itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "Emitter.h"
#include "View.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// Dims that the reshape leaves alone keep their index. Where lanes may fall apart, what lies in memory is read from there: in
/// the order of all of its elements a reshape moves none, so that neighbors stay neighbors.
static Value pullReshape(Emitter &e, nn::ReshapeOp op, const Point &point) {
  ArrayRef<int64_t> shape = getShape(op.getResult());
  if (std::optional<Point> source = reshapePoint(e, point, shape, getShape(op.getInput())))
    return e.eval(op.getInput(), *source);
  Value stored = op.getInput();
  while (auto inner = stored.getDefiningOp<nn::ReshapeOp>())
    stored = inner.getInput();
  if (Value buffer = e.getBuffer(stored))
    return e.load(buffer, getElementType(stored), e.places.linearize(point, shape));
  return e.perLane(op.getResult(), point);
}

static Value pullTranspose(Emitter &e, nn::TransposeOp op, const Point &point) {
  Point source(point.size());
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    source[from] = point[to];
  return e.eval(op.getInput(), source);
}

static Value pullSlice(Emitter &e, nn::SliceOp op, const Point &point) {
  Point source;
  for (auto [index, start, size, step] : llvm::zip_equal(point, op.getStarts(), op.getSizes(), op.getSteps())) {
    int64_t by = size > 1 ? step : 0; // else any step is allowed, however large
    source.push_back({e.places.add(e.places.mul(index.base, by), start), index.lane * by});
  }
  return e.eval(op.getInput(), source);
}

/// Operands from the `first` on, of which each ends where `ends` says.
static Value pullPiece(Emitter &e, nn::ConcatOp op, const Point &point, ArrayRef<int64_t> ends, size_t first) {
  Value operand = op.getInputs()[first];
  Point source = point;
  Index &index = source[op.getDim()];
  if (first > 0)
    index.base = e.places.add(index.base, -ends[first - 1]);
  if (first + 1 == ends.size())
    return e.eval(operand, source);
  Type type = e.withLanes(ElementBuilder::getHeldType(getElementType(operand)));
  return e.choose(
      e.places.isLess(point[op.getDim()].base, ends[first]), type, [&] { return e.eval(operand, source); },
      [&] { return pullPiece(e, op, point, ends, first + 1); });
}

/// All lanes fall on one operand where each begins and ends at a multiple of a vector.
static Value pullConcat(Emitter &e, nn::ConcatOp op, const Point &point) {
  const Index &index = point[op.getDim()];
  SmallVector<int64_t> ends;
  int64_t end = 0;
  for (Value operand : op.getInputs()) {
    int64_t lanes = e.getLanes();
    if (index.lane && (index.lane != 1 || end % lanes || PlaceBuilder::getDivisor(index.base) % lanes))
      return e.perLane(op.getResult(), point);
    ends.push_back(end += getShape(operand)[op.getDim()]);
  }
  return pullPiece(e, op, point, ends, 0);
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// Where a padded dim's element comes from, for a place counted from the operand's first.
static Value getPadSource(Emitter &e, nn::PadMode mode, Value place, int64_t size) {
  PlaceBuilder &p = e.places;
  switch (mode) {
  case nn::PadMode::Constant:
  case nn::PadMode::Edge:
    return p.clamp(place, 0, size - 1);
  case nn::PadMode::Reflect: {
    Value mirrored = p.select(p.isLess(place, 0), p.mul(place, -1), place);
    Value beyond = p.add(p.mul(mirrored, -1), 2 * (size - 1));
    return p.clamp(p.select(p.isLess(mirrored, size), mirrored, beyond), 0, size - 1);
  }
  case nn::PadMode::Wrap:
    return place; // brought into range by the caller, who knows how far it can be out
  }
  return place;
}

/// A point outside reads nothing: the choice is around the load.
static Value pullPad(Emitter &e, nn::PadOp op, const Point &point) {
  ArrayRef<int64_t> from = getShape(op.getInput());
  Value inside;
  Point source;
  PlaceBuilder &p = e.places;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim], size = from[dim];
    const Index &index = point[dim];
    if (low == 0 && high == 0) {
      source.push_back(index);
      continue;
    }
    if (index.lane) // a dim that is padded is not walked by lanes
      return e.perLane(op.getResult(), point);
    Value place = p.add(index.base, -low);
    if (op.getMode() == nn::PadMode::Constant) {
      Value isIn = arith::AndIOp::create(e.b, e.loc, p.isLess(p.number(-1), place), p.isLess(place, size));
      inside = inside ? e.elements.both(inside, isIn) : isIn;
    }
    if (op.getMode() == nn::PadMode::Wrap)
      source.push_back({p.rem(p.add(place, llvm::divideCeil(low, size) * size), size)});
    else
      source.push_back({getPadSource(e, op.getMode(), place, size)});
  }
  if (!inside)
    return e.eval(op.getInput(), source);
  Type element = ElementBuilder::getHeldType(getElementType(op.getInput())), type = e.withLanes(element);
  auto fill = [&] { return op.getValue() ? e.eval(op.getValue(), {}) : e.elements.number(type, 0); };
  if (llvm::is_contained(from, 0))
    return fill();
  return e.choose(inside, type, [&] { return e.eval(op.getInput(), source); }, fill);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static Value pullRotate(Emitter &e, nn::RotateOp op, const Point &point) {
  Point source = point;
  Index &index = source[op.getDim()];
  if (op.getAmount() != 0 && index.lane)
    return e.perLane(op.getResult(), point);
  index.base = e.places.rem(e.places.add(index.base, op.getAmount()), getShape(op.getInput())[op.getDim()]);
  return e.eval(op.getInput(), source);
}

/// Position of all lanes along a dim, as i64.
static Value spread(Emitter &e, Index index) {
  Value base = e.splat(arith::IndexCastOp::create(e.b, e.loc, e.b.getI64Type(), index.base));
  return e.getLanes() == 1 ? base : e.elements.add(base, e.getLaneNumbers(index.lane));
}

static Value pullTrilu(Emitter &e, nn::TriluOp op, const Point &point) {
  size_t rank = point.size();
  ArrayRef<int64_t> shape = getShape(op.getInput());
  int64_t offset = std::min(std::max<int64_t>(op.getOffset(), -shape[rank - 2]), shape[rank - 1]);
  Value x = e.eval(op.getInput(), point);
  Value ahead = e.elements.sub(spread(e, point[rank - 1]), spread(e, point[rank - 2]));
  Value bound = e.elements.integer(ahead.getType(), offset);
  Value isKept = e.elements.compare(op.getUpper() ? Relation::Ge : Relation::Le, ahead, bound);
  return e.elements.select(isKept, x, e.elements.number(x.getType(), 0));
}

void cleave::codegen::registerMovement(LoweringTable &table) {
  table.addPull<nn::ReshapeOp>(pullReshape);
  table.addPull<nn::TransposeOp>(pullTranspose);
  table.addPull<nn::BroadcastOp>([](Emitter &e, nn::BroadcastOp op, const Point &point) {
    return e.eval(op.getInput(), e.broadcast(point, getShape(op.getInput())));
  });
  table.addPull<nn::SliceOp>(pullSlice);
  table.addPull<nn::ConcatOp>(pullConcat);
  table.addPull<nn::PadOp>(pullPad);
  table.addPull<nn::RotateOp>(pullRotate);
  table.addPull<nn::TriluOp>(pullTrilu);
}
