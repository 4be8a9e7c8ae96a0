//===- Collectives.cpp - what ranks do together, and by their place -------===//
//
// A collective says whose it is by *digits*: a rank's digit is `rank / stride % extent`, and a group is the ranks that are equal in
// all else, numbered row-major by their digits as listed. So a runtime needs no mesh, and all ranks have the same node:
//
//   cleave.AllGather(x) dims = [0] extents = [4] strides = [1]        mesh data=2, model=4, over model, along dim 0
//
// Where a group is all ranks in their order, onnxruntime's ops may mean the same; its NCCL group is that of all processes.
//
// What a rank does alone by its place becomes plain ONNX, with its place as an initializer: a slice starts at one, an identity element
// is chosen by one.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "Writers.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using spmd::AxisAttr;
using spmd::ReductionKind;

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

namespace {
/// Digits of ranks, each of a dim where they split one.
struct Digits {
  SmallVector<int64_t> dims, extents, strides;
  std::vector<std::string> axes;

  int64_t size() const { return llvm::product_of(extents); }
  /// A group is all ranks, numbered as they are.
  bool isEveryone(spmd::MeshAttr mesh) const {
    int64_t behind = 1;
    for (auto [extent, stride] : llvm::reverse(llvm::zip_equal(extents, strides))) {
      if (stride != behind)
        return false;
      behind *= extent;
    }
    return behind == mesh.getNumRanks();
  }
};
} // namespace

static void addDigit(Digits &digits, spmd::MeshAttr mesh, AxisAttr axis, int64_t dim) {
  unsigned position = *mesh.findAxis(axis.getName());
  int64_t extent = axis.getExtent(mesh), stride = mesh.getSizes()[position] / (axis.getPreSize() * extent);
  for (int64_t behind : mesh.getSizes().drop_front(position + 1))
    stride *= behind;
  digits.dims.push_back(dim);
  digits.extents.push_back(extent);
  digits.strides.push_back(stride);
  digits.axes.push_back(spmd::formatAxis(axis));
}

static Digits getDigits(spmd::MeshAttr mesh, ArrayAttr axes) {
  Digits digits;
  for (auto axis : axes.getAsRange<AxisAttr>())
    addDigit(digits, mesh, axis, 0);
  return digits;
}

/// Of lists per dim: digits of a dim stand together, major to minor.
static Digits getDigitsPerDim(spmd::MeshAttr mesh, ArrayAttr dims) {
  Digits digits;
  for (auto [dim, axes] : llvm::enumerate(dims.getAsRange<ArrayAttr>()))
    for (auto axis : axes.getAsRange<AxisAttr>())
      addDigit(digits, mesh, axis, dim);
  return digits;
}

/// Numbers are those of all ranks, of which a pipeline has more than the sharding's mesh.
static Digits getDigits(spmd::MeshAttr whole, spmd::ShardingAttr sharding) {
  Digits digits;
  for (auto [dim, sharded] : llvm::enumerate(sharding.getDims()))
    for (AxisAttr axis : sharded.getAxes())
      addDigit(digits, whole, axis, dim);
  return digits;
}

static void addDigits(std::vector<NodeAttribute> &attributes, const Digits &digits, const std::string &prefix = "",
                      bool hasDims = true) {
  attributes.emplace_back(prefix + "axes", digits.axes);
  if (hasDims)
    attributes.emplace_back(prefix + "dims", ArrayRef<int64_t>(digits.dims));
  attributes.emplace_back(prefix + "extents", ArrayRef<int64_t>(digits.extents));
  attributes.emplace_back(prefix + "strides", ArrayRef<int64_t>(digits.strides));
}

static StringRef getWord(ReductionKind kind) {
  constexpr StringLiteral words[] = {"sum", "prod", "max", "min"};
  return words[static_cast<unsigned>(kind)];
}

//===----------------------------------------------------------------------===//
// onnxruntime's ops
//===----------------------------------------------------------------------===//

constexpr StringLiteral kMicrosoft = "com.microsoft";

