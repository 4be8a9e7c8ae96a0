//===- FoldIotaGathers.cpp - lookups in even steps become slices ----------===//
//
// A lookup reads, for the result position (i0, i1, ..), table row `index[i0, i1, ..]` of one or more dims. If for each
// looked-up dim the constant indices are `start + step * i` for one of the result positions i (or the same everywhere),
// then the lookup is
//
//   slice (start, extent of i, step)  ->  transpose (looked-up dims in the order of their i)  ->  reshape (dims of the
//   result that nothing runs along get size 1)  ->  broadcast
//
// Steps of 0 along all dims are a slice of one row. Indices that count through a whole dim along several positions read
// a table whose rows are these positions, flattened: it is taken apart first.
//
// An index tuple that starts with its own position, x[arange(batch), i], looks nothing up there: that dim is a batch
// dim.
//
//   gather_nd x [b, s, h], concat (iota [b, 1], i [b, 1])   =>   gather_nd x, i batch_dims 1
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFOLDIOTAGATHERS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// `start + step * i` along position dim `along`; -1 and a step of 1 where the index is the same everywhere.
struct Run {
  int64_t start, step = 1, along = -1, size = 1;
};

/// Row-major strides of `shape`.
SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// The run that `indices` (over positions of `shape`) makes on a dim of `extent` rows, if it is one.
std::optional<Run> matchRun(ArrayRef<int64_t> indices, ArrayRef<int64_t> shape, int64_t extent) {
  if (indices.empty())
    return std::nullopt;
  SmallVector<int64_t> strides = getStrides(shape);
  Run run{indices.front()};
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size > 1 && indices[strides[dim]] != indices.front()) {
      if (run.along >= 0)
        return std::nullopt;
      run = {indices.front(), indices[strides[dim]] - indices.front(), static_cast<int64_t>(dim), size};
    }
  for (auto [position, index] : llvm::enumerate(indices)) {
    int64_t i = run.along < 0 ? 0 : static_cast<int64_t>(position) / strides[run.along] % run.size;
    if (index != run.start + run.step * i)
      return std::nullopt;
  }
  int64_t last = run.start + run.step * (run.size - 1);
  if (std::min(run.start, last) < 0 || std::max(run.start, last) >= extent)
    return std::nullopt;
  return run;
}

/// The position dims, major first, along which `indices` count through all `extent` rows in row-major order: the rows
/// are then these dims, flattened. Empty if they do not.
SmallVector<int64_t> matchFlattened(ArrayRef<int64_t> indices, ArrayRef<int64_t> shape, int64_t extent) {
  SmallVector<int64_t> strides = getStrides(shape), dims;
  if (indices.empty() || indices.front() != 0)
    return {};
  auto getStep = [&](int64_t dim) { return shape[dim] > 1 ? indices[strides[dim]] : 0; };
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (getStep(dim) > 0)
      dims.push_back(dim);
  llvm::sort(dims, [&](int64_t a, int64_t b) { return getStep(a) > getStep(b); });
  int64_t rows = extent;
  for (int64_t dim : dims) {
    if (getStep(dim) * shape[dim] != rows)
      return {};
    rows = getStep(dim);
  }
  if (rows != 1)
    return {};
  for (auto [position, index] : llvm::enumerate(indices)) {
    int64_t want = 0;
    for (int64_t dim : dims)
      want += getStep(dim) * (static_cast<int64_t>(position) / strides[dim] % shape[dim]);
    if (index != want)
      return {};
  }
  return dims;
}

/// Indices count from the end where negative.
void wrap(MutableArrayRef<int64_t> indices, int64_t extent) {
  for (int64_t &index : indices)
    if (index < 0)
      index += extent;
}

/// A lookup taken apart: table dims [first, first + runs.size()) are looked up, position dims take their place.
struct Lookup {
  Value table;
  int64_t first;
  SmallVector<int64_t> positions; ///< shape of the positions
  SmallVector<Run> runs;          ///< one per looked-up dim
};

/// The dims of the sliced table in the result's order: looked-up dims sort by the position dim that they run along.
/// Nothing if two run along the same one (a diagonal).
std::optional<SmallVector<int64_t>> getOrder(const Lookup &lookup, int64_t rank) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  auto begin = order.begin() + lookup.first, end = begin + lookup.runs.size();
  auto getKey = [&](int64_t dim) { return std::pair(lookup.runs[dim - lookup.first].along, dim); };
  std::sort(begin, end, [&](int64_t a, int64_t b) { return getKey(a) < getKey(b); });
  for (auto it = begin; it != end && it + 1 != end; ++it) {
    int64_t along = lookup.runs[*it - lookup.first].along;
    if (along >= 0 && along == lookup.runs[it[1] - lookup.first].along)
      return std::nullopt;
  }
  return order;
}

Value sliceTable(const Lookup &lookup, OpBuilder &builder, Location loc) {
  ArrayRef<int64_t> shape = getShape(lookup.table);
  SmallVector<int64_t> starts(shape.size(), 0), sizes(shape), steps(shape.size(), 1);
  bool isFull = true;
  for (auto [index, run] : llvm::enumerate(lookup.runs)) {
    int64_t dim = lookup.first + index;
    isFull &= run.start == 0 && run.size == shape[dim] && (run.step == 1 || run.size == 1);
    starts[dim] = run.start;
    sizes[dim] = run.size;
    steps[dim] = run.step;
  }
  return isFull ? lookup.table : Composer(builder, loc).slice(lookup.table, starts, sizes, steps);
}

