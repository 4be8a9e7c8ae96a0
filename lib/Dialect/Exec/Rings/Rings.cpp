//===- Rings.cpp - attention to keys that go round ------------------------===//
//
// At step i rank r has the keys and values of rank (r - i) mod p, while those of the next step are on their way to it:
//
//            rank 0   rank 1   rank 2
//   step 0     0        1        2       own keys
//   step 1     2        0        1       from the rank before
//   step 2     1        2        0
//
// Each step attends to its block by itself, and gives the logarithm l of the sum of the exponentials of its scores beside the result y. Two
// such pairs are one, as in Flash-Attention (Dao and others, 2022) and Ring Attention (Liu and others, 2023):
//
//   m = max(l, l'),  w = e^(l - m),  w' = e^(l' - m),   y w / (w + w') + y' w' / (w + w'),   m + log(w + w')
//
// On the way back blocks go round once more, and with them go the sums of what each rank's queries give for them:
//
//   step i     K, V of rank (r - i) mod p  ─▶  part of dQ, which stays; parts of dK, dV, which are added to those that came along
//   behind     dK, dV of rank (r - i) mod p ─▶  that rank
//
// A rank knows of its queries what the forward has put together of all blocks: l, and sum(dY Y), which is what all weights give for the
// weighted gradients of a row (FlashAttention-2, Dao 2023). So a block's gradients need no other block.
//
// Which block a rank has decides what its queries see of it. Where ranks have as many queries as keys, in the same order, all ranks from
// number i on are as far from their block, and so are all others: causal attention sees all of it or nothing. Otherwise places are
// compared. What a rank sees nothing of it does not compute: of p blocks the first rank of causal attention has one, the last one all.
//
//===----------------------------------------------------------------------===//
#include "Rings.h"

#include "../Kernels/AttentionStatistics.h"
#include "../Kernels/Movement.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

//===----------------------------------------------------------------------===//
// Who sees what
//===----------------------------------------------------------------------===//

namespace {
enum class Sight { Nothing, Part, All };

/// A block whose keys lie `back` places before as many queries.
struct BlockSight {
  nn::KeyBand band;
  Sight sight;

  BlockSight(const nn::KeyBand &global, int64_t back, int64_t queries, int64_t keys) {
    if (global.low)
      band.low = *global.low + back;
    if (global.high)
      band.high = *global.high + back;
    int64_t first = 1 - queries, last = keys - 1;
    bool hidesFirst = band.low && *band.low > first, hidesLast = band.high && *band.high < last;
    bool isBeyond = (band.low && *band.low > last) || (band.high && *band.high < first) ||
                    (global.isBounded() && *band.low > *band.high);
    sight = isBeyond ? Sight::Nothing : hidesFirst || hidesLast ? Sight::Part : Sight::All;
    if (!hidesFirst)
      band.low.reset();
    if (!hidesLast)
      band.high.reset();
  }
};

/// Makes the ops of a ring in front of its attention, and those of its way back behind what its gradients are made of.
class RingBuilder : nn::Composer {
public:
  RingBuilder(OpBuilder &builder, Location loc, Ring &ring)
      : Composer(builder, loc), ring(ring), block(ring.key.shard),
        compute(getElementType(ring.attention.getQuery()).isF64() ? f64() : f32()) {}

  /// A result, and the logarithms of the sums of its weights. Where numbers are added, of rows whose keys all got one that excludes, how many
  /// these are, 1 of others; as large as the logarithms, or broadcasting to that.
  struct Attended {
    Value result, logs, counts = {};
  };
  Attended build();
  /// Puts gradients in the place of products and scatters. `forward`: as `build` gave it.
  void buildGradients(const Attended &forward);

private:
  /// What queries see of a block: a band of places from its first key on, a mask, and whether they see anything.
  struct View {
    nn::KeyBand band;
    Value mask, anySeen;
  };
  /// Keys and values of one step, and the way to those of the next.
  struct Blocks {
    Value key, value;
  };

