//===- Bands.cpp - masks of attention that places alone decide ------------===//
//
// A mask is followed up from its last two dims, queries i and keys j, through movement to what makes it:
//
//   iota along j  - iota along i  <= 0      a count is start + step * place; a difference of places has a bound
//   and, not                                bounds together, and the other way round
//   select(c, 0, -inf)                      what is added: the condition decides
//   a constant                              each of its elements is looked at
//
// All that is not understood is left as a mask. Bounds are those of j - i.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Bands.h"

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// Added to a score, it leaves nothing of it.
static constexpr double kExcluded = -1e30;
/// Steps up from a mask.
static constexpr unsigned kMostSteps = 24;
/// Places up to here are exact in f32.
static constexpr int64_t kMostPlaces = int64_t(1) << 23;

//===----------------------------------------------------------------------===//
// Bands as attributes and as masks
//===----------------------------------------------------------------------===//

/// Of a band that is open to the right the offset is as far as it needs to be for `left` not to be negative.
BandAttributes::BandAttributes(const KeyBand &band)
    : isCausal(band.high.has_value()), offset(band.high.value_or(std::max<int64_t>(band.low.value_or(0), 0))) {
  if (band.low)
    left = offset - *band.low;
}

Value cleave::nn::compareToBand(OpBuilder &builder, Location loc, Value queries, Value keys, const KeyBand &band) {
  Composer f(builder, loc);
  Value isSeen;
  if (band.high)
    isSeen = f.le(keys, f.add(queries, f.position(*band.high)));
  if (band.low) {
    Value isNear = f.ge(keys, f.add(queries, f.position(*band.low)));
    isSeen = isSeen ? f.both(isSeen, isNear) : isNear;
  }
  return isSeen;
}

