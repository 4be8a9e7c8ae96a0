//===- Scatter.cpp - scatters of many updates on devices ------------------===//
//
// A block has some places that may be updated (*rows*: slices, or elements of a line), and looks through the indices once for those that
// lead there. No place belongs to two blocks, so nothing is left to the order in which blocks run, and nothing is kept in memory:
//
//   rows          0 1 2 3 | 4 5 6 7      two blocks of four
//   indices       5 1 6 1                block 0 finds updates 1 and 3 for its row 1
//
// What is replaced: of each row the last update is wanted, the largest number, which atomics in shared memory find in any order. Then each
// element is written once, from its last update or from what is updated.
//
// What is added up, multiplied or compared: in the order of the updates, so that floats have the same bits each time. Rows lie in shared memory
// while updates go by, as many at a time as there are threads: each looks at one, warps vote, and then every thread goes through those that
// were found, with the columns that are its own. What was found lies in two sets in turn, so that one barrier for so many updates is enough.
//
// Where in all launches the result lies where the input does, as a cache's does, only what is updated is written: of few updates by threads for each update, the
// last of those that meet a place for all of them.
//
// An index is read once for each block of rows, so there are as many blocks as a device wants, and rows enough that indices are
// not more than they are.
//
//===----------------------------------------------------------------------===//
#include "../Scatter.h"
#include "Templates.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Of fewer updates each element looks for its own.
static constexpr int64_t kFewUpdates = 32;
static constexpr int64_t kSharedBytes = 32 << 10;
/// More blocks bring nothing.
static constexpr int64_t kMostBlocks = 1024;

namespace {

/// What both ops have in common: lines of rows, each of which has as many columns, and updates for a line's rows.
struct Updates {
  explicit Updates(Operation *op);

  Value input, indices, updates;
  nn::ScatterKind kind = nn::ScatterKind::Set;
  std::optional<int64_t> dim; ///< of single elements; none: slices
  SmallVector<int64_t> lines, rows, columns, numbers;
};

class ScatterKernel {
public:
  ScatterKernel(DeviceEmitter &e, Operation *op, TileSink sink)
      : e(e), p(e.places), of(op), sink(sink), element(getElementType(of.input)), rows(countElements(of.rows)),
        updates(countElements(of.numbers)) {
    kept = isSet() ? element : ElementBuilder::getComputeType(element);
    lanes = of.columns.empty() ? 1 : getDeviceLanes(op->getParentOfType<func::FuncOp>(), of.columns.back());
  }
  void run();
  /// As `run`, where what is not updated is there already.
  void runInPlace();

private:
  bool isSet() const { return of.kind == nn::ScatterKind::Set; }
  int64_t countCells() const { return countElements(of.columns) / lanes; }
  void choose();
  void place();
  void setLine(ArrayRef<Value> at);
  Value findRow(Value number);
  Value isOwn(Value row);
  Value isColumn(Value cell);
  Point pointOf(Value number, ArrayRef<int64_t> extents, const Point &inLine, Value cell);
  Point getPoint(Value row, Value cell);
  Point getUpdate(Value number, Value cell);
  void overRows(function_ref<void(Value, Value)> body);

  void replace();
  void findLast();
  void updateFew();
  void join();
  void look(Value chunk, Value row);
  void addFound(Value chunk, Value slot, Value own);

  DeviceEmitter &e;
  PlaceBuilder &p;
  Updates of;
  TileSink sink;
  Type element, kept;
  int64_t rows, updates, lanes;
  /// Rows and vectors of columns of a block; rows that its threads have at a time.
  int64_t height = 1, width = 1, groups = 1, threads = kUsualThreads;
  Value first, firstCell, cell, group;
  Value isThere; ///< whether a thread has columns; none: all have
  Value shared, found, votes;
  Point line, lineOfUpdates;
  Value isInside; ///< whether the line has updates; none: all have
  bool isInPlace = false;
};

} // namespace

