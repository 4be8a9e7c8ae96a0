//===- DeviceFlash.cpp - attention by products of warps ----------------------===//
//
// A warp has 16 queries of a head, a block a few such, and keys and values go through shared memory a tile at a time:
//
//   scores  = queries keys^T            products of 16 x 8 (DeviceFragments.h); scale, cap and mask on what each lane has of them
//   largest = max(largest, scores)      of a query: four lanes have its scores, and meet by shuffles
//   weights = exp(scores - largest)     rounded to 16 bits, where they are: sums of one product are rows of the next one
//   sums    = exp(what was largest - largest) sums + weights values
//
// No score is ever stored, and keys that a causal mask hides from all queries of a block are not read. Sources: Dao and others,
// arXiv:2205.14135; Dao, arXiv:2307.08691.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "DeviceFragments.h"
#include "DeviceTemplates.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

namespace {

class FlashKernel {
public:
  FlashKernel(DeviceEmitter &e, nn::AttentionOp op, TileSink sink);
  void run();

private:
  struct Side {
    Value operand;
    int64_t rows, columns, padded; ///< of a head; of a row in shared memory
    FragmentTile tile;
  };

  void choose();
  void place();
  Side makeSide(Value operand, int64_t rows, bool alongDepth, bool isColumns);
  void overParts(int64_t count, function_ref<void(Value)> body);
  void clear(const Side &side, int64_t rows);
  void fill(const Side &side, Value headPlace, Value first, int64_t rows);
  Values multiplyKeys();
  void finishScores(Value first, Values &scores);
  void addValues(ValueRange weights, MutableArrayRef<Value> sums);
  Values step(Value first, Values carried);
  void store(ValueRange carried);
  void storePair(ValueRange pair, int64_t column, Value row);
  Value getRow(int64_t half) { return e.places.add(row, 8 * half); }
  Value larger(Value x, Value y) { return e.elements.extremum(true, x, y, false); }

  DeviceEmitter &e;
  nn::AttentionOp op;
  TileSink sink;
  Type element, compute;
  int64_t heads, queries, keys, size, valueSize;
  int64_t warps = 4, height = 64; ///< of a block; keys of a tile
  Fragments fragments;
  Side query, key, value;
  Head head;
  Value kvHead, firstRow, row; ///< of the block; of this lane's first score
  Value places[3];             ///< of this lane's fragments of queries, keys and values
};

} // namespace

static constexpr int64_t kMostSize = 256;

/// Behind the maxima, sums of weights come; then sums of components.
static constexpr size_t kLargest = 0, kWeights = 2, kSums = 4;

FlashKernel::FlashKernel(DeviceEmitter &e, nn::AttentionOp op, TileSink sink)
    : e(e), op(op), sink(sink), element(getElement(op.getQuery())), compute(ElementBuilder::getComputeType(element)),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), keys(getShape(op.getKey())[2]),
      size(getShape(op.getQuery())[3]), valueSize(getShape(op.getValue())[3]), fragments(e, element) {}

/// As many queries and keys as shared memory and registers hold.
void FlashKernel::choose() {
  constexpr int64_t most = 46 << 10;
  int64_t deep = llvm::alignTo(size, 16) + 8, wide = llvm::alignTo(valueSize, 16) + 8;
  auto countBytes = [&] { return 2 * ((16 * warps + height) * deep + height * wide); };
  height = std::max(size, valueSize) <= 64 ? 64 : 32;
  while (warps > 1 && 16 * (warps / 2) >= queries)
    warps /= 2;
  for (; countBytes() > most && height > 16; height /= 2)
    ;
  for (; countBytes() > most; warps /= 2)
    ;
}

FlashKernel::Side FlashKernel::makeSide(Value operand, int64_t rows, bool alongDepth, bool isColumns) {
  int64_t columns = getShape(operand)[3], padded = llvm::alignTo(columns, 16), pitch = padded + 8;
  Value memory = e.share(ElementBuilder::getStoredType(element), rows * pitch);
  return {operand, getShape(operand)[2], columns, padded, {memory, pitch, alongDepth, isColumns}};
}

