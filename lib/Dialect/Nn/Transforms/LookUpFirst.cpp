//===- LookUpFirst.cpp - tables are looked up before they are dequantized -===//
//
//   table i8 [v, h] ─▶ dequantize ─▶ f32 [v, h] ─▶ gather ─▶ f32 [n, h]
//   table i8 [v, h] ─▶ gather ─▶ i8 [n, h] ─▶ dequantize ─▶ f32 [n, h]
//
// Ops between a stored table and its lookup are made once more, for the rows that are asked for: element by element, or
// moving other dims. What does not vary along the looked-up dim (a scale by columns) stays; what does (a scale by rows)
// is looked up too. Scales by blocks of b rows are found as rows repeated b times, of which place i is row i / b.
//
// Of one value all ways up are taken, so that both the table and its scales are found; as these ops make few values out
// of few, a bound on their number holds off what is shared many times.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNLOOKUPFIRST
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// The looked-up dim of a value, and which of its rows a place is.
struct Rows {
  int64_t dim;
  /// Place i is row i / divisor.
  int64_t divisor = 1;
  /// The dim is longer than the table's was: places must not count from its end.
  bool isLonger = false;
};

/// An operand on the way up; without rows it does not vary along the looked-up dim.
struct Source {
  Value value;
  std::optional<Rows> rows;
};

/// `value` is `rows` with each row repeated, place by place.
struct Repetition {
  BroadcastOp broadcast;
  int64_t times;
};

/// Matches a reshape that merges dims `dim` and `dim + 1` of a broadcast along the latter.
std::optional<Repetition> matchRepetition(ReshapeOp op, int64_t dim) {
  auto broadcast = op.getInput().getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return std::nullopt;
  SmallVector<int64_t> merged(getShape(broadcast)), from(getShape(broadcast.getInput()));
  if (from.size() != merged.size() || dim + 1 >= static_cast<int64_t>(from.size()) || from[dim + 1] != 1 ||
      from[dim] != merged[dim])
    return std::nullopt;
  int64_t times = merged[dim + 1];
  merged[dim] *= times;
  merged.erase(merged.begin() + dim + 1);
  return ArrayRef(merged) == getShape(op) ? std::optional(Repetition{broadcast, times}) : std::nullopt;
}

/// Operands of an op that pairs elements as numpy does.
SmallVector<Source> alignSources(Operation *op, const Rows &rows) {
  SmallVector<Source> sources;
  int64_t rank = getShape(op->getResult(0)).size();
  for (Value operand : op->getOperands()) {
    ArrayRef<int64_t> shape = getShape(operand);
    int64_t own = rows.dim - (rank - static_cast<int64_t>(shape.size()));
    bool varies = own >= 0 && shape[own] != 1;
    sources.push_back({operand, varies ? std::optional(Rows{own, rows.divisor, rows.isLonger}) : std::nullopt});
  }
  return sources;
}

/// Then each place has a scale of its own, or a row of them.
bool isScaledByRow(DequantizeOp op, int64_t dim) {
  return (op.getBlock() || getShape(op.getScale()).size() == 1) && static_cast<int64_t>(op.getDim()) == dim;
}

/// Rows of a scale or zero point for those of what it scales; one per block of rows is found as rows that repeat.
std::optional<Rows> getScaleRows(DequantizeOp op, const Rows &rows) {
  if (!isScaledByRow(op, rows.dim))
    return op.getBlock() ? std::optional(rows) : std::nullopt;
  if (op.getBlock())
    return Rows{rows.dim, rows.divisor * static_cast<int64_t>(op.getBlock()), /*isLonger=*/true};
  return Rows{0, rows.divisor, rows.isLonger};
}

/// Scales of narrow integers by row are spelled out, exactly: differences in i32, products in f32.
bool isNarrow(DequantizeOp op) {
  auto result = cast<RankedTensorType>(op.getType()).getElementType();
  return op.getInput().getType().getElementTypeBitWidth() <= 16 && !result.isF64() &&
         !cast<RankedTensorType>(op.getScale().getType()).getElementType().isF64();
}

/// A slice keeps `dim` if it takes rows from the first one on.
std::optional<Rows> keepRows(SliceOp op, Rows rows) {
  if (op.getStarts()[rows.dim] != 0 || op.getSteps()[rows.dim] != 1)
    return std::nullopt;
  rows.isLonger |= op.getSizes()[rows.dim] != getShape(op.getInput())[rows.dim];
  return rows;
}

