//===- Flash.cpp - attention by tiles of keys -----------------------------===//
//
// A warp has 16 queries of a head, a block a few such, and keys and values go through shared memory a tile at a time:
//
//   scores  = queries keys^T            by warps or by lanes; scale, cap and mask on what each lane has of them
//   largest = max(largest, scores)      of a query: the lanes that have its scores meet by shuffles
//   weights = exp(scores - largest)
//   sums    = exp(what was largest - largest) sums + weights values
//
// No score is ever stored, and keys outside the bands of all queries of a block (those ahead of causal ones) are not read. Where blocks of queries are few and keys
// are many, a block has a part of the keys (exec.partial_attention):
//
//              keys 0 .. 255   256 .. 511   512 ..        each block leaves the sums of its part, divided by what weights add up to,
//   queries    block 0         block 1      block 2       and the logarithm of that: the score of its part in the second kernel
//
// A part may end within a tile, or where a causal mask does; one of which no query sees a key leaves zeros, and the logarithm of 0.
// Sources: Dao and others, arXiv:2205.14135; Dao, arXiv:2307.08691; Dao and others, Flash-Decoding, 2023, for parts.
//
//===----------------------------------------------------------------------===//
#include "Flash.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using Relation = ElementBuilder::Relation;

static constexpr int64_t kMostFlashSize = 256;

FlashKernel::FlashKernel(DeviceEmitter &e, nn::AttentionOp op, Operands operands, TileSink sink)
    : e(e), op(op), operands(operands), sink(sink), element(getElementType(operands[0])),
      compute(ElementBuilder::getComputeType(element)), heads(getShape(op.getQuery())[1]),
      queries(getShape(op.getQuery())[2]), keys(getShape(op.getKey())[2]), size(getShape(op.getQuery())[3]),
      valueSize(getShape(op.getValue())[3]) {}

int64_t FlashKernel::countBytes() const {
  int64_t deep = padRow(size, false).second, wide = padRow(valueSize, true).second;
  int64_t tile = isApart() ? deep + wide : std::max(deep, wide);
  return getBits() / 8 * (kRows * warps * deep + height * tile + countMore());
}

/// As many queries and keys as shared memory and registers hold: two warps before fewer keys. Blocks have about as many queries each.
bool FlashKernel::choose() {
  constexpr int64_t most = 46 << 10;
  height = getMostKeys();
  int64_t blocks = llvm::divideCeil(queries, kMostQueriesOfBlock);
  warps = llvm::divideCeil(llvm::divideCeil(queries, blocks), kRows);
  while (countBytes() > most && (warps > 1 || height > 16))
    (warps > 2 || height <= 16 ? warps : height) /= 2;
  return countBytes() <= most;
}

FlashKernel::Side FlashKernel::makeSide(Value operand, int64_t rows, bool isValue) {
  auto [padded, pitch] = padRow(getShape(operand)[3], isValue);
  return {operand, getShape(operand)[2], getShape(operand)[3], padded, pitch};
}

/// Neighboring blocks have parts of the keys of the same queries.
void FlashKernel::place() {
  PlaceBuilder &p = e.places;
  int64_t high = kRows * warps, blocks = llvm::divideCeil(queries, high), batches = getShape(op.getQuery())[0];
  SmallVector<Value> at = p.delinearize(e.getBlock(), {batches, heads, blocks, countParts()});
  head = {at[0], at[1]};
  kvHead = p.div(at[1], heads / getShape(op.getKey())[1]);
  firstRow = p.mul(at[2], high);
  part = at[3];
  warpRow = p.mul(p.div(e.getThread(), kWarp), kRows);
  query = makeSide(operands[0], high, false);
  key = makeSide(operands[1], height, false);
  value = makeSide(operands[2], height, true);
  Type stored = ElementBuilder::getStoredType(element);
  query.memory = e.share(stored, high * query.pitch);
  key.memory = e.share(stored, height * (isApart() ? key.pitch : std::max(key.pitch, value.pitch)));
  value.memory = isApart() ? e.share(stored, height * value.pitch) : key.memory;
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
    Value place = p.add(p.add(p.mul(p.div(number, behind), side.pitch), p.rem(number, behind)), side.columns);
    e.store(side.memory, e.elements.number(ElementBuilder::getHeldType(element), 0), {place});
  });
}

/// Rows from `first` on; behind the last one it comes again.
void FlashKernel::fill(const Side &side, Value headPlace, Value first, int64_t rows) {
  PlaceBuilder &p = e.places;
  int64_t lanes = std::gcd<int64_t>(128 / getBits(), side.columns), perRow = side.columns / lanes;
  overParts(rows * perRow, [&](Value number) {
    Value line = p.div(number, perRow), column = p.mul(p.rem(number, perRow), lanes);
    Value from = p.clamp(p.add(first, line), 0, side.rows - 1);
    e.withLanes(lanes, lanes, [&] {
      Value loaded = e.eval(side.operand, {{head.batch}, {headPlace}, {from}, {column, lanes > 1}});
      e.store(side.memory, loaded, {p.add(p.mul(line, side.pitch), column), lanes > 1});
      return 0;
    });
  });
}

