//===- PaddedMasks.cpp - what is read in place of padding -----------------===//
//
// An op that mixes rows is exact over those that count where padding is replaced by what changes nothing:
//
//   ReduceSum, MatMul over rows    0             ReduceMax, ArgMax, TopK, Softmax    the least number
//   ReduceProd                     1             ReduceMin, ArgMin                   the greatest number
//   ReduceMean                     0, and a division by the number of rows
//   NonMaxSuppression, NonZero     scores that are never chosen, zeros
//   Gather from rows               indices from the end count from the end of those that there are
//   Concat of rows                 those that count are brought together, in front
//
// Which op is which says its row in the registry (`Mixing`).
//
//===----------------------------------------------------------------------===//
#include "../Families.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "PaddedRows.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

/// The least or the greatest number of a type: infinities, and bools as bytes.
static Value makeExtreme(NodeContext &at, Type type, bool isLeast) {
  if (isa<FloatType>(type))
    return at.scalar(type, isLeast ? -INFINITY : INFINITY);
  Tensor number = Tensor::zeros(RankedTensorType::get({}, type));
  bool isSigned = !type.isInteger(1) && !type.isUnsignedInteger();
  auto bytes = number.write<uint8_t>();
  if (type.isInteger(1))
    bytes.front() = !isLeast;
  else if (isSigned)
    llvm::fill(bytes, isLeast ? 0 : 0xff), bytes.back() = isLeast ? 0x80 : 0x7f;
  else
    llvm::fill(bytes, isLeast ? 0 : 0xff);
  return at.constant(number);
}

/// True at rows that count; 1 in all other dims.
Value PaddedRows::isFound(NodeContext &at, Shape shape, Padding padding) {
  nn::Composer &f = at;
  Ints wide(shape.size(), 1);
  wide[padding.dim] = shape[padding.dim];
  return f.lt(f.iota(wide, padding.dim, f.i64()), sources[padding.source].count);
}

Value PaddedRows::mask(NodeContext &at, Value value, Padding padding, Value rest) {
  return at.select(isFound(at, NodeContext::shape(value), padding), value, rest);
}

/// The number that a reduction or search is not changed by.
static Value makeIdentity(NodeContext &at, Identity identity, Type type) {
  if (identity == Identity::Zero || identity == Identity::One)
    return at.scalar(type, identity == Identity::One ? 1 : 0);
  return makeExtreme(at, type, /*isLeast=*/identity == Identity::Least);
}

static const OpImporter &getRow(NodeContext &at) {
  static const OpImporter unknown{};
  const OpImporter *row = Registry::get().find(at.getNode().domain, at.getOpType(), at.getOpset());
  return row ? *row : unknown;
}

void PaddedRows::prepareReduction(NodeContext &at, Padding padding, Step &step) {
  const OpImporter &row = getRow(at);
  Value x = at.operand(0);
  bool isSearch = row.mixing == Mixing::Search, isMean = row.mixing == Mixing::Mean;
  Ints dims = isSearch ? Ints{at.axis(at.intAttr("axis", 0), NodeContext::rank(x))} : readReducedDims(at).dims;
  if (at.failed() || !llvm::is_contained(dims, padding.dim))
    return;
  // Of equal ones the last may be padding.
  if (isSearch && at.getOpset() >= 12 && at.boolAttr("select_last_index", false))
    return;
  Type elementType = NodeContext::elementType(x);
  if (isMean && !isa<FloatType>(elementType))
    return;
  at.replaceOperand(0, mask(at, x, padding, makeIdentity(at, row.identity, elementType)));
  if (isMean)
    step.mean = padding;
}

/// Ops along one dim whose results have rows again. Of old opsets all dims from the axis on are one row.
void PaddedRows::prepareAlong(NodeContext &at, Padding padding, Step &step) {
  Value x = at.operand(0);
  bool isSort = getRow(at).mixing == Mixing::Sort;
  bool isLargest = !isSort || at.getOpset() < 11 || at.boolAttr("largest", true);
  bool isOld = !isSort && at.getOpset() < 13;
  int64_t axis = at.axis(at.intAttr("axis", isOld ? 1 : -1), NodeContext::rank(x));
  if (at.failed() || axis != padding.dim || (isOld && axis + 1 != NodeContext::rank(x)))
    return;
  at.replaceOperand(0, mask(at, x, padding, makeExtreme(at, NodeContext::elementType(x), isLargest)));
  step.results = padding;
  step.isSplit = isSort;
}

/// Rows are read by their places. An index from the end counts from the last one that counts: `room - count` further.
void PaddedRows::prepareGather(NodeContext &at, Padding padding, Step &step) {
  nn::Composer &f = at;
  Value indices = at.operand(1);
  bool isNd = getRow(at).mixing == Mixing::TupleLookup;
  int64_t rank = NodeContext::rank(indices), depth = isNd && rank > 0 ? NodeContext::shape(indices).back() : 0;
  bool isAlong = isNd ? (at.getOpset() < 12 || at.intAttr("batch_dims", 0) == 0) && padding.dim < depth
                      : at.axis(at.intAttr("axis", 0), NodeContext::rank(at.operand(0))) == padding.dim;
  if (at.failed() || !isAlong)
    return;
  const Source &source = sources[padding.source];
  Value further = at.cast(f.sub(source.count, double(source.room)), NodeContext::elementType(indices));
  if (isNd) {
    Tensor columns = Tensor::zeros(RankedTensorType::get(depth, NodeContext::elementType(indices)));
    int64_t bytes = reference::getElementBytes(columns.getElementType());
    columns.write<uint8_t>()[padding.dim * bytes] = 1;
    further = f.mul(further, at.constant(columns));
  }
  Value places = f.select(f.lt(indices, 0), f.add(indices, further), indices);
  if (std::optional<Padding> own = find(indices); own && places)
    padded[places] = *own;
  at.replaceOperand(1, places);
  step.settled.push_back(0);
}