void FlashKernel::place() {
  PlaceBuilder &p = e.places;
  int64_t high = 16 * warps, blocks = llvm::divideCeil(queries, high), batches = getShape(op.getQuery())[0];
  SmallVector<Value> at = p.delinearise(e.getBlock(), {batches, heads, blocks});
  head = {at[0], at[1]};
  kvHead = p.div(at[1], heads / getShape(op.getKey())[1]);
  firstRow = p.mul(at[2], high);
  Value inBlock = p.mul(p.div(e.getThread(), kWarp), 16);
  row = p.add(p.add(firstRow, inBlock), fragments.getRow());
  query = makeSide(op.getQuery(), high, true, false);
  key = makeSide(op.getKey(), height, true, true);
  value = makeSide(op.getValue(), height, false, true);
  places[0] = p.add(fragments.getLanePlace(query.tile), p.mul(inBlock, query.tile.pitch));
  places[1] = fragments.getLanePlace(key.tile);
  places[2] = fragments.getLanePlace(value.tile);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Each number by one thread; loads of a few are on their way together.
void FlashKernel::overParts(int64_t count, function_ref<void(Value)> body) {
  PlaceBuilder &p = e.places;
  e.loop(e.getThread(), p.number(count), warps * kWarp, {}, [&](Value number, Values) {
    body(number);
    return Values();
  });
}

/// What rows have behind their last column, which is multiplied like the rest.
void FlashKernel::clear(const Side &side, int64_t rows) {
  PlaceBuilder &p = e.places;
  int64_t behind = side.padded - side.columns;
  if (behind == 0)
    return;
  overParts(rows * behind, [&](Value number) {
    Value place = p.add(p.add(p.mul(p.div(number, behind), side.tile.pitch), p.rem(number, behind)), side.columns);
    e.store(side.tile.memory, e.elements.number(ElementBuilder::getHeldType(element), 0), {place});
  });
}

/// Rows from `first` on; behind the last one it comes again.
void FlashKernel::fill(const Side &side, Value headPlace, Value first, int64_t rows) {
  PlaceBuilder &p = e.places;
  int64_t lanes = std::gcd<int64_t>(8, side.columns), perRow = side.columns / lanes;
  overParts(rows * perRow, [&](Value number) {
    Value line = p.div(number, perRow), column = p.mul(p.rem(number, perRow), lanes);
    Value from = p.clamp(p.add(first, line), 0, side.rows - 1);
    e.withLanes(lanes, lanes, [&] {
      Value loaded = e.eval(side.operand, {{head.batch}, {headPlace}, {from}, {column, lanes > 1}});
      e.store(side.tile.memory, loaded, {p.add(p.mul(line, side.tile.pitch), column), lanes > 1});
      return 0;
    });
  });
}

//===----------------------------------------------------------------------===//
// A tile of keys
//===----------------------------------------------------------------------===//

/// Of each 8 keys four scores of this lane.
Values FlashKernel::multiplyKeys() {
  PlaceBuilder &p = e.places;
  Values scores(height / 8 * Fragments::kSums, e.elements.number(compute, 0));
  for (int64_t depth = 0; depth < query.padded; depth += 16) {
    Values rows = fragments.load(query.tile, p.add(places[0], query.tile.at(0, depth)));
    for (int64_t at = 0; at < height; at += 16) {
      Values columns = fragments.load(key.tile, p.add(places[1], key.tile.at(at, depth)));
      for (int64_t half : {0, 1})
        fragments.multiply(rows, ArrayRef(columns).slice(2 * half, 2),
                           MutableArrayRef(scores).slice((at / 8 + half) * Fragments::kSums, Fragments::kSums));
    }
  }
  return scores;
}

/// What there is not of keys counts as hidden; queries that there are not are as the last one.
void FlashKernel::finishScores(Value first, Values &scores) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  Value lines[2] = {p.clamp(getRow(0), 0, queries - 1), p.clamp(getRow(1), 0, queries - 1)};
  for (size_t i = 0; i < scores.size(); ++i) {
    Value at = p.add(p.add(first, fragments.getColumn()), int64_t(i / 4 * 8 + i % 2));
    Value there = keys % height == 0 ? at : p.clamp(at, 0, keys - 1);
    scores[i] = finishScore(e, op, head, scores[i], lines[i % 4 / 2], there);
    if (keys % height)
      scores[i] = m.select(p.isLess(at, keys), scores[i], m.number(compute, -INFINITY));
  }
}

/// Weights of 16 keys are a fragment of rows.
void FlashKernel::addValues(ValueRange weights, MutableArrayRef<Value> sums) {
  PlaceBuilder &p = e.places;
  for (int64_t at = 0; at < height; at += 16, weights = weights.drop_front(8)) {
    Values rows;
    for (int64_t pair = 0; pair < 4; ++pair)
      rows.push_back(fragments.pack(weights[2 * pair], weights[2 * pair + 1]));
    for (int64_t column = 0; column < value.padded; column += 16) {
      Values columns = fragments.load(value.tile, p.add(places[2], value.tile.at(column, at)));
      for (int64_t half : {0, 1})
        fragments.multiply(rows, ArrayRef(columns).slice(2 * half, 2),
                           sums.slice((column / 8 + half) * Fragments::kSums, Fragments::kSums));
    }
  }
}

