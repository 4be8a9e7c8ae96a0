//===- Attention.cpp - attention on devices -------------------------------===//
//
// A warp has a query, and goes through the keys 32 at a time, without ever keeping more than their scores:
//
//   score of this thread's key         product, scale, cap, mask, as on the host
//   largest = max(largest, scores)     of the warp; what has been summed is scaled by exp(what was largest - largest)
//   weight of this thread's key        exp(score - largest)
//   sums += weights * values           each thread has every 32nd component; a weight comes from its thread by a shuffle
//
// Where there are few queries, as when one token is made at a time, the warps of a block share one, and take the tiles of keys in turn.
// Each has a largest score, a sum and components of its own; in shared memory they meet in the order of the warps, whoever comes first.
// Where there are few such blocks and many keys, each has a part of the keys (exec.partial_attention), and parts meet in a kernel of their
// own, which is attention again (DeviceStages.cpp).
//
// Source of the running largest: Milakov and Gimelshein, arXiv:1805.02867.
//
//===----------------------------------------------------------------------===//
#include "../Attention.h"
#include "Templates.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

namespace {

class AttentionKernel {
public:
  AttentionKernel(DeviceEmitter &e, nn::AttentionOp op, TileSink sink,
                  std::optional<AttentionParts> parts = std::nullopt);
  void run();

private:
  void place();
  Value multiply(Value key);
  Values step(Value first, Values carried);
  Value weighValues(Value first, Value weight, size_t component, Value sum);
  Values overKeys();
  void storeOwn(ValueRange carried);
  void storeShared(ValueRange carried);
  void put(Value column, Value sum, Value total, Value largest, Value isIn);
  void putLog(Value total, Value largest);

  DeviceEmitter &e;
  nn::AttentionOp op;
  TileSink sink;
  std::optional<AttentionParts> parts;
  int64_t heads, queries, size, kvHeads, keys, valueSize;
  Type compute;
  Head head;
  Value row, kvHead, lane, visible;
  Value firstKey, endKey; ///< of the block's keys
  Value isThere;          ///< i1: the warp has a query; none: all have
  bool isShared = false;  ///< a block has one query
  Value part;             ///< the warp's number in its block
};

} // namespace

/// Of a block.
static constexpr int64_t kWarps = kKeysOfBlock / kWarp;

AttentionKernel::AttentionKernel(DeviceEmitter &e, nn::AttentionOp op, TileSink sink,
                                 std::optional<AttentionParts> parts)
    : e(e), op(op), sink(sink), parts(parts), heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]),
      size(getShape(op.getQuery())[3]), kvHeads(getShape(op.getKey())[1]), keys(getShape(op.getKey())[2]),
      valueSize(getShape(op.getValue())[3]), compute(ElementBuilder::getComputeType(getElementType(op.getQuery()))) {}

void AttentionKernel::place() {
  PlaceBuilder &p = e.places;
  int64_t divided = parts ? llvm::divideCeil(keys, parts->size) : 1;
  int64_t count = getShape(op.getQuery())[0] * heads * queries * divided;
  isShared = parts || (llvm::divideCeil(count, kWarps) < kManyBlocks && keys >= 4 * kWarp);
  e.launch(isShared ? count : llvm::divideCeil(count, kWarps), kWarps * kWarp);
  part = p.div(e.getThread(), kWarp);
  Value number = isShared ? e.getBlock() : p.add(p.mul(e.getBlock(), kWarps), part);
  if (!isShared && count % kWarps) {
    isThere = p.isLess(number, count);
    number = p.clamp(number, 0, count - 1);
  }
  SmallVector<Value> at = p.delinearize(number, {getShape(op.getQuery())[0], heads, queries, divided});
  head = {at[0], at[1]};
  row = at[2];
  kvHead = p.div(at[1], heads / kvHeads);
  lane = p.rem(e.getThread(), kWarp);
  visible = endKey = countVisible(e, op, row, 1);
  firstKey = parts ? p.mul(at[3], parts->size) : findFirstVisible(e, op, row, 1);
  if (parts)
    endKey = endOfSeen(e, *parts, arith::MinSIOp::create(e.b, e.loc, visible, p.add(firstKey, parts->size)));
  if (parts && op.getBand().low)
    firstKey = arith::MaxSIOp::create(e.b, e.loc, firstKey, findFirstVisible(e, op, row, 1));
}

