//===- AttentionGrad.cpp - the lowering of attention's gradients ----------===//
//
// Scores are computed again, for some queries of a head at a time, and with them all five products (Dao et al. 2022):
//
//   keys and values of a head, turned
//   blocks of queries, in which tiles of a few rows
//     weights = softmax(queries x keys)                 rows x keys, as attention does; not yet over their sum
//     inner   = gradient x values                       rows x keys; on the way sum(weights inner) of each row
//     inner   = weights (inner - sum) scale             and weights over their sum
//     dQuery  = inner x keys                            tile by tile
//   dKey   += inner^T x queries,  dValue += weights^T x gradient       block by block, so that few sums are loaded and stored
//
// So a row's statistics are at hand where they are wanted, and the forward need not keep them. Where it did, as a ring has to, whose keys are
// some of those that a row sees, weights are exp(score - log) as soon as there is a score, and gradients of scores as soon as there is an
// inner product: no walk over a row between the products. Blocks have as many queries as leave weights and inner products in the second
// cache. Of keys outside the bands of all queries of a block nothing is computed.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "Emitter.h"
#include "TurnedKeys.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

/// Elements of a block's weights, and as many inner products: 128 KiB each of f32.
static constexpr int64_t kMostWeights = 32 << 10;
/// Of its queries, and as many gradients, which are read once for each few keys: 16 KiB each of f32 stay in the first cache.
static constexpr int64_t kMostNumbers = 4 << 10;
/// Queries of a block that do not see all keys: keys are left out for all of a block or none.
static constexpr int64_t kMostOfBand = 32;
/// Keys whose sums are in registers while a block's queries are walked.
static constexpr int64_t kMostKeys = 4;

namespace {
class AttentionGrad {
public:
  AttentionGrad(Emitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, ValueRange buffers);
  void run();

private:
  /// A tensor of rows that are multiplied or summed along, [batch, heads, rows, size].
  struct Lines {
    Lines(Emitter &e, Value value, int64_t lanes)
        : operand(e, value), size(getShape(value)[3]), vectors(llvm::divideCeil(size, lanes)) {}
    Operand operand;
    int64_t size, vectors;
  };

  Value loadVector(const Lines &rows, Value place, int64_t vector);
  Values multiply(const Lines &rows, Value head, Value row, int64_t height, const TurnedKeys &turned, Value key,
                  int64_t wide);
  /// Calls `body` with blocks of keys that some query of the block sees, and how many vectors they are.
  Values overKeys(Values carried, function_ref<Values(Value key, int64_t wide, Values)> body);
  /// Calls `body` with each vector of such keys, lanes set.
  Value overVectors(Value carried, function_ref<Value(Value key, Value)> body);
  /// Calls `body` with `step` such keys at a time, or fewer.
  void overSomeKeys(int64_t step, function_ref<void(Value key, int64_t count)> body);
  int64_t countActive(Value key) const;
  Index inRow(Value row, Value key) { return {e.places.add(e.places.mul(row, width), key), lanes > 1}; }

  void runSeen();
  void clear(Value buffer, int64_t vectors);
  void keepRows(Value buffer, const Values &vectors);
  void block(const Head &head, Value row, int64_t height);
  void tile(const Head &head, Value first, Value inBlock, int64_t height);
  void weighScores(const Head &head, Value first, Value inBlock, int64_t height);
  void differentiateScores(const Head &head, Value first, Value inBlock, int64_t height);
  void loadStatistics(const Head &head, Value first, int64_t height);
  Value score(const Head &head, Value product, Value row, Value inBlock, Value key);
  void weigh(Value r, Value inBlock);
  void differentiate(const Head &head, Value r, Value row, Value inBlock);
  Value finish(const Head &head, Value row, Value inBlock, Value key, Value weight, Value product, Value mean);
  void storeQuery(const Head &head, Value first, Value inBlock, int64_t height);
  void sum(const Lines &rows, Value head, Value row, int64_t height, Value factors, Value sums);
  void storeSums(const Head &head, const Lines &rows, Value sums, Value buffer, Value like);