static bool isIeeeFloat(Type element) { return element.isF16() || element.isF32() || element.isF64(); }
/// Types of AllGather and AllToAll.
static bool isMoved(Type element) {
  return isIeeeFloat(element) || element.isSignlessInteger(64) || element.isInteger(1);
}

/// Whether onnxruntime's ops may be used for this group.
static bool usesMicrosoft(GraphBuilder &out, const Digits &digits) {
  return out.getOptions().collectives == CollectiveOps::Auto && digits.size() > 1 && digits.isEveryone(out.getMesh());
}

/// All digits are of one dim.
static std::optional<int64_t> getOneDim(const Digits &digits) {
  return llvm::all_equal(digits.dims) && !digits.dims.empty() ? std::optional(digits.dims.front()) : std::nullopt;
}

/// onnxruntime's exchanges the parts of the first dim. So what is sliced comes to the front in as many parts as there are ranks, and
/// goes, as parts that came from ranks, before what is gathered.
static std::string writeMicrosoftAllToAll(GraphBuilder &out, const std::string &x, int64_t gather, int64_t sharded,
                                          int64_t ranks) {
  SmallVector<int64_t> split(out.typeOf(x).getShape()), toFront, back;
  split[sharded] /= ranks;
  split.insert(split.begin() + sharded, ranks);
  toFront.push_back(sharded);
  for (int64_t dim = 0; dim < int64_t(split.size()); ++dim)
    if (dim != sharded)
      toFront.push_back(dim);
  std::string parts = out.transpose(out.reshape(x, split), toFront);
  parts = out.node("AllToAll", {parts}, out.typeOf(parts), {{"group_size", ranks}}, kMicrosoft);
  SmallVector<int64_t> shape(out.typeOf(parts).getShape().drop_front());
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
    if (dim == gather)
      back.push_back(0);
    back.push_back(dim + 1);
  }
  shape[gather] *= ranks;
  return out.reshape(out.transpose(parts, back), shape);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static std::string own(GraphBuilder &out, StringRef opType, Names inputs, Operation *op,
                       std::vector<NodeAttribute> attributes) {
  return out.node(opType, std::move(inputs), getResultType(op), std::move(attributes), kOwnDomain);
}

static std::string writeAllReduce(spmd::AllReduceOp op, GraphBuilder &out) {
  Digits digits = getDigits(out.getMesh(), op.getAxes());
  std::string x = out(op.getInput());
  if (op.getKind() == ReductionKind::Sum && isIeeeFloat(out.typeOf(x).getElementType()) && usesMicrosoft(out, digits))
    return out.node("AllReduce", {x}, getResultType(op), {}, kMicrosoft);
  std::vector<NodeAttribute> attributes = {{"kind", getWord(op.getKind())}};
  addDigits(attributes, digits, "", /*hasDims=*/false);
  return own(out, "AllReduce", {x}, op, std::move(attributes));
}

static std::string writeAllGather(spmd::AllGatherOp op, GraphBuilder &out) {
  Digits digits = getDigitsPerDim(out.getMesh(), op.getDims());
  std::string x = out(op.getInput());
  std::optional<int64_t> dim = getOneDim(digits);
  if (dim && isMoved(out.typeOf(x).getElementType()) && usesMicrosoft(out, digits))
    return out.node("AllGather", {x}, getResultType(op), {{"axis", *dim}, {"group_size", digits.size()}}, kMicrosoft);
  std::vector<NodeAttribute> attributes;
  addDigits(attributes, digits);
  return own(out, "AllGather", {x}, op, std::move(attributes));
}

static std::string writeReduceScatter(spmd::ReduceScatterOp op, GraphBuilder &out) {
  std::vector<NodeAttribute> attributes = {{"kind", getWord(op.getKind())}};
  addDigits(attributes, getDigitsPerDim(out.getMesh(), op.getDims()));
  return own(out, "ReduceScatter", {out(op.getInput())}, op, std::move(attributes));
}

