//===- Commands.cpp - what ranks do, step by step -------------------------===//
//
// What is wrong with a command by itself, by number, and what one says as a collective: groups, and bytes sent.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Commands.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// One shape and element type, wherever the elements lie.
static bool isAlike(Type a, Type b) {
  auto x = cast<ShapedType>(a), y = cast<ShapedType>(b);
  return x.getShape() == y.getShape() && x.getElementType() == y.getElementType();
}

template <typename Range> static bool areAlike(TypeRange types, Range others) {
  return types.size() == others.size() && llvm::all_of(llvm::zip(types, others), [](auto pair) {
           return isAlike(std::get<0>(pair), std::get<1>(pair));
         });
}

//===----------------------------------------------------------------------===//
// Of one rank
//===----------------------------------------------------------------------===//

/// C4
static LogicalResult checkInPlace(RunOp op, KernelOp kernel) {
  std::optional<ArrayRef<int64_t>> places = kernel.getInPlace();
  if (!places)
    return success();
  TypeRange results = kernel.getResultTypes(), arguments = kernel.getBody().getArgumentTypes();
  bool fits = places->size() == results.size();
  for (size_t i = 0; fits && i < places->size(); ++i)
    fits = (*places)[i] == -1 || ((*places)[i] >= 0 && (*places)[i] < int64_t(arguments.size()) &&
                                  spmd::getBytes(arguments[(*places)[i]]) == spmd::getBytes(results[i]));
  if (fits)
    return success();
  return op.emitOpError() << "runs " << op.getKernelAttr() << ", whose 'in_place' does not name an argument of as many "
                          << "bytes, or -1, for each result (C4)";
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "runs " << getKernelAttr() << ", which is not an exec.kernel (C1)";
  if (!areAlike(getSources().getTypes(), kernel.getBody().getArgumentTypes()))
    return emitOpError() << "has sources of other types than the arguments of " << getKernelAttr() << " (C2)";
  if (!areAlike(getTargets().getTypes(), kernel.getResultTypes()))
    return emitOpError() << "has targets of other types than " << getKernelAttr() << " yields (C3)";
  return checkInPlace(*this, kernel);
}

LogicalResult CopyOp::verify() {
  if (isAlike(getSource().getType(), getTarget().getType()))
    return success();
  return emitOpError() << "copies " << getSource().getType() << " into " << getTarget().getType() << " (C1)";
}

static LogicalResult checkEvent(Operation *op, int64_t event, int64_t stream) {
  if (event >= 0 && stream >= 0)
    return success();
  return op->emitOpError() << "has event " << event << " on stream " << stream << " (C1)";
}

LogicalResult RecordOp::verify() { return checkEvent(*this, getEvent(), getStream()); }
LogicalResult WaitOp::verify() { return checkEvent(*this, getEvent(), getStream()); }

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static SmallVector<spmd::AxisAttr> toList(ArrayAttr axes) { return llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()); }

SmallVector<spmd::AxisAttr> CollectiveOp::getGroupAxes() { return toList(getAxes()); }
std::optional<spmd::ReductionKind> CollectiveOp::getReductionKind() { return getReduction(); }

/// How many pieces a list makes; 0 where one has none of a dim.
static int64_t countPieces(ArrayRef<int64_t> list) {
  int64_t count = 1;
  for (int64_t pieces : list)
    count = pieces < 1 ? 0 : count * pieces;
  return count;
}

/// C4
static bool fitShapes(CollectiveOp op, MemRefType source, MemRefType target) {
  std::optional<ArrayRef<int64_t>> gather = op.getGather(), slice = op.getSlice();
  size_t rank = source.getRank();
  if (source.getElementType() != target.getElementType() || size_t(target.getRank()) != rank ||
      !source.getLayout().isIdentity() || !target.getLayout().isIdentity() || (gather && gather->size() != rank) ||
      (slice && slice->size() != rank))
    return false;
  for (size_t dim = 0; dim < rank; ++dim)
    if (source.getShape()[dim] * (gather ? (*gather)[dim] : 1) != target.getShape()[dim] * (slice ? (*slice)[dim] : 1))
      return false;
  return true;
}

LogicalResult CollectiveOp::verify() {
  StringRef word = program::getWord(getKind());
  if (getSources().size() != getTargets().size() || getSources().empty())
    return emitOpError() << "has " << getSources().size() << " sources and " << getTargets().size() << " targets (C1)";
  if (reduces(getKind()) != getReduction().has_value())
    return emitOpError() << (getReduction() ? "reduces in an " : "does not say how it reduces in an ") << word
                         << " (C2)";
  int64_t size = spmd::getRankGroups(cast<spmd::CollectiveOpInterface>(getOperation())).size();
  for (auto [list, isWanted, what] :
       {std::tuple(getGather(), gathers(getKind()), "gathers"), std::tuple(getSlice(), slices(getKind()), "slices")})
    if (list.has_value() != isWanted || (list && countPieces(*list) != size))
      return emitOpError() << what << " " << (list ? countPieces(*list) : 1) << " pieces in an " << word
                           << " of groups of " << size << " (C3)";
  for (auto [source, target] : llvm::zip(getSources().getTypes(), getTargets().getTypes()))
    if (!fitShapes(*this, cast<MemRefType>(source), cast<MemRefType>(target)))
      return emitOpError() << "makes " << target << " of " << source << " (C4)";
  return success();
}

/// As for the collectives of spmd: what one rank sends, n ranks in a group.
int64_t cleave::exec::countWireBytes(CollectiveOp op, unsigned index) {
  int64_t group = spmd::getRankGroups(cast<spmd::CollectiveOpInterface>(op.getOperation())).size();
  Value counted = hasLargerResult(op.getKind()) ? op.getTargets()[index] : op.getSources()[index];
  return llvm::divideCeil(getTurns(op.getKind()) * (group - 1) * spmd::getBytes(counted.getType()), group);
}