  Emitter &e;
  exec::AttentionGradOp op;
  nn::AttentionOp forward;
  ValueRange buffers;
  Type compute;
  int64_t lanes;
  Lines q, k, v, d;
  int64_t heads, queries, kvHeads, keys;
  double scale, cap;
  int64_t tall, wide;    ///< of a tile: rows, and vectors of a block of scores
  int64_t width, looped; ///< keys, rounded up to vectors; those in whole blocks
  int64_t most;          ///< queries of a block
  TurnedKeys turnedK, turnedV;
  Value weights, inner, slopes; ///< [queries of a block, width]
  Value rowSums,
      rowTotals;      ///< a vector for each row of a tile; with statistics what is subtracted of scores and of products
  Value sumsK, sumsV; ///< [keys, vectors]
  KeyRange seen;      ///< of keys in whole blocks, those of the block of queries
};
} // namespace

AttentionGrad::AttentionGrad(Emitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, ValueRange buffers)
    : e(e), op(op), forward(forward), buffers(buffers),
      compute(ElementBuilder::getComputeType(getElementType(op.getQuery()))), lanes(e.getVectorLanes(compute)),
      q(e, op.getQuery(), lanes), k(e, op.getKey(), lanes), v(e, op.getValue(), lanes), d(e, op.getGradient(), lanes),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), kvHeads(getShape(op.getKey())[1]),
      keys(getShape(op.getKey())[2]), scale(op.getScale().convertToDouble()), cap(op.getSoftcap().convertToDouble()),
      turnedK(e, k.operand, getShape(op.getKey()), compute), turnedV(e, v.operand, getShape(op.getValue()), compute) {
  int64_t registers = e.getNumRegisters(), vectors = llvm::divideCeil(keys, lanes);
  tall = std::min<int64_t>(8, chooseTile(registers, {queries, q.vectors, keys * lanes * 4}).rows);
  wide = fitVectors(registers, tall, vectors);
  width = vectors * lanes;
  looped = keys / (wide * lanes) * (wide * lanes);
  // Blocks are whole tiles, one at least, so that few sizes of either are compiled.
  int64_t rows =
      std::min(kMostWeights / std::max<int64_t>(width, 1), kMostNumbers / std::max({q.size, v.size, int64_t{1}}));
  rows = forward.getBand().isEmpty() ? rows : std::min(rows, kMostOfBand);
  most = std::min(queries, std::max<int64_t>(rows / tall, 1) * tall);
  weights = e.allocate(compute, most * width);
  inner = e.allocate(compute, most * width);
  slopes = cap > 0 ? e.allocate(compute, most * width) : Value();
  rowSums = e.allocate(compute, tall * lanes);
  rowTotals = e.allocate(compute, tall * lanes);
  sumsK = e.allocate(compute, keys * k.vectors * lanes);
  sumsV = e.allocate(compute, keys * v.vectors * lanes);
}

void AttentionGrad::run() {
  auto clearAll = [&] {
    for (auto [result, buffer] : llvm::zip_equal(op.getResults(), buffers))
      fillWith(e, result, buffer, 0);
  };
  whereSeen(e, op.getSeen(), [&] { runSeen(); }, clearAll);
}

/// Keys are turned once for all heads that share them, and their gradients are sums over these.
void AttentionGrad::runSeen() {
  e.withLanes(lanes, lanes, [&] {
    turnedK.clearRest();
    turnedV.clearRest();
    e.walk({getShape(op.getQuery())[0], kvHeads}, {}, [&](ArrayRef<Value> at, Values) {
      Head shared{at[0], at[1]};
      e.asScalar([&] {
        turnedK.turn(locateHead(e, k.operand, at[0], at[1]));
        turnedV.turn(locateHead(e, v.operand, at[0], at[1]));
        return 0;
      });
      clear(sumsK, keys * k.vectors);
      clear(sumsV, keys * v.vectors);
      e.loop(heads / kvHeads, [&](Value member) {
        Head head{at[0], e.places.add(e.places.mul(at[1], heads / kvHeads), member)};
        overBlocks(e, queries, most, [&](Value row, int64_t height) { block(head, row, height); });
      });
      storeSums(shared, k, sumsK, buffers[1], op.getDKey());
      storeSums(shared, v, sumsV, buffers[2], op.getDValue());
      return Values();
    });
    return 0;
  });
}

/// Sums begin with zeros in memory, since the first block is code that others share.
void AttentionGrad::clear(Value buffer, int64_t vectors) {
  Value zero = e.elements.number(e.withLanes(compute), 0);
  e.loop(vectors, [&](Value vector) { e.store(buffer, zero, {e.places.mul(vector, lanes), lanes > 1}); });
}

