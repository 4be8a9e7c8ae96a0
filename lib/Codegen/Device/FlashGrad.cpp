//===- FlashGrad.cpp - gradients of attention by tiles --------------------===//
//
// As in Flash.cpp, with rows that a block has (its *own*) and tiles of others that go through shared memory (the *stream*):
//
//   own                    stream                 both products                  sums
//   queries, gradients     keys, values           queries keys^T, gradients values^T    dQuery += inner keys
//   keys, values           queries, gradients     keys queries^T, values gradients^T    dKey += inner queries, dValue += weights gradients
//
// Of both kinds of blocks the first tensors have the components of keys, the second ones those of values, so that they share one memory and
// one way to multiply, that of LaneTiles.h. Weights and inner ones are the factors there.
//
// No sum is shared between blocks, so that the result is one of the order of queries and keys alone; weights are computed twice for that.
// Source: Dao, arXiv:2307.08691.
//
//===----------------------------------------------------------------------===//
#include "../Attention.h"
#include "LaneTiles.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// Components of a head: sums of more are no longer in registers.
static constexpr int64_t kMostComponents = 128;
/// Of a block in shared memory.
static constexpr int64_t kMostBytes = 46 << 10;

namespace {
class FlashGrad {
public:
  FlashGrad(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, ValueRange buffers);
  /// False where tiles do not fit, or there are too few rows for one.
  bool choose();
  void run();

private:
  static constexpr int64_t kAcross = LaneTiles::kAcross, kWide = LaneTiles::kWide, kTogether = LaneTiles::kTogether,
                           kRows = 16;
  static constexpr int64_t kLines = kRows / LaneTiles::kDown;

  /// Rows in shared memory of tensors with so many components.
  struct Memory {
    int64_t columns, padded, pitch;
    Value own = {}, stream = {};
    LaneTiles::Rows getOwn() const { return {own, pitch}; }
    LaneTiles::Rows getStream() const { return {stream, pitch}; }
  };
  /// Whose rows a block has, or streams.
  struct Rows {
    Value first, second; ///< the tensors
    int64_t count;       ///< of a head
    Value head;
  };

  Memory makeMemory(int64_t columns) const;
  int64_t countBytes() const;
  void overParts(int64_t count, function_ref<void(Value)> body);
  void clear(const Memory &memory, Value rows, int64_t count);
  void fill(const Memory &memory, Value to, Value from, const Rows &rows, Value first, int64_t count);
  void fillBoth(const Rows &rows, bool isOwn, Value first, int64_t count);
  Values multiply(const Memory &memory) {
    return tiles->multiply(memory.getOwn(), memory.getStream(), llvm::alignTo(memory.columns, kWide));
  }
  void addRows(const Memory &memory, Value factors, MutableArrayRef<Value> sums) {
    tiles->addRows(factors, memory.getStream(), memory.padded, sums);
  }
  void store(Value result, Value buffer, const Memory &memory, Value head, int64_t count, ValueRange sums);
  std::pair<Value, Value> loadStatistics(Value head, Value row);
  Value getOwn(int64_t line) {
    return e.places.add(e.places.add(ownFirst, warpRow), e.places.add(tiles->down, line * LaneTiles::kDown));
  }
  Values step(const Rows &own, const Rows &stream, Value first, ArrayRef<std::pair<Value, Value>> statistics,
              Values sums);
  void enter(Value number, int64_t ownHeads, int64_t ownRows);
  void ofQueries(Value number);
  void ofKeys(Value number);

  DeviceEmitter &e;
  exec::AttentionGradOp op;
  nn::AttentionOp forward;
  ValueRange buffers;
  int64_t batches, heads, queries, kvHeads, keys;
  Type compute;
  int64_t warps = 4, height = 32; ///< of a block; rows of a tile
  Memory deep, wide;              ///< of queries and keys; of values and gradients
  Value inner, weights;
  Value batch, ownHead, ownFirst; ///< of the block
  Value warpRow;                  ///< of the warp in its block
  std::optional<LaneTiles> tiles; ///< once places are known
};
} // namespace

