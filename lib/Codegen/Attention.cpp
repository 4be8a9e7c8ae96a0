//===- Attention.cpp - forms of attention and rotary embedding ------------===//
//
// The fallback, one query at a time: its scores in a buffer of one row, their softmax, and the sum of the values. Fast
// attention is a template of its own.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

namespace {
struct Attention {
  Emitter &e;
  nn::AttentionOp op;
  Value result;
  ArrayRef<int64_t> query = getShape(op.getQuery()), key = getShape(op.getKey()), value = getShape(op.getValue());
  Type element = getElement(op.getQuery()), compute = ElementBuilder::getComputeType(element);
  Value scores = e.allocate(compute, std::max<int64_t>(key[2], 1));

  Value mask(Value score, ArrayRef<Value> at, Value position);
  Value getScore(ArrayRef<Value> at, Value kvHead, Value position);
  void runQuery(ArrayRef<Value> at);
};
} // namespace

/// Excluded scores are -inf.
Value Attention::mask(Value score, ArrayRef<Value> at, Value position) {
  Value excluded = e.elements.like(score, -INFINITY);
  if (Value added = op.getMask()) {
    Value there = e.eval(added, e.broadcast({{at[0]}, {at[1]}, {at[2]}, {position}}, getShape(added)));
    if (getElement(added).isInteger(1))
      score = e.elements.select(there, score, excluded);
    else
      score = e.elements.add(score, e.elements.convert(there, getElement(added), compute));
  }
  if (!op.getCausal())
    return score;
  // Any larger offset excludes all or nothing too.
  int64_t offset = std::min(std::max<int64_t>(op.getCausalOffset(), -query[2] - 1), key[2]);
  return e.elements.select(e.places.isLess(e.places.add(at[2], offset), position), excluded, score);
}

/// The product of a query and a key, scaled, capped, masked: in the order of the evaluator.
Value Attention::getScore(ArrayRef<Value> at, Value kvHead, Value position) {
  Values sum = e.loop(query[3], {e.elements.number(compute, 0)}, [&](Value d, Values carried) {
    Value q = e.elements.widen(e.eval(op.getQuery(), {{at[0]}, {at[1]}, {at[2]}, {d}}));
    Value k = e.elements.widen(e.eval(op.getKey(), {{at[0]}, {kvHead}, {position}, {d}}));
    return Values{e.elements.fma(q, k, carried[0])};
  });
  Value score = e.elements.mul(sum[0], op.getScale().convertToDouble());
  if (double cap = op.getSoftcap().convertToDouble(); cap > 0)
    score = e.elements.mul(e.elements.tanh(e.elements.divide(score, e.elements.like(score, cap), false)), cap);
  return mask(score, at, position);
}

/// A query that sees nothing gives zeros: what is subtracted is then 0 rather than -inf, and the sum counts as 1.
void Attention::runQuery(ArrayRef<Value> at) {
  Value kvHead = e.places.div(at[1], query[1] / key[1]), lowest = e.elements.number(compute, -INFINITY);
  Value zero = e.elements.number(compute, 0), one = e.elements.number(compute, 1);
  Value maximum = e.loop(key[2], {lowest}, [&](Value position, Values carried) {
    Value score = getScore(at, kvHead, position);
    e.store(scores, score, {position});
    return Values{e.elements.extremum(true, carried[0], score, false)};
  })[0];
  Value seesNothing = e.elements.compare(Relation::Eq, maximum, lowest);
  Value shift = e.elements.select(seesNothing, zero, maximum);
  Value sum = e.loop(key[2], {zero}, [&](Value position, Values carried) {
    Value weight = e.elements.exp(e.elements.sub(e.load(scores, compute, {position}), shift));
    e.store(scores, weight, {position});
    return Values{e.elements.add(carried[0], weight)};
  })[0];
  Value scale = e.elements.divide(one, e.elements.select(seesNothing, one, sum), false);
  e.loop(value[3], [&](Value d) {
    Value out = e.loop(key[2], {zero}, [&](Value position, Values carried) {
      Value weight = e.elements.mul(e.load(scores, compute, {position}), scale);
      Value v = e.elements.widen(e.eval(op.getValue(), {{at[0]}, {kvHead}, {position}, {d}}));
      return Values{e.elements.fma(weight, v, carried[0])};
    })[0];
    e.store(result, e.elements.narrow(out, element),
            e.places.linearise(Point{{at[0]}, {at[1]}, {at[2]}, {d}}, getShape(op.getResult())));
  });
}

/// Each query of each head by itself. Keys and values are shared by the heads of a group.
static void fillAttention(Emitter &e, nn::AttentionOp op, ValueRange buffers) {
  Attention attention{e, op, buffers[0]};
  e.walk(getShape(op.getQuery()).take_front(3), {}, [&](ArrayRef<Value> at, Values) {
    attention.runQuery(at);
    return Values();
  });
}

/// Pairs are neighbours where interleaved, else elements i and i + half; what is behind the rotated part stays.
static Value pullRotary(Emitter &e, nn::RotaryEmbeddingOp op, const Point &point) {
  int64_t half = op.getRotated() / 2, size = getShape(op.getInput())[3];
  const Index &along = point[3];
  int64_t lanes = e.getLanes();
  bool staysTogether =
      along.lane == 1 && !op.getInterleaved() && half % lanes == 0 && PlaceBuilder::getDivisor(along.base) % lanes == 0;
  if (!isUniform(point) && !(staysTogether && isUniform(Point(point.begin(), point.end() - 1))))
    return e.perLane(op.getResult(), point);
  Type held = ElementBuilder::getHeldType(getElement(op.getInput()));
  PlaceBuilder &p = e.places;
  auto rotate = [&] {
    Value second =
        op.getInterleaved() ? p.isLess(p.number(0), p.rem(along.base, 2)) : p.isLess(p.number(half - 1), along.base);
    int64_t apart = op.getInterleaved() ? 1 : half;
    Value place = p.clamp(along.base, 0, std::max<int64_t>(2 * half - 1, 0));
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

void cleave::codegen::registerAttention(FormTable &table) {
  table.addFill<nn::AttentionOp>(fillAttention);
  table.addPull<nn::RotaryEmbeddingOp>(pullRotary);
}
