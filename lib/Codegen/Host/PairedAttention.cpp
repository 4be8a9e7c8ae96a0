//===- PairedAttention.cpp - attention on bf16 ----------------------------===//
//
// Head by head, some queries at a time, as ../Attention.cpp; both products are blocks of PairTile.h, so what they read lies in
// pairs, and goes by way of memory in the first cache:
//
//   keys of a head, turned       [keys / 16, size / 2, 16] pairs of components
//   values of a head             [size / 16, keys / 2, 16] pairs of keys
//   blocks of queries
//     scores = queries x keys    f32
//     row by row                 scaled, capped, masked; exp(score - largest), rounded to bf16, and their sum in f32
//     weights x values           over the sum
//
// Keys are rounded up to whole tiles: weights of those that do not exist are 0, and so are their values.
//
//===----------------------------------------------------------------------===//
#include "../Attention.h"
#include "../Emitter.h"
#include "PairTile.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// A vector of f32, and of pairs.
static constexpr int64_t kLanes = 16;

namespace {
class PairedAttention {
public:
  PairedAttention(Emitter &e, nn::AttentionOp op, TileSink sink);
  void run();

private:
  void clear();
  void turnKeys(Value place);
  void copyKeys(Value place, int64_t firstKey, int64_t numKeys, int64_t firstPair);
  void pairValues(Value place);
  void block(const Head &head, Value row, int64_t height);
  void score(const Head &head, Value row, int64_t height);
  void weighRow(const Head &head, Value row, Value r);
  Value overRow(Value carried, function_ref<Value(Value, Value)> body);
  void weigh(int64_t height);
  void handOut(const Head &head, Value row, int64_t height);

  Emitter &e;
  nn::AttentionOp op;
  TileSink sink;
  Operand q, k, v;
  int64_t heads, queries, pairs, kvHeads, keys, valueSize;
  int64_t rows, width, panels; ///< of a block; keys, rounded up; vectors of values
  Type f32;
  /// In front of the rows of a block are places for those that a tile computes a second time.
  Value turned, values, scores, weights, scales, sums;
  Value begin, end; ///< of a block of queries: keys that some query sees, whole tiles
};
} // namespace

PairedAttention::PairedAttention(Emitter &e, nn::AttentionOp op, TileSink sink)
    : e(e), op(op), sink(sink), q(e, op.getQuery()), k(e, op.getKey()), v(e, op.getValue()),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), pairs(getShape(op.getQuery())[3] / 2),
      kvHeads(getShape(op.getKey())[1]), keys(getShape(op.getKey())[2]), valueSize(getShape(op.getValue())[3]),
      rows(std::min<int64_t>(queries, canTile(e, 2 * pairs) ? 2 * kTileRows : 8)),
      width((keys + kTileDepth - 1) / kTileDepth * kTileDepth), panels((valueSize + kLanes - 1) / kLanes),
      f32(e.b.getF32Type()) {
  turned = e.allocate(e.b.getI32Type(), width * pairs);
  values = e.allocate(e.b.getI32Type(), panels * kLanes * width / 2);
  scores = e.allocate(f32, (rows + kTileRows) * width);
  weights = e.allocate(e.b.getI16Type(), (rows + kTileRows) * width);
  scales = e.allocate(f32, rows);
  sums = e.allocate(f32, (rows + kTileRows) * panels * kLanes);
}