//===----------------------------------------------------------------------===//
// A tile of keys
//===----------------------------------------------------------------------===//

/// What there is not of keys counts as hidden; queries that there are not are as the last one.
void FlashKernel::finishScores(Value first, Values &scores) {
  PlaceBuilder &p = e.places;
  ElementBuilder &m = e.elements;
  int64_t each = int64_t(scores.size()) / countLines();
  Values rows;
  for (int64_t line = 0; line < countLines(); ++line)
    rows.push_back(p.clamp(getRow(line), 0, queries - 1));
  for (int64_t i = 0; i < int64_t(scores.size()); ++i) {
    Value at = p.add(first, getKey(i % each)), there = mayEndInTile() ? p.clamp(at, 0, keys - 1) : at;
    scores[i] = finishScore(e, op, head, scores[i], rows[i / each], there);
    if (mayEndInTile())
      scores[i] = m.select(p.isLess(at, parts ? endKey : p.number(keys)), scores[i], m.number(compute, -INFINITY));
  }
}

/// Of a number or a vector.
Value FlashKernel::scale(Value sums, Value factor) {
  auto type = dyn_cast<VectorType>(sums.getType());
  int64_t lanes = type ? type.getNumElements() : 1;
  return e.withLanes(lanes, lanes, [&] { return e.elements.mul(sums, e.splat(factor)); });
}