/// A tile at a time, then what its rows add to the gradients of keys and values.
void AttentionGrad::block(const Head &head, Value row, int64_t height) {
  PlaceBuilder &p = e.places;
  seen = findSeenBlocks(e, forward, row, height, wide * lanes, looped);
  // All tiles before all sums: a sum over the block's queries is loaded and stored once for all of them.
  overBlocks(e, height, tall, [&](Value inBlock, int64_t rows) { tile(head, p.add(row, inBlock), inBlock, rows); });
  sum(q, locateHead(e, q.operand, head.batch, head.query), row, height, inner, sumsK);
  sum(d, locateHead(e, d.operand, head.batch, head.query), row, height, weights, sumsV);
}

//===----------------------------------------------------------------------===//
// Keys of a block
//===----------------------------------------------------------------------===//

/// In a loop over whole blocks as far as keys are seen, then what is behind whole blocks.
Values AttentionGrad::overKeys(Values carried, function_ref<Values(Value, int64_t, Values)> body) {
  if (looped > 0)
    carried = e.loop(seen.begin, seen.end, wide * lanes, carried,
                     [&](Value key, Values inLoop) { return body(key, wide, inLoop); });
  return width > looped ? body(e.places.number(looped), (width - looped) / lanes, carried) : carried;
}

/// Behind whole blocks one by one, so that it is known which lanes exist.
Value AttentionGrad::overVectors(Value carried, function_ref<Value(Value, Value)> body) {
  if (looped > 0)
    carried = e.loop(seen.begin, seen.end, lanes, {carried},
                     [&](Value key, Values inLoop) { return Values{body(key, inLoop[0])}; })[0];
  for (int64_t first = looped; first < width; first += lanes) {
    Value key = e.places.number(first);
    carried = e.withLanes(lanes, countActive(key), [&] { return body(key, carried); });
  }
  return carried;
}

/// Behind whole blocks only keys that exist: their sums have no place for others.
void AttentionGrad::overSomeKeys(int64_t step, function_ref<void(Value, int64_t)> body) {
  if (looped > 0)
    e.loop(seen.begin, seen.end, step, {}, [&](Value key, Values) {
      body(key, step);
      return Values();
    });
  overBlocks(e, keys - looped, step, [&](Value key, int64_t count) { body(e.places.add(key, looped), count); });
}

/// In loops over whole blocks all lanes exist; what is behind them is unrolled, and stands at known places.
int64_t AttentionGrad::countActive(Value key) const {
  std::optional<int64_t> known = PlaceBuilder::getKnown(key);
  return known ? std::min(lanes, keys - *known) : lanes;
}

/// A vector of a row that begins at `place`; the last one of a row has the lanes that exist.
Value AttentionGrad::loadVector(const Lines &rows, Value place, int64_t vector) {
  const ViewDim &dim = rows.operand.getDim(3);
  return e.withLanes(lanes, std::min(lanes, rows.size - vector * lanes), [&] {
    return rows.operand.load(e.places.add(place, rows.operand.along(dim, e.places.number(vector * lanes)).base),
                             dim.stride);
  });
}