static std::string writeAllToAll(spmd::AllToAllOp op, GraphBuilder &out) {
  Digits gather = getDigitsPerDim(out.getMesh(), op.getGather()),
         sharded = getDigitsPerDim(out.getMesh(), op.getSlice());
  std::string x = out(op.getInput());
  std::optional<int64_t> from = getOneDim(gather), to = getOneDim(sharded);
  if (from && to && isMoved(out.typeOf(x).getElementType()) && usesMicrosoft(out, gather) &&
      usesMicrosoft(out, sharded))
    return writeMicrosoftAllToAll(out, x, *from, *to, gather.size());
  std::vector<NodeAttribute> attributes;
  addDigits(attributes, gather, "gather_");
  addDigits(attributes, sharded, "slice_");
  return own(out, "AllToAll", {x}, op, std::move(attributes));
}

static std::string writePermute(spmd::PermuteOp op, GraphBuilder &out) {
  std::vector<NodeAttribute> attributes = {{"shape", cast<RankedTensorType>(op.getGlobal()).getShape()}};
  addDigits(attributes, getDigits(out.getMesh(), op.getFrom()), "from_");
  addDigits(attributes, getDigits(out.getMesh(), op.getTo()), "to_");
  return own(out, "Permute", {out(op.getInput())}, op, std::move(attributes));
}

/// What lies beyond the ends is a second operand, or a word. Who needs less of its interval than all of it gets it all the same.
static Written writeWindow(spmd::WindowOp op, GraphBuilder &out) {
  std::vector<NodeAttribute> attributes = {{"steps", op.getSteps()}, {"lows", op.getLows()}, {"highs", op.getHighs()}};
  attributes.emplace_back("beyond", op.getFillAttr()   ? "fill"
                                    : op.getWraps()    ? "wrap"
                                    : op.getReflects() ? "reflect"
                                                       : "nearest");
  // Of dims that nobody splits nothing is missing, whatever stands there.
  if (std::optional<ArrayRef<int64_t>> missing = op.getMissing()) {
    SmallVector<int64_t> counted(*missing);
    for (auto [count, axes] : llvm::zip_equal(counted, op.getDims()))
      count = cast<ArrayAttr>(axes).empty() ? 0 : count;
    attributes.emplace_back("missing", ArrayRef<int64_t>(counted));
  }
  addDigits(attributes, getDigitsPerDim(out.getMesh(), op.getDims()));
  Names inputs = {out(op.getInput())};
  if (Attribute fill = op.getFillAttr()) {
    auto type = RankedTensorType::get({}, getResultType(op).getElementType());
    inputs.push_back(out.constant(DenseElementsAttr::get(type, fill)));
  }
  return own(out, "Window", inputs, op, std::move(attributes));
}

template <typename OpT> static void addParts(WriterTable &table, StringLiteral opType) {
  table.add<OpT>([opType](OpT op, GraphBuilder &out) {
    std::vector<NodeAttribute> attributes = {{"dim", op.getDim()}, {"parts", op.getParts()}};
    addDigits(attributes, getDigits(out.getMesh(), op.getAxes()), "", /*hasDims=*/false);
    return own(out, opType, {out(op.getInput())}, op, std::move(attributes));
  });
}

//===----------------------------------------------------------------------===//
// By a rank's place
//===----------------------------------------------------------------------===//

static SmallVector<AxisAttr> toAxes(ArrayAttr axes) { return llvm::to_vector(axes.getAsRange<AxisAttr>()); }

/// What is known along some axes: called after them.
static std::string makeKey(StringRef what, ArrayRef<AxisAttr> axes) {
  return (what + "[" + spmd::formatAxes(axes) + "]").str();
}

static std::string writeAxisIndex(spmd::AxisIndexOp op, GraphBuilder &out) {
  SmallVector<AxisAttr> axes = toAxes(op.getAxes());
  spmd::RankGroups groups = out.getMesh().getRankGroups(axes);
  return out.ofPlace(makeKey("cleave.index", axes), getResultType(op),
                     {axes, [groups](int64_t rank) { return std::vector<int64_t>{groups.indexOf(rank)}; }});
}

