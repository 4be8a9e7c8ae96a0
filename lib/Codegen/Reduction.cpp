//===- Reduction.cpp - lowerings of reductions, softmax, scans, top_k -----===//
//
// Reductions are monoids in the compute type, rounded once; integers whose mean is taken are summed as i64. Running sums
// and the k largest are loops of their own over the lines along a dim.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "Compose.h"
#include "Device/Templates.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

//===----------------------------------------------------------------------===//
// Reductions over dims
//===----------------------------------------------------------------------===//

/// The value that any other one beats, in a type for `element`.
static Value getWorst(Emitter &e, bool isMax, Type element) {
  Type type = e.withLanes(ElementBuilder::getComputeType(element));
  if (isa<FloatType>(element))
    return e.elements.number(type, isMax ? -INFINITY : INFINITY);
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isInteger(1) || element.isUnsignedInteger())
    return e.elements.integer(type, isMax ? 0 : int64_t(~uint64_t(0) >> (64 - width)));
  int64_t largest = int64_t(~uint64_t(0) >> (65 - width));
  return e.elements.integer(type, isMax ? -largest - 1 : largest);
}

/// The type that a reduction carries.
static Type getCarried(nn::ReduceOp op) {
  Type element = getElementType(op.getInput());
  if (op.getKind() == nn::ReduceKind::Mean && element.isInteger())
    return IntegerType::get(op.getContext(), 64);
  return ElementBuilder::getComputeType(element);
}

static Values getReduceIdentity(Emitter &e, Operation *base) {
  auto op = cast<nn::ReduceOp>(base);
  Type type = e.withLanes(getCarried(op));
  switch (op.getKind()) {
  case nn::ReduceKind::Sum:
  case nn::ReduceKind::Mean:
    return {e.elements.number(type, 0)};
  case nn::ReduceKind::Prod:
    return {e.elements.number(type, 1)};
  case nn::ReduceKind::Max:
    return {getWorst(e, true, getElementType(op.getInput()))};
  case nn::ReduceKind::Min:
    break;
  }
  return {getWorst(e, false, getElementType(op.getInput()))};
}

static Values liftReduce(Emitter &e, Operation *base, Value element, Index) {
  auto op = cast<nn::ReduceOp>(base);
  Type from = getElementType(op.getInput());
  if (op.getKind() == nn::ReduceKind::Mean && from.isInteger())
    return {e.elements.convert(element, from, e.b.getI64Type())};
  return {e.elements.widen(element)};
}

/// Two parts of a sum, product or extremum as one.
static Values combineReduce(Emitter &e, Operation *base, ValueRange x, ValueRange y) {
  auto op = cast<nn::ReduceOp>(base);
  bool isUnsigned = getElementType(op.getInput()).isUnsignedInteger();
  switch (op.getKind()) {
  case nn::ReduceKind::Sum:
  case nn::ReduceKind::Mean:
    return {e.elements.add(x[0], y[0])};
  case nn::ReduceKind::Prod:
    return {e.elements.mul(x[0], y[0])};
  case nn::ReduceKind::Max:
    return {e.elements.extremum(true, x[0], y[0], isUnsigned)};
  case nn::ReduceKind::Min:
    break;
  }
  return {e.elements.extremum(false, x[0], y[0], isUnsigned)};
}

static Value finishReduce(Emitter &e, Operation *base, ValueRange sum) {
  auto op = cast<nn::ReduceOp>(base);
  Type element = getElementType(op.getResult());
  if (op.getKind() != nn::ReduceKind::Mean)
    return e.elements.narrow(sum[0], ElementBuilder::getHeldType(element));
  int64_t count = 1;
  for (int64_t dim : op.getDims())
    count *= getShape(op.getInput())[dim];
  Value mean = e.elements.divideBy(sum[0], count, element.isUnsignedInteger());
  return element.isInteger() ? e.elements.convert(mean, e.b.getI64Type(), element) : e.elements.narrow(mean, element);
}

/// Keeps its dims, so that what follows is in the operand's dims too.
static Value expandReduce(OpBuilder &b, nn::ReduceOp op) {
  if (op.getKeepDims())
    return {};
  Composer c(b, op);
  return c.reshape(c.reduce(op.getKind(), op.getInput(), op.getDims(), /*keepDims=*/true), getShape(op.getResult()));
}

//===----------------------------------------------------------------------===//
// Positions of extrema
//===----------------------------------------------------------------------===//

