//===- Lines.cpp - running sums and top_k on devices ----------------------===//
//
// A block of threads has a line.
//
// Running sums: each thread takes four neighbors, adds up its own, and learns what is before them: of its warp by shuffles, of the warps
// before by a slot each, of what the block has been through by a sum that is carried on. Slots come in two sets, used in turn, so that
// one barrier a round is enough: who writes a set has met everybody since it was read.
//
// The best of a line: a bitonic network (Batcher, AFIPS 1968) sorts as much of it as shared memory holds, with positions beside
// elements; then the best stay, and what comes next takes the place of the others. Of equal ones the first comes first, so that there is
// but one order, whatever threads do.
//
//   [ best k | next of the line .. ]   sort   [ best k | .. ]   until there is no more
//
//===----------------------------------------------------------------------===//
#include "Templates.h"

#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// Block `block` of the launch has the line of that number; its point has element 0.
static Point placeLine(DeviceEmitter &e, ArrayRef<int64_t> shape, int64_t dim, int64_t threads) {
  SmallVector<int64_t> lines(shape);
  lines[dim] = 1;
  e.launch(countElements(lines), threads);
  Point point;
  for (Value place : e.places.delinearize(e.getBlock(), lines))
    point.push_back({place});
  return point;
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

namespace {
class ScanKernel {
public:
  ScanKernel(DeviceEmitter &e, nn::CumsumOp op, Value buffer)
      : e(e), op(op), buffer(buffer), shape(getShape(op.getInput())), dim(op.getDim()), extent(shape[dim]),
        element(getElementType(op.getInput())), compute(ElementBuilder::getComputeType(element)) {}
  void run();

private:
  Value zero() { return e.elements.number(compute, 0); }
  /// Four neighbors lie together, and all of them in the line.
  bool isWide() { return dim + 1 == int64_t(shape.size()) && !op.getReverse() && extent % (threads * kEach) == 0; }
  Point place(Value position);
  void store(Value first, ValueRange sums);
  Values load(Value first);
  Value overWarp(Value sum);
  std::pair<Value, Value> overWarps(Value sum, Value round);
  Values step(Value round, Values carried);

  static constexpr int64_t kEach = 4;
  DeviceEmitter &e;
  nn::CumsumOp op;
  Value buffer, slots;
  ArrayRef<int64_t> shape;
  int64_t dim, extent, threads = kWarp;
  Type element, compute;
  Point line;
  Value lane, warp;
};
} // namespace

/// Position in the order of summation.
Point ScanKernel::place(Value position) {
  Point point = line;
  position = e.places.clamp(position, 0, extent - 1);
  point[dim].base = op.getReverse() ? e.places.add(e.places.mul(position, -1), extent - 1) : position;
  return point;
}

/// What is behind the end counts as 0.
Values ScanKernel::load(Value first) {
  Values each;
  PlaceBuilder &p = e.places;
  if (isWide()) {
    Point point = line;
    point[dim] = {first, 1};
    e.withLanes(kEach, kEach, [&] {
      Value all = e.elements.widen(e.eval(op.getInput(), point));
      for (int64_t i = 0; i < kEach; ++i)
        each.push_back(e.takeLanes(all, i, 1));
      return 0;
    });
    return each;
  }
  for (int64_t i = 0; i < kEach; ++i) {
    Value position = p.add(first, i), number = e.elements.widen(e.evalScalar(op.getInput(), place(position)));
    each.push_back(e.elements.select(p.isLess(position, extent), number, zero()));
  }
  return each;
}

/// Of this lane and those before.
Value ScanKernel::overWarp(Value sum) {
  PlaceBuilder &p = e.places;
  for (int64_t apart = 1; apart < kWarp; apart *= 2) {
    Value other = e.shuffleFrom(sum, p.clamp(p.add(lane, -apart), 0, kWarp - 1));
    sum = e.elements.select(p.isLess(lane, apart), sum, e.elements.add(other, sum));
  }
  return sum;
}

/// Of the warps before this one, and of all.
std::pair<Value, Value> ScanKernel::overWarps(Value sum, Value round) {
  PlaceBuilder &p = e.places;
  int64_t warps = threads / kWarp;
  Value set = p.mul(p.rem(round, 2), warps), last = p.isLess(p.number(kWarp - 2), lane);
  e.when(last, [&] { e.store(slots, sum, {p.add(set, warp)}); });
  e.barrier();
  Value before = zero(), all = zero();
  for (int64_t number = 0; number < warps; ++number) {
    Value part = e.load(slots, compute, {p.add(set, number)});
    all = e.elements.add(all, part);
    before = e.elements.select(p.isLess(p.number(number), warp), all, before);
  }
  return {before, all};
}

void ScanKernel::store(Value first, ValueRange sums) {
  PlaceBuilder &p = e.places;
  Type held = ElementBuilder::getHeldType(element);
  if (isWide()) {
    Point point = line;
    point[dim] = {first, 1};
    e.withLanes(kEach, kEach, [&] {
      Value all = vector::FromElementsOp::create(e.b, e.loc, VectorType::get({kEach}, compute), sums);
      e.store(buffer, e.elements.narrow(all, held), p.linearize(point, shape));
      return 0;
    });
    return;
  }
  for (int64_t i = 0; i < kEach; ++i) {
    Value position = p.add(first, i);
    auto put = [&] { e.store(buffer, e.elements.narrow(sums[i], held), p.linearize(place(position), shape)); };
    extent % (threads * kEach) == 0 ? put() : e.when(p.isLess(position, extent), put);
  }
}

Values ScanKernel::step(Value round, Values carried) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  Value first = p.mul(p.add(p.mul(round, threads), e.getThread()), kEach);
  Values sums = load(first), own = sums;
  for (int64_t i = 1; i < kEach; ++i)
    sums[i] = m.add(sums[i - 1], own[i]);
  Value upTo = overWarp(sums.back());
  Value inWarp = m.select(p.isLess(lane, 1), zero(), e.shuffleFrom(upTo, p.clamp(p.add(lane, -1), 0, kWarp - 1)));
  Value before = zero(), all = e.shuffleFrom(upTo, p.number(kWarp - 1));
  if (threads > kWarp)
    std::tie(before, all) = overWarps(upTo, round);
  Value start = m.add(m.add(carried[0], before), inWarp);
  Values results;
  for (int64_t i = 0; i < kEach; ++i)
    results.push_back(i == 0 && op.getExclusive() ? start : m.add(start, sums[i - op.getExclusive()]));
  store(first, results);
  return {m.add(carried[0], all)};
}