/// Keys and values are brought into place once for all heads that share them.
void PairedAttention::run() {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  clear();
  e.walk({getShape(op.getQuery())[0], kvHeads}, {}, [&](ArrayRef<Value> at, Values) {
    turnKeys(locateHead(e, k, at[0], at[1]));
    pairValues(locateHead(e, v, at[0], at[1]));
    e.loop(heads / kvHeads, [&](Value member) {
      Head head{at[0], e.places.add(e.places.mul(at[1], heads / kvHeads), member)};
      overBlocks(e, queries, rows, [&](Value row, int64_t height) { block(head, row, height); });
    });
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// What stands for keys behind the last one.
void PairedAttention::clear() {
  PlaceBuilder &p = e.places;
  e.asScalar([&] {
    e.walk({panels * kLanes, width / 2 - keys / 2}, {}, [&](ArrayRef<Value> at, Values) {
      Value pair = p.add(at[1], keys / 2), lane = p.rem(at[0], kLanes);
      Value place = p.add(p.mul(p.add(p.mul(p.div(at[0], kLanes), width / 2), pair), kLanes), lane);
      e.store(values, e.elements.integer(e.b.getI32Type(), 0), {place});
      return Values();
    });
    e.walk({rows + kTileRows, width - keys}, {}, [&](ArrayRef<Value> at, Values) {
      e.store(weights, e.elements.integer(e.b.getI16Type(), 0), {p.add(p.add(p.mul(at[0], width), at[1]), keys)});
      return Values();
    });
    return 0;
  });
}

/// Pair by pair: what no square holds.
void PairedAttention::copyKeys(Value place, int64_t firstKey, int64_t numKeys, int64_t firstPair) {
  PlaceBuilder &p = e.places;
  e.asScalar([&] {
    e.walk({numKeys, pairs - firstPair}, {}, [&](ArrayRef<Value> at, Values) {
      Value key = p.add(at[0], firstKey), pair = p.add(at[1], firstPair);
      Value from = p.add(p.add(place, k.along(k.getDim(2), key).base), p.mul(pair, 2));
      Value to = p.mul(p.add(p.mul(p.div(key, kLanes), pairs), pair), kLanes);
      e.store(turned, loadPairs(e, k.getBuffer(), from), {p.add(to, p.rem(key, kLanes))});
      return Values();
    });
    return 0;
  });
}

/// Squares of keys and pairs are turned in registers.
void PairedAttention::turnKeys(Value place) {
  PlaceBuilder &p = e.places;
  int64_t fullKeys = keys / kLanes * kLanes, fullPairs = pairs / kLanes * kLanes;
  e.walk({keys / kLanes, pairs / kLanes}, {}, [&](ArrayRef<Value> at, Values) {
    Value key = p.mul(at[0], kLanes), pair = p.mul(at[1], kLanes);
    return e.withLanes(kLanes, kLanes, [&] {
      Values square;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        OffsetPlace from = k.along(k.getDim(2), key, lane);
        Value at = p.add(p.add(place, from.base), p.mul(pair, 2));
        square.push_back(loadPairs(e, k.getBuffer(), p.add(at, from.constant)));
      }
      Value to = p.mul(p.add(p.mul(at[0], pairs), pair), kLanes);
      for (auto [lane, vector] : llvm::enumerate(transposeBlock(e, square)))
        e.store(turned, vector, {p.add(to, int64_t(lane) * kLanes), 1});
      return Values();
    });
  });
  if (fullPairs < pairs && fullKeys > 0)
    copyKeys(place, 0, fullKeys, fullPairs);
  if (fullKeys < keys)
    copyKeys(place, fullKeys, keys - fullKeys, 0);
}

/// Two rows of values side by side; the last key may have none beside it.
void PairedAttention::pairValues(Value place) {
  PlaceBuilder &p = e.places;
  Type i32 = VectorType::get({kLanes}, e.b.getI32Type());
  auto pairAt = [&](Value pair, bool isFull) {
    for (int64_t panel = 0; panel < panels; ++panel)
      e.withLanes(kLanes, std::min(kLanes, valueSize - panel * kLanes), [&] {
        auto load = [&](int64_t which) {
          OffsetPlace key = v.along(v.getDim(2), p.mul(pair, 2), which);
          Value from = p.add(p.add(place, key.base), key.constant + panel * kLanes);
          return arith::ExtUIOp::create(e.b, e.loc, i32, e.load(v.getBuffer(), e.b.getI16Type(), {from, 1}));
        };
        Value both = load(0);
        if (isFull) {
          Value high = arith::ShLIOp::create(e.b, e.loc, load(1), e.elements.integer(i32, 16));
          both = arith::OrIOp::create(e.b, e.loc, both, high);
        }
        return e.withLanes(kLanes, kLanes, [&] {
          e.store(values, both, {p.mul(p.add(pair, panel * width / 2), kLanes), 1});
          return 0;
        });
      });
  };
  e.loop(keys / 2, [&](Value pair) { pairAt(pair, true); });
  if (keys % 2)
    pairAt(p.number(keys / 2), false);
}

//===----------------------------------------------------------------------===//
// Blocks of queries
//===----------------------------------------------------------------------===//

/// Of what lies outside the bands of all queries of the block nothing is computed.
void PairedAttention::block(const Head &head, Value row, int64_t height) {
  PlaceBuilder &p = e.places;
  nn::KeyBand band = op.getBand();
  Value visible = countVisible(e, op, row, height);
  begin = findFirstVisible(e, op, row, kTileDepth);
  end = band.high ? p.mul(p.div(p.add(visible, kTileDepth - 1), kTileDepth), kTileDepth) : p.number(width);
  // Where no query sees a key the window is empty, not less.
  if (band.isBounded())
    end = arith::MaxSIOp::create(e.b, e.loc, begin, end);
  score(head, row, height);
  e.loop(height, [&](Value r) { weighRow(head, p.add(row, r), r); });
  weigh(height);
  handOut(head, row, height);
}

void PairedAttention::score(const Head &head, Value row, int64_t height) {
  PlaceBuilder &p = e.places;
  Value place = locateHead(e, q, head.batch, head.query);
  e.loop(begin, end, 2 * kLanes, {}, [&](Value key, Values) {
    auto numbers = [&](int64_t r, ArrayRef<Value> d) {
      OffsetPlace at = q.along(q.getDim(2), row, r);
      return p.add(p.add(p.add(place, at.base), d[0]), at.constant);
    };
    auto columns = [&](int64_t vector, ArrayRef<Value> d) {
      Value panel = p.add(p.div(key, kLanes), vector);
      return p.mul(p.add(p.mul(panel, pairs), p.div(d[0], 2)), kLanes);
    };
    PairBlock block{{height, 2},
                    queries,
                    {2 * pairs},
                    {},
                    q.getBuffer(),
                    q.getDim(2).stride,
                    numbers,
                    turned,
                    columns,
                    scores,
                    p.add(key, kTileRows * width),
                    width};
    multiplyPairs(e, block);
    return Values();
  });
}

/// Whole vectors of keys that are seen, then what is behind them.
Value PairedAttention::overRow(Value carried, function_ref<Value(Value, Value)> body) {
  PlaceBuilder &p = e.places;
  int64_t whole = keys / kLanes * kLanes;
  if (whole > 0)
    carried = e.loop(begin, p.clamp(end, 0, whole), kLanes, {carried}, [&](Value key, Values inner) {
      return Values{e.withLanes(kLanes, kLanes, [&] { return body(key, inner[0]); })};
    })[0];
  if (whole < keys)
    carried = e.withLanes(kLanes, keys - whole, [&] { return body(p.number(whole), carried); });
  return carried;
}

/// As ../Attention.cpp does: a query that sees nothing gives zeros. Weights are summed before they are rounded.
void PairedAttention::weighRow(const Head &head, Value row, Value r) {
  ElementBuilder &m = e.elements;
  PlaceBuilder &p = e.places;
  Value place = p.mul(p.add(r, kTileRows), width);
  auto vector = [&](double number) { return m.number(VectorType::get({kLanes}, f32), number); };
  auto whole = [&](auto fn) { return e.withLanes(kLanes, kLanes, fn); };
  Value largest = overRow(vector(-INFINITY), [&](Value key, Value carried) {
    Index at{p.add(place, key), 1};
    Value score = finishScore(e, op, head, whole([&] { return e.load(scores, f32, at); }), row, key);
    whole([&] { return e.store(scores, score, at), 0; });
    return m.extremum(true, carried, score, false);
  });
  largest = e.acrossLanes(largest, [&](Value x, Value y) { return m.extremum(true, x, y, false); });
  Value seesNothing = m.compare(Relation::Eq, largest, m.number(f32, -INFINITY));
  Value shift = m.select(seesNothing, m.number(f32, 0), largest);
  shift = whole([&] { return e.splat(shift); });
  Value sum = overRow(vector(0), [&](Value key, Value carried) {
    Index at{p.add(place, key), 1};
    return whole([&] {
      Value weight = weighScore(e, e.load(scores, f32, at), shift);
      e.store(weights, roundToHalves(e, weight), at);
      return m.add(carried, weight);
    });
  });
  sum = e.acrossLanes(sum, [&](Value x, Value y) { return m.add(x, y); });
  Value one = m.number(f32, 1), scale = m.divide(one, m.select(seesNothing, one, sum), false);
  e.asScalar([&] { return e.store(scales, scale, {r}), 0; });
}

/// Keys are counted from the first that is seen.
void PairedAttention::weigh(int64_t height) {
  PlaceBuilder &p = e.places;
  Value count = op.getBand().low ? arith::SubIOp::create(e.b, e.loc, end, begin).getResult() : end;
  for (int64_t first = 0; first < panels; first += 2) {
    auto numbers = [&](int64_t r, ArrayRef<Value> key) { return p.add(p.add(begin, key[0]), (r + kTileRows) * width); };
    auto columns = [&](int64_t vector, ArrayRef<Value> key) {
      return p.mul(p.add(p.div(p.add(begin, key[0]), 2), (first + vector) * width / 2), kLanes);
    };
    int64_t apart = panels * kLanes;
    PairBlock block{{height, std::min<int64_t>(2, panels - first)},
                    queries,
                    {width},
                    count,
                    weights,
                    width,
                    numbers,
                    values,
                    columns,
                    sums,
                    p.number(kTileRows * apart + first * kLanes),
                    apart};
    multiplyPairs(e, block);
  }
}

void PairedAttention::handOut(const Head &head, Value row, int64_t height) {
  PlaceBuilder &p = e.places;
  e.loop(height, [&](Value r) {
    Value scale = e.asScalar([&] { return e.load(scales, f32, {r}); });
    for (int64_t i = 0; i < panels; ++i) {
      Value sum = e.withLanes(kLanes, kLanes, [&] {
        Index at{p.add(p.mul(p.add(r, kTileRows), panels * kLanes), i * kLanes), 1};
        return e.elements.mul(e.load(sums, f32, at), e.splat(scale));
      });
      e.withLanes(kLanes, std::min(kLanes, valueSize - i * kLanes), [&] {
        sink({{head.batch}, {head.query}, {p.add(row, r)}, {p.number(i * kLanes), 1}}, sum);
        return 0;
      });
    }
  });
}

//===----------------------------------------------------------------------===//
// Who may
//===----------------------------------------------------------------------===//

/// Components side by side, an even number of them, and rows at one distance.
bool cleave::codegen::canPairAttention(Emitter &e, nn::AttentionOp op) {
  auto isPaired = [](Value value, int64_t multiple) {
    View view = View::get(value);
    bool isEven = getShape(value)[3] % multiple == 0;
    return getElementType(view.base).isBF16() && getElementType(value).isF32() && isEven && view.dims[3].stride == 1 &&
           llvm::all_of(view.dims, [](const ViewDim &dim) { return dim.width == 0; });
  };
  return e.getVectorLanes(e.b.getF32Type()) == kLanes && isPaired(op.getQuery(), 2) && isPaired(op.getKey(), 2) &&
         isPaired(op.getValue(), 1) && getShape(op.getKey())[2] > 0;
}

void cleave::codegen::runPairedAttention(Emitter &e, nn::AttentionOp op, TileSink sink) {
  PairedAttention(e, op, sink).run();
}
