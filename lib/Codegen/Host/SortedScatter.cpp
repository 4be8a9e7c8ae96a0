//===- SortedScatter.cpp - sums of rows, row by row -----------------------===//
//
// The gradient of a table of embeddings: most rows get nothing, some one row or several. Updates are sorted by the row that they go to,
// by counting, which keeps those of one row in their order:
//
//   update      0  1  2  3              rows         0  1  2  3
//   goes to     3  1  3  0              ends      0  1  2  2  4      of row r: from ends[r] to ends[r + 1]
//                                       order        3  1  0  2
//
// Then each row is made once, a vector at a time, in registers, and handed on: to a kernel that updates the table with it. Nothing is
// filled with zeros, and the gradient is in no memory where nothing else wants it. Sums are added up in the order of the updates, as
// one after the other into a table would be: they have its bits.
//
//===----------------------------------------------------------------------===//
#include "../Scatter.h"
#include "../Tile.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class SortedScatter {
public:
  SortedScatter(Emitter &e, nn::ScatterNdOp op, TileSink sink);
  void run();

private:
  void sort();
  void sumRow(ArrayRef<Value> place);
  Value sum(const Point &point, Value from, Value to);

  Value get(Value table, Value at) {
    return toIndex(e.asScalar([&] { return e.load(table, number, {at}); }));
  }
  void set(Value table, Value at, Value value) {
    e.store(table, arith::IndexCastOp::create(e.b, e.loc, number, value), {at});
  }
  Value toIndex(Value value) { return arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), value); }

  Emitter &e;
  PlaceBuilder &p;
  nn::ScatterNdOp op;
  TileSink sink;
  ArrayRef<int64_t> shape, rows, numbers; ///< of the table; of its rows; of the updates that are rows
  Type number;                            ///< of positions in memory
  Value ends, order;
};

} // namespace

SortedScatter::SortedScatter(Emitter &e, nn::ScatterNdOp op, TileSink sink)
    : e(e), p(e.places), op(op), sink(sink), shape(getShape(op.getResult())), number(e.b.getI64Type()) {
  ArrayRef<int64_t> tuples = getShape(op.getIndices());
  rows = shape.take_front(tuples.back());
  numbers = tuples.drop_back();
}

/// While updates are given their places, `ends[row + 1]` says where the next one of a row goes; in the end that is where the row ends.
void SortedScatter::sort() {
  int64_t numRows = countElements(rows), numUpdates = countElements(numbers);
  ends = e.allocate(number, numRows + 1);
  order = e.allocate(number, numUpdates);
  Value rowOf = e.allocate(number, numUpdates), zero = p.number(0);
  e.loop(numRows + 1, [&](Value at) { set(ends, at, zero); });
  // Looked up once, so that an index out of range is told once.
  e.overAll(numbers, [&](const Point &tuple) {
    SmallVector<Value> at;
    for (const Index &index : pullTuple(e, op.getIndices(), tuple, shape, 0))
      at.push_back(index.base);
    Value next = p.add(p.linearize(at, rows), 1);
    set(rowOf, p.linearize(tuple, numbers).base, next);
    set(ends, next, p.add(get(ends, next), 1));
  });
  // Of how many there are it becomes where they begin.
  e.loop(numRows, {zero}, [&](Value row, Values before) {
    Value at = p.add(row, 1), count = get(ends, at);
    set(ends, at, before[0]);
    return Values{p.add(before[0], count)};
  });
  e.loop(numUpdates, [&](Value update) {
    Value row = get(rowOf, update), at = get(ends, row);
    set(order, at, update);
    set(ends, row, p.add(at, 1));
  });
}

/// What is there at first, and the updates `from` to `to` of the order, at lanes of one row.
Value SortedScatter::sum(const Point &point, Value from, Value to) {
  Type element = getElementType(op.getResult());
  Value first = e.elements.widen(e.eval(op.getInput(), point));
  Values all = e.loop(from, to, 1, {first}, [&](Value at, Values old) {
    Point source;
    for (Value index : p.delinearize(get(order, at), numbers))
      source.push_back({index});
    source.append(point.begin() + rows.size(), point.end());
    Value with = e.elements.widen(e.eval(op.getUpdates(), source));
    return Values{joinUpdate(e.elements, op.getKind(), old[0], with, false)};
  });
  return e.elements.narrow(all[0], ElementBuilder::getHeldType(element));
}

void SortedScatter::sumRow(ArrayRef<Value> place) {
  Value row = p.linearize(place, rows), from = get(ends, row), to = get(ends, p.add(row, 1));
  Point at;
  for (Value index : place)
    at.push_back({index});
  // As everywhere, four bytes a lane at least.
  unsigned bits = ElementBuilder::getStoredType(getElementType(op.getResult())).getIntOrFloatBitWidth();
  int64_t lanes = e.getVectorLanes(e.b.getIntegerType(std::max(bits, 32u)));
  overVectors(e, at, shape, lanes, [&](const Point &point) { sink(point, sum(point, from, to)); });
}

void SortedScatter::run() {
  sort();
  e.walk(rows, {}, [&](ArrayRef<Value> place, Values) {
    sumRow(place);
    return Values();
  });
}

void cleave::codegen::runSortedScatter(Emitter &e, Operation *op, TileSink sink) {
  SortedScatter(e, cast<nn::ScatterNdOp>(op), sink).run();
}