Updates::Updates(Operation *op) {
  if (auto nd = dyn_cast<nn::ScatterNdOp>(op)) {
    input = nd.getInput(), indices = nd.getIndices(), updates = nd.getUpdates();
    kind = nd.getKind();
    ArrayRef<int64_t> shape = getShape(input), tuples = getShape(indices);
    rows.assign(shape.begin(), shape.begin() + tuples.back());
    columns.assign(shape.begin() + tuples.back(), shape.end());
    numbers.assign(tuples.begin(), tuples.end() - 1);
    return;
  }
  auto single = cast<nn::ScatterElementsOp>(op);
  input = single.getInput(), indices = single.getIndices(), updates = single.getUpdates();
  kind = single.getKind();
  dim = single.getDim();
  lines.assign(getShape(input).begin(), getShape(input).end());
  rows = {lines[*dim]};
  numbers = {getShape(updates)[*dim]};
  lines[*dim] = 1;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Rows enough that a block reads no more of indices than of rows, but not so many that blocks are few, or that shared memory does not
/// hold them.
void ScatterKernel::choose() {
  int64_t most = isSet() ? 1024 : kUsualThreads, cells = countCells();
  width = llvm::divideCeil(cells, llvm::divideCeil(cells, most));
  groups = std::max<int64_t>(kUsualThreads / width, 1);
  if (!isSet())
    threads = llvm::alignTo(width * groups, kWarp);
  int64_t bytes = llvm::divideCeil(ElementBuilder::getStoredType(kept).getIntOrFloatBitWidth(), 8) * width * lanes;
  int64_t hold = kSharedBytes / (isSet() ? int64_t(sizeof(int32_t)) : bytes);
  int64_t all = countElements(of.lines) * llvm::divideCeil(cells, width) * rows;
  int64_t wanted = std::max<int64_t>(llvm::divideCeil(updates * int64_t(sizeof(int64_t)), bytes), all / kMostBlocks);
  wanted = std::min(wanted, all / kWantedBlocks);
  height = std::clamp<int64_t>(wanted, std::min(groups, rows), std::min(hold, rows));
}

/// The line at `at`.
void ScatterKernel::setLine(ArrayRef<Value> at) {
  ArrayRef<int64_t> extents = getShape(of.updates);
  for (auto [number, from] : llvm::enumerate(at)) {
    line.push_back({from});
    bool isShort = of.dim != int64_t(number) && extents[number] < of.lines[number];
    lineOfUpdates.push_back({isShort ? p.clamp(from, 0, extents[number] - 1) : from});
    if (Value isIn = isShort ? p.isLess(from, extents[number]) : Value())
      isInside = isInside ? e.elements.both(isInside, isIn) : isIn;
  }
}

/// Neighboring blocks have neighboring lines or columns.
void ScatterKernel::place() {
  SmallVector<int64_t> blocks{int64_t(llvm::divideCeil(rows, height)), int64_t(llvm::divideCeil(countCells(), width))};
  llvm::append_range(blocks, of.lines);
  e.launch(countElements(blocks), threads);
  SmallVector<Value> at = p.delinearize(e.getBlock(), blocks);
  first = p.mul(at[0], height);
  firstCell = p.mul(at[1], width);
  setLine(ArrayRef(at).drop_front(2));
}

/// Which of the block's rows update `number` leads to; a number that no row has if it is none of them.
Value ScatterKernel::findRow(Value number) {
  Value row;
  if (of.dim) {
    Point at = lineOfUpdates;
    at[*of.dim] = {number};
    row = e.evalPlace(of.indices, at, rows);
  } else {
    Point tuple;
    for (Value index : p.delinearize(number, of.numbers))
      tuple.push_back({index});
    SmallVector<Value> at;
    for (const Index &index : pullTuple(e, of.indices, tuple, getShape(of.input), 0))
      at.push_back(index.base);
    row = p.linearize(at, of.rows);
  }
  Value own = arith::SubIOp::create(e.b, e.loc, row, first);
  return isInside ? p.select(isInside, own, p.number(-1)) : own;
}

/// Without a sign what is before the first row is far behind the last.
Value ScatterKernel::isOwn(Value row) {
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult, row, p.number(height));
}