  Value number(double value) { return scalar(compute, value); }
  /// `size` places from `first` on, along dim `dim` of `rank`.
  Value places(int64_t size, Value first, int64_t rank, int64_t dim);
  Value index(ArrayRef<spmd::AxisAttr> axes);
  Value firstQuery();

  Value hidePadding(Value shard, int64_t dim);
  Value passOn(Value blocks, int64_t ranks, int64_t dim, StringRef what);
  Blocks getFirst(Value ownKey, Value ownValue);
  Blocks passOn(Blocks blocks, int64_t ranks);
  bool isShared() const { return ring.key.gather == ring.value.gather; }
  Value move(Value shard, const GatheredSequence &sequence);
  Value seesOwnSide(int64_t step, bool isAhead);
  Value reaches(Value from);
  Value comparePlaces(Value from, const nn::KeyBand &band);
  Value takeColumns(Value from);
  Value joinMasks(Value given, Value isSeen);
  View look(int64_t step);
  Attended attend(int64_t step, Blocks blocks);
  Attended combine(Attended first, Attended second);
  AttentionGradOp differentiate(int64_t step, Blocks blocks, Value gradient, Value logs, Value means);
  Value addUp(Value sum, Value part, Type held);
  void putHome(const ScatteredSequence &sequence, Value sum);

  Ring &ring;
  int64_t block; ///< keys of one
  Type compute;
};
} // namespace

/// As many queries as keys, split alike.
static bool isAligned(Ring &ring) {
  return ring.band.queryAxes == ring.key.axes && ring.countQueries() == ring.key.shard;
}

/// What ranks from number `step` on see, and, but at the first step, what those before see.
static SmallVector<BlockSight, 2> getSights(Ring &ring, int64_t step) {
  int64_t queries = ring.countQueries(), keys = ring.key.shard;
  SmallVector<BlockSight, 2> sights{BlockSight(ring.band.band, step * keys, queries, keys)};
  if (step > 0)
    sights.push_back(BlockSight(ring.band.band, (step - ring.ranks) * keys, queries, keys));
  return sights;
}

SmallVector<int64_t> cleave::exec::findSteps(Ring &ring) {
  SmallVector<int64_t> steps{0};
  for (int64_t step = 1; step < ring.ranks; ++step)
    if (!isAligned(ring) ||
        llvm::any_of(getSights(ring, step), [](const BlockSight &of) { return of.sight != Sight::Nothing; }))
      steps.push_back(step);
  return steps;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value RingBuilder::places(int64_t size, Value first, int64_t rank, int64_t dim) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = size;
  Value counts = iota(shape, dim, i64());
  return first ? add(counts, first) : counts;
}

Value RingBuilder::index(ArrayRef<spmd::AxisAttr> axes) {
  SmallVector<Attribute> list(axes.begin(), axes.end());
  return spmd::AxisIndexOp::create(builder, loc, RankedTensorType::get({}, i64()), builder.getArrayAttr(list));
}

/// Zeros where the last shards are filled up, whatever is there: a weight of 0 times NaN is NaN.
Value RingBuilder::hidePadding(Value shard, int64_t dim) {
  if (ring.ranks * block == ring.countKeys())
    return shard;
  Value at = places(block, mul(index(ring.key.axes), position(block)), getShape(shard).size(), dim);
  return select(lt(at, position(ring.countKeys())), shard, 0);
}

/// The block of the rank that is so many before, which the op `window` gives as an interval that lies as many whole shards earlier.
Value RingBuilder::passOn(Value blocks, int64_t ranks, int64_t dim, StringRef what) {
  SmallVector<int64_t> highs(getShape(blocks)), lows(highs.size(), 0), steps(highs.size(), 0);
  steps[dim] = block;
  lows[dim] = -block * ranks;
  highs[dim] = lows[dim] + block;
  SmallVector<Attribute> dims(highs.size(), builder.getArrayAttr({}));
  dims[dim] = builder.getArrayAttr(SmallVector<Attribute>(ring.key.axes.begin(), ring.key.axes.end()));
  std::string cause = (what + " of nn.attention go round, a block at a time").str();
  return spmd::WindowOp::create(builder, loc, blocks.getType(), blocks, builder.getArrayAttr(dims), steps, lows, highs,
                                /*fill=*/TypedAttr(), /*wraps=*/true, /*reflects=*/false, builder.getStringAttr(cause),
                                /*missing=*/DenseI64ArrayAttr(), /*firsts=*/DenseI64ArrayAttr(),
                                /*ends=*/DenseI64ArrayAttr(), /*takers=*/DenseI64ArrayAttr());
}

