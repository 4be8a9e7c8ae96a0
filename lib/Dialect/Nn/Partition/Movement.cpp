//===- Movement.cpp - slices and triangles of shards ----------------------===//
//
// Where operand and result are cut together, a rank reads the interval that its part is made of: what is left are steps of a
// slice and the padding of other dims. Parts of a concatenation change places once a rank has put its pieces together.
//
// A slice of a cut dim wants elements that some rank holds and others do not. Each rank looks up those that it holds
// and puts zeros for the others: a partial sum, which the resharding behind it combines (a maximum, for bool).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

namespace {
/// The elements of a slice along one dim that a rank holds, zeros for the others.
struct MaskedSlice {
  int64_t dim;
  SmallVector<AxisAttr> axes;
};
} // namespace

static Value fillInWhatIsHeld(LocalBuilder &build, SliceOp op, Value value, const MaskedSlice &masked) {
  int64_t dim = masked.dim, size = op.getSizes()[dim];
  int64_t rank = getShape(value).size(), extent = getShape(value)[dim];
  Value wanted = build.positions(size, op.getStarts()[dim], op.getSteps()[dim], 1, 0);
  LocalIndices local(build, wanted, extent * build.context.getExtent(masked.axes), extent, masked.axes);
  Value held = build.gather(value, local.indices, dim);
  SmallVector<int64_t> maskShape(rank - dim, 1);
  maskShape[0] = size;
  return build.select(build.reshape(local.isInside, maskShape), held, build.zeroLike(held));
}

/// The dim of the rule's slides that has one of `factors`, if that is cut together with the result.
static const SlidingDim *findSlide(const PartitionContext &context, const DimFactors &factors) {
  for (const InnerCost &cost : context.rule.inner)
    for (const SlidingDim &slide : cost.slides)
      if (llvm::is_contained(factors, slide.input) && !context.splits[slide.result].empty())
        return &slide;
  return nullptr;
}

// Dims that are whole, or of which every shard keeps its own elements, are sliced at once, so that the rest is not sent. Of a
// dim that ranks read intervals of, a rank first takes the elements of the steps, where these lie alike in all shards. Where
// the result does not have the cut of the operand, each rank fills in what it holds, of what is wanted.
LogicalResult SliceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  SmallVector<MaskedSlice> maskedDims;
  Value &value = context.operands[0];
  SmallVector<int64_t> starts(getStarts()), sizes(context.resultTypes.front().getShape()), steps(getSteps());
  SmallVector<int64_t> shape(getShape(value)), left(steps);
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    SmallVector<AxisAttr> axes = context.getOperandSplits(0, dim);
    const SlidingDim *slide = findSlide(context, context.rule.operands[0][dim]);
    bool isMasked = !axes.empty() && context.getResultSplits(0, dim).empty();
    if (isMasked)
      maskedDims.push_back({dim, axes});
    left[dim] = 1;
    if (slide && shape[dim] % slide->picks == 0) {
      left[dim] = steps[dim] > 0 ? 1 : -1;
      steps[dim] = slide->picks;
      starts[dim] %= slide->picks;
      sizes[dim] = shape[dim] / slide->picks;
    } else if (slide || isMasked) {
      left[dim] = slide ? steps[dim] : 1;
      starts[dim] = 0;
      sizes[dim] = shape[dim];
      steps[dim] = 1;
    }
  }
  value = context.builder.createOrFold<SliceOp>(context.loc, value, starts, sizes, steps);
  for (const MaskedSlice &masked : maskedDims)
    value = fillInWhatIsHeld(build, *this, value, masked);
  auto read = build.readWindows(/*fill=*/{});
  sizes.assign(getShape(value).begin(), getShape(value).end());
  starts.assign(sizes.size(), 0);
  for (const LocalBuilder::ReadDim &at : read) {
    starts[at.dim] = left[at.dim] > 0 ? 0 : sizes[at.dim] - 1;
    sizes[at.dim] = context.resultTypes.front().getDimSize(at.dim);
  }
  results.push_back(context.builder.createOrFold<SliceOp>(context.loc, value, starts, sizes, left));
  return success();
}