/// Products of some rows with keys.
Values AttentionGrad::multiply(const Lines &rows, Value head, Value row, int64_t height, const TurnedKeys &turned,
                               Value key, int64_t wide) {
  PlaceBuilder &p = e.places;
  const Operand &operand = rows.operand;
  auto scalar = [&](int64_t r, ArrayRef<Value> c) {
    OffsetPlace at = operand.along(operand.getDim(2), row, r);
    return operand.load(p.add(p.add(p.add(head, at.base), operand.along(operand.getDim(3), c[0]).base), at.constant));
  };
  auto vector = [&](int64_t i, ArrayRef<Value> c) { return turned.load(key, c[0], i); };
  Values none(height * wide, e.elements.number(e.withLanes(compute), 0));
  return sumTile(e, {height, wide}, {rows.size}, none, scalar, vector);
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

/// A vector of each row of a tile.
void AttentionGrad::keepRows(Value buffer, const Values &vectors) {
  for (auto [r, vector] : llvm::enumerate(vectors))
    e.store(buffer, vector, {e.places.number(int64_t(r) * lanes), lanes > 1});
}

void AttentionGrad::loadStatistics(const Head &head, Value first, int64_t height) {
  auto load = [&](Value statistic, int64_t r) {
    Point at{{head.batch}, {head.query}, {e.places.add(first, r)}};
    return e.asScalar([&] { return e.evalScalar(statistic, at); });
  };
  Values shifts, means;
  for (int64_t r = 0; r < height; ++r) {
    shifts.push_back(e.splat(getShift(e, load(op.getLogs(), r))));
    means.push_back(e.splat(load(op.getMeans(), r)));
  }
  keepRows(rowSums, shifts);
  keepRows(rowTotals, means);
}

/// Scores, and with statistics weights at once; else weights, not yet over their sum, once the largest score is known.
void AttentionGrad::weighScores(const Head &head, Value first, Value inBlock, int64_t height) {
  PlaceBuilder &p = e.places;
  Value ofQueries = locateHead(e, q.operand, head.batch, head.query);
  Values largest(height, e.elements.number(e.withLanes(compute), -INFINITY));
  if (op.getLogs())
    largest.clear();
  Values found = overKeys(largest, [&](Value key, int64_t count, Values greatest) {
    Values products = multiply(q, ofQueries, first, height, turnedK, key, count);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < height; ++r) {
        Value at = p.add(key, i * lanes), row = p.add(inBlock, r);
        Value made = e.withLanes(lanes, countActive(at),
                                 [&] { return score(head, products[r * count + i], p.add(first, r), row, at); });
        if (op.getLogs()) {
          made = weighByLog(e, made, e.load(rowSums, compute, {p.number(r * lanes), lanes > 1}));
        } else {
          greatest[r] = e.elements.extremum(true, greatest[r], made, false);
        }
        e.store(weights, made, inRow(row, at));
      }
    return greatest;
  });
  if (op.getLogs())
    return;
  keepRows(rowSums, found);
  e.loop(height, [&](Value r) { weigh(r, p.add(inBlock, r)); });
}

/// Products of gradients and values, and with statistics gradients of scores at once; else once the mean of a row is known.
void AttentionGrad::differentiateScores(const Head &head, Value first, Value inBlock, int64_t height) {
  PlaceBuilder &p = e.places;
  Value ofGradient = locateHead(e, d.operand, head.batch, head.query);
  Values totals(height, e.elements.number(e.withLanes(compute), 0));
  if (op.getLogs())
    totals.clear();
  // Weights are not over their sum yet, and so the mean of a row is not, either: `differentiate` divides both.
  Values found = overKeys(totals, [&](Value key, int64_t count, Values all) {
    Values products = multiply(d, ofGradient, first, height, turnedV, key, count);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < height; ++r) {
        Value at = p.add(key, i * lanes), row = p.add(inBlock, r), product = products[r * count + i];
        Value weight = e.load(weights, compute, inRow(row, at));
        if (op.getLogs()) {
          Value mean = e.load(rowTotals, compute, {p.number(r * lanes), lanes > 1});
          product = e.withLanes(lanes, countActive(at),
                                [&] { return finish(head, p.add(first, r), row, at, weight, product, mean); });
        } else {
          all[r] = e.elements.fma(weight, product, all[r]);
        }
        e.store(inner, product, inRow(row, at));
      }
    return all;
  });
  if (op.getLogs())
    return;
  keepRows(rowTotals, found);
  e.loop(height, [&](Value r) { differentiate(head, r, p.add(first, r), p.add(inBlock, r)); });
}

/// Of `height` rows from `first` on, which are those from `inBlock` on of the block.
void AttentionGrad::tile(const Head &head, Value first, Value inBlock, int64_t height) {
  if (op.getLogs())
    loadStatistics(head, first, height);
  weighScores(head, first, inBlock, height);
  differentiateScores(head, first, inBlock, height);
  storeQuery(head, first, inBlock, height);
}

/// As `finishScore`; under a cap, its slope is kept.
Value AttentionGrad::score(const Head &head, Value product, Value row, Value inBlock, Value key) {
  ElementBuilder &m = e.elements;
  Value made = m.mul(product, scale);
  if (cap > 0) {
    Value turned = m.tanh(m.divide(made, m.like(made, cap), false));
    made = m.mul(turned, cap);
    Value slope = m.fma(m.negate(turned), turned, m.like(turned, 1));
    e.withLanes(lanes, lanes, [&] {
      e.store(slopes, slope, inRow(inBlock, key));
      return 0;
    });
  }
  return maskScore(e, forward, head, made, row, key);
}

