//===- Attention.cpp - lowerings of attention and rotary embedding --------===//
//
// Head by head, some queries at a time, so that no more than the scores of these queries are ever in memory:
//
//   keys of a head, turned           [keys / lanes, size, lanes]: a vector is one component of neighboring keys
//   blocks of queries
//     scores = queries x keys        Tile.h; scaled, capped, masked; the largest of each row on the way
//     exp(score - largest)           and their sum
//     scores x values                Tile.h; over the sum
//
// Of what lies outside the bands of all queries of a block (ahead of causal ones, or too far away) nothing is computed. Rotary embedding
// is pulled.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "Device/Templates.h"
#include "TurnedKeys.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

namespace {
class Attention {
public:
  Attention(Emitter &e, nn::AttentionOp op, TileSink sink);
  void run();
  /// Results are not rounded, and the logarithm of the sum of the exponentials of each query's scores goes into this buffer.
  void keepLogs(Value buffer) {
    logs = buffer;
    held = compute;
  }

private:
  void block(const Head &head, Value row, int64_t height);
  Values score(const Head &head, Value row, int64_t height, Value key, int64_t wide, Values largest);
  void normalize(const Head &head, Value row, Value r);
  void weigh(const Head &head, Value row, int64_t height);
  /// Calls `body` with each vector of keys whose scores are there.
  Value overScores(Value sum, function_ref<Value(Value, Value)> body);

  Emitter &e;
  nn::AttentionOp op;
  TileSink sink;
  Operand q, k, v;
  int64_t heads, queries, size, kvHeads, keys, valueSize;
  Type compute, held; ///< sums are, and results
  Value logs;
  int64_t lanes, rows, wide; ///< a block of scores has `rows` x `wide` vectors
  int64_t width;             ///< keys, rounded up to vectors
  int64_t looped;            ///< of the keys, those in whole blocks
  TurnedKeys turned;
  Value scores, sums, block_;
  KeyRange seen; ///< of a block of queries: of whole blocks of keys those that some query sees
};
} // namespace

int64_t cleave::codegen::fitVectors(int64_t registers, int64_t rows, int64_t vectors) {
  int64_t fit = std::max<int64_t>((registers - 2) / (rows + 1), 1);
  return std::max<int64_t>(std::min({fit, vectors, int64_t{8}}), 1);
}

/// Blocks have as many rows as the sums of values leave registers for: the same rows are then weighed.
Attention::Attention(Emitter &e, nn::AttentionOp op, TileSink sink)
    : e(e), op(op), sink(sink), q(e, op.getQuery()), k(e, op.getKey()), v(e, op.getValue()),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), size(getShape(op.getQuery())[3]),
      kvHeads(getShape(op.getKey())[1]), keys(getShape(op.getKey())[2]), valueSize(getShape(op.getValue())[3]),
      compute(ElementBuilder::getComputeType(getElementType(op.getQuery()))),
      held(ElementBuilder::getHeldType(getElementType(op.getResult()))), lanes(e.getVectorLanes(compute)),
      turned(e, k, getShape(op.getKey()), compute) {
  int64_t registers = e.getNumRegisters(), vectors = llvm::divideCeil(keys, lanes);
  TileExtents weighed{queries, int64_t(llvm::divideCeil(valueSize, lanes)), keys * lanes * 4};
  rows = std::min<int64_t>(8, chooseTile(registers, weighed).rows);
  wide = fitVectors(registers, rows, vectors);
  width = vectors * lanes;
  looped = keys / (wide * lanes) * (wide * lanes);
  scores = e.allocate(compute, rows * width);
  sums = e.allocate(compute, rows * lanes);
  block_ = e.allocate(compute, rows * llvm::divideCeil(valueSize, lanes) * lanes);
}

Value cleave::codegen::locateHead(Emitter &e, const Operand &operand, Value batch, Value head) {
  return e.places.add(e.places.add(operand.getOrigin(), operand.along(operand.getDim(0), batch).base),
                      operand.along(operand.getDim(1), head).base);
}