/// The query times a key, 16 bytes at a time where they lie together.
Value AttentionKernel::multiply(Value key) {
  PlaceBuilder &p = e.places;
  int64_t wide = std::gcd<int64_t>(size, 128 / getElementType(op.getKey()).getIntOrFloatBitWidth());
  return e.withLanes(wide, wide, [&] {
    Values none{e.elements.number(e.withLanes(compute), 0)};
    Values sum = e.loop(p.number(0), p.number(size), wide, none, [&](Value component, Values carried) {
      Index along{component, wide > 1};
      Value q = e.elements.widen(e.eval(op.getQuery(), {{head.batch}, {head.query}, {row}, along}));
      Value k = e.elements.widen(e.eval(op.getKey(), {{head.batch}, {kvHead}, {key}, along}));
      return Values{e.elements.fma(q, k, carried[0])};
    });
    Value total = wide == 1 ? sum[0] : e.takeLanes(sum[0], 0, 1);
    for (int64_t i = 1; i < wide; ++i)
      total = e.elements.add(total, e.takeLanes(sum[0], i, 1));
    return total;
  });
}

/// A weight of a key that is not seen is 0; what it is multiplied by is a value that is.
Value AttentionKernel::weighValues(Value first, Value weight, size_t component, Value sum) {
  PlaceBuilder &p = e.places;
  constexpr int64_t together = 8;
  Value column = p.clamp(p.add(lane, int64_t(component) * kWarp), 0, valueSize - 1);
  Value last = p.add(visible, -1);
  return e.loop(p.number(0), p.number(kWarp), together, {sum}, [&](Value number, Values carried) {
    Value next = carried[0];
    for (int64_t i = 0; i < together; ++i) {
      Value from = p.add(number, i), key = arith::MinSIOp::create(e.b, e.loc, p.add(first, from), last);
      Value v = e.elements.widen(e.eval(op.getValue(), {{head.batch}, {kvHead}, {key}, {column}}));
      next = e.elements.fma(e.shuffleFrom(weight, from), v, next);
    }
    return Values{next};
  })[0];
}

/// 32 keys from `first` on. Carried: the largest score, the sum of weights, sums of components.
Values AttentionKernel::step(Value first, Values carried) {
  ElementBuilder &m = e.elements;
  PlaceBuilder &p = e.places;
  auto larger = [&](Value x, Value y) { return m.extremum(true, x, y, false); };
  Value mine = p.add(first, lane), key = p.clamp(mine, 0, keys - 1), lowest = m.number(compute, -INFINITY);
  Value score = finishScore(e, op, head, multiply(key), row, key);
  score = m.select(p.isLess(mine, parts ? endKey : p.number(keys)), score, lowest);
  Values best = e.acrossWarp({score}, kWarp, [&](Values x, Values y) { return Values{larger(x[0], y[0])}; });
  Value largest = larger(carried[0], best[0]);
  Value shift = m.select(m.compare(Relation::Eq, largest, lowest), m.number(compute, 0), largest);
  Value factor = weighScore(e, carried[0], shift), weight = weighScore(e, score, shift);
  Values added = e.acrossWarp({weight}, kWarp, [&](Values x, Values y) { return Values{m.add(x[0], y[0])}; });
  Values next{largest, m.fma(carried[1], factor, added[0])};
  for (size_t i = 2; i < carried.size(); ++i)
    next.push_back(weighValues(first, weight, i - 2, m.mul(carried[i], factor)));
  return next;
}

/// Carried: as `step` says.
Values AttentionKernel::overKeys() {
  PlaceBuilder &p = e.places;
  Value zero = e.elements.number(compute, 0);
  Values carried{e.elements.number(compute, -INFINITY), zero};
  carried.append(llvm::divideCeil(valueSize, kWarp), zero);
  if (keys == 0)
    return carried;
  Value first = isShared ? p.add(firstKey, p.mul(part, kWarp)) : firstKey;
  return e.loop(first, endKey, isShared ? kWarps * kWarp : kWarp, carried,
                [&](Value at, Values inner) { return step(at, inner); });
}

/// A query that sees nothing gives zeros.
void AttentionKernel::put(Value column, Value sum, Value total, Value largest, Value isIn) {
  ElementBuilder &m = e.elements;
  Value one = m.number(compute, 1);
  Value seesNothing = m.compare(Relation::Eq, largest, m.number(compute, -INFINITY));
  Value scaled = m.mul(sum, m.divide(one, m.select(seesNothing, one, total), false));
  auto store = [&] {
    if (parts)
      return e.store(parts->sums, scaled, {e.places.add(e.places.mul(e.getBlock(), valueSize), column)});
    sink({{head.batch}, {head.query}, {row}, {column}},
         m.narrow(scaled, ElementBuilder::getHeldType(getElementType(op.getResult()))));
  };
  isIn ? e.when(isIn, store) : store();
}