/// Makes weights of a row's scores, and keeps 1 / sum. A query that sees nothing gives zeros: what is subtracted is then 0 rather
/// than -inf, and the sum counts as 1.
void AttentionGrad::weigh(Value r, Value inBlock) {
  ElementBuilder &m = e.elements;
  Index place{e.places.mul(r, lanes), lanes > 1};
  Value largest =
      e.acrossLanes(e.load(rowSums, compute, place), [&](Value x, Value y) { return m.extremum(true, x, y, false); });
  Value seesNothing = m.compare(Relation::Eq, largest, m.number(compute, -INFINITY));
  Value shift = e.splat(m.select(seesNothing, m.number(compute, 0), largest));
  Value sum = overVectors(m.number(e.withLanes(compute), 0), [&](Value key, Value carried) {
    return e.withLanes(lanes, lanes, [&] {
      Value weight = weighScore(e, e.load(weights, compute, inRow(inBlock, key)), shift);
      e.store(weights, weight, inRow(inBlock, key));
      return m.add(carried, weight);
    });
  });
  sum = e.acrossLanes(sum, [&](Value x, Value y) { return m.add(x, y); });
  Value one = m.number(compute, 1);
  e.store(rowSums, e.splat(m.divide(one, m.select(seesNothing, one, sum), false)), place);
}

/// The gradients of neighboring scores from what their weights are and those of the weights. In lanes behind the last key weights are 0, and
/// values were.
Value AttentionGrad::finish(const Head &head, Value row, Value inBlock, Value key, Value weight, Value product,
                            Value mean) {
  ElementBuilder &m = e.elements;
  Value shown = op.getShown();
  Value isShown =
      shown ? e.eval(shown, e.broadcast({{head.batch}, {head.query}, {row}, {key, 1}}, getShape(shown))) : Value();
  return e.withLanes(lanes, lanes, [&] {
    Value made = m.mul(m.mul(weight, m.sub(product, mean)), scale);
    if (cap > 0)
      made = m.mul(made, e.load(slopes, compute, inRow(inBlock, key)));
    return isShown ? m.select(isShown, made, m.like(made, 0)) : made;
  });
}

/// Of a row: weights over their sum, and the gradients of scores in place of those of weights.
void AttentionGrad::differentiate(const Head &head, Value r, Value row, Value inBlock) {
  ElementBuilder &m = e.elements;
  Index place{e.places.mul(r, lanes), lanes > 1};
  Value factor = e.load(rowSums, compute, place);
  Value total = e.acrossLanes(e.load(rowTotals, compute, place), [&](Value x, Value y) { return m.add(x, y); });
  total = m.mul(e.splat(total), factor);
  overVectors(total, [&](Value key, Value carried) {
    auto full = [&](auto body) { return e.withLanes(lanes, lanes, body); };
    Value weight = full([&] { return m.mul(e.load(weights, compute, inRow(inBlock, key)), factor); });
    Value product = full([&] { return e.load(inner, compute, inRow(inBlock, key)); });
    Value made = finish(head, row, inBlock, key, weight, product, carried);
    full([&] {
      e.store(weights, weight, inRow(inBlock, key));
      e.store(inner, made, inRow(inBlock, key));
      return 0;
    });
    return carried;
  });
}