/// Nothing where all columns are there.
Value ScatterKernel::isColumn(Value cell) { return countCells() % width ? p.isLess(cell, countCells()) : Value(); }

/// Of a row or an update: in the line, or behind its places among `extents`.
Point ScatterKernel::pointOf(Value number, ArrayRef<int64_t> extents, const Point &inLine, Value cell) {
  Point point;
  if (of.dim) {
    point = inLine;
    point[*of.dim] = {number};
    return point;
  }
  for (Value index : p.delinearize(number, extents))
    point.push_back({index});
  for (Value index : p.delinearize(p.mul(cell, lanes), of.columns))
    point.push_back({index});
  if (lanes > 1)
    point.back().lane = 1;
  return point;
}

Point ScatterKernel::getPoint(Value row, Value cell) { return pointOf(row, of.rows, line, cell); }

Point ScatterKernel::getUpdate(Value number, Value cell) { return pointOf(number, of.numbers, lineOfUpdates, cell); }

//===----------------------------------------------------------------------===//
// Replacing
//===----------------------------------------------------------------------===//

/// The last update of each row, or -1. A few indices of a thread are on their way together.
void ScatterKernel::findLast() {
  Type i32 = e.b.getI32Type();
  auto overThreads = [&](int64_t count, int64_t each, function_ref<void(Value)> body) {
    e.loop(e.getThread(), p.number(count), threads * each, {}, [&](Value number, Values) {
      body(number);
      return Values();
    });
  };
  shared = e.share(i32, height);
  overThreads(height, 1, [&](Value row) { e.store(shared, e.elements.integer(i32, -1), {row}); });
  e.barrier();
  int64_t each = updates >= 4 * threads ? 4 : 1;
  overThreads(updates, each, [&](Value from) {
    Values own, isHere, numbers;
    for (int64_t i = 0; i < each; ++i) {
      bool mayEnd = i > 0 && updates % (each * threads);
      Value number = p.add(from, i * threads), at = mayEnd ? p.clamp(number, 0, updates - 1) : number;
      own.push_back(findRow(at));
      // The last one again is no other one.
      numbers.push_back(arith::IndexCastOp::create(e.b, e.loc, i32, at));
      isHere.push_back(isOwn(own.back()));
    }
    for (auto [row, here, number] : llvm::zip_equal(own, isHere, numbers))
      e.when(here, [&, row = row, number = number] { e.raise(shared, number, row); });
  });
  e.barrier();
}