int64_t CollectiveOp::getWireBytes() {
  int64_t bytes = 0;
  for (unsigned index = 0; index < getSources().size(); ++index)
    bytes += countWireBytes(*this, index);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

PiecesOp::Piece PiecesOp::getPiece(int64_t index) {
  int64_t rank = getDims();
  ArrayRef<int64_t> box = getBoxes().slice(index * 3 * rank, 3 * rank);
  return {getEnds()[2 * index], getEnds()[2 * index + 1], box.take_front(rank), box.slice(rank, rank),
          box.take_back(rank)};
}

LogicalResult PiecesOp::verify() {
  int64_t rank = getDims(), ranks = spmd::getMesh(*this) ? spmd::getMesh(*this).getNumRanks() : 1;
  if (rank < 0 || getEnds().size() % 2 != 0 || int64_t(getBoxes().size()) != size() * 3 * rank)
    return emitOpError() << "has " << getEnds().size() << " ends and " << getBoxes().size() << " numbers of boxes of "
                         << rank << " dims (C1)";
  for (int64_t i = 0; i < size(); ++i) {
    Piece piece = getPiece(i);
    if (llvm::any_of(getBoxes().slice(i * 3 * rank, 3 * rank), [](int64_t number) { return number < 0; }))
      return emitOpError() << "piece " << i << " has an extent or a start below 0 (C1)";
    if (std::min(piece.source, piece.target) < 0 || std::max(piece.source, piece.target) >= ranks)
      return emitOpError() << "piece " << i << " goes from rank " << piece.source << " to " << piece.target << " of "
                           << ranks << " (C2)";
    if (llvm::is_contained(piece.extents, 0))
      return emitOpError() << "piece " << i << " is empty (C3)";
  }
  return success();
}

static bool fits(ArrayRef<int64_t> extents, ArrayRef<int64_t> start, ArrayRef<int64_t> shape) {
  for (auto [extent, first, whole] : llvm::zip(extents, start, shape))
    if (first + extent > whole)
      return false;
  return true;
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto pieces = tables.lookupNearestSymbolFrom<PiecesOp>(*this, getPiecesAttr());
  MemRefType source = getSource().getType(), target = getTarget().getType();
  if (!pieces || source.getRank() != int64_t(pieces.getDims()) || target.getRank() != source.getRank())
    return emitOpError() << "moves " << getPiecesAttr() << ", which is not an exec.pieces of " << source.getRank()
                         << " dims (C1)";
  for (int64_t i = 0; i < pieces.size(); ++i) {
    PiecesOp::Piece piece = pieces.getPiece(i);
    if (!fits(piece.extents, piece.from, source.getShape()) || !fits(piece.extents, piece.to, target.getShape()))
      return emitOpError() << "moves piece " << i << " of " << getPiecesAttr() << ", which is not in " << source
                           << " or " << target << " (C2)";
  }
  if (source.getElementType() != target.getElementType())
    return emitOpError() << "moves " << source.getElementType() << " into " << target.getElementType() << " (C3)";
  return success();
}

SmallVector<spmd::AxisAttr> ExchangeOp::getGroupAxes() { return toList(getAxes()); }

/// The busiest rank counts.
int64_t ExchangeOp::getWireBytes() {
  auto pieces = SymbolTable::lookupNearestSymbolFrom<PiecesOp>(*this, getPiecesAttr());
  llvm::DenseMap<int64_t, int64_t> sent;
  int64_t most = 0;
  for (int64_t i = 0; i < pieces.size(); ++i) {
    PiecesOp::Piece piece = pieces.getPiece(i);
    if (piece.source != piece.target)
      most = std::max(most, sent[piece.source] += ShapedType::getNumElements(piece.extents));
  }
  return most * spmd::getElementBytes(getSource().getType().getElementType());
}

int64_t ExchangeOp::getNumPeers() {
  auto pieces = SymbolTable::lookupNearestSymbolFrom<PiecesOp>(*this, getPiecesAttr());
  std::set<std::pair<int64_t, int64_t>> pairs; // source, target
  for (int64_t i = 0; i < pieces.size(); ++i)
    if (PiecesOp::Piece piece = pieces.getPiece(i);
        piece.source != piece.target && ShapedType::getNumElements(piece.extents) > 0)
      pairs.insert({piece.source, piece.target});
  llvm::DenseMap<int64_t, int64_t> targets, sources;
  int64_t most = 0;
  for (auto [source, target] : pairs)
    most = std::max({most, ++targets[source], ++sources[target]});
  return most;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

template <typename MessageOp> static LogicalResult verifyMessage(MessageOp op) {
  int64_t peer = op.getPeer(), channel = op.getChannel(), microbatch = op.getMicrobatch();
  if (peer >= 0 && channel >= 0 && microbatch >= -1)
    return success();
  return op.emitOpError() << "is about rank " << peer << ", channel " << channel << ", microbatch " << microbatch
                          << " (C1)";
}

bool cleave::exec::isMeeting(Operation *command) {
  return isa<spmd::CollectiveOpInterface, SendOp, ReceiveOp>(command);
}

OperandRange SendOp::getReads() { return getOperation()->getOperands(); }
OperandRange SendOp::getWrites() { return getOperation()->getOperands().take_front(0); }
LogicalResult SendOp::verify() { return verifyMessage(*this); }

OperandRange ReceiveOp::getReads() { return getOperation()->getOperands().take_front(0); }
OperandRange ReceiveOp::getWrites() { return getOperation()->getOperands(); }
LogicalResult ReceiveOp::verify() { return verifyMessage(*this); }