/// Keys are turned once for all heads that share them.
void Attention::run() {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  e.walk({getShape(op.getQuery())[0], kvHeads}, {}, [&](ArrayRef<Value> at, Values) {
    turned.turn(locateHead(e, k, at[0], at[1]));
    e.loop(heads / kvHeads, [&](Value member) {
      Head head{at[0], e.places.add(e.places.mul(at[1], heads / kvHeads), member)};
      overBlocks(e, queries, rows, [&](Value row, int64_t height) { block(head, row, height); });
    });
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value cleave::codegen::countVisible(Emitter &e, nn::AttentionOp op, Value row, int64_t height) {
  int64_t keys = getShape(op.getKey())[2];
  std::optional<int64_t> high = op.getBand().high;
  return high ? e.places.clamp(e.places.add(row, height + *high), 0, keys) : e.places.number(keys);
}

Value cleave::codegen::findFirstVisible(Emitter &e, nn::AttentionOp op, Value row, int64_t step) {
  PlaceBuilder &p = e.places;
  std::optional<int64_t> low = op.getBand().low;
  if (!low)
    return p.number(0);
  return p.mul(p.div(p.clamp(p.add(row, *low), 0, getShape(op.getKey())[2]), step), step);
}

/// Without a bound all blocks are seen, and their number is one that is known. A band may begin or end behind the last whole block.
KeyRange cleave::codegen::findSeenBlocks(Emitter &e, nn::AttentionOp op, Value row, int64_t height, int64_t step,
                                         int64_t looped) {
  PlaceBuilder &p = e.places;
  nn::KeyBand band = op.getBand();
  KeyRange seen{p.number(0), p.number(looped)};
  if (band.low)
    seen.begin = p.clamp(findFirstVisible(e, op, row, step), 0, looped);
  if (band.high)
    seen.end = p.clamp(p.mul(p.div(p.add(countVisible(e, op, row, height), step - 1), step), step), 0, looped);
  return seen;
}

/// Which of neighboring keys lie ahead of `row + by`, or behind it.
static Value compareToRow(Emitter &e, Relation relation, Value row, int64_t by, Value key) {
  Value apart = arith::SubIOp::create(e.b, e.loc, e.places.add(row, by), key);
  apart = e.splat(arith::IndexCastOp::create(e.b, e.loc, e.b.getI32Type(), apart));
  return e.elements.compare(relation, e.getLaneNumbers(1, e.b.getI32Type()), apart);
}

Value cleave::codegen::maskScore(Emitter &e, nn::AttentionOp op, const Head &head, Value score, Value row, Value key) {
  Value excluded = e.elements.like(score, -INFINITY);
  if (Value added = op.getMask()) {
    Value there = e.eval(added, e.broadcast({{head.batch}, {head.query}, {row}, {key, 1}}, getShape(added)));
    if (getElementType(added).isInteger(1))
      score = e.elements.select(there, score, excluded);
    else
      score = e.elements.add(score, e.elements.convert(there, getElementType(added), getElementTypeOrSelf(score)));
  }
  nn::KeyBand band = op.getBand();
  if (band.high)
    score = e.elements.select(compareToRow(e, Relation::Gt, row, *band.high, key), excluded, score);
  if (band.low)
    score = e.elements.select(compareToRow(e, Relation::Lt, row, *band.low, key), excluded, score);
  return e.getActive() < e.getLanes() ? e.elements.select(e.getActiveMask(), score, excluded) : score;
}

Value cleave::codegen::finishScore(Emitter &e, nn::AttentionOp op, const Head &head, Value product, Value row,
                                   Value key) {
  Value score = e.elements.mul(product, op.getScale().convertToDouble());
  if (double cap = op.getSoftcap().convertToDouble(); cap > 0)
    score = e.elements.mul(e.elements.tanh(e.elements.divide(score, e.elements.like(score, cap), false)), cap);
  return maskScore(e, op, head, score, row, key);
}

Value cleave::codegen::weighScore(Emitter &e, Value score, Value shift) {
  ElementBuilder &m = e.elements;
  Value apart = m.sub(score, shift);
  if (!getElementTypeOrSelf(apart).isF32())
    return m.exp(apart);
  return m.select(m.compare(Relation::Lt, apart, -86.6), m.like(apart, 0), m.expOfNegative(apart));
}

Value cleave::codegen::getShift(Emitter &e, Value log) {
  ElementBuilder &m = e.elements;
  return m.select(m.compare(Relation::Eq, log, m.like(log, -INFINITY)), m.like(log, 0), log);
}

// What rounding makes of the only score that counts may be above the logarithm of its exponential.
Value cleave::codegen::weighByLog(Emitter &e, Value score, Value shift) {
  return weighScore(e, e.elements.extremum(false, score, shift, false), shift);
}

void cleave::codegen::fillWith(Emitter &e, Value result, Value buffer, double number) {
  Value held = e.elements.number(getElementType(result), number);
  e.asScalar([&] {
    e.loop(countElements(getShape(result)), [&](Value at) { e.store(buffer, held, {at}); });
    return 0;
  });
}

void cleave::codegen::whereSeen(Emitter &e, Value seen, function_ref<void()> compute, function_ref<void()> fill) {
  if (!seen)
    return compute();
  Point first(getShape(seen).size(), {e.places.number(0)});
  Value isSeen = e.asScalar([&] { return e.evalScalar(seen, first); });
  e.when(isSeen, compute);
  e.unless(isSeen, fill);
}

/// A block of scores, in the order of the evaluator: product, scale, cap, mask.
Values Attention::score(const Head &head, Value row, int64_t height, Value key, int64_t wide, Values largest) {
  PlaceBuilder &p = e.places;
  Value placeQ = locateHead(e, q, head.batch, head.query);
  auto scalar = [&](int64_t r, ArrayRef<Value> d) {
    OffsetPlace at = q.along(q.getDim(2), row, r);
    return q.load(p.add(p.add(p.add(placeQ, at.base), q.along(q.getDim(3), d[0]).base), at.constant));
  };
  auto vector = [&](int64_t v, ArrayRef<Value> d) { return turned.load(key, d[0], v); };
  Values none(height * wide, e.elements.number(e.withLanes(compute), 0));
  Values products = sumTile(e, {height, wide}, {size}, none, scalar, vector);
  for (int64_t v = 0; v < wide; ++v) {
    Value at = p.add(key, v * lanes);
    std::optional<int64_t> known = PlaceBuilder::getKnown(at);
    int64_t active = known ? std::min(lanes, keys - *known) : lanes;
    for (int64_t r = 0; r < height; ++r) {
      Value score = e.withLanes(lanes, active,
                                [&] { return finishScore(e, op, head, products[r * wide + v], p.add(row, r), at); });
      e.store(scores, score, {p.add(at, r * width), lanes > 1});
      largest[r] = e.elements.extremum(true, largest[r], score, false);
    }
  }
  return largest;
}

/// In the loop over whole blocks as far as keys are seen, then what is behind whole blocks.
Value Attention::overScores(Value sum, function_ref<Value(Value, Value)> body) {
  auto run = [&](Value from, Value to, Value carried) {
    return e.loop(from, to, lanes, {carried}, [&](Value key, Values inner) { return Values{body(key, inner[0])}; })[0];
  };
  if (looped > 0)
    sum = run(seen.begin, seen.end, sum);
  return width > looped ? run(e.places.number(looped), e.places.number(width), sum) : sum;
}

/// Makes weights of a row's scores, and keeps 1 / sum. A query that sees nothing gives zeros: what is subtracted is then 0
/// rather than -inf, and the sum counts as 1.
void Attention::normalize(const Head &head, Value row, Value r) {
  ElementBuilder &m = e.elements;
  Value largest = e.load(sums, compute, {e.places.mul(r, lanes), lanes > 1});
  largest = e.acrossLanes(largest, [&](Value x, Value y) { return m.extremum(true, x, y, false); });
  Value lowest = m.number(compute, -INFINITY), zero = m.number(compute, 0), one = m.number(compute, 1);
  Value seesNothing = m.compare(Relation::Eq, largest, lowest);
  Value shift = e.splat(m.select(seesNothing, zero, largest)), first = e.places.mul(r, width);
  Value sum = overScores(m.number(e.withLanes(compute), 0), [&](Value key, Value carried) {
    Index at{e.places.add(first, key), lanes > 1};
    Value weight = weighScore(e, e.load(scores, compute, at), shift);
    e.store(scores, weight, at);
    return m.add(carried, weight);
  });
  sum = e.acrossLanes(sum, [&](Value x, Value y) { return m.add(x, y); });
  Value scale = m.divide(one, m.select(seesNothing, one, sum), false);
  e.asScalar([&] {
    e.store(sums, scale, {e.places.mul(r, lanes)});
    if (logs) {
      PlaceBuilder &p = e.places;
      Value query = p.add(p.mul(p.add(p.mul(head.batch, heads), head.query), queries), p.add(row, r));
      // Of nothing it is that of 0.
      e.store(logs, m.add(largest, m.log(m.select(seesNothing, one, sum))), {query});
    }
    return 0;
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Sums of the values, weighed, in blocks of as many vectors as fit; then over the sum of the weights.
void Attention::weigh(const Head &head, Value row, int64_t height) {
  PlaceBuilder &p = e.places;
  Value seen = findFirstVisible(e, op, row, 1), visible = countVisible(e, op, row, height);
  int64_t vectors = llvm::divideCeil(valueSize, lanes), most = fitVectors(e.getNumRegisters(), height, vectors);
  Value placeV = locateHead(e, v, head.batch, e.places.div(head.query, heads / kvHeads));
  auto getActive = [&](int64_t vector) { return std::min(lanes, valueSize - vector * lanes); };
  for (int64_t first = 0; first < vectors; first += most) {
    int64_t count = std::min(most, vectors - first);
    Values none(height * count, e.elements.number(e.withLanes(compute), 0));
    Values result = e.loop(seen, visible, 1, none, [&](Value key, Values carried) {
      auto scalar = [&](int64_t r, ArrayRef<Value>) { return e.load(scores, compute, {p.add(key, r * width)}); };
      auto vector = [&](int64_t i, ArrayRef<Value>) {
        const ViewDim &dim = v.getDim(3);
        Value at = p.add(placeV, v.along(v.getDim(2), key).base);
        return e.withLanes(lanes, getActive(first + i),
                           [&] { return v.load(p.add(at, (first + i) * lanes * dim.stride), dim.stride); });
      };
      return sumTile(e, {height, count}, {}, carried, scalar, vector);
    });
    for (auto [i, sum] : llvm::enumerate(result))
      e.store(block_, sum, {p.number((int64_t(i) / count * vectors + first + int64_t(i) % count) * lanes), lanes > 1});
  }
  e.loop(height, [&](Value r) {
    Value scale = e.splat(e.asScalar([&] { return e.load(sums, compute, {p.mul(r, lanes)}); }));
    for (int64_t i = 0; i < vectors; ++i) {
      Value sum = e.load(block_, compute, {p.add(p.mul(r, vectors * lanes), i * lanes), lanes > 1});
      sum = e.elements.narrow(e.elements.mul(sum, scale), held);
      e.withLanes(lanes, getActive(i), [&] {
        sink({{head.batch}, {head.query}, {p.add(row, r)}, {p.number(i * lanes), lanes > 1}}, sum);
        return 0;
      });
    }
  });
}

/// Scores, weights, values. The largest scores leave registers as vectors, for rows are normalized in a loop.
void Attention::block(const Head &head, Value row, int64_t height) {
  e.withLanes(lanes, lanes, [&] {
    PlaceBuilder &p = e.places;
    int64_t step = wide * lanes;
    seen = findSeenBlocks(e, op, row, height, step, looped);
    Values largest(height, e.elements.number(e.withLanes(compute), -INFINITY));
    if (looped > 0)
      largest = e.loop(seen.begin, seen.end, step, largest,
                       [&](Value key, Values carried) { return score(head, row, height, key, wide, carried); });
    if (width > looped)
      largest = score(head, row, height, p.number(looped), (width - looped) / lanes, largest);
    for (auto [r, vector] : llvm::enumerate(largest))
      e.store(sums, vector, {p.number(int64_t(r) * lanes), lanes > 1});
    e.loop(height, [&](Value r) { normalize(head, row, r); });
    weigh(head, row, height);
    return 0;
  });
}

/// Pairs are neighbors where interleaved, else elements i and i + half; what is behind the rotated part stays.
static Value pullRotary(Emitter &e, nn::RotaryEmbeddingOp op, const Point &point) {
  int64_t half = op.getRotated() / 2, size = getShape(op.getInput())[3];
  const Index &along = point[3];
  int64_t lanes = e.getLanes();
  bool staysTogether =
      along.lane == 1 && !op.getInterleaved() && half % lanes == 0 && PlaceBuilder::getDivisor(along.base) % lanes == 0;
  if (!isUniform(point) && !(staysTogether && isUniform(Point(point.begin(), point.end() - 1))))
    return e.perLane(op.getResult(), point);
  Type held = ElementBuilder::getHeldType(getElementType(op.getInput()));
  PlaceBuilder &p = e.places;
  auto rotate = [&] {
    Value second =
        op.getInterleaved() ? p.isLess(p.number(0), p.rem(along.base, 2)) : p.isLess(p.number(half - 1), along.base);
    int64_t apart = op.getInterleaved() ? 1 : half;
    Value place = p.clamp(along.base, 0, std::max<int64_t>(2 * half - e.getLanes(), 0));
    Value other = p.select(second, p.add(place, -apart), p.add(place, apart));
    Value angle = op.getInterleaved() ? p.div(place, 2) : p.rem(place, std::max<int64_t>(half, 1));
    Point from = point, at{point[0], point[2], {angle, along.lane}};
    from[3] = {other, along.lane};
    if (getShape(op.getCos())[0] == 1)
      at[0] = {p.number(0)};
    auto eval = [&](Value value, const Point &where) { return e.elements.widen(e.eval(value, where)); };
    Value x = eval(op.getInput(), point), y = eval(op.getInput(), from), sine = eval(op.getSin(), at);
    Value turned = e.elements.mul(y, sine);
    turned = e.elements.select(second, turned, e.elements.negate(turned));
    return e.elements.narrow(e.elements.add(e.elements.mul(x, eval(op.getCos(), at)), turned), held);
  };
  if (half == 0)
    return e.eval(op.getInput(), point);
  if (2 * half == size)
    return rotate();
  return e.choose(p.isLess(along.base, 2 * half), e.withLanes(held), rotate,
                  [&] { return e.eval(op.getInput(), point); });
}

/// What attention gives of no keys: zeros, and the logarithm of 0.
static void fillUnseen(Emitter &e, exec::PartialAttentionOp op, ValueRange buffers) {
  fillWith(e, op.getSums(), buffers[0], 0);
  fillWith(e, op.getLogs(), buffers[1], -INFINITY);
}

/// On the host all keys are one part: a step of a ring. Of one that this rank does not see nothing is computed.
static void fillByAttention(Emitter &e, exec::PartialAttentionOp op, ValueRange buffers) {
  OpBuilder builder(op);
  nn::AttentionOp whole = op.createFull(builder);
  SmallVector<int64_t> shape(getShape(whole.getResult()));
  auto sink = [&](const Point &point, Value value) { e.store(buffers[0], value, e.places.linearize(point, shape)); };
  Attention attention(e, whole, sink);
  attention.keepLogs(buffers[1]);
  whereSeen(e, op.getSeen(), [&] { attention.run(); }, [&] { fillUnseen(e, op, buffers); });
  whole.erase();
}

void cleave::codegen::registerAttention(LoweringTable &table) {
  table.addTile<nn::AttentionOp>({[](Operation *) { return true; },
                                  [](Emitter &e, Operation *op, TileSink sink) {
                                    auto attention = cast<nn::AttentionOp>(op);
                                    if (canPairAttention(e, attention))
                                      runPairedAttention(e, attention, sink);
                                    else
                                      Attention(e, attention, sink).run();
                                  }});
  table.addDeviceTile<nn::AttentionOp>(
      {[](Operation *) { return true; },
       [](Emitter &e, Operation *op, TileSink sink) { runDeviceAttention(e, cast<nn::AttentionOp>(op), sink); }});
  table.addFill<exec::PartialAttentionOp>(fillByAttention);
  table.addFill<exec::AttentionGradOp>(fillAttentionGrad);
  table.addDeviceFill<exec::PartialAttentionOp>(fillPartialAttention);
  table.addDeviceFill<exec::AttentionGradOp>(fillDeviceAttentionGrad);
  table.addPull<nn::RotaryEmbeddingOp>(pullRotary);
}