/// A Slice whose bounds differ between ranks, of one size on all of them.
static std::string writeLocalSlice(spmd::LocalSliceOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  RankedTensorType type = getResultType(op);
  SmallVector<int64_t> dims, steps;
  SmallVector<AxisAttr> all;
  std::string key = "cleave.start";
  std::vector<std::pair<spmd::RankGroups, int64_t>> places;
  for (auto [dim, list] : llvm::enumerate(op.getDims().getAsRange<ArrayAttr>())) {
    SmallVector<AxisAttr> axes = toAxes(list);
    if (axes.empty())
      continue;
    dims.push_back(dim);
    steps.push_back(1);
    places.emplace_back(out.getMesh().getRankGroups(axes), type.getDimSize(dim));
    llvm::append_range(all, axes);
    key += makeKey("", axes) + "*" + std::to_string(type.getDimSize(dim));
  }
  if (dims.empty())
    return x;
  auto bounds = RankedTensorType::get({int64_t(dims.size())}, IntegerType::get(op.getContext(), 64));
  auto at = [&](int64_t behind) {
    return Initializer::OfPlace{all, [places, behind](int64_t rank) {
                                  std::vector<int64_t> values;
                                  for (const auto &[groups, extent] : places)
                                    values.push_back((groups.indexOf(rank) + behind) * extent);
                                  return values;
                                }};
  };
  std::string starts = out.ofPlace(key, bounds, at(0));
  std::string ends = out.ofPlace("cleave.end" + key.substr(std::strlen("cleave.start")), bounds, at(1));
  return out.node("Slice", {x, starts, ends, out.ints(dims), out.ints(steps)}, type);
}

/// What changes nothing when it is combined.
static double getIdentity(ReductionKind kind, Type element) {
  if (kind == ReductionKind::Sum || kind == ReductionKind::Prod)
    return kind == ReductionKind::Prod ? 1 : 0;
  bool isMax = kind == ReductionKind::Max;
  if (isa<FloatType>(element))
    return isMax ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return 0;
}

/// Extremes of integers are too large for doubles: they are written bit by bit.
static std::string makeIdentity(GraphBuilder &out, ReductionKind kind, Type element) {
  bool isExtreme = kind == ReductionKind::Max || kind == ReductionKind::Min;
  if (!isExtreme || isa<FloatType>(element))
    return out.scalar(getIdentity(kind, element), element);
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger() || width == 1, isMax = kind == ReductionKind::Max;
  APInt value = isMax ? (isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width))
                      : (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width));
  return out.constant(DenseElementsAttr::get(RankedTensorType::get({}, element), value));
}

/// A choice by a constant of the rank, so that the graph is one for all; runtimes fold it.
static std::string writeKeepOnFirst(spmd::KeepOnFirstOp op, GraphBuilder &out) {
  SmallVector<AxisAttr> axes = toAxes(op.getAxes());
  spmd::RankGroups groups = out.getMesh().getRankGroups(axes);
  std::string x = out(op.getInput());
  std::string isFirst =
      out.ofPlace(makeKey("cleave.first", axes), RankedTensorType::get({}, IntegerType::get(op.getContext(), 1)),
                  {axes, [groups](int64_t rank) { return std::vector<int64_t>{groups.indexOf(rank) == 0}; }});
  return out.where(isFirst, x, makeIdentity(out, op.getKind(), out.typeOf(x).getElementType()));
}

void cleave::onnx::registerCollectives(WriterTable &table) {
  table.add<spmd::AllReduceOp>(writeAllReduce);
  table.add<spmd::AllGatherOp>(writeAllGather);
  table.add<spmd::ReduceScatterOp>(writeReduceScatter);
  table.add<spmd::AllToAllOp>(writeAllToAll);
  table.add<spmd::PermuteOp>(writePermute);
  table.add<spmd::WindowOp>(writeWindow);
  addParts<spmd::JoinOp>(table, "Join");
  addParts<spmd::SplitOp>(table, "Split");
  table.add<spmd::AxisIndexOp>(writeAxisIndex);
  table.add<spmd::LocalSliceOp>(writeLocalSlice);
  table.add<spmd::KeepOnFirstOp>(writeKeepOnFirst);
}