void ScatterKernel::replace() {
  findLast();
  Type held = ElementBuilder::getHeldType(element);
  e.loop(e.getThread(), p.number(height * width), threads, {}, [&](Value number, Values) {
    Value own = p.div(number, width), row = p.add(first, own), at = p.add(firstCell, p.rem(number, width));
    Value exists = isColumn(at);
    if (rows % height) {
      Value isRow = p.isLess(row, rows);
      exists = exists ? e.elements.both(exists, isRow) : isRow;
    }
    auto write = [&] {
      Value last = e.asScalar([&] { return e.load(shared, e.b.getI32Type(), {own}); });
      Value isUpdated = e.elements.compare(ElementBuilder::Relation::Ge, last, 0.0);
      Value from = arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), last);
      e.withLanes(lanes, lanes, [&] {
        Point point = getPoint(row, at);
        if (isInPlace) {
          e.when(isUpdated, [&] { sink(point, e.eval(of.updates, getUpdate(from, at))); });
          return 0;
        }
        sink(point, e.choose(
                        isUpdated, e.withLanes(held), [&] { return e.eval(of.updates, getUpdate(from, at)); },
                        [&] { return e.eval(of.input, point); }));
        return 0;
      });
    };
    exists ? e.when(exists, write) : write();
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// The block's rows, with this thread's columns: `body` gets where they lie in shared memory, and the row's place in the line.
void ScatterKernel::overRows(function_ref<void(Value, Value)> body) {
  e.loop(group, p.number(height), groups, {}, [&](Value own, Values) {
    Value row = p.add(first, own), exists = isThere;
    if (rows % height) {
      Value isRow = p.isLess(row, rows);
      exists = exists ? e.elements.both(exists, isRow) : isRow;
    }
    auto call = [&] {
      e.withLanes(lanes, lanes, [&] {
        body(p.mul(p.add(p.mul(own, width), cell), lanes), row);
        return 0;
      });
    };
    exists ? e.when(exists, call) : call();
    return Values();
  });
}

/// Update `number` to this thread's columns of row `own` of the block.
void ScatterKernel::addFound(Value chunk, Value slot, Value own) {
  Value isMine = isThere;
  if (groups > 1) {
    Value isOfGroup = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, p.rem(own, groups), group);
    isMine = isMine ? e.elements.both(isMine, isOfGroup) : isOfGroup;
  }
  auto add = [&] {
    e.withLanes(lanes, lanes, [&] {
      Index at{p.mul(p.add(p.mul(own, width), cell), lanes), lanes > 1};
      Value number = p.add(p.mul(chunk, threads), slot);
      Value with = e.elements.widen(e.eval(of.updates, getUpdate(number, p.add(firstCell, cell))));
      Value old = e.load(shared, kept, at);
      e.store(shared, joinUpdate(e.elements, of.kind, old, with, element.isUnsignedInteger()), at);
      return 0;
    });
  };
  isMine ? e.when(isMine, add) : add();
}

/// Threads say which of the chunk's updates lead to the block, and meet; then each goes through these.
void ScatterKernel::look(Value chunk, Value row) {
  int64_t warps = threads / kWarp;
  Type i32 = e.b.getI32Type();
  Value set = p.rem(chunk, 2), slots = p.mul(set, threads), words = p.mul(set, warps);
  Value number = p.add(p.mul(chunk, threads), e.getThread()), isHere = isOwn(row);
  if (updates % threads)
    isHere = e.elements.both(isHere, p.isLess(number, updates));
  Value vote = e.ballot(isHere);
  e.store(found, arith::IndexCastOp::create(e.b, e.loc, i32, row), {p.add(slots, e.getThread())});
  Value isFirst = p.isLess(p.rem(e.getThread(), kWarp), 1);
  e.when(isFirst, [&] { e.store(votes, vote, {p.add(words, p.div(e.getThread(), kWarp))}); });
  e.barrier();
  e.loop(p.number(0), p.number(warps), 1, {}, [&](Value warp, Values) {
    e.overBits(e.load(votes, i32, {p.add(words, warp)}), [&](Value bit) {
      Value slot = p.add(p.mul(warp, kWarp), bit);
      Value own = e.load(found, i32, {p.add(slots, slot)});
      addFound(chunk, slot, arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), own));
    });
    return Values();
  });
}

/// The next chunk's index is on its way while what was found is added.
void ScatterKernel::join() {
  cell = p.rem(e.getThread(), width);
  group = p.div(e.getThread(), width);
  isThere = isColumn(p.add(firstCell, cell));
  if (threads != width * groups) {
    Value isUsed = p.isLess(e.getThread(), width * groups);
    isThere = isThere ? e.elements.both(isThere, isUsed) : isUsed;
  }
  Type i32 = e.b.getI32Type();
  shared = e.share(ElementBuilder::getStoredType(kept), height * width * lanes);
  found = e.share(i32, 2 * threads);
  votes = e.share(i32, 2 * threads / kWarp);
  Value at = p.add(firstCell, cell);
  overRows([&](Value place, Value row) {
    e.store(shared, e.elements.widen(e.eval(of.input, getPoint(row, at))), {place, lanes > 1});
  });
  auto find = [&](Value chunk) {
    Value number = p.add(p.mul(chunk, threads), e.getThread());
    return findRow(updates % threads ? p.clamp(number, 0, updates - 1) : number);
  };
  int64_t chunks = llvm::divideCeil(updates, threads);
  e.loop(chunks, {find(p.number(0))}, [&](Value chunk, Values row) {
    Value next = chunks == 1 ? row[0] : find(p.clamp(p.add(chunk, 1), 0, chunks - 1));
    look(chunk, row[0]);
    return Values{next};
  });
  overRows([&](Value place, Value row) {
    Value all = e.load(shared, kept, {place, lanes > 1});
    sink(getPoint(row, at), e.elements.narrow(all, ElementBuilder::getHeldType(element)));
  });
}