/// What is not chosen may be anything.
void PaddedRows::prepareSelection(NodeContext &at, unsigned index, Padding padding, Step &step) {
  if (index > 1 || padding.dim != (index == 0 ? 1 : 2))
    return;
  Value scores = at.operand(1), least = at.scalarLike(scores, -INFINITY);
  at.replaceOperand(1, mask(at, scores, {2, padding.source}, least));
  step.settled.push_back(index);
}

/// 0 times what is there: both sides, as padding may be no number.
void PaddedRows::prepareProduct(NodeContext &at, unsigned index, Padding padding) {
  Value value = at.operand(index);
  int64_t rank = NodeContext::rank(value);
  if (rank >= 2 && padding.dim == (index == 0 ? rank - 1 : rank - 2))
    at.replaceOperand(index, mask(at, value, padding, at.scalarLike(value, 0)));
}

void PaddedRows::prepareOperand(NodeContext &at, unsigned index, Padding padding, Step &step) {
  Mixing mixing = getRow(at).mixing;
  if (mixing == Mixing::Selection)
    return prepareSelection(at, index, padding, step);
  if (mixing == Mixing::Product)
    return prepareProduct(at, index, padding);
  if (index != 0)
    return;
  switch (mixing) {
  case Mixing::Reduction:
  case Mixing::Mean:
  case Mixing::Search:
    return prepareReduction(at, padding, step);
  case Mixing::Row:
  case Mixing::Sort:
    return prepareAlong(at, padding, step);
  case Mixing::Lookup:
  case Mixing::TupleLookup:
    return prepareGather(at, padding, step);
  case Mixing::Places:
    return at.replaceOperand(0, mask(at, at.operand(0), padding, at.scalarLike(at.operand(0), 0)));
  case Mixing::Shape:
  case Mixing::Size:
    return step.settled.push_back(0);
  case Mixing::Selection:
  case Mixing::Product:
  case Mixing::Concat:
  case Mixing::None:
    return;
  }
}

PaddedRows::Step PaddedRows::prepare(NodeContext &at) {
  Step step;
  sized.clear();
  if (sources.empty())
    return step;
  for (unsigned index = 0; index < at.getNumOperands() && !at.failed(); ++index)
    if (std::optional<Padding> padding = find(at.operand(index)))
      prepareOperand(at, index, *padding, step);
  return step;
}

/// Rows of several operands, one behind the other, with those that count in front.
void PaddedRows::join(NodeContext &at, int64_t axis) {
  nn::Composer &f = at;
  Value all = at.getResults().front(), count;
  SmallVector<Value> found;
  for (Value operand : at.getOperands()) {
    int64_t rows = NodeContext::shape(operand)[axis];
    std::optional<Padding> padding = find(operand);
    if (!at.check(!padding || padding->dim == axis, "joins rows and columns that only data tell"))
      return;
    Value own = padding ? sources[padding->source].count : at.scalar(f.i64(), double(rows));
    found.push_back(f.lt(f.iota({rows}, 0, f.i64()), own));
    count = count ? f.add(count, own) : own;
  }
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, NodeContext::rank(all)));
  std::swap(order[0], order[axis]);
  Value rows = compactRows(at, at.transpose(all, order), at.concat(found, 0), 0);
  at.result(0, at.transpose(rows, order));
  if (!at.failed())
    note(at, {0}, count, axis);
}

/// True where that is all.
bool PaddedRows::finish(NodeContext &at, const Step &step) {
  nn::Composer &f = at;
  Mixing mixing = getRow(at).mixing;
  if (mixing == Mixing::Concat && llvm::any_of(at.getOperands(), [&](Value v) { return contains(v); })) {
    int64_t axis = at.axis(at.intAttr("axis"), NodeContext::rank(at.operand(0)));
    auto isAlong = [&](Value v) { return find(v) && find(v)->dim == axis; };
    if (!at.failed() && llvm::any_of(at.getOperands(), isAlong))
      return join(at, axis), true;
  }
  Value result = at.getResults().empty() ? Value() : at.getResults().front();
  if (step.mean) {
    const Source &source = sources[step.mean->source];
    Value sum = f.mul(result, double(source.room));
    at.result(0, f.div(sum, at.cast(source.count, NodeContext::elementType(result))));
  }
  std::optional<Padding> padding = find(at.operand(0));
  if (!padding || (mixing != Mixing::Shape && mixing != Mixing::Size))
    return false;
  const Source &source = sources[padding->source];
  if (mixing == Mixing::Size) {
    int64_t each = ShapedType::getNumElements(NodeContext::shape(at.operand(0))) / std::max<int64_t>(source.room, 1);
    at.result(0, f.mul(source.count, double(each)));
    return true;
  }
  int64_t rank = NodeContext::rank(at.operand(0)), start = 0, size = NodeContext::shape(result)[0];
  if (at.getOpset() >= 15)
    start = std::clamp<int64_t>(at.intAttr("start", 0) + (at.intAttr("start", 0) < 0 ? rank : 0), 0, rank);
  int64_t place = padding->dim - start;
  if (place < 0 || place >= size)
    return true;
  at.result(0, at.concat({at.sliceDim(result, 0, 0, place), at.reshape(source.count, {1}),
                          at.sliceDim(result, 0, place + 1, size - place - 1)},
                         0));
  return true;
}