/// Builds the slice, transpose, reshape and broadcast that replace the lookup.
LogicalResult replaceLookup(Operation *op, const Lookup &lookup, PatternRewriter &rewriter) {
  int64_t rank = getShape(lookup.table).size();
  std::optional<SmallVector<int64_t>> order = getOrder(lookup, rank);
  if (!order)
    return failure();
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  Location inner = getInnerLoc(op->getLoc());
  Value value = sliceTable(lookup, rewriter, inner);
  Composer f(rewriter, inner);
  value = f.transpose(value, *order);
  // Positions that no run goes along have size 1 before the broadcast.
  SmallVector<int64_t> shape(resultType.getShape());
  for (auto [dim, size] : llvm::enumerate(lookup.positions)) {
    bool isRun = llvm::any_of(lookup.runs, [&, dim = dim](const Run &run) { return run.along == int64_t(dim); });
    shape[lookup.first + dim] = isRun ? size : 1;
  }
  value = f.reshape(value, shape);
  if (value.getType() != resultType)
    value = BroadcastOp::create(rewriter, op->getLoc(), resultType, value);
  else if (value != lookup.table)
    value.getDefiningOp()->setLoc(op->getLoc());
  rewriter.replaceOp(op, value);
  return success();
}

struct FoldGather : public OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    std::optional<SmallVector<int64_t>> indices = getConstantIntegers(op.getIndices());
    if (!indices || cast<RankedTensorType>(op.getType()).getEncoding())
      return failure();
    int64_t dim = op.getDim(), extent = getShape(op.getInput())[dim];
    wrap(*indices, extent);
    ArrayRef<int64_t> positions = getShape(op.getIndices());
    if (std::optional<Run> run = matchRun(*indices, positions, extent))
      return replaceLookup(op, {op.getInput(), dim, llvm::to_vector(positions), {*run}}, rewriter);
    return replaceFlattened(op, matchFlattened(*indices, positions, extent), rewriter);
  }

private:
  /// Takes the looked-up dim apart into the position dims `dims`, each of which it is then read along in order.
  static LogicalResult replaceFlattened(GatherOp op, ArrayRef<int64_t> dims, PatternRewriter &rewriter) {
    if (dims.empty())
      return failure();
    Lookup lookup{{}, static_cast<int64_t>(op.getDim()), llvm::to_vector(getShape(op.getIndices())), {}};
    SmallVector<int64_t> shape(getShape(op.getInput()));
    shape.erase(shape.begin() + lookup.first);
    for (auto [index, dim] : llvm::enumerate(dims)) {
      shape.insert(shape.begin() + lookup.first + index, lookup.positions[dim]);
      lookup.runs.push_back({0, 1, dim, lookup.positions[dim]});
    }
    lookup.table = Composer(rewriter, getInnerLoc(op.getLoc())).reshape(op.getInput(), shape);
    return replaceLookup(op, lookup, rewriter);
  }
};

struct FoldGatherNd : public OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherNdOp op, PatternRewriter &rewriter) const override {
    std::optional<SmallVector<int64_t>> tuples = getConstantIntegers(op.getIndices());
    if (!tuples || op.getBatchDims() != 0 || cast<RankedTensorType>(op.getType()).getEncoding())
      return failure();
    ArrayRef<int64_t> shape = getShape(op.getIndices()), table = getShape(op.getInput());
    int64_t length = shape.back();
    Lookup lookup{op.getInput(), 0, llvm::to_vector(shape.drop_back()), {}};
    for (int64_t component = 0; component < length; ++component) {
      SmallVector<int64_t> indices;
      for (size_t i = component; i < tuples->size(); i += length)
        indices.push_back((*tuples)[i]);
      wrap(indices, table[component]);
      std::optional<Run> run = matchRun(indices, lookup.positions, table[component]);
      if (!run)
        return failure();
      lookup.runs.push_back(*run);
    }
    return replaceLookup(op, lookup, rewriter);
  }
};

struct TakeBatchOut : public OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherNdOp op, PatternRewriter &rewriter) const override {
    auto tuples = op.getIndices().getDefiningOp<ConcatOp>();
    int64_t batch = op.getBatchDims(), last = static_cast<int64_t>(getShape(op.getIndices()).size()) - 1;
    if (!tuples || tuples.getInputs().size() < 2 || static_cast<int64_t>(tuples.getDim()) != last || batch >= last ||
        cast<RankedTensorType>(tuples.getType()).getEncoding() || !isPosition(tuples.getInputs().front(), batch, op))
      return failure();
    ValueRange rest = tuples.getInputs().drop_front();
    Value indices = Composer(rewriter, getInnerLoc(tuples.getLoc())).concat(rest, last);
    rewriter.replaceOpWithNewOp<GatherNdOp>(op, op.getType(), op.getInput(), indices, batch + 1);
    return success();
  }

private:
  /// True if `component` is, for each tuple, its position along dim `dim`, and the table is as long there.
  static bool isPosition(Value component, int64_t dim, GatherNdOp op) {
    std::optional<SmallVector<int64_t>> indices = getConstantIntegers(component);
    ArrayRef<int64_t> shape = getShape(component);
    int64_t extent = getShape(op.getInput())[dim];
    if (!indices || shape.back() != 1 || shape[dim] != extent)
      return false;
    std::optional<Run> run = matchRun(*indices, shape.drop_back(), extent);
    return run && run->start == 0 && run->step == 1 && (extent == 1 || run->along == dim);
  }
};

struct FoldIotaGathers : public cleave::nn::impl::NnFoldIotaGathersBase<FoldIotaGathers> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldGather, FoldGatherNd, TakeBatchOut>(&getContext());
    if (failed(applyPatterns(getOperation(), std::move(patterns), llvm::IsaPred<GatherOp, GatherNdOp>)))
      signalPassFailure();
  }
};
} // namespace