static Values getArgIdentity(Emitter &e, Operation *base) {
  auto op = cast<nn::ArgReduceOp>(base);
  Value worst = getWorst(e, op.getKind() == nn::ReduceKind::Max, getElementType(op.getInput()));
  return {worst, e.elements.integer(e.withLanes(e.b.getI64Type()), op.getLast() ? -1 : INT64_MAX)};
}

/// An element and where it stands.
static Values liftArg(Emitter &e, Operation *, Value element, Index place) {
  Value position = e.splat(arith::IndexCastOp::create(e.b, e.loc, e.b.getI64Type(), place.base));
  if (place.lane)
    position = e.elements.add(position, e.getLaneNumbers(place.lane));
  return {e.elements.widen(element), position};
}

/// NaN beats all but NaN; of equal ones the first stays, or the last.
static Values combineArg(Emitter &e, Operation *base, ValueRange x, ValueRange y) {
  auto op = cast<nn::ArgReduceOp>(base);
  ElementBuilder &m = e.elements;
  bool isMax = op.getKind() == nn::ReduceKind::Max, isUnsigned = getElementType(op.getInput()).isUnsignedInteger();
  auto beats = [&](Value a, Value b) {
    Value better = m.compare(isMax ? Relation::Gt : Relation::Lt, a, b, isUnsigned);
    if (!ElementBuilder::isFloat(a))
      return better;
    Value onlyA = m.both(m.isNan(a), m.compare(Relation::Eq, b, b));
    return m.either(better, onlyA);
  };
  Value wins = beats(y[0], x[0]), loses = beats(x[0], y[0]);
  Value isLater = m.compare(op.getLast() ? Relation::Gt : Relation::Lt, y[1], x[1]);
  Value isSame = m.compare(Relation::Eq, m.either(wins, loses), 0.0);
  Value takes = m.either(wins, m.both(isSame, isLater));
  return {m.select(takes, y[0], x[0]), m.select(takes, y[1], x[1])};
}

static Value finishArg(Emitter &e, Operation *op, ValueRange best) {
  return e.elements.convert(best[1], e.b.getI64Type(), getElementType(op->getResult(0)));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

template <bool isLog, typename OpT> static Value expandSoftmax(OpBuilder &b, OpT op) {
  Composer c(b, op);
  int64_t dim = op.getDim();
  Value x = c.toCompute(op.getInput());
  Value shifted = c.sub(x, c.reduce(nn::ReduceKind::Max, x, {dim}, /*keepDims=*/true));
  Value exp = c.exp(shifted), sum = c.sum(exp, {dim}, /*keepDims=*/true);
  Value y = isLog ? c.sub(shifted, c.log(sum)) : c.mul(exp, c.reciprocal(sum));
  return c.cast(y, getElementType(op.getResult()));
}

//===----------------------------------------------------------------------===//
// Lines along a dim
//===----------------------------------------------------------------------===//

/// Calls `body` with the point of element 0 of each line.
static void overLines(Emitter &e, ArrayRef<int64_t> shape, int64_t dim, function_ref<void(const Point &)> body) {
  SmallVector<int64_t> extents(shape);
  extents[dim] = 1;
  e.forAll(extents, body);
}

/// Forwards or backwards; the sum is carried in the compute type, each of its states rounded for itself.
static void fillCumsum(Emitter &e, nn::CumsumOp op, ValueRange buffers) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  int64_t dim = op.getDim();
  Type element = getElementType(op.getInput());
  overLines(e, shape, dim, [&](const Point &line) {
    Values zero{e.elements.number(ElementBuilder::getComputeType(element), 0)};
    e.loop(shape[dim], zero, [&](Value step, Values carried) {
      Point at = line;
      at[dim].base = op.getReverse() ? e.places.add(e.places.mul(step, -1), shape[dim] - 1) : step;
      Value sum = e.elements.add(carried[0], e.elements.widen(e.evalScalar(op.getInput(), at)));
      Value result = op.getExclusive() ? carried[0] : sum;
      e.store(buffers[0], e.elements.narrow(result, ElementBuilder::getHeldType(element)),
              e.places.linearize(at, shape));
      return Values{sum};
    });
  });
}