/// Sums of keys, in blocks of as many vectors as fit.
void AttentionGrad::storeQuery(const Head &head, Value first, Value inBlock, int64_t height) {
  PlaceBuilder &p = e.places;
  Value place = locateHead(e, k.operand, head.batch, p.div(head.query, heads / kvHeads));
  // Keys are walked once for each group of vectors; gradients of scores are then numbers that are loaded and repeated.
  int64_t fit = fitVectors(e.getNumRegisters(), height, q.vectors);
  SmallVector<int64_t> shape(getShape(op.getDQuery()));
  Type held = ElementBuilder::getHeldType(getElementType(op.getDQuery()));
  for (int64_t from = 0; from < q.vectors; from += fit) {
    int64_t count = std::min(fit, q.vectors - from);
    auto add = [&](Value begin, Value end, Values carried) {
      return e.loop(begin, end, 1, carried, [&](Value key, Values inLoop) {
        auto scalar = [&](int64_t r, ArrayRef<Value>) {
          return e.load(inner, compute, {p.add(p.mul(p.add(inBlock, r), width), key)});
        };
        auto vector = [&](int64_t i, ArrayRef<Value>) {
          return loadVector(k, p.add(place, k.operand.along(k.operand.getDim(2), key).base), from + i);
        };
        return sumTile(e, {height, count}, {}, inLoop, scalar, vector);
      });
    };
    Values sums(height * count, e.elements.number(e.withLanes(compute), 0));
    if (looped > 0)
      sums = add(seen.begin, seen.end, sums);
    if (keys > looped)
      sums = add(p.number(looped), p.number(keys), sums);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      int64_t vector = from + int64_t(i) % count, row = int64_t(i) / count;
      Value rounded = e.elements.narrow(sum, held);
      e.withLanes(lanes, std::min(lanes, q.size - vector * lanes), [&] {
        Point point{{head.batch}, {head.query}, {p.add(first, row)}, {p.number(vector * lanes), lanes > 1}};
        e.store(buffers[0], rounded, p.linearize(point, shape));
        return 0;
      });
    }
  }
}

//===----------------------------------------------------------------------===//
// Sums over queries
//===----------------------------------------------------------------------===//

/// Adds the block's `rows`, each times its factor for a key, to the sums of keys.
void AttentionGrad::sum(const Lines &rows, Value head, Value row, int64_t height, Value factors, Value sums) {
  PlaceBuilder &p = e.places;
  // Whole blocks of keys are multiples of vectors, and vectors of the step.
  int64_t step = std::min(kMostKeys, lanes), fit = fitVectors(e.getNumRegisters(), step, rows.vectors);
  overSomeKeys(step, [&](Value key, int64_t count) {
    for (int64_t from = 0; from < rows.vectors; from += fit) {
      int64_t vectors = std::min(fit, rows.vectors - from);
      auto placeSum = [&](int64_t i) {
        Value line = p.mul(p.add(key, i / vectors), rows.vectors * lanes);
        return Index{p.add(line, (from + i % vectors) * lanes), lanes > 1};
      };
      Values carried;
      for (int64_t i = 0; i < count * vectors; ++i)
        carried.push_back(e.load(sums, compute, placeSum(i)));
      auto scalar = [&](int64_t i, ArrayRef<Value> r) {
        return e.load(factors, compute, {p.add(p.add(p.mul(r[0], width), key), i)});
      };
      auto vector = [&](int64_t i, ArrayRef<Value> r) {
        Value place = p.add(head, rows.operand.along(rows.operand.getDim(2), p.add(row, r[0])).base);
        return loadVector(rows, place, from + i);
      };
      carried = sumTile(e, {count, vectors}, {height}, carried, scalar, vector);
      for (auto [i, sum] : llvm::enumerate(carried))
        e.store(sums, sum, placeSum(int64_t(i)));
    }
  });
}

/// Of a head of keys, rounded.
void AttentionGrad::storeSums(const Head &head, const Lines &rows, Value sums, Value buffer, Value like) {
  PlaceBuilder &p = e.places;
  SmallVector<int64_t> shape(getShape(like));
  Type held = ElementBuilder::getHeldType(getElementType(like));
  e.loop(keys, [&](Value key) {
    for (int64_t vector = 0; vector < rows.vectors; ++vector) {
      Value sum = e.load(sums, compute, {p.add(p.mul(key, rows.vectors * lanes), vector * lanes), lanes > 1});
      sum = e.elements.narrow(sum, held);
      e.withLanes(lanes, std::min(lanes, rows.size - vector * lanes), [&] {
        Point point{{head.batch}, {head.query}, {key}, {p.number(vector * lanes), lanes > 1}};
        e.store(buffer, sum, p.linearize(point, shape));
        return 0;
      });
    }
  });
}

void cleave::codegen::fillAttentionGrad(Emitter &e, exec::AttentionGradOp op, ValueRange buffers) {
  OpBuilder builder(op);
  nn::AttentionOp forward = op.createForward(builder); // what it masks, and which keys it sees
  AttentionGrad(e, op, forward, buffers).run();
  forward.erase();
}