/// What rows of `value` are made of; empty where a lookup must stay below it.
SmallVector<Source> findSources(Value value, const Rows &rows) {
  Operation *op = value.getDefiningOp();
  if (!op || !isFree(value) || getShape(value)[rows.dim] == 1)
    return {};
  auto at = [&](int64_t dim) { return Rows{dim, rows.divisor, rows.isLonger}; };
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    if (std::optional<int64_t> same = getSameDim(reshape, rows.dim))
      return {{reshape.getInput(), at(*same)}};
    if (std::optional<Repetition> repetition = matchRepetition(reshape, rows.dim))
      return {{repetition->broadcast.getInput(), Rows{rows.dim, rows.divisor * repetition->times, true}}};
    return {};
  }
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return {{transpose.getInput(), at(transpose.getPermutation()[rows.dim])}};
  if (auto slice = dyn_cast<SliceOp>(op)) {
    std::optional<Rows> kept = keepRows(slice, rows);
    return kept ? SmallVector<Source>{{slice.getInput(), kept}} : SmallVector<Source>();
  }
  if (auto dequantize = dyn_cast<DequantizeOp>(op)) {
    bool byRow = isScaledByRow(dequantize, rows.dim);
    if (byRow && !isNarrow(dequantize))
      return {};
    SmallVector<Source> sources{{dequantize.getInput(), rows}};
    for (Value operand : op->getOperands().drop_front())
      sources.push_back({operand, getScaleRows(dequantize, rows)});
    return sources;
  }
  return op->hasTrait<Elementwise>() || isa<BroadcastOp>(op) ? alignSources(op, rows) : SmallVector<Source>();
}

/// Bool takes a byte, as everywhere in memory.
int64_t countBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * std::max(1u, type.getElementTypeBitWidth() / 8);
}

/// A lookup, and what it takes to make it before its table is computed.
class EarlyLookup : Composer {
public:
  EarlyLookup(OpBuilder &builder, GatherOp op)
      : Composer(builder, getInnerLoc(op.getLoc())), op(op), places(getShape(op.getIndices())) {}

  /// The tables behind are smaller, and it is not repeated more often than the table has elements.
  bool isWorthwhile() {
    unsigned steps = 0;
    int64_t asked = getTensorType(op).getNumElements();
    int64_t held = getTensorType(op.getInput()).getNumElements();
    std::optional<int64_t> bytes = countTableBytes(op.getInput(), {static_cast<int64_t>(op.getDim())}, steps);
    return asked <= held && bytes && *bytes < countBytes(op.getInput());
  }

  Value build() { return build(op.getInput(), {static_cast<int64_t>(op.getDim())}); }

private:
  /// Bytes of all tables that would be looked up; nothing where there are too many ways.
  static std::optional<int64_t> countTableBytes(Value value, const Rows &rows, unsigned &steps) {
    constexpr unsigned kMostSteps = 64;
    if (++steps > kMostSteps)
      return std::nullopt;
    SmallVector<Source> sources = findSources(value, rows);
    if (sources.empty())
      return countBytes(value);
    int64_t total = 0;
    for (const Source &source : sources) {
      std::optional<int64_t> bytes =
          source.rows ? countTableBytes(source.value, *source.rows, steps) : std::optional<int64_t>(0);
      if (!bytes)
        return std::nullopt;
      total += *bytes;
    }
    return total;
  }

  /// Where a dim that stays is, after places have taken that of the rows.
  int64_t shift(int64_t dim, int64_t rowDim) const {
    return dim < rowDim ? dim : dim + static_cast<int64_t>(places.size()) - 1;
  }

  SmallVector<int64_t> putPlaces(ArrayRef<int64_t> numbers, int64_t rowDim, ArrayRef<int64_t> instead) const {
    SmallVector<int64_t> result(numbers.take_front(rowDim));
    llvm::append_range(result, instead);
    llvm::append_range(result, numbers.drop_front(rowDim + 1));
    return result;
  }

  RankedTensorType getType(Value value, int64_t rowDim) const {
    return RankedTensorType::get(putPlaces(getShape(value), rowDim, places), getElementType(value));
  }

  /// The row of each place, in the words of the value that has these rows.
  Value getIndices(const Rows &rows) {
    Value indices = op.getIndices();
    if (!rows.isLonger)
      return indices;
    auto extent = static_cast<double>(getShape(op.getInput())[op.getDim()]);
    Value fromFront = add(indices, extent);
    indices = select(lt(indices, 0), fromFront, indices);
    return rows.divisor == 1 ? indices : div(indices, static_cast<double>(rows.divisor));
  }