FlashGrad::FlashGrad(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, ValueRange buffers)
    : e(e), op(op), forward(forward), buffers(buffers), batches(getShape(op.getQuery())[0]),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), kvHeads(getShape(op.getKey())[1]),
      keys(getShape(op.getKey())[2]), compute(ElementBuilder::getComputeType(getElementType(op.getQuery()))),
      deep(makeMemory(getShape(op.getKey())[3])), wide(makeMemory(getShape(op.getValue())[3])) {}

/// An odd number of fours: eight rows begin in eight different groups of banks.
FlashGrad::Memory FlashGrad::makeMemory(int64_t columns) const {
  int64_t padded = llvm::alignTo(columns, kTogether);
  return {columns, padded, padded + kWide};
}

int64_t FlashGrad::countBytes() const {
  return 4 *
         ((kRows * warps + height) * (deep.pitch + wide.pitch) + 2 * kRows * warps * LaneTiles::getFactorPitch(height));
}

bool FlashGrad::choose() {
  bool fits = compute.isF32() && std::min(queries, keys) >= kRows &&
              std::max(deep.columns, wide.columns) <= kMostComponents && std::min(deep.columns, wide.columns) > 0;
  if (!fits || batches * heads * kvHeads == 0)
    return false;
  while (countBytes() > kMostBytes && (warps > 1 || height > kRows))
    (warps > 2 || height <= kRows ? warps : height) /= 2;
  return countBytes() <= kMostBytes;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void FlashGrad::overParts(int64_t count, function_ref<void(Value)> body) {
  e.loop(e.getThread(), e.places.number(count), warps * kWarp, {}, [&](Value number, Values) {
    body(number);
    return Values();
  });
}

/// What rows have behind their last column, which is multiplied like the rest.
void FlashGrad::clear(const Memory &memory, Value rows, int64_t count) {
  PlaceBuilder &p = e.places;
  int64_t behind = memory.padded - memory.columns;
  if (behind == 0)
    return;
  overParts(count * behind, [&](Value number) {
    Value place = p.add(p.add(p.mul(p.div(number, behind), memory.pitch), p.rem(number, behind)), memory.columns);
    e.store(rows, e.elements.number(compute, 0), {place});
  });
}

/// Rows from `first` on, widened; behind the last one it comes again.
void FlashGrad::fill(const Memory &memory, Value to, Value from, const Rows &rows, Value first, int64_t count) {
  PlaceBuilder &p = e.places;
  int64_t lanes = std::gcd<int64_t>(kWide, memory.columns), perRow = memory.columns / lanes;
  overParts(count * perRow, [&](Value number) {
    Value line = p.div(number, perRow), column = p.mul(p.rem(number, perRow), lanes);
    Value row = p.clamp(p.add(first, line), 0, rows.count - 1);
    e.withLanes(lanes, lanes, [&] {
      Value loaded = e.elements.widen(e.eval(from, {{batch}, {rows.head}, {row}, {column, lanes > 1}}));
      e.store(to, loaded, {p.add(p.mul(line, memory.pitch), column), lanes > 1});
      return 0;
    });
  });
}

void FlashGrad::fillBoth(const Rows &rows, bool isOwn, Value first, int64_t count) {
  fill(deep, isOwn ? deep.own : deep.stream, rows.first, rows, first, count);
  fill(wide, isOwn ? wide.own : wide.stream, rows.second, rows, first, count);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Four neighbors at once where all of them, or none, are there.
void FlashGrad::store(Value result, Value buffer, const Memory &memory, Value head, int64_t count, ValueRange sums) {
  PlaceBuilder &p = e.places;
  SmallVector<int64_t> shape(getShape(result));
  Type held = ElementBuilder::getHeldType(getElementType(result));
  int64_t vectors = memory.padded / kTogether, lanes = std::gcd<int64_t>(kWide, memory.columns);
  for (auto [number, sum] : llvm::enumerate(sums)) {
    Value row = getOwn(int64_t(number) / vectors);
    for (int64_t i = 0; i < kWide; i += lanes) {
      Value column = p.add(p.mul(tiles->across, kWide), int64_t(number) % vectors * kTogether + i);
      Value isThere = e.elements.both(p.isLess(row, count), p.isLess(column, memory.columns));
      Value part = lanes == kWide ? sum : e.takeLanes(sum, i, lanes);
      e.when(isThere, [&] {
        e.withLanes(lanes, lanes, [&] {
          Point point{{batch}, {head}, {row}, {column, lanes > 1}};
          e.store(buffer, e.elements.narrow(part, held), p.linearize(point, shape));
          return 0;
        });
      });
    }
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// What is subtracted of a query's scores, and of the gradients of its weights.
std::pair<Value, Value> FlashGrad::loadStatistics(Value head, Value row) {
  Point at{{batch}, {head}, {e.places.clamp(row, 0, queries - 1)}};
  return {getShift(e, e.evalScalar(op.getLogs(), at)), e.evalScalar(op.getMeans(), at)};
}

/// Rows of a tile from `first` on. `statistics`: of own queries; none: of those of the tile. The first barrier is for those who still read
/// the tile before.
Values FlashGrad::step(const Rows &own, const Rows &stream, Value first, ArrayRef<std::pair<Value, Value>> statistics,
                       Values sums) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  bool isOfQueries = !statistics.empty();
  e.barrier();
  fillBoth(stream, /*isOwn=*/false, first, height);
  e.barrier();
  Values products = multiply(deep), ofWeights = multiply(wide), all;
  Value zero = m.number(compute, 0), queryHead = isOfQueries ? own.head : stream.head;
  int64_t each = tiles->countEach();
  for (int64_t i = 0; i < each; ++i) {
    Value at = p.add(first, p.add(tiles->across, i * kAcross)), there = p.clamp(at, 0, stream.count - 1);
    std::pair<Value, Value> ofTile = isOfQueries ? std::pair<Value, Value>() : loadStatistics(queryHead, there);
    for (int64_t line = 0; line < kLines; ++line) {
      Value mine = p.clamp(getOwn(line), 0, own.count - 1);
      auto [shift, mean] = isOfQueries ? statistics[line] : ofTile;
      size_t number = line * each + i;
      Head head{batch, queryHead};
      auto [weight, made] = differentiateScore(e, op, forward, head, products[number], ofWeights[number], {shift, mean},
                                               isOfQueries ? mine : there, isOfQueries ? there : mine);
      Value isThere = stream.count % height ? p.isLess(at, stream.count) : Value();
      products[number] = isThere ? m.select(isThere, made, zero) : made;
      ofWeights[number] = isThere ? m.select(isThere, weight, zero) : weight;
    }
  }
  tiles->keep(inner, products);
  if (!isOfQueries)
    tiles->keep(weights, ofWeights);
  e.barrier();
  size_t ofDeep = kLines * deep.padded / kTogether;
  addRows(deep, inner, MutableArrayRef(sums).take_front(ofDeep));
  if (!isOfQueries)
    addRows(wide, weights, MutableArrayRef(sums).drop_front(ofDeep));
  return sums;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void FlashGrad::enter(Value number, int64_t ownHeads, int64_t ownRows) {
  PlaceBuilder &p = e.places;
  int64_t high = kRows * warps;
  SmallVector<Value> at = p.delinearize(number, {batches, ownHeads, int64_t(llvm::divideCeil(ownRows, high))});
  batch = at[0];
  ownHead = at[1];
  ownFirst = p.mul(at[2], high);
}

void FlashGrad::ofQueries(Value number) {
  PlaceBuilder &p = e.places;
  enter(number, heads, queries);
  Rows own{op.getQuery(), op.getGradient(), queries, ownHead};
  Rows stream{op.getKey(), op.getValue(), keys, p.div(ownHead, heads / kvHeads)};
  fillBoth(own, /*isOwn=*/true, ownFirst, kRows * warps);
  SmallVector<std::pair<Value, Value>> statistics;
  for (int64_t line = 0; line < kLines; ++line)
    statistics.push_back(loadStatistics(ownHead, getOwn(line)));
  Value end = endOfSeen(e, {keys, {}, {}, op.getSeen()}, countVisible(e, forward, ownFirst, kRows * warps));
  Values sums = e.loop(findFirstVisible(e, forward, ownFirst, height), end, height, tiles->makeSums(deep.padded),
                       [&](Value first, Values carried) { return step(own, stream, first, statistics, carried); });
  store(op.getDQuery(), buffers[0], deep, ownHead, queries, sums);
}

/// Of the queries, which are those of its band seen from the keys: low <= key - row <= high.
void FlashGrad::ofKeys(Value number) {
  PlaceBuilder &p = e.places;
  enter(number, kvHeads, keys);
  Rows own{op.getKey(), op.getValue(), keys, ownHead};
  fillBoth(own, /*isOwn=*/true, ownFirst, kRows * warps);
  nn::KeyBand band = forward.getBand();
  Value begin = band.high ? p.clamp(p.add(ownFirst, -*band.high), 0, queries) : p.number(0);
  Value end = band.low ? p.clamp(p.add(ownFirst, kRows * warps - *band.low), 0, queries) : p.number(queries);
  begin = p.mul(p.div(begin, height), height);
  end = endOfSeen(e, {keys, {}, {}, op.getSeen()}, end);
  Values none = tiles->makeSums(deep.padded);
  llvm::append_range(none, tiles->makeSums(wide.padded));
  Values sums = e.loop(heads / kvHeads, none, [&](Value member, Values ofMembers) {
    Rows stream{op.getQuery(), op.getGradient(), queries, p.add(p.mul(ownHead, heads / kvHeads), member)};
    return e.loop(begin, end, height, ofMembers,
                  [&](Value first, Values carried) { return step(own, stream, first, {}, carried); });
  });
  size_t ofDeep = kLines * deep.padded / kTogether;
  store(op.getDKey(), buffers[1], deep, ownHead, keys, ArrayRef<Value>(sums).take_front(ofDeep));
  store(op.getDValue(), buffers[2], wide, ownHead, keys, ArrayRef<Value>(sums).drop_front(ofDeep));
}

/// Blocks of queries first, then those of keys: all threads of a block take one way.
void FlashGrad::run() {
  PlaceBuilder &p = e.places;
  int64_t high = kRows * warps, ofFirst = batches * heads * llvm::divideCeil(queries, high);
  e.launch(ofFirst + batches * kvHeads * llvm::divideCeil(keys, high), warps * kWarp);
  e.preferRegisters();
  for (Memory *memory : {&deep, &wide}) {
    memory->own = e.share(compute, high * memory->pitch);
    memory->stream = e.share(compute, height * memory->pitch);
  }
  inner = e.share(compute, high * LaneTiles::getFactorPitch(height));
  weights = e.share(compute, high * LaneTiles::getFactorPitch(height));
  warpRow = p.mul(p.div(e.getThread(), kWarp), kRows);
  tiles.emplace(e, compute, warpRow, kLines, height);
  for (const Memory &memory : {deep, wide}) {
    clear(memory, memory.own, high);
    clear(memory, memory.stream, height);
  }
  Value isOfQueries = p.isLess(e.getBlock(), ofFirst);
  e.when(isOfQueries, [&] { ofQueries(p.clamp(e.getBlock(), 0, ofFirst - 1)); });
  e.unless(isOfQueries, [&] { ofKeys(p.add(e.getBlock(), -ofFirst)); });
}

bool cleave::codegen::runDeviceFlashGrad(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward,
                                         ValueRange buffers) {
  FlashGrad kernel(e, op, forward, buffers);
  if (!kernel.choose())
    return false;
  kernel.run();
  return true;
}