void ScanKernel::run() {
  while (threads < 256 && threads * kEach < extent)
    threads *= 2;
  line = placeLine(e, shape, dim, threads);
  lane = e.places.rem(e.getThread(), kWarp);
  warp = e.places.div(e.getThread(), kWarp);
  if (threads > kWarp)
    slots = e.share(ElementBuilder::getStoredType(compute), 2 * threads / kWarp);
  e.loop(llvm::divideCeil(extent, threads * kEach), {zero()},
         [&](Value round, Values carried) { return step(round, carried); });
}

/// Short lines, and many that lie side by side, are better one a thread.
static bool runScan(DeviceEmitter &e, nn::CumsumOp op, Value buffer) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  int64_t dim = op.getDim(), lines = countElements(shape) / std::max<int64_t>(shape[dim], 1);
  constexpr int64_t shortest = 64, many = 8192;
  if (shape[dim] < shortest || (dim + 1 < int64_t(shape.size()) && lines >= many))
    return false;
  ScanKernel(e, op, buffer).run();
  return true;
}

//===----------------------------------------------------------------------===//
// The best of a line
//===----------------------------------------------------------------------===//

namespace {
class SortKernel {
public:
  SortKernel(DeviceEmitter &e, nn::TopKOp op, ValueRange buffers, int64_t size)
      : e(e), op(op), buffers(buffers), shape(getShape(op.getInput())), dim(op.getDim()), extent(shape[dim]),
        best(getShape(op.getValues())[dim]), size(size), threads(std::clamp<int64_t>(size / 2, kWarp, 512)),
        element(getElementType(op.getInput())) {}
  void run();

private:
  void fill(Value slot, Value position);
  Value isBefore(Value x, Value atX, Value y, Value atY);
  void exchange(Value pair, Value bit, Value order);
  void sort();
  void storeBest();
  void overSlots(int64_t from, int64_t to, function_ref<void(Value)> body);
  Value index(Value at) { return e.load(positions, e.b.getI32Type(), {at}); }
  Value value(Value at) { return e.load(values, element, {at}); }

  DeviceEmitter &e;
  nn::TopKOp op;
  ValueRange buffers;
  ArrayRef<int64_t> shape;
  int64_t dim, extent, best, size, threads;
  Type element;
  Point line;
  Value values, positions;
};
} // namespace

/// Each by one thread.
void SortKernel::overSlots(int64_t from, int64_t to, function_ref<void(Value)> body) {
  PlaceBuilder &p = e.places;
  e.loop(p.add(e.getThread(), from), p.number(to), threads, {}, [&](Value slot, Values) {
    body(slot);
    return Values();
  });
}

/// What is behind the end of the line has the largest position there is.
void SortKernel::fill(Value slot, Value position) {
  PlaceBuilder &p = e.places;
  Point point = line;
  point[dim] = {p.clamp(position, 0, extent - 1)};
  Type i32 = e.b.getI32Type();
  Value number = arith::IndexCastOp::create(e.b, e.loc, i32, position);
  e.store(values, e.evalScalar(op.getInput(), point), {slot});
  e.store(positions, e.elements.select(p.isLess(position, extent), number, e.elements.integer(i32, INT32_MAX)), {slot});
}