  Value build(Value value, const Rows &rows) {
    SmallVector<Source> sources = findSources(value, rows);
    if (sources.empty())
      return gather(value, getIndices(rows), rows.dim);
    Operation *made = value.getDefiningOp();
    if (auto reshape = dyn_cast<ReshapeOp>(made); reshape && !getSameDim(reshape, rows.dim))
      return buildRepetition(sources.front(), value, rows);
    SmallVector<Value> operands;
    for (const Source &source : sources)
      operands.push_back(source.rows ? build(source.value, *source.rows) : widen(source.value, made, rows.dim));
    if (auto dequantize = dyn_cast<DequantizeOp>(made); dequantize && isScaledByRow(dequantize, rows.dim))
      return scaleRows(dequantize, operands, rows.dim, getType(value, rows.dim));
    return rebuild(made, operands, sources.front(), rows.dim);
  }

  /// `made` for the rows that are asked for.
  Value rebuild(Operation *made, ArrayRef<Value> operands, const Source &source, int64_t rowDim) {
    if (auto transpose = dyn_cast<TransposeOp>(made)) {
      SmallVector<int64_t> permutation;
      for (int64_t dim : transpose.getPermutation())
        if (dim == source.rows->dim)
          llvm::append_range(permutation, llvm::seq(dim, dim + static_cast<int64_t>(places.size())));
        else
          permutation.push_back(shift(dim, source.rows->dim));
      return this->transpose(operands.front(), permutation);
    }
    if (auto slice = dyn_cast<SliceOp>(made)) {
      SmallVector<int64_t> zeros(places.size(), 0), ones(places.size(), 1);
      return this->slice(operands.front(), putPlaces(slice.getStarts(), rowDim, zeros),
                         putPlaces(slice.getSizes(), rowDim, places), putPlaces(slice.getSteps(), rowDim, ones));
    }
    Operation *again = builder.clone(*made);
    again->setLoc(loc);
    again->setOperands(operands);
    again->getResult(0).setType(getType(made->getResult(0), rowDim));
    if (auto dequantize = dyn_cast<DequantizeOp>(again);
        dequantize && (dequantize.getBlock() || getShape(dequantize.getScale()).size() == 1))
      dequantize.setDim(shift(dequantize.getDim(), rowDim));
    return again->getResult(0);
  }

  /// Operands that do not vary along the rows line up with what does.
  Value widen(Value value, Operation *user, int64_t rowDim) {
    ArrayRef<int64_t> shape = getShape(value);
    int64_t own = rowDim - static_cast<int64_t>(getShape(user->getResult(0)).size() - shape.size());
    if (isa<DequantizeOp>(user) || own < 0)
      return value;
    return reshape(value, putPlaces(shape, own, SmallVector<int64_t>(places.size(), 1)));
  }

  Value buildRepetition(const Source &source, Value value, const Rows &rows) {
    SmallVector<int64_t> shape(getShape(source.value));
    shape.erase(shape.begin() + rows.dim + 1);
    Value found = build(reshape(source.value, shape), *source.rows);
    return broadcast(found, putPlaces(getShape(value), rows.dim, places));
  }

  Value convert(Value value, Type type) {
    return builder.createOrFold<CastOp>(loc, RankedTensorType::get(getShape(value), type), value);
  }

  /// `(x - zero) * scale`, with a scale for each place, or of blocks of rows a row of scales for each.
  Value scaleRows(DequantizeOp op, ArrayRef<Value> operands, int64_t rowDim, RankedTensorType type) {
    SmallVector<int64_t> shape(type.getRank(), 1);
    if (op.getBlock())
      shape.assign(type.getShape().begin(), type.getShape().end());
    std::copy(places.begin(), places.end(), shape.begin() + rowDim);
    Value steps = convert(operands[0], i32());
    if (operands.size() > 2) {
      Value zero = convert(reshape(operands[2], shape), i32());
      steps = sub(steps, zero);
    }
    Value scale = convert(reshape(operands[1], shape), f32());
    Value real = mul(convert(steps, f32()), scale);
    return convert(real, type.getElementType());
  }

  GatherOp op;
  SmallVector<int64_t> places;
};

struct LookUpEarlier : public OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    if (!isFree(op.getResult()))
      return failure();
    EarlyLookup lookup(rewriter, op);
    if (!lookup.isWorthwhile())
      return failure();
    Value rows = lookup.build();
    rows.getDefiningOp()->setLoc(op.getLoc());
    rewriter.replaceOp(op, rows);
    return success();
  }
};

struct LookUpFirst : public cleave::nn::impl::NnLookUpFirstBase<LookUpFirst> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LookUpEarlier>(&getContext());
    if (failed(applyPatterns(getOperation(), std::move(patterns), llvm::IsaPred<GatherOp>)))
      signalPassFailure();
  }
};
} // namespace
