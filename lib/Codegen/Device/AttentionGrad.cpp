//===- AttentionGrad.cpp - gradients of attention on devices --------------===//
//
// No score is stored, and no sum is shared between blocks, so that the result is one of the order of queries and keys alone. A block's warps have
// queries or keys, never both:
//
//   a query    goes through the keys that it sees, 32 at a time, and adds up its dQuery
//   a key      goes through the queries that see it, of all heads that share it, and adds up its dKey and dValue
//
// Each thread of a warp has one of 32 pairs at a time, and each 32nd component of the sums:
//
//   score of this thread's pair         product, scale, cap, mask, as in the forward
//   weight = exp(score - log)           the row's statistics are there, whoever has seen its other keys
//   inner  = weight (gradient x value - mean) scale, times the slope of the cap
//   sums  += inner x key, or inner x query and weight x gradient      numbers come from their threads by shuffles
//
// So weights are computed twice, which costs two products of seven. Source: Dao and others, arXiv:2205.14135; Dao, arXiv:2307.08691.
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
class AttentionGradKernel {
public:
  AttentionGradKernel(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, ValueRange buffers);
  void run();

private:
  /// A row of one of the tensors: batch and head, and where in it.
  using Place = std::array<Value, 3>;

  Value multiply(Value rows, const Place &row, Value others, const Place &other);
  PairGradients weigh(Value batch, Value head, Value row, Value key, Value isThere);
  Values addRows(Value rows, Value batch, Value head, Value first, int64_t last, Value factor, ValueRange sums);
  void store(Value result, Value buffer, const Place &place, ValueRange sums, Value isThere);
  void ofQuery(Value number, Value isThere);
  void ofKey(Value number, Value isThere);
  Values makeSums(int64_t size) { return Values(llvm::divideCeil(size, kWarp), e.elements.number(compute, 0)); }

  DeviceEmitter &e;
  exec::AttentionGradOp op;
  nn::AttentionOp forward;
  ValueRange buffers;
  int64_t batches, heads, queries, size, kvHeads, keys, valueSize;
  Type compute;
  Value lane;
};
} // namespace

/// Of a block.
static constexpr int64_t kWarpsOfBlock = kUsualThreads / kWarp;

AttentionGradKernel::AttentionGradKernel(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward,
                                         ValueRange buffers)
    : e(e), op(op), forward(forward), buffers(buffers), batches(getShape(op.getQuery())[0]),
      heads(getShape(op.getQuery())[1]), queries(getShape(op.getQuery())[2]), size(getShape(op.getQuery())[3]),
      kvHeads(getShape(op.getKey())[1]), keys(getShape(op.getKey())[2]), valueSize(getShape(op.getValue())[3]),
      compute(ElementBuilder::getComputeType(getElementType(op.getQuery()))) {}

/// One row times another one, 16 bytes at a time where they lie together.
Value AttentionGradKernel::multiply(Value rows, const Place &row, Value others, const Place &other) {
  PlaceBuilder &p = e.places;
  int64_t length = getShape(rows)[3];
  int64_t wide = std::gcd<int64_t>(length, 128 / getElementType(rows).getIntOrFloatBitWidth());
  return e.withLanes(wide, wide, [&] {
    Values none{e.elements.number(e.withLanes(compute), 0)};
    Value sum = e.loop(p.number(0), p.number(length), wide, none, [&](Value component, Values carried) {
      Index along{component, wide > 1};
      Value x = e.elements.widen(e.eval(rows, {{row[0]}, {row[1]}, {row[2]}, along}));
      Value y = e.elements.widen(e.eval(others, {{other[0]}, {other[1]}, {other[2]}, along}));
      return Values{e.elements.fma(x, y, carried[0])};
    })[0];
    Value total = wide == 1 ? sum : e.takeLanes(sum, 0, 1);
    for (int64_t i = 1; i < wide; ++i)
      total = e.elements.add(total, e.takeLanes(sum, i, 1));
    return total;
  });
}