/// Carried: of each line the largest score and the sum of weights; then sums of components. The first barrier is for those who
/// still read the tile before.
Values FlashKernel::step(Value first, Values carried) {
  ElementBuilder &m = e.elements;
  int64_t lines = countLines();
  e.barrier();
  if (!isApart())
    clear(key, height);
  fill(key, kvHead, first, height);
  if (isApart())
    fill(value, kvHead, first, height);
  e.barrier();
  Values scores = multiplyKeys();
  finishScores(first, scores);
  MutableArrayRef<Value> all = carried, largest = all.take_front(lines), totals = all.slice(lines, lines),
                         sums = all.drop_front(2 * lines);
  size_t each = scores.size() / lines, sumsEach = sums.size() / lines;
  Value lowest = m.number(compute, -INFINITY);
  for (int64_t line = 0; line < lines; ++line) {
    MutableArrayRef<Value> own = MutableArrayRef(scores).slice(line * each, each);
    Value most = lowest;
    for (Value score : own)
      most = larger(most, score);
    most = e.acrossWarp({most}, countSharers(), [&](Values x, Values y) { return Values{larger(x[0], y[0])}; })[0];
    Value next = larger(largest[line], most);
    Value shift = m.select(m.compare(Relation::Eq, next, lowest), m.number(compute, 0), next);
    Value factor = weighScore(e, largest[line], shift);
    largest[line] = next;
    totals[line] = m.mul(totals[line], factor);
    for (Value &score : own)
      totals[line] = m.add(totals[line], score = weighScore(e, score, shift));
    for (Value &sum : sums.slice(line * sumsEach, sumsEach))
      sum = scale(sum, factor);
  }
  addValues(first, scores, sums);
  return carried;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void FlashKernel::storeAt(Value row, Value column, Value numbers, bool mayEnd) {
  PlaceBuilder &p = e.places;
  auto type = dyn_cast<VectorType>(numbers.getType());
  int64_t lanes = type ? type.getNumElements() : 1;
  Value isThere = queries % (kRows * warps) ? p.isLess(row, queries) : Value();
  if (mayEnd) {
    Value isIn = p.isLess(column, valueSize);
    isThere = isThere ? e.elements.both(isThere, isIn) : isIn;
  }
  e.withLanes(lanes, lanes, [&] {
    auto call = [&] {
      if (parts)
        return e.store(parts->sums, numbers, {p.add(p.mul(getPartPlace(row), valueSize), column), lanes > 1});
      sink({{head.batch}, {head.query}, {row}, {column, lanes > 1}},
           e.elements.narrow(numbers, ElementBuilder::getHeldType(getElementType(op.getResult()))));
    };
    isThere ? e.when(isThere, call) : call();
    return 0;
  });
}

/// A row of parts for each query.
Value FlashKernel::getPartPlace(Value row) {
  PlaceBuilder &p = e.places;
  Value query = p.add(p.mul(p.add(p.mul(head.batch, heads), head.query), queries), row);
  return p.add(p.mul(query, countParts()), part);
}

/// The logarithm of the sum of exponentials, by the first of the lanes that share a row. Of nothing it is that of 0.
void FlashKernel::storeLog(Value row, Value largest, Value sum) {
  ElementBuilder &m = e.elements;
  PlaceBuilder &p = e.places;
  Value lowest = m.number(compute, -INFINITY), seesNothing = m.compare(Relation::Eq, largest, lowest);
  Value log = m.add(largest, m.log(m.select(seesNothing, m.number(compute, 1), sum)));
  Value isOne = p.isLess(p.rem(e.getThread(), countSharers()), 1);
  if (queries % (kRows * warps))
    isOne = m.both(isOne, p.isLess(row, queries));
  e.when(isOne, [&] { e.store(parts->logs, log, {getPartPlace(row)}); });
}

/// A query that sees nothing gives zeros.
void FlashKernel::store(ValueRange carried) {
  ElementBuilder &m = e.elements;
  int64_t lines = countLines(), each = (int64_t(carried.size()) - 2 * lines) / lines;
  Value one = m.number(compute, 1), lowest = m.number(compute, -INFINITY);
  for (int64_t line = 0; line < lines; ++line) {
    Value sum = e.acrossWarp({carried[lines + line]}, countSharers(),
                             [&](Values x, Values y) { return Values{m.add(x[0], y[0])}; })[0];
    Value seesNothing = m.compare(Relation::Eq, carried[line], lowest);
    Value factor = m.divide(one, m.select(seesNothing, one, sum), false);
    if (parts)
      storeLog(getRow(line), carried[line], sum);
    Values scaled;
    for (Value sums : carried.slice(2 * lines + line * each, each))
      scaled.push_back(scale(sums, factor));
    storeLine(getRow(line), scaled);
  }
}

void FlashKernel::run() {
  e.launch(getShape(op.getQuery())[0] * heads * llvm::divideCeil(queries, kRows * warps) * countParts(), warps * kWarp);
  place();
  begin();
  PlaceBuilder &p = e.places;
  clear(query, kRows * warps);
  if (isApart())
    clear(key, height);
  fill(query, head.query, firstRow, kRows * warps);
  Values carried(countLines(), e.elements.number(compute, -INFINITY));
  carried.append(countLines(), e.elements.number(compute, 0));
  llvm::append_range(carried, makeSums());
  firstKey = parts ? p.mul(part, parts->size) : findFirstVisible(e, op, firstRow, height);
  endKey = countVisible(e, op, firstRow, kRows * warps);
  if (parts) {
    endKey = endOfSeen(e, *parts, arith::MinSIOp::create(e.b, e.loc, endKey, p.add(firstKey, parts->size)));
    if (op.getBand().low) { // whole tiles of the part
      Value hidden = arith::SubIOp::create(e.b, e.loc, findFirstVisible(e, op, firstRow, 1), firstKey);
      hidden = p.clamp(hidden, 0, parts->size);
      firstKey = p.add(firstKey, p.mul(p.div(hidden, height), height));
    }
  }
  carried = e.loop(firstKey, endKey, height, carried, [&](Value first, Values inner) { return step(first, inner); });
  store(carried);
}

/// What was f16 or bf16 and is widened for attention is multiplied as it was.
static FlashKernel::Operands findOperands(nn::AttentionOp op) {
  FlashKernel::Operands wide{op.getQuery(), op.getKey(), op.getValue()}, narrow;
  for (auto [value, from] : llvm::zip_equal(wide, narrow)) {
    auto cast = value.getDefiningOp<nn::CastOp>();
    if (!cast || !getElementType(value).isF32() || !ElementBuilder::isHalf(getElementType(cast.getInput())))
      return wide;
    from = cast.getInput();
  }
  return llvm::all_equal(llvm::map_range(narrow, getElementType)) ? narrow : wide;
}

/// Few queries leave most of a block of 16 unused.
Type cleave::codegen::findFlashElement(nn::AttentionOp op) {
  FlashKernel::Operands operands = findOperands(op);
  Type element = getElementType(operands[0]);
  ArrayRef<int64_t> query = getShape(op.getQuery()), value = getShape(op.getValue());
  bool isAlike = llvm::all_equal(llvm::map_range(operands, getElementType));
  bool isSmall = query[3] <= kMostFlashSize && value[3] <= kMostFlashSize;
  if (!isAlike || query[2] < FlashKernel::kRows || value[2] == 0 || value[3] == 0 || !isSmall)
    return {};
  return ElementBuilder::isHalf(element) || element.isF32() ? element : Type();
}

bool cleave::codegen::runDeviceFlash(DeviceEmitter &e, nn::AttentionOp op, TileSink sink,
                                     std::optional<AttentionParts> parts) {
  FlashKernel::Operands operands = findOperands(op);
  Type element = findFlashElement(op);
  if (!element)
    return false;
  // The ways that such numbers may be multiplied, the fastest first.
  SmallVector<decltype(&makeFlashOfWarps), 2> ways;
  if (!element.isF32() || e.getTarget().mayShorten(element))
    ways.push_back(makeFlashOfWarps);
  if (element.isF32())
    ways.push_back(makeFlashOfLanes);
  for (auto *make : ways)
    if (std::unique_ptr<FlashKernel> kernel = make(e, op, operands, sink); kernel->choose()) {
      if (parts)
        kernel->divide(*parts);
      kernel->run();
      return true;
    }
  return false;
}
