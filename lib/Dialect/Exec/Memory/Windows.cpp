//===- Windows.cpp - windows and joins as commands ------------------------===//
//
//   bytes of the result   |. . .|0 0 0 0 0 0|1 1 1|
//                           copy  operand     exchange
//
// Where the operand's rows lie one behind the other in the result, whoever makes them makes them there (BufferAssignment.cpp), and
// only edges are moved. What may lie beyond the ends of the value is filled on all ranks; ranks in the middle get their
// neighbors' rows over that.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/PartMoves.h"
#include "cleave/Sharding/RankGroups.h"
#include "cleave/Sharding/WindowMoves.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// Split, wanted with its edges, outermost of more than one element, and of one piece a step: else a rank's rows are no
/// range, or lie elsewhere on each rank.
std::optional<int64_t> cleave::exec::getOwnOffset(spmd::WindowOp op) {
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  SmallVector<spmd::DimWindow, 4> windows = op.getWindows();
  SmallVector<int64_t> strides = computeSuffixProduct(shape);
  std::optional<int64_t> offset;
  for (auto [dim, window] : llvm::enumerate(windows)) {
    if (window.isIdentity())
      continue;
    bool isOutermost = llvm::all_of(shape.take_front(dim), [](int64_t extent) { return extent == 1; });
    // Of an uneven shard the last ranks' own rows are filled in part.
    bool holdsOwn =
        window.low <= 0 && window.high >= window.extent && window.step == window.extent && window.missing == 0;
    if (offset || !isOutermost || !holdsOwn)
      return std::nullopt;
    offset = -window.low * strides[dim] * spmd::getElementBytes(op.getResult().getType().getElementType());
  }
  return offset;
}

/// A constant of that many numbers and more: few sizes serve all edges.
static Value createNumbers(Operation *before, TypedAttr number, int64_t count) {
  OpBuilder builder(before);
  auto type = RankedTensorType::get(int64_t(llvm::PowerOf2Ceil(count)), number.getType());
  return nn::ConstantOp::create(builder, before->getLoc(), DenseElementsAttr::get(type, Attribute(number)));
}

/// Positions [start, start + size) of a dim of the result.
LogicalResult CommandBuilder::fillEdge(spmd::WindowOp op, unsigned dim, int64_t start, int64_t size) {
  RankedTensorType type = op.getResult().getType();
  SmallVector<int64_t> shape(type.getShape()), strides = computeSuffixProduct(type.getShape());
  shape[dim] = size;
  auto edge = RankedTensorType::get(shape, type.getElementType());
  if (edge.getNumElements() == 0)
    return success();
  FailureOr<int64_t> place = weights.place(createNumbers(op, op.getFillAttr(), edge.getNumElements()));
  if (failed(place))
    return failure();
  auto whole = getView(op.getResult()).getDefiningOp<ViewOp>();
  Value source = createView(getBuffer(BufferKind::Weights, 0), table.get(*place), edge, /*whole=*/Value());
  int64_t offset = start * strides[dim] * spmd::getElementBytes(type.getElementType());
  Value target =
      createView(whole.getBufferAttr(), table.add(whole.getOffset(), offset), edge, whole.getTensor(), strides);
  note(CopyOp::create(builder, op.getLoc(), source, target), op);
  return success();
}

/// The first rank goes beyond one end by the most, the last one beyond the other; from the end, it is the other way round.
LogicalResult CommandBuilder::fillEdges(spmd::WindowOp op) {
  for (auto [dim, window] : llvm::enumerate(op.getWindows())) {
    int64_t last = (window.pieces - 1) * window.step, whole = window.size();
    int64_t size = window.high - window.low, under = -window.low - std::min<int64_t>(last, 0),
            over = std::max<int64_t>(last, 0) + window.high - whole;
    int64_t low = std::clamp<int64_t>(under, 0, size), high = std::clamp<int64_t>(over, 0, size);
    if (failed(fillEdge(op, dim, 0, low)) || failed(fillEdge(op, dim, size - high, high)))
      return failure();
  }
  return success();
}

/// By the enumerator that the evaluator goes by, too, rank by rank.
LogicalResult CommandBuilder::emitWindow(spmd::WindowOp op) {
  if (!getView(op.getInput()) || (op.getFillAttr() && failed(fillEdges(op))))
    return failure();
  SmallVector<spmd::DimWindow, 4> windows = op.getWindows();
  spmd::MeshAttr mesh = spmd::getMesh(op);
  spmd::RankGroups groups = getRankGroups(op);
  auto dims = llvm::map_to_vector(op.getDims().getAsRange<ArrayAttr>(), [&](ArrayAttr axes) {
    return mesh.getRankGroups(llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()));
  });
  bool isInPlace = assignment.isInPart(op, 0);
  SmallVector<int64_t> ends, boxes;
  for (int64_t rank = 0, count = mesh.getNumRanks(); rank < count; ++rank) {
    SmallVector<int64_t> members = groups.membersOf(rank);
    spmd::forEachWindowPiece(windows, groups.indexOf(rank), [&](const spmd::WindowPiece &piece) {
      int64_t source = members[piece.source];
      if (isInPlace && source == rank && piece.from == piece.to)
        return;
      ends.append({source, rank});
      llvm::append_range(boxes, piece.extents);
      for (auto [dim, from] : llvm::enumerate(piece.from))
        boxes.push_back(from - dims[dim].indexOf(source) * windows[dim].extent);
      for (auto [dim, to] : llvm::enumerate(piece.to))
        boxes.push_back(to - windows[dim].startOf(dims[dim].indexOf(rank)));
    });
  }
  auto axes = llvm::map_to_vector(op.getGroupAxes(), [](spmd::AxisAttr axis) -> Attribute { return axis; });
  if (!ends.empty())
    emitExchange(op, ends, boxes, windows.size(), builder.getArrayAttr(axes));
  return success();
}

/// A rank's shards of the parts lie one behind the other, so that one exchange moves what it has or wants of all of them.
template <typename OpT, typename ForEachPiece>
LogicalResult CommandBuilder::emitParts(OpT op, ForEachPiece forEachPiece) {
  if (!getView(op.getInput()))
    return failure();
  spmd::RankGroups groups = getRankGroups(op);
  SmallVector<int64_t> extents(op.getInput().getType().getShape()), ends, boxes;
  int64_t dim = op.getDim();
  for (int64_t rank = 0, count = spmd::getMesh(op).getNumRanks(); rank < count; ++rank) {
    SmallVector<int64_t> members = groups.membersOf(rank);
    forEachPiece(op.getParts(), members.size(), groups.indexOf(rank), [&](const spmd::PartPiece &piece) {
      SmallVector<int64_t> from(extents.size(), 0), to(from);
      extents[dim] = piece.extent;
      from[dim] = piece.from;
      to[dim] = piece.to;
      ends.append({members[piece.source], rank});
      llvm::append_range(boxes, extents);
      llvm::append_range(boxes, from);
      llvm::append_range(boxes, to);
    });
  }
  emitExchange(op, ends, boxes, extents.size(), op.getAxes());
  return success();
}

LogicalResult CommandBuilder::emitJoin(spmd::JoinOp op) { return emitParts(op, spmd::forEachPartPiece); }
LogicalResult CommandBuilder::emitSplit(spmd::SplitOp op) { return emitParts(op, spmd::forEachSplitPiece); }