/// The logarithm of the sum of exponentials, of a block's part. Of nothing it is that of 0.
void AttentionKernel::putLog(Value total, Value largest) {
  ElementBuilder &m = e.elements;
  Value lowest = m.number(compute, -INFINITY), seesNothing = m.compare(Relation::Eq, largest, lowest);
  Value log = m.add(largest, m.log(m.select(seesNothing, m.number(compute, 1), total)));
  e.when(e.places.isLess(e.getThread(), 1), [&] { e.store(parts->logs, log, {e.getBlock()}); });
}

void AttentionKernel::storeOwn(ValueRange carried) {
  PlaceBuilder &p = e.places;
  for (int64_t i = 2; i < int64_t(carried.size()); ++i) {
    Value column = p.add(lane, (i - 2) * kWarp), isIn = isThere;
    if ((i - 1) * kWarp > valueSize) {
      Value isComponent = p.isLess(column, valueSize);
      isIn = isIn ? e.elements.both(isIn, isComponent) : isComponent;
    }
    put(column, carried[i], carried[1], carried[0], isIn);
  }
}

/// What each warp has, scaled to the largest score of all, is added up in the order of the warps; a component a thread.
void AttentionKernel::storeShared(ValueRange carried) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  int64_t each = 2 + valueSize;
  Value memory = e.share(compute, kWarps * each), start = p.mul(part, each);
  e.when(p.isLess(lane, 1), [&] {
    e.store(memory, carried[0], {start});
    e.store(memory, carried[1], {p.add(start, 1)});
  });
  for (int64_t i = 2; i < int64_t(carried.size()); ++i) {
    Value column = p.add(lane, (i - 2) * kWarp);
    auto store = [&] { e.store(memory, carried[i], {p.add(p.add(start, column), 2)}); };
    (i - 1) * kWarp > valueSize ? e.when(p.isLess(column, valueSize), store) : store();
  }
  e.barrier();
  auto load = [&](int64_t warp, Value at) { return e.load(memory, compute, {p.add(at, warp * each)}); };
  Value largest = load(0, p.number(0)), lowest = m.number(compute, -INFINITY), total = m.number(compute, 0);
  for (int64_t warp = 1; warp < kWarps; ++warp)
    largest = m.extremum(true, largest, load(warp, p.number(0)), false);
  Value shift = m.select(m.compare(Relation::Eq, largest, lowest), m.number(compute, 0), largest);
  Values factors;
  for (int64_t warp = 0; warp < kWarps; ++warp) {
    factors.push_back(weighScore(e, load(warp, p.number(0)), shift));
    total = m.fma(load(warp, p.number(1)), factors.back(), total);
  }
  for (int64_t from = 0; from < valueSize; from += kWarps * kWarp) {
    Value column = p.add(e.getThread(), from), at = p.clamp(column, 0, valueSize - 1), sum = m.number(compute, 0);
    for (int64_t warp = 0; warp < kWarps; ++warp)
      sum = m.fma(load(warp, p.add(at, 2)), factors[warp], sum);
    put(column, sum, total, largest, p.isLess(column, valueSize));
  }
  if (parts)
    putLog(total, largest);
}

void AttentionKernel::run() {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  place();
  Values carried = overKeys();
  isShared ? storeShared(carried) : storeOwn(carried);
}

void cleave::codegen::runDeviceAttention(Emitter &e, nn::AttentionOp op, TileSink sink) {
  auto &device = static_cast<DeviceEmitter &>(e);
  if (!runDeviceFlash(device, op, sink))
    AttentionKernel(device, op, sink).run();
}

/// All threads of all blocks take the same way: their loops over keys have no steps.
Value cleave::codegen::endOfSeen(Emitter &e, const AttentionParts &parts, Value end) {
  if (!parts.seen)
    return end;
  Point first(getShape(parts.seen).size(), {e.places.number(0)});
  Value isSeen = e.asScalar([&] { return e.evalScalar(parts.seen, first); });
  return e.places.select(isSeen, end, e.places.number(0));
}

/// The op that it is a part of says where scores come from.
void cleave::codegen::fillPartialAttention(Emitter &e, Operation *op, ValueRange buffers) {
  auto partial = cast<exec::PartialAttentionOp>(op);
  if (countElements(getShape(partial.getLogs())) == 0)
    return;
  OpBuilder builder(op);
  nn::AttentionOp whole = partial.createFull(builder);
  AttentionParts parts{int64_t(partial.getPart()), buffers[0], buffers[1], partial.getSeen()};
  auto &device = static_cast<DeviceEmitter &>(e);
  if (!runDeviceFlash(device, whole, nullptr, parts))
    AttentionKernel(device, whole, nullptr, parts).run();
  whole.erase();
}