/// The first barrier is for those who still read the tile before.
Values FlashKernel::step(Value first, Values carried) {
  ElementBuilder &m = e.elements;
  e.barrier();
  fill(key, kvHead, first, height);
  fill(value, kvHead, first, height);
  e.barrier();
  Values scores = multiplyKeys();
  finishScores(first, scores);
  Value lowest = m.number(compute, -INFINITY);
  for (size_t half : {0, 1}) {
    Value most = lowest;
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == half)
        most = larger(most, scores[i]);
    most = e.acrossWarp({most}, 4, [&](Values x, Values y) { return Values{larger(x[0], y[0])}; })[0];
    Value largest = larger(carried[kLargest + half], most);
    Value shift = m.select(m.compare(Relation::Eq, largest, lowest), m.number(compute, 0), largest);
    Value factor = weighScore(e, carried[kLargest + half], shift), sum = m.mul(carried[kWeights + half], factor);
    for (size_t i = 0; i < scores.size(); ++i)
      if (i % 4 / 2 == half)
        sum = m.add(sum, scores[i] = weighScore(e, scores[i], shift));
    carried[kLargest + half] = largest;
    carried[kWeights + half] = sum;
    for (size_t i = kSums; i < carried.size(); ++i)
      if (i % 4 / 2 == half)
        carried[i] = m.mul(carried[i], factor);
  }
  addValues(scores, MutableArrayRef(carried).drop_front(kSums));
  return carried;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Two neighbours of a row, of which one or none may be there.
void FlashKernel::storePair(ValueRange pair, int64_t column, Value line) {
  PlaceBuilder &p = e.places;
  Value at = p.add(fragments.getColumn(), column);
  Type held = ElementBuilder::getHeldType(getElement(op.getResult()));
  bool isWide = valueSize % 2 == 0;
  auto storeAt = [&](int64_t lanes, Value from, Value numbers) {
    Value isThere = queries % (16 * warps) ? p.isLess(line, queries) : Value();
    if (column + 8 > valueSize) {
      Value isIn = p.isLess(from, valueSize);
      isThere = isThere ? e.elements.both(isThere, isIn) : isIn;
    }
    e.withLanes(lanes, lanes, [&] {
      auto call = [&] {
        sink({{head.batch}, {head.query}, {line}, {from, lanes > 1}}, e.elements.narrow(numbers, held));
      };
      isThere ? e.when(isThere, call) : call();
      return 0;
    });
  };
  if (isWide)
    return storeAt(2, at, vector::FromElementsOp::create(e.b, e.loc, VectorType::get({2}, compute), pair));
  for (int64_t i : {0, 1})
    storeAt(1, p.add(at, i), pair[i]);
}

/// A query that sees nothing gives zeros.
void FlashKernel::store(ValueRange carried) {
  ElementBuilder &m = e.elements;
  Value one = m.number(compute, 1), lowest = m.number(compute, -INFINITY);
  for (int64_t half : {0, 1}) {
    Value sum =
        e.acrossWarp({carried[kWeights + half]}, 4, [&](Values x, Values y) { return Values{m.add(x[0], y[0])}; })[0];
    Value seesNothing = m.compare(Relation::Eq, carried[kLargest + half], lowest);
    Value scale = m.divide(one, m.select(seesNothing, one, sum), false);
    for (int64_t column = 0; column < valueSize; column += 8) {
      ValueRange sums = carried.slice(kSums + column / 8 * Fragments::kSums + 2 * half, 2);
      storePair({m.mul(sums[0], scale), m.mul(sums[1], scale)}, column, getRow(half));
    }
  }
}

void FlashKernel::run() {
  choose();
  e.launch(getShape(op.getQuery())[0] * heads * llvm::divideCeil(queries, 16 * warps), warps * kWarp);
  place();
  ElementBuilder &m = e.elements;
  PlaceBuilder &p = e.places;
  clear(query, 16 * warps);
  clear(key, height);
  fill(query, head.query, firstRow, 16 * warps);
  Value zero = m.number(compute, 0), lowest = m.number(compute, -INFINITY);
  Values carried{lowest, lowest, zero, zero};
  carried.append(value.padded / 8 * Fragments::kSums, zero);
  Value visible = countVisible(e, op, firstRow, 16 * warps);
  carried =
      e.loop(p.number(0), visible, height, carried, [&](Value first, Values inner) { return step(first, inner); });
  store(carried);
}

/// Few queries leave most of a product of 16 unused.
bool cleave::codegen::runDeviceFlash(DeviceEmitter &e, nn::AttentionOp op, TileSink sink) {
  Type element = getElement(op.getQuery());
  ArrayRef<int64_t> query = getShape(op.getQuery()), value = getShape(op.getValue());
  bool isAlike = element == getElement(op.getKey()) && element == getElement(op.getValue());
  if (element.getIntOrFloatBitWidth() != 16 || !isa<FloatType>(element) || !isAlike || query[2] < 16 || value[2] == 0 ||
      query[3] > kMostSize || value[3] > kMostSize)
    return false;
  FlashKernel(e, op, sink).run();
  return true;
}