namespace {
/// The dims of a value along which queries and keys are counted; -1: it is the same for all of them.
struct BandDims {
  int64_t row = -1, column = -1;
};

/// row * i + column * j + constant.
struct Affine {
  int64_t row = 0, column = 0, constant = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

/// Where the dims of a broadcast value are in one of its operands.
static BandDims align(Value from, Value to, BandDims at) {
  int64_t missing = getShape(to).size() - getShape(from).size();
  auto place = [&](int64_t dim) {
    int64_t own = dim < 0 ? -1 : dim - missing;
    return own >= 0 && getShape(from)[own] > 1 ? own : -1;
  };
  return {place(at.row), place(at.column)};
}

/// Through a reshape that only adds and drops dims of one element.
static std::optional<BandDims> keepDims(ReshapeOp op, BandDims at) {
  SmallVector<int64_t> before, after;
  for (auto [dim, extent] : llvm::enumerate(getShape(op.getInput())))
    if (extent > 1)
      before.push_back(dim);
  for (auto [dim, extent] : llvm::enumerate(getShape(op)))
    if (extent > 1)
      after.push_back(dim);
  auto extentAt = [](Value value, ArrayRef<int64_t> dims) {
    return llvm::map_to_vector(dims, [&](int64_t dim) { return getShape(value)[dim]; });
  };
  if (extentAt(op.getInput(), before) != extentAt(op, after))
    return std::nullopt;
  auto place = [&](int64_t dim) {
    auto *found = llvm::find(after, dim);
    return found == after.end() ? -1 : before[found - after.begin()];
  };
  return BandDims{place(at.row), place(at.column)};
}

/// The operand that `op` only moves, and its dims; null if it does something else.
static Value skipMovement(Operation *op, BandDims &at) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    std::optional<BandDims> kept = keepDims(reshape, at);
    at = kept.value_or(at);
    return kept ? reshape.getInput() : Value();
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    at = align(broadcast.getInput(), broadcast, at);
    return broadcast.getInput();
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    auto place = [&](int64_t dim) { return dim < 0 ? -1 : transpose.getPermutation()[dim]; };
    at = {place(at.row), place(at.column)};
    return transpose.getInput();
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// Numbers that grow evenly along one of the places, or are all the same.
static std::optional<Affine> countConstant(DenseElementsAttr dense, BandDims at) {
  if (!dense || !dense.getElementType().isSignlessInteger() || dense.getElementType().isInteger(1))
    return std::nullopt;
  if (dense.isSplat())
    return Affine{0, 0, dense.getSplatValue<APInt>().getSExtValue()};
  ArrayRef<int64_t> shape = dense.getType().getShape();
  auto values = llvm::map_to_vector(dense.getValues<APInt>(), [](const APInt &value) { return value.getSExtValue(); });
  for (auto [dim, isRow] : {std::pair(at.row, true), std::pair(at.column, false)}) {
    if (dim < 0 || shape[dim] != static_cast<int64_t>(values.size()))
      continue;
    int64_t first = values[0], step = values[1] - first;
    for (auto [place, value] : llvm::enumerate(values))
      if (value != first + step * static_cast<int64_t>(place))
        return std::nullopt;
    return isRow ? Affine{step, 0, first} : Affine{0, step, first};
  }
  return std::nullopt;
}

/// Whole numbers that places decide, in integers, or in floats that hold them exactly.
static std::optional<Affine> findCount(Value value, BandDims at, DenseOf getDense, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return std::nullopt;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    int64_t dim = iota.getDim(), start = iota.getStart(), step = iota.getStep();
    if (dim == at.row)
      return Affine{step, 0, start};
    if (dim == at.column)
      return Affine{0, step, start};
    return getShape(value)[dim] == 1 ? std::optional(Affine{0, 0, start}) : std::nullopt;
  }
  if (isData(op))
    return countConstant(getDense(value), at);
  if (auto cast = dyn_cast<CastOp>(op)) {
    unsigned bits = ::cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
    return bits >= 32 ? findCount(cast.getInput(), at, getDense, steps - 1) : std::nullopt;
  }
  if (isa<AddOp, SubOp>(op)) {
    std::optional<Affine> x = findCount(op->getOperand(0), align(op->getOperand(0), value, at), getDense, steps - 1);
    std::optional<Affine> y = findCount(op->getOperand(1), align(op->getOperand(1), value, at), getDense, steps - 1);
    int64_t sign = isa<AddOp>(op) ? 1 : -1;
    return x && y ? std::optional(
                        Affine{x->row + sign * y->row, x->column + sign * y->column, x->constant + sign * y->constant})
                  : std::nullopt;
  }
  Value moved = skipMovement(op, at);
  return moved ? findCount(moved, at, getDense, steps - 1) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// What both bands let a query see.
static KeyBand intersect(const KeyBand &x, const KeyBand &y) {
  KeyBand both = x;
  if (y.low)
    both.low = both.low ? std::max(*both.low, *y.low) : *y.low;
  if (y.high)
    both.high = both.high ? std::min(*both.high, *y.high) : *y.high;
  return both;
}

/// The keys that a query at `row` sees are those from `first` up to `end`, without gaps, if that goes for all rows by one rule.
/// `sees` is called for each place, of which a mask of every layer may have millions.
template <typename Sees> static std::optional<KeyBand> findBandOf(int64_t rows, int64_t columns, Sees sees) {
  KeyBand band;
  // A bound shows where it does not lie beyond the first or the last key.
  for (int64_t row = 0; row < rows; ++row) {
    int64_t first = 0, end = columns;
    while (first < columns && sees(row * columns + first) == false)
      ++first;
    while (end > first && sees(row * columns + end - 1) == false)
      --end;
    if (first == columns)
      return std::nullopt;
    if (first > 0)
      band.low = band.low.value_or(first - row);
    if (end < columns)
      band.high = band.high.value_or(end - 1 - row);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (sees(row * columns + column) != band.sees(row, column))
        return std::nullopt;
  return band;
}

/// Bounds that a comparison sets to j - i; `isLess`: of what is less than 0, else of what is more. `isStrict`: and not 0.
static std::optional<KeyBand> findBound(Affine x, bool isLess, bool isStrict) {
  if (x.row + x.column != 0 || std::abs(x.column) != 1)
    return std::nullopt;
  int64_t strict = isStrict ? 1 : 0;
  KeyBand band;
  if ((x.column > 0) == isLess) // j - i + c < 0, or i - j + c > 0
    band.high = (x.column > 0 ? -x.constant : x.constant) - strict;
  else
    band.low = (x.column > 0 ? -x.constant : x.constant) + strict;
  return band;
}

/// What a constant condition shows, as [.., queries, keys] with nothing in front.
static std::optional<KeyBand> findConstantBand(DenseElementsAttr dense, BandDims at, bool isHidden) {
  ArrayRef<int64_t> shape = dense.getType().getShape();
  int64_t rank = shape.size();
  if (rank < 2 || at.row != rank - 2 || at.column != rank - 1 || dense.isSplat() ||
      dense.getNumElements() != shape[rank - 2] * shape[rank - 1])
    return std::nullopt;
  // A byte for each element, or a bit, from the lowest of each byte on.
  ArrayRef<char> raw = dense.getRawData();
  bool isPacked = static_cast<int64_t>(raw.size()) < dense.getNumElements();
  return findBandOf(shape[rank - 2], shape[rank - 1], [&](int64_t place) {
    bool isSet = isPacked ? raw[place / 8] >> place % 8 & 1 : raw[place] != 0;
    return isSet != isHidden;
  });
}

/// The band that a condition is, or, with `isHidden`, its negation.
static std::optional<KeyBand> findBand(Value condition, BandDims at, bool isHidden, DenseOf getDense, unsigned steps) {
  Operation *op = condition.getDefiningOp();
  if (!op || steps == 0)
    return std::nullopt;
  if (auto negated = dyn_cast<NotOp>(op))
    return findBand(negated->getOperand(0), at, !isHidden, getDense, steps - 1);
  auto side = [&](unsigned index) { return align(op->getOperand(index), condition, at); };
  if (isHidden ? isa<OrOp>(op) : isa<AndOp>(op)) { // not (x or y) is not x and not y
    std::optional<KeyBand> x = findBand(op->getOperand(0), side(0), isHidden, getDense, steps - 1);
    std::optional<KeyBand> y = findBand(op->getOperand(1), side(1), isHidden, getDense, steps - 1);
    return x && y ? std::optional(intersect(*x, *y)) : std::nullopt;
  }
  if (isa<LtOp, LeOp, GtOp, GeOp>(op)) {
    std::optional<Affine> x = findCount(op->getOperand(0), side(0), getDense, steps - 1);
    std::optional<Affine> y = findCount(op->getOperand(1), side(1), getDense, steps - 1);
    if (!x || !y)
      return std::nullopt;
    Affine apart{x->row - y->row, x->column - y->column, x->constant - y->constant};
    return findBound(apart, isa<LtOp, LeOp>(op) != isHidden, isa<LtOp, GtOp>(op) != isHidden);
  }
  if (isData(op)) {
    DenseElementsAttr dense = getDense(condition);
    return dense && dense.getElementType().isInteger(1) ? findConstantBand(dense, at, isHidden) : std::nullopt;
  }
  Value moved = skipMovement(op, at);
  return moved ? findBand(moved, at, isHidden, getDense, steps - 1) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Rounded where the type is wider than f64.
static double toDouble(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// The number that a float value is everywhere.
static std::optional<double> getNumber(Value value, DenseOf getDense) {
  while (Operation *op = value.getDefiningOp()) {
    if (!onlyMoves(op))
      break;
    value = op->getOperand(0);
  }
  DenseElementsAttr dense = isData(value.getDefiningOp()) ? getDense(value) : nullptr;
  if (!dense || !dense.isSplat() || !isa<FloatType>(dense.getElementType()))
    return std::nullopt;
  return toDouble(dense.getSplatValue<APFloat>());
}

namespace {
class Splitter {
public:
  Splitter(OpBuilder &builder, DenseOf getDense) : builder(builder), getDense(getDense) {}

  MaskParts split(Value mask, unsigned steps) {
    bool isBool = getElementType(mask).isInteger(1);
    return isBool ? splitCondition(mask, steps) : splitNumbers(mask, steps);
  }

private:
  static BandDims lastDims(Value value) {
    int64_t rank = getShape(value).size();
    auto place = [&](int64_t dim) { return dim >= 0 && getShape(value)[dim] > 1 ? dim : -1; };
    return {place(rank - 2), place(rank - 1)};
  }
  MaskParts splitCondition(Value mask, unsigned steps);
  MaskParts splitNumbers(Value mask, unsigned steps);
  MaskParts splitChoice(SelectOp select, unsigned steps);
  MaskParts splitConstant(Value mask, DenseElementsAttr dense);
  /// Of two masks that both decide.
  template <typename Op> MaskParts join(Operation *op, unsigned steps) {
    MaskParts x = split(op->getOperand(0), steps - 1), y = split(op->getOperand(1), steps - 1);
    if (x.band.isEmpty() && y.band.isEmpty())
      return {{}, op->getResult(0)};
    MaskParts all{intersect(x.band, y.band), x.rest ? x.rest : y.rest, x.isExact && y.isExact};
    if (x.rest && y.rest)
      all.rest = Op::create(builder, op->getLoc(), x.rest, y.rest);
    return all;
  }

  OpBuilder &builder;
  DenseOf getDense;
};
} // namespace

MaskParts Splitter::splitCondition(Value mask, unsigned steps) {
  if (std::optional<KeyBand> band = findBand(mask, lastDims(mask), false, getDense, steps))
    return {*band, {}};
  Operation *op = mask.getDefiningOp();
  return op && steps > 0 && isa<AndOp>(op) ? join<AndOp>(op, steps) : MaskParts{{}, mask};
}

/// A choice between what is added where a key is seen, and a number that excludes.
MaskParts Splitter::splitChoice(SelectOp select, unsigned steps) {
  std::optional<double> x = getNumber(select.getLhs(), getDense), y = getNumber(select.getRhs(), getDense);
  bool isHidden = x && *x <= kExcluded;
  if (!isHidden && !(y && *y <= kExcluded))
    return {{}, select};
  double excluded = isHidden ? *x : *y;
  Value kept = isHidden ? select.getRhs() : select.getLhs(), condition = select.getCondition();
  BandDims at = align(condition, select, lastDims(select));
  MaskParts parts = split(kept, steps - 1), decided{{}, condition};
  if (std::optional<KeyBand> band = findBand(condition, at, isHidden, getDense, steps - 1))
    decided = {*band, {}};
  else if (!isHidden && lastDims(condition).column == at.column)
    decided = splitCondition(condition, steps - 1);
  if (parts.band.isEmpty() && decided.band.isEmpty())
    return {{}, select};
  // What the rest of the condition decides is chosen from what is left to be added.
  if (decided.rest) {
    Value left = parts.rest ? parts.rest : kept;
    parts.rest = isHidden ? SelectOp::create(builder, select.getLoc(), decided.rest, select.getLhs(), left)
                          : SelectOp::create(builder, select.getLoc(), decided.rest, left, select.getRhs());
  }
  bool isExact = decided.band.isEmpty() || std::isinf(excluded);
  return {intersect(parts.band, decided.band), parts.rest, parts.isExact && isExact};
}

/// Zeros and numbers that exclude.
MaskParts Splitter::splitConstant(Value mask, DenseElementsAttr dense) {
  BandDims at = lastDims(mask);
  ArrayRef<int64_t> shape = getShape(mask);
  int64_t rank = shape.size();
  if (dense.isSplat() && toDouble(dense.getSplatValue<APFloat>()) == 0)
    return {};
  if (at.row < 0 || at.column < 0 || dense.getNumElements() != shape[rank - 2] * shape[rank - 1])
    return {{}, mask};
  bool isExact = true;
  auto values = dense.getValues<APFloat>();
  auto sees = [&](int64_t place) -> std::optional<bool> {
    double number = toDouble(values[place]);
    isExact &= number == 0 || std::isinf(number);
    return number == 0 ? std::optional(true) : number <= kExcluded ? std::optional(false) : std::nullopt;
  };
  std::optional<KeyBand> band = findBandOf(shape[rank - 2], shape[rank - 1], sees);
  return band ? MaskParts{*band, {}, isExact} : MaskParts{{}, mask};
}

MaskParts Splitter::splitNumbers(Value mask, unsigned steps) {
  Operation *op = mask.getDefiningOp();
  if (!op || steps == 0 || !isa<FloatType>(getElementType(mask)))
    return {{}, mask};
  if (isData(op)) {
    DenseElementsAttr dense = getDense(mask);
    return dense ? splitConstant(mask, dense) : MaskParts{{}, mask};
  }
  if (auto select = dyn_cast<SelectOp>(op))
    return splitChoice(select, steps);
  if (isa<AddOp>(op))
    return join<AddOp>(op, steps);
  // Dims of one element in front, and copies of rows that do not differ, change nothing.
  BandDims at = lastDims(mask);
  Value moved = isa<ReshapeOp, BroadcastOp>(op) ? skipMovement(op, at) : Value();
  if (!moved || at.row != lastDims(moved).row || at.column != lastDims(moved).column)
    return {{}, mask};
  MaskParts parts = split(moved, steps - 1);
  return parts.rest ? MaskParts{{}, mask} : parts;
}

MaskParts cleave::nn::splitMask(OpBuilder &builder, Value mask, int64_t queries, int64_t keys, DenseOf getDense) {
  if (queries < 2 || keys < 2 || std::max(queries, keys) > kMostPlaces)
    return {{}, mask};
  return Splitter(builder, getDense).split(mask, kMostSteps);
}

/// What stays beside a band is a mask, which is read anyway: then only a window is worth it, which need not be computed.
void cleave::nn::useBand(AttentionOp attention, DenseOf getDense, bool windowsOnly, KnownMasks &known) {
  int64_t queries = getShape(attention.getQuery())[2], keys = getShape(attention.getKey())[2];
  Value mask = attention.getMask();
  if (!mask)
    return;
  OpBuilder builder(attention);
  if (!known.contains(mask)) {
    MaskParts split = splitMask(builder, mask, queries, keys, getDense);
    known[mask] = split;
  }
  MaskParts parts = known[mask];
  KeyBand band = intersect(parts.band, attention.getBand());
  bool hidesFar = parts.band.low && *parts.band.low > 1 - queries;
  if (parts.rest == mask || (!hidesFar && (windowsOnly || parts.rest)) || (band.isBounded() && *band.low > *band.high))
    return;
  // Where a query sees nothing, what got large negative numbers is weighed by what else is added to it.
  bool seesSome = band.high.value_or(0) >= 0 && queries - 1 + band.low.value_or(0) < keys;
  if (!parts.isExact && (parts.rest || !seesSome))
    return;
  attention.getMaskMutable().clear();
  if (parts.rest)
    attention.getMaskMutable().assign(parts.rest);
  BandAttributes said(band);
  attention.setCausal(said.isCausal);
  attention.setCausalOffset(said.offset);
  attention.removeRightAttr();
  attention.removeLeftAttr();
  if (said.left)
    attention.setLeft(*said.left);
}