/// Of a pair that is not there both are 0.
PairGradients AttentionGradKernel::weigh(Value batch, Value head, Value row, Value key, Value isThere) {
  ElementBuilder &m = e.elements;
  Value kvHead = e.places.div(head, heads / kvHeads), zero = m.number(compute, 0);
  Place query{batch, head, row}, at{batch, kvHead, key};
  Value product = multiply(op.getQuery(), query, op.getKey(), at);
  Value ofWeight = multiply(op.getGradient(), query, op.getValue(), at);
  Point ofRow{{batch}, {head}, {row}};
  std::pair<Value, Value> statistics{getShift(e, e.evalScalar(op.getLogs(), ofRow)),
                                     e.evalScalar(op.getMeans(), ofRow)};
  PairGradients made = differentiateScore(e, op, forward, {batch, head}, product, ofWeight, statistics, row, key);
  return {m.select(isThere, made.weight, zero), m.select(isThere, made.inner, zero)};
}

PairGradients cleave::codegen::differentiateScore(Emitter &e, exec::AttentionGradOp op, nn::AttentionOp forward,
                                                  const Head &head, Value product, Value ofWeight,
                                                  std::pair<Value, Value> statistics, Value row, Value key) {
  ElementBuilder &m = e.elements;
  double scale = op.getScale().convertToDouble(), cap = op.getSoftcap().convertToDouble();
  Value score = finishScore(e, forward, head, product, row, key), weight = weighByLog(e, score, statistics.first);
  Value inner = m.mul(m.mul(weight, m.sub(ofWeight, statistics.second)), scale);
  if (cap > 0) {
    Value scaled = m.mul(product, scale), turned = m.tanh(m.divide(scaled, m.like(scaled, cap), false));
    inner = m.mul(inner, m.fma(m.negate(turned), turned, m.like(turned, 1)));
  }
  if (Value shown = op.getShown()) {
    Value isShown = e.eval(shown, e.broadcast({{head.batch}, {head.query}, {row}, {key}}, getShape(shown)));
    inner = m.select(isShown, inner, m.like(inner, 0));
  }
  return {weight, inner};
}

/// Adds 32 rows from `first` on, each times what its thread has. Behind `last` that is 0, and the last row is read again.
Values AttentionGradKernel::addRows(Value rows, Value batch, Value head, Value first, int64_t last, Value factor,
                                    ValueRange sums) {
  PlaceBuilder &p = e.places;
  constexpr int64_t together = 8;
  int64_t columns = getShape(rows)[3];
  return e.loop(p.number(0), p.number(kWarp), together, Values(sums), [&](Value number, Values next) {
    for (int64_t i = 0; i < together; ++i) {
      Value from = p.add(number, i), row = p.clamp(p.add(first, from), 0, last), mine = e.shuffleFrom(factor, from);
      for (auto [component, sum] : llvm::enumerate(next)) {
        Value column = p.clamp(p.add(lane, int64_t(component) * kWarp), 0, columns - 1);
        sum = e.elements.fma(mine, e.elements.widen(e.eval(rows, {{batch}, {head}, {row}, {column}})), sum);
      }
    }
    return next;
  });
}

void AttentionGradKernel::store(Value result, Value buffer, const Place &place, ValueRange sums, Value isThere) {
  PlaceBuilder &p = e.places;
  SmallVector<int64_t> shape(getShape(result));
  Type held = ElementBuilder::getHeldType(getElementType(result));
  for (auto [component, sum] : llvm::enumerate(sums)) {
    Value column = p.add(lane, int64_t(component) * kWarp);
    e.when(e.elements.both(isThere, p.isLess(column, shape[3])), [&, sum = sum] {
      Point point{{place[0]}, {place[1]}, {place[2]}, {column}};
      e.store(buffer, e.elements.narrow(sum, held), p.linearize(point, shape));
    });
  }
}

void AttentionGradKernel::ofQuery(Value number, Value isThere) {
  PlaceBuilder &p = e.places;
  SmallVector<Value> at = p.delinearize(number, {batches, heads, queries});
  Value kvHead = p.div(at[1], heads / kvHeads), end = countVisible(e, forward, at[2], 1);
  end = endOfSeen(e, {keys, {}, {}, op.getSeen()}, end);
  Value first = findFirstVisible(e, forward, at[2], 1);
  Values sums = e.loop(first, end, kWarp, makeSums(size), [&](Value from, Values carried) {
    Value mine = p.add(from, lane);
    PairGradients pair = weigh(at[0], at[1], at[2], p.clamp(mine, 0, keys - 1), p.isLess(mine, end));
    return addRows(op.getKey(), at[0], kvHead, from, keys - 1, pair.inner, carried);
  });
  store(op.getDQuery(), buffers[0], {at[0], at[1], at[2]}, sums, isThere);
}