/// The order of the result; what does not exist comes last.
Value SortKernel::isBefore(Value x, Value atX, Value y, Value atY) {
  ElementBuilder &m = e.elements;
  Value isEarlier = m.compare(Relation::Lt, atX, atY);
  Value isWorse = beatsInTopK(e, op, y, x), isBetter = beatsInTopK(e, op, x, y);
  Value wins = m.either(isBetter, m.both(isEarlier, m.compare(Relation::Eq, isWorse, 0.0)));
  Type i32 = e.b.getI32Type();
  auto exists = [&](Value at) { return m.compare(Relation::Ne, at, m.integer(i32, INT32_MAX)); };
  return m.both(exists(atX), m.either(wins, m.compare(Relation::Eq, exists(atY), 0.0)));
}

/// Elements that differ in bit `bit` of their slot, in ascending order where bit `order` is 0.
void SortKernel::exchange(Value pair, Value bit, Value order) {
  OpBuilder &b = e.b;
  auto shift = [&](Value x, Value by) -> Value { return arith::ShLIOp::create(b, e.loc, x, by); };
  auto back = [&](Value x, Value by) -> Value { return arith::ShRUIOp::create(b, e.loc, x, by); };
  Value one = e.places.number(1), apart = shift(one, bit);
  Value low = arith::AndIOp::create(b, e.loc, pair, e.places.add(apart, -1));
  Value i = e.places.add(shift(shift(back(pair, bit), bit), one), low), j = e.places.add(i, apart);
  Value isDown = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ne,
                                       arith::AndIOp::create(b, e.loc, back(i, order), one), e.places.number(0));
  Value x = value(i), y = value(j), atX = index(i), atY = index(j);
  e.when(e.elements.exclusive(isBefore(y, atY, x, atX), isDown), [&] {
    e.store(values, y, {i});
    e.store(values, x, {j});
    e.store(positions, atY, {i});
    e.store(positions, atX, {j});
  });
}

/// Runs of 2, 4, 8 .. slots, every other one the other way round.
void SortKernel::sort() {
  PlaceBuilder &p = e.places;
  e.barrier();
  int64_t stages = llvm::Log2_64(size);
  e.loop(p.number(1), p.number(stages + 1), 1, {}, [&](Value order, Values) {
    e.loop(p.number(0), order, 1, {}, [&](Value step, Values) {
      Value bit = arith::SubIOp::create(e.b, e.loc, p.add(order, -1), step);
      overSlots(0, size / 2, [&](Value pair) { exchange(pair, bit, order); });
      e.barrier();
      return Values();
    });
    return Values();
  });
}

void SortKernel::storeBest() {
  Type i32 = e.b.getI32Type(), number = getElementType(op.getIndices());
  overSlots(0, best, [&](Value slot) {
    Point point = line;
    point[dim] = {slot};
    Index at = e.places.linearize(point, getShape(op.getValues()));
    e.store(buffers[0], value(slot), at);
    e.store(buffers[1], e.elements.convert(index(slot), i32, number), at);
  });
}

void SortKernel::run() {
  PlaceBuilder &p = e.places;
  line = placeLine(e, shape, dim, threads);
  values = e.share(ElementBuilder::getStoredType(element), size);
  positions = e.share(e.b.getI32Type(), size);
  overSlots(0, size, [&](Value slot) { fill(slot, slot); });
  sort();
  int64_t fresh = size - best;
  if (extent > size)
    e.loop(p.number(0), p.number(llvm::divideCeil(extent - size, fresh)), 1, {}, [&](Value round, Values) {
      Value from = p.add(p.mul(round, fresh), size - best);
      overSlots(best, size, [&](Value slot) { fill(slot, p.add(from, slot)); });
      sort();
      return Values();
    });
  storeBest();
}

/// Where shared memory does not hold twice what is wanted of a long line, nothing is gained.
static bool runTopK(DeviceEmitter &e, nn::TopKOp op, ValueRange buffers) {
  int64_t extent = getShape(op.getInput())[op.getDim()], best = getShape(op.getValues())[op.getDim()];
  int64_t bytes =
      ElementBuilder::getStoredType(getElementType(op.getInput())).getIntOrFloatBitWidth() / 8 + sizeof(int32_t);
  int64_t most = llvm::bit_floor<uint64_t>((40 << 10) / bytes);
  int64_t size = std::min<int64_t>(most, std::max<int64_t>(llvm::PowerOf2Ceil(extent), 2));
  if (extent > size && best > size / 2)
    return false;
  SortKernel(e, op, buffers, size).run();
  return true;
}

bool cleave::codegen::fillLines(DeviceEmitter &e, Operation *op, ValueRange buffers) {
  if (auto scan = dyn_cast<nn::CumsumOp>(op))
    return runScan(e, scan, buffers[0]);
  auto best = dyn_cast<nn::TopKOp>(op);
  return best && runTopK(e, best, buffers);
}