/// Of those that a rank has itself.
RingBuilder::Blocks RingBuilder::getFirst(Value ownKey, Value ownValue) {
  Value key = hidePadding(ownKey, ring.key.dim);
  return {key, isShared() ? key : hidePadding(ownValue, ring.value.dim)};
}

RingBuilder::Blocks RingBuilder::passOn(Blocks blocks, int64_t ranks) {
  Value key = passOn(blocks.key, ranks, ring.key.dim, isShared() ? "keys, which are the values," : "keys");
  return {key, isShared() ? key : passOn(blocks.value, ranks, ring.value.dim, "values")};
}

/// What was done to all keys, done to a block.
Value RingBuilder::move(Value shard, const GatheredSequence &sequence) {
  for (auto [op, dim] : sequence.moves) {
    if (isa<nn::SliceOp>(op))
      continue;
    RankedTensorType type = getTensorType(op->getResult(0));
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = block;
    IRMapping mapping;
    mapping.map(op->getOperand(0), shard);
    Operation *moved = builder.clone(*op, mapping);
    moved->getResult(0).setType(type.clone(shape));
    shard = moved->getResult(0);
  }
  return shard;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// True on the ranks from number `step` on, or on the others.
Value RingBuilder::seesOwnSide(int64_t step, bool isAhead) {
  Value own = index(ring.key.axes), first = position(step);
  return isAhead ? ge(own, first) : lt(own, first);
}

/// Where the rank's first query is; null: at 0.
Value RingBuilder::firstQuery() {
  return ring.band.queryAxes.empty() ? Value() : mul(index(ring.band.queryAxes), position(ring.countQueries()));
}

/// True where some of the rank's queries see some of the keys from `from` on, by places.
Value RingBuilder::reaches(Value from) {
  const nn::KeyBand &band = ring.band.band;
  Value first = firstQuery(), isReached;
  auto query = [&](int64_t by) { return first ? add(first, position(by)) : position(by); };
  if (band.high)
    isReached = le(from, query(ring.countQueries() - 1 + *band.high));
  if (band.low) {
    Value isNear = ge(add(from, position(block - 1)), query(*band.low));
    isReached = isReached ? both(isReached, isNear) : isNear;
  }
  return isReached;
}

/// The band by places on all ranks, keys counting from `from` on.
Value RingBuilder::comparePlaces(Value from, const nn::KeyBand &band) {
  Value query = places(ring.countQueries(), firstQuery(), 2, 0), key = places(block, from, 2, 1);
  return nn::compareToBand(builder, loc, query, key, band);
}

/// Of the model's mask the columns of the block whose number is `from`; those of padding are hidden.
Value RingBuilder::takeColumns(Value from) {
  Value mask = ring.mask;
  if (!mask || getShape(mask).empty() || getShape(mask).back() == 1)
    return mask;
  SmallVector<int64_t> shape(getShape(mask)), low(shape.size(), 0), high(shape.size(), 0);
  int64_t dim = shape.size() - 1;
  high[dim] = ring.ranks * block - shape[dim];
  bool isAdded = isa<FloatType>(getElementType(mask));
  mask = pad(mask, low, high, isAdded ? -std::numeric_limits<double>::infinity() : 0);
  shape.back() = ring.ranks;
  shape.push_back(block);
  return gather(reshape(mask, shape), from, dim);
}

/// Either may be null.
Value RingBuilder::joinMasks(Value given, Value isSeen) {
  if (!given || !isSeen)
    return given ? given : isSeen;
  if (getElementType(given).isInteger(1))
    return both(given, isSeen);
  return select(isSeen, cast(given, compute), -std::numeric_limits<double>::infinity());
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A band that all ranks with something to see have is one of the op; the others compute nothing.
RingBuilder::View RingBuilder::look(int64_t step) {
  Value from = index(ring.key.axes), isSeen, anySeen;
  if (step > 0) {
    Value before = sub(from, position(step));
    from = select(lt(before, position(0)), add(before, position(ring.ranks)), before);
  }
  Value firstKey = mul(from, position(block));
  nn::KeyBand band;
  if (isAligned(ring)) {
    SmallVector<BlockSight, 2> sights = getSights(ring, step);
    bool isOne = sights.size() == 1, hidesNear = sights[0].sight == Sight::Nothing;
    bool hidesFar = !isOne && sights[1].sight == Sight::Nothing;
    if (isOne || hidesNear || hidesFar) {
      band = sights[hidesNear && !isOne ? 1 : 0].band;
      anySeen = isOne ? Value() : seesOwnSide(step, hidesFar);
    } else if (sights[0].sight != Sight::All || sights[1].sight != Sight::All) {
      isSeen = comparePlaces(firstKey, ring.band.band);
      anySeen = reaches(firstKey);
    }
  } else if (!ring.band.band.isEmpty()) {
    isSeen = comparePlaces(firstKey, ring.band.band);
    anySeen = reaches(firstKey);
  }
  if (ring.ranks * block > ring.countKeys()) {
    Value isKey = lt(places(block, firstKey, 2, 1), position(ring.countKeys()));
    isSeen = isSeen ? both(isSeen, isKey) : isKey;
  }
  return {band, joinMasks(takeColumns(from), isSeen), anySeen};
}

RingBuilder::Attended RingBuilder::attend(int64_t step, Blocks blocks) {
  View view = look(step);
  Value key = move(blocks.key, ring.key), value = move(blocks.value, ring.value);
  nn::AttentionOp whole = ring.attention;
  SmallVector<int64_t> shape(getShape(whole.getResult()));
  shape.insert(shape.begin() + 3, 1);
  nn::BandAttributes said(view.band);
  auto partial = PartialAttentionOp::create(
      builder, loc, RankedTensorType::get(shape, compute), RankedTensorType::get(ArrayRef(shape).drop_back(), compute),
      whole.getQuery(), key, value, view.mask, whole.getScaleAttr(), said.isCausal ? builder.getUnitAttr() : UnitAttr(),
      builder.getI64IntegerAttr(said.offset), whole.getSoftcapAttr(),
      said.left ? builder.getI64IntegerAttr(*said.left) : IntegerAttr(), /*right=*/IntegerAttr(), view.anySeen,
      builder.getI64IntegerAttr(block));
  shape.erase(shape.begin() + 3);
  return {reshape(partial.getSums(), shape), partial.getLogs(),
          exec::countExcluded(*this, view.mask, view.band, partial.getLogs(), ring.countQueries(), block, compute)};
}

/// A query that sees nothing in either has the logarithm of 0, and 0 as its result.
RingBuilder::Attended RingBuilder::combine(Attended first, Attended second) {
  Value lowest = number(-std::numeric_limits<double>::infinity()), zero = number(0), one = number(1);
  Value largest = max(first.logs, second.logs);
  Value isBlind = eq(largest, lowest), shift = select(isBlind, zero, largest);
  Value weight = exp(sub(first.logs, shift));
  Value other = exp(sub(second.logs, shift));
  if (first.counts) {
    weight = mul(weight, first.counts);
    other = mul(other, second.counts);
  }
  Value sum = select(isBlind, one, add(weight, other));
  Value kept = mul(first.result, div(weight, sum));
  Value added = mul(second.result, div(other, sum));
  Value counts = first.counts ? select(le(largest, kExcludedLog), sum, one) : Value();
  return {add(kept, added), add(largest, log(sum)), counts};
}

/// Blocks are passed on before they are attended to, so that they travel meanwhile; past steps at which nobody sees anything they go at
/// once.
RingBuilder::Attended RingBuilder::build() {
  Blocks blocks = getFirst(ring.key.gather->getOperand(0), ring.value.gather->getOperand(0));
  SmallVector<int64_t> steps = findSteps(ring);
  std::optional<Attended> attended;
  for (auto [index, step] : llvm::enumerate(steps)) {
    Blocks next = step < steps.back() ? passOn(blocks, steps[index + 1] - step) : blocks;
    Attended here = attend(step, blocks);
    attended = attended ? combine(*attended, here) : here;
    blocks = next;
  }
  SmallVector<int64_t> ofRows(getShape(ring.attention.getResult()).drop_back());
  Value counts = attended->counts ? broadcast(attended->counts, getShape(attended->logs)) : Value();
  return {cast(attended->result, getElementType(ring.attention.getResult())), reshape(attended->logs, ofRows),
          counts ? reshape(counts, ofRows) : Value()};
}

//===----------------------------------------------------------------------===//
// The way back
//===----------------------------------------------------------------------===//

AttentionGradOp RingBuilder::differentiate(int64_t step, Blocks blocks, Value gradient, Value logs, Value means) {
  View view = look(step);
  const std::optional<RowsBelow> &rows = ring.gradient->rows;
  Value query = keepRows(builder, ring.attention.getQuery(), rows);
  Value key = move(blocks.key, ring.key), value = move(blocks.value, ring.value);
  if (view.mask)
    view.mask = keepRows(builder, view.mask, rows);
  auto wide = [&](Value like) { return RankedTensorType::get(getShape(like), compute); };
  nn::BandAttributes said(view.band);
  return AttentionGradOp::create(builder, loc, wide(query), wide(key), wide(value), query, key, value, view.mask,
                                 ring.attention.getScaleAttr(), said.isCausal ? builder.getUnitAttr() : UnitAttr(),
                                 builder.getI64IntegerAttr(said.offset), ring.attention.getSoftcapAttr(),
                                 said.left ? builder.getI64IntegerAttr(*said.left) : IntegerAttr(),
                                 /*right=*/IntegerAttr(), gradient, /*shown=*/Value(), logs, means, view.anySeen);
}

/// Of what came along, if anything did, and what is new: added wide, and held as the sum over ranks would be.
Value RingBuilder::addUp(Value sum, Value part, Type held) {
  return cast(sum ? add(cast(sum, compute), part) : part, held);
}

/// What was done to the gradients of all keys before they were scattered, done to a block. Padding and casts are behind it.
void RingBuilder::putHome(const ScatteredSequence &sequence, Value sum) {
  spmd::ReduceScatterOp scatter = sequence.scatter;
  for (auto [op, dim] : sequence.moves) {
    if (isa<nn::SliceOp, nn::PadOp, nn::CastOp>(op))
      continue;
    SmallVector<int64_t> shape(getShape(op->getResult(0)));
    shape[dim] = block;
    IRMapping mapping;
    mapping.map(op->getOperand(0), sum);
    Operation *moved = builder.clone(*op, mapping);
    moved->getResult(0).setType(RankedTensorType::get(shape, getElementType(sum)));
    sum = moved->getResult(0);
  }
  scatter.getResult().replaceAllUsesWith(sum);
}

/// Gradients of a block are on their way to it while the next one's are made; they come home behind the last step.
void RingBuilder::buildGradients(const Attended &forward) {
  RingGradient &of = *ring.gradient;
  Type element = getElementType(ring.attention.getQuery());
  Value gradient = of.gradient;
  if (auto wider = gradient.getDefiningOp<nn::CastOp>(); wider && getElementType(wider.getInput()) == element)
    gradient = wider.getInput();
  gradient = keepRows(builder, cast(permute(builder, gradient, of.gradientOrder), element), of.rows);
  Value logs = forward.logs, means = sum(mul(cast(gradient, compute), cast(forward.result, compute)), {3});
  // Such weights are 1 each, as many times too large; gradients that are as many times too small make up for it.
  if (Value counts = forward.counts) {
    means = div(means, counts);
    SmallVector<int64_t> ofRows(getShape(counts));
    ofRows.push_back(1);
    gradient = cast(div(cast(gradient, compute), reshape(counts, ofRows)), element);
  }
  // What is padding has weights of 0, whatever the forward has made of it.
  if (of.rows) {
    Value counts = of.rows->test(builder, loc, ring.countQueries(), 3, 2);
    logs = select(counts, logs, std::numeric_limits<double>::infinity());
    means = select(counts, means, 0);
  }
  // Blocks of the forward would be equal to these, and would all be kept for them: what a ring is to avoid.
  Value key = AgainOp::create(builder, loc, ring.key.gather->getOperand(0));
  Value value = isShared() ? key : AgainOp::create(builder, loc, ring.value.gather->getOperand(0));
  Blocks blocks = getFirst(key, value);
  SmallVector<int64_t> steps = findSteps(ring);
  constexpr int64_t kSequence = 2;
  StringRef ofKeys = "gradients of keys", ofValues = "gradients of values";
  Value ofQuery, ofKey, ofValue;
  for (auto [index, step] : llvm::enumerate(steps)) {
    Blocks next = step < steps.back() ? passOn(blocks, steps[index + 1] - step) : blocks;
    // What has been added up so far travels meanwhile, too.
    auto bring = [&, ranks = index > 0 ? step - steps[index - 1] : 0](Value &all, StringRef what) {
      all = all ? passOn(all, ranks, kSequence, what) : Value();
    };
    bring(ofKey, ofKeys);
    bring(ofValue, ofValues);
    AttentionGradOp here = differentiate(step, blocks, gradient, logs, means);
    ofQuery = ofQuery ? add(ofQuery, here.getDQuery()) : here.getDQuery();
    if (of.ofKey.from)
      ofKey = addUp(ofKey, here.getDKey(), getElementType(of.ofKey.scatter.getInput()));
    if (of.ofValue.from)
      ofValue = addUp(ofValue, here.getDValue(), getElementType(of.ofValue.scatter.getInput()));
    blocks = next;
  }
  for (auto [to, all, what] : {std::tuple(&of.ofKey, ofKey, ofKeys), std::tuple(&of.ofValue, ofValue, ofValues)})
    if (all)
      putHome(*to, steps.back() > 0 ? passOn(all, ring.ranks - steps.back(), kSequence, what) : all);
  if (of.ofQuery)
    of.ofQuery.replaceAllUsesWith(permute(builder, cast(ofQuery, getElementType(of.ofQuery)), of.queryOrder));
}

static void erase(const GatheredSequence &sequence) {
  for (auto [op, dim] : llvm::reverse(sequence.moves))
    op->erase();
  sequence.gather->erase();
}

/// The last one first: what it reads is then read by nobody, but for what the ring reads instead, as attention's gradient.
static void eraseDying(RingGradient &gradient) {
  SmallVector<Operation *> dying = gradient.dying.takeVector();
  llvm::sort(dying, [](Operation *one, Operation *other) { return other->isBeforeInBlock(one); });
  for (Operation *op : dying)
    if (op->use_empty())
      op->erase();
}

void cleave::exec::formRing(Ring &ring) {
  OpBuilder builder(ring.attention);
  RingBuilder::Attended made = RingBuilder(builder, ring.attention.getLoc(), ring).build();
  if (ring.gradient) {
    builder.setInsertionPointAfter(ring.gradient->place);
    RingBuilder(builder, ring.gradient->loc, ring).buildGradients(made);
    eraseDying(*ring.gradient);
  }
  bool isShared = ring.attention.getKey() == ring.attention.getValue();
  nn::GlobalBand::removeFrom(ring.attention);
  made.result.getDefiningOp()->setDiscardableAttrs(ring.attention->getDiscardableAttrDictionary());
  ring.attention.replaceAllUsesWith(made.result);
  ring.attention->erase();
  erase(ring.key);
  if (!isShared)
    erase(ring.value);
}