/// Of the queries, which are those of its band seen from the key: low <= key - row <= high.
void AttentionGradKernel::ofKey(Value number, Value isThere) {
  PlaceBuilder &p = e.places;
  SmallVector<Value> at = p.delinearize(number, {batches, kvHeads, keys});
  nn::KeyBand band = forward.getBand();
  Value first = band.high ? p.clamp(p.add(at[2], -*band.high), 0, queries) : p.number(0);
  Value end = band.low ? p.clamp(p.add(at[2], 1 - *band.low), 0, queries) : p.number(queries);
  end = endOfSeen(e, {keys, {}, {}, op.getSeen()}, end);
  Values none = makeSums(size);
  llvm::append_range(none, makeSums(valueSize));
  size_t ofKeys = llvm::divideCeil(size, kWarp);
  Values sums = e.loop(heads / kvHeads, none, [&](Value member, Values ofMembers) {
    Value head = p.add(p.mul(at[1], heads / kvHeads), member);
    return e.loop(first, end, kWarp, ofMembers, [&](Value from, Values carried) {
      Value mine = p.add(from, lane);
      PairGradients pair = weigh(at[0], head, p.clamp(mine, 0, queries - 1), at[2], p.isLess(mine, end));
      ArrayRef<Value> both(carried);
      Values next = addRows(op.getQuery(), at[0], head, from, queries - 1, pair.inner, both.take_front(ofKeys));
      llvm::append_range(
          next, addRows(op.getGradient(), at[0], head, from, queries - 1, pair.weight, both.drop_front(ofKeys)));
      return next;
    });
  });
  Place place{at[0], at[1], at[2]};
  store(op.getDKey(), buffers[1], place, ArrayRef<Value>(sums).take_front(ofKeys), isThere);
  store(op.getDValue(), buffers[2], place, ArrayRef<Value>(sums).drop_front(ofKeys), isThere);
}

/// Blocks of queries first, then those of keys: all threads of a block take one way.
void AttentionGradKernel::run() {
  PlaceBuilder &p = e.places;
  int64_t lines[] = {batches * heads * queries, batches * kvHeads * keys};
  int64_t blocks[] = {int64_t(llvm::divideCeil(lines[0], kWarpsOfBlock)),
                      int64_t(llvm::divideCeil(lines[1], kWarpsOfBlock))};
  if (blocks[0] + blocks[1] == 0)
    return;
  e.launch(blocks[0] + blocks[1], kWarpsOfBlock * kWarp);
  lane = p.rem(e.getThread(), kWarp);
  Value warp = p.add(p.mul(e.getBlock(), kWarpsOfBlock), p.div(e.getThread(), kWarp));
  Value isOfQuery = p.isLess(e.getBlock(), blocks[0]);
  if (lines[0] > 0)
    e.when(isOfQuery, [&] { ofQuery(p.clamp(warp, 0, lines[0] - 1), p.isLess(warp, lines[0])); });
  if (lines[1] == 0)
    return;
  Value number = p.add(warp, -blocks[0] * kWarpsOfBlock);
  e.unless(isOfQuery, [&] { ofKey(p.clamp(number, 0, lines[1] - 1), p.isLess(number, lines[1])); });
}

/// Precondition: statistics of rows are there.
void cleave::codegen::fillDeviceAttentionGrad(Emitter &e, Operation *op, ValueRange buffers) {
  auto gradients = cast<exec::AttentionGradOp>(op);
  OpBuilder builder(op);
  nn::AttentionOp forward = gradients.createForward(builder);
  auto &device = static_cast<DeviceEmitter &>(e);
  if (!runDeviceFlashGrad(device, gradients, forward, buffers))
    AttentionGradKernel(device, gradients, forward, buffers).run();
  forward.erase();
}