void ScatterKernel::run() {
  choose();
  place();
  isSet() ? replace() : join();
}

/// A thread for each vector of each update. The last of those that lead to a place writes it, once, after all of them in turn; nobody else
/// reads there.
void ScatterKernel::updateFew() {
  SmallVector<int64_t> extents(of.lines);
  extents.append({updates, countCells()});
  first = p.number(0);
  e.overThreads(countElements(extents), [&](Value thread) {
    SmallVector<Value> at = p.delinearize(thread, extents);
    Value cell = at.pop_back_val(), number = at.pop_back_val();
    setLine(at);
    Value row = findRow(number);
    auto meets = [&](Value other) -> Value {
      return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, findRow(other), row);
    };
    Value isLast = e.loop(p.add(number, 1), p.number(updates), 1, {e.elements.constant(e.b.getBoolAttr(true))},
                          [&](Value other, Values carried) {
                            Value is = e.elements.compare(ElementBuilder::Relation::Eq, meets(other), 0.0);
                            return Values{e.elements.both(carried[0], is)};
                          })[0];
    if (isInside)
      isLast = e.elements.both(isLast, isInside);
    e.when(isLast, [&] {
      e.withLanes(lanes, lanes, [&] {
        Point point = getPoint(row, cell);
        auto widen = [&](Value value) { return isSet() ? value : e.elements.widen(value); };
        auto evalUpdate = [&](Value of) { return widen(e.eval(this->of.updates, getUpdate(of, cell))); };
        Value all;
        if (isSet())
          all = evalUpdate(number);
        else
          all =
              e.loop(p.number(0), p.number(updates), 1, {widen(e.eval(of.input, point))}, [&](Value other, Values old) {
                auto joined = [&] {
                  return joinUpdate(e.elements, of.kind, old[0], evalUpdate(other), element.isUnsignedInteger());
                };
                return Values{e.choose(meets(other), old[0].getType(), joined, [&] { return old[0]; })};
              })[0];
        sink(point, e.elements.narrow(all, ElementBuilder::getHeldType(element)));
        return 0;
      });
    });
  });
}

/// Of many updates that are joined rows are written as a whole.
void ScatterKernel::runInPlace() {
  isInPlace = true;
  updates < kFewUpdates ? updateFew() : run();
}

bool cleave::codegen::canRunDeviceScatter(Operation *op) {
  Updates of(op);
  return countElements(of.numbers) >= kFewUpdates && countElements(getShape(of.updates)) > 0 &&
         countElements(getShape(of.input)) > 0;
}

void cleave::codegen::updateInPlace(Emitter &e, Operation *op, Value buffer) {
  if (countElements(getShape(op->getOperand(2))) == 0)
    return;
  ArrayRef<int64_t> shape = getShape(op->getResult(0));
  auto store = [&](const Point &point, Value value) { e.store(buffer, value, e.places.linearize(point, shape)); };
  ScatterKernel(static_cast<DeviceEmitter &>(e), op, store).runInPlace();
}

void cleave::codegen::runDeviceScatter(Emitter &e, Operation *op, TileSink sink) {
  ScatterKernel(static_cast<DeviceEmitter &>(e), op, sink).run();
}