/// NaN counts as the largest.
Value cleave::codegen::beatsInTopK(Emitter &e, nn::TopKOp op, Value a, Value b) {
  ElementBuilder &m = e.elements;
  a = m.widen(a);
  b = m.widen(b);
  bool smallest = op.getSmallest();
  Value better =
      m.compare(smallest ? Relation::Lt : Relation::Gt, a, b, getElementType(op.getInput()).isUnsignedInteger());
  if (!ElementBuilder::isFloat(a))
    return better;
  Value nanWins =
      smallest ? m.both(m.isNan(b), m.compare(Relation::Eq, a, a)) : m.both(m.isNan(a), m.compare(Relation::Eq, b, b));
  return m.either(better, nanWins);
}

namespace {
/// Sorts the best of each line into the results: each element moves down past those that it beats.
struct TopK {
  Emitter &e;
  nn::TopKOp op;
  ValueRange buffers;
  Type element = getElementType(op.getInput()), index = getElementType(op.getIndices());
  ArrayRef<int64_t> shape = getShape(op.getValues());
  int64_t dim = op.getDim();

  Value beats(Value a, Value b) { return beatsInTopK(e, op, a, b); }
  Index at(const Point &line, Value place) {
    Point point = line;
    point[dim] = {place};
    return e.places.linearize(point, shape);
  }
  /// Puts element `position` of a line, of whose best `filled` are there, into its place.
  void insert(const Point &line, Value position, Value filled);
  void run();
};
} // namespace

/// From the end: the one that is beaten moves up a place (and out, at the end), and what comes in takes its own.
void TopK::insert(const Point &line, Value position, Value filled) {
  Point from = line;
  from[dim] = {position};
  Value candidate = e.evalScalar(op.getInput(), from);
  Value number =
      e.elements.convert(arith::IndexCastOp::create(e.b, e.loc, e.b.getI64Type(), position), e.b.getI64Type(), index);
  Value last = e.places.number(shape[dim] - 1);
  Values place = e.loop(e.places.number(0), filled, 1, {filled}, [&](Value step, Values carried) {
    Value other = arith::SubIOp::create(e.b, e.loc, e.places.add(filled, -1), step);
    Value value = e.load(buffers[0], element, at(line, other)), old = e.load(buffers[1], index, at(line, other));
    Value wins = beats(candidate, value);
    Value next = e.places.add(other, 1), isIn = e.elements.both(wins, e.places.isLess(other, last));
    e.when(isIn, [&] {
      e.store(buffers[0], value, at(line, next));
      e.store(buffers[1], old, at(line, next));
    });
    return Values{e.places.select(wins, other, carried[0])};
  });
  e.when(e.places.isLess(place[0], shape[dim]), [&] {
    e.store(buffers[0], candidate, at(line, place[0]));
    e.store(buffers[1], number, at(line, place[0]));
  });
}

/// Line by line, element by element: of the first k each finds a place, of later ones those that beat the last.
void TopK::run() {
  if (shape[dim] == 0)
    return;
  int64_t size = getShape(op.getInput())[dim];
  overLines(e, shape, dim, [&](const Point &line) {
    e.loop(e.places.number(0), e.places.number(size), 1, {}, [&](Value position, Values) {
      Value most = e.places.number(shape[dim]);
      insert(line, position, arith::MinSIOp::create(e.b, e.loc, position, most));
      return Values();
    });
  });
}

void cleave::codegen::registerReduction(LoweringTable &table) {
  auto getDims = [](Operation *op) { return SmallVector<int64_t>(cast<nn::ReduceOp>(op).getDims()); };
  auto setDims = [](Operation *op, ArrayRef<int64_t> dims) { cast<nn::ReduceOp>(op).setDims(dims); };
  table.addFold<nn::ReduceOp>({getDims, setDims, getReduceIdentity, liftReduce, combineReduce, finishReduce});
  table.addExpand<nn::ReduceOp>(expandReduce);
  auto getDim = [](Operation *op) { return SmallVector<int64_t>{int64_t(cast<nn::ArgReduceOp>(op).getDim())}; };
  auto setDim = [](Operation *op, ArrayRef<int64_t> dims) { cast<nn::ArgReduceOp>(op).setDim(dims.front()); };
  table.addFold<nn::ArgReduceOp>({getDim, setDim, getArgIdentity, liftArg, combineArg, finishArg});
  table.addExpand<nn::SoftmaxOp>(expandSoftmax<false, nn::SoftmaxOp>);
  table.addExpand<nn::LogSoftmaxOp>(expandSoftmax<true, nn::LogSoftmaxOp>);
  table.addFill<nn::CumsumOp>(fillCumsum);
  table.addFill<nn::TopKOp>([](Emitter &e, nn::TopKOp op, ValueRange buffers) { TopK{e, op, buffers}.run(); });
}