// Where pieces do not line up, what is missing is exchanged along the dim that has several factors: of the operand, before it takes
// its shape, or of the result.
LogicalResult ReshapeOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  Shape made = context.resultTypes.front().getShape();
  for (const Regroup &regroup : context.rule.regroups) {
    ArrayRef<AxisAttr> axes = context.splits[regroup.factor];
    int64_t size = context.rule.factorSizes[regroup.factor];
    if (!context.isPadded(size, axes))
      continue;
    const TensorFactors &dims = regroup.isOperand ? context.rule.operands[0] : context.rule.results[0];
    const DimFactors *dim =
        llvm::find_if(dims, [&](const DimFactors &factors) { return llvm::is_contained(factors, regroup.factor); });
    LocalBuilder::ReadDim read{unsigned(dim - dims.begin()), llvm::to_vector(axes),
                               regroup.getWindow(size, context.getExtent(axes))};
    Value value = context.operands[0];
    if (!regroup.isOperand) {
      SmallVector<int64_t> shape(made);
      shape[read.dim] = read.window.extent;
      value = build.reshape(value, shape);
    }
    value = build.window(value, read, /*fill=*/{});
    results.push_back(build.reshape(value, made));
    return success();
  }
  return partitionByCloning(*this, context, results);
}

LogicalResult RotateOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  bool isRead = !LocalBuilder(context).readWindows(/*fill=*/{}).empty();
  results.push_back(isRead ? context.operands[0] : cloneLocal(*this, context)->getResult(0));
  return success();
}

// Zeros come along with what is read; another value takes their place.
LogicalResult PadOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  Type element = getInput().getType().getElementType();
  bool isConstant = getMode() == PadMode::Constant;
  auto read = build.readWindows(isConstant ? context.builder.getZeroAttr(element) : TypedAttr());
  auto clone = cast<PadOp>(cloneLocal(*this, context));
  SmallVector<int64_t> low(getLow()), high(getHigh());
  for (const LocalBuilder::ReadDim &at : read)
    low[at.dim] = high[at.dim] = 0;
  clone.setLow(low);
  clone.setHigh(high);
  Value result = clone;
  for (const LocalBuilder::ReadDim &at : read) {
    if (!isConstant || !getValue())
      break;
    int64_t rank = low.size(), made = context.resultTypes.front().getDimSize(at.dim);
    Value positions = build.globalPositions(at.axes, made, rank, at.dim);
    Value isInside = build.both(build.ge(positions, build.position(getLow()[at.dim])),
                                build.lt(positions, build.position(getLow()[at.dim] + at.window.size())));
    result = build.select(isInside, result, clone.getValue());
  }
  results.push_back(result);
  return success();
}

// A rank puts its pieces of the parts together; what of them belongs elsewhere goes there.
LogicalResult ConcatOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<AxisAttr> axes = context.getResultSplits(0, getDim());
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  size_t dim = getDim();
  auto parts = llvm::map_to_vector(getInputs(), [&](Value part) { return getShape(part)[dim]; });
  Value own = ConcatOp::create(context.builder, context.loc, context.operands, dim);
  Attribute list = context.builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  results.push_back(JoinOp::create(context.builder, context.loc, context.resultTypes.front(), own, dim, parts,
                                   cast<ArrayAttr>(list), /*cause=*/StringAttr()));
  return success();
}

// The other way round: what a rank wants of the parts lies side by side when it has come.
LogicalResult cleave::nn::SplitOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, getDim());
  Value all = context.operands[0];
  size_t dim = getDim();
  SmallVector<int64_t> starts(getShape(all).size(), 0), steps(starts.size(), 1);
  if (!axes.empty()) {
    SmallVector<int64_t> shape(getShape(all));
    shape[dim] = 0;
    for (RankedTensorType type : context.resultTypes)
      shape[dim] += type.getDimSize(dim);
    Attribute list = context.builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
    all = cleave::spmd::SplitOp::create(context.builder, context.loc,
                                        RankedTensorType::get(shape, getInput().getType().getElementType()), all, dim,
                                        getParts(), cast<ArrayAttr>(list), /*cause=*/StringAttr());
  }
  for (RankedTensorType type : context.resultTypes) {
    results.push_back(SliceOp::create(context.builder, context.loc, all, starts, type.getShape(), steps));
    starts[dim] += type.getDimSize(dim);
  }
  return success();
}

// Where rows or columns are cut, the triangle follows global positions.
LogicalResult TriluOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  Value input = context.operands[0];
  Shape shape = getShape(input);
  unsigned row = shape.size() - 2, column = shape.size() - 1;
  SmallVector<AxisAttr> rowAxes = context.getOperandSplits(0, row), columnAxes = context.getOperandSplits(0, column);
  if (rowAxes.empty() && columnAxes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  Value rows = build.globalPositions(rowAxes, shape[row], 2, 0);
  Value columns = build.globalPositions(columnAxes, shape[column], 2, 1);
  Value distance = build.sub(columns, rows), bound = build.position(getOffset());
  Value isKept = getUpper() ? build.ge(distance, bound) : build.le(distance, bound);
  results.push_back(build.select(isKept, input, build.zeroLike(input)));
  return success();
}
