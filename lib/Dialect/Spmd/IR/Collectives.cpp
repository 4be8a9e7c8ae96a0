//===- Collectives.cpp - what reshards and collectives hold, and send -----===//
//
// Collectives name axes of the module's mesh; without one they cannot be checked, which is an error too. In the text
// form axes stand in braces: `{"data", "model"}`, and per dim `[{"data"}, {}]`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/AxisLists.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Sharding/PartMoves.h"
#include "cleave/Sharding/RankGroups.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include "cleave/Sharding/WindowMoves.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Text form
//===----------------------------------------------------------------------===//

/// `{"x", "y"}`.
static ParseResult parseAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<AxisAttr> list;
  if (parseAxisSet(parser, list))
    return failure();
  axes = parser.getBuilder().getArrayAttr(SmallVector<Attribute>(list.begin(), list.end()));
  return success();
}

static void printAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printAxisSet(printer, llvm::to_vector(axes.getAsRange<AxisAttr>()));
}

static ParseResult parseAxesPerDim(OpAsmParser &parser, ArrayAttr &dims) {
  SmallVector<Attribute> lists;
  auto parseEntry = [&]() -> ParseResult {
    ArrayAttr axes;
    if (parseAxes(parser, axes))
      return failure();
    lists.push_back(axes);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  dims = parser.getBuilder().getArrayAttr(lists);
  return success();
}

/// `[{"x"}, {}]`: a set for each dim.
static void printAxesPerDim(OpAsmPrinter &printer, Operation *op, ArrayAttr dims) {
  printer << '[';
  llvm::interleaveComma(dims.getAsRange<ArrayAttr>(), printer, [&](ArrayAttr axes) { printAxes(printer, op, axes); });
  printer << ']';
}

#define GET_OP_CLASSES
#include "cleave/Dialect/Spmd/IR/SpmdOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The axes of all dims, in their order.
static SmallVector<AxisAttr> flatten(ArrayAttr dims) {
  SmallVector<AxisAttr> axes;
  for (ArrayAttr list : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, list.getAsRange<AxisAttr>());
  return axes;
}

/// Ranks along all of `axes`, an array of axes.
static int64_t getExtent(MeshAttr mesh, Attribute axes) {
  int64_t extent = 1;
  for (AxisAttr axis : cast<ArrayAttr>(axes).getAsRange<AxisAttr>())
    extent *= axis.getExtent(mesh);
  return extent;
}

/// C2 of ops with one axis list per dim.
static LogicalResult verifyAxesPerDim(Operation *op, ArrayAttr dims) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  if (static_cast<int64_t>(dims.size()) == type.getRank())
    return success();
  return op->emitOpError() << "has " << dims.size() << " axis lists but operand has " << type.getRank() << " dims";
}

/// `"x"=2, "y":(1)2`: axes, and the extents of whole ones.
static std::string describeAxes(MeshAttr mesh, Attribute axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(cast<ArrayAttr>(axes).getAsRange<AxisAttr>(), os, [&](AxisAttr axis) {
    os << '"' << axis.getName() << '"';
    if (axis.isSubAxis())
      os << ":(" << axis.getPreSize() << ')' << axis.getSize();
    else
      os << '=' << axis.getExtent(mesh);
  });
  return text;
}

/// What `extent` becomes when it is gathered over `grow` and sliced over `shrink` (null: not); nothing if it does not
/// divide or overflows.
static std::optional<int64_t> computeExtent(int64_t extent, MeshAttr mesh, Attribute grow, Attribute shrink) {
  int64_t grown = extent, pieces = shrink ? getExtent(mesh, shrink) : 1;
  if (grow && llvm::MulOverflow(extent, getExtent(mesh, grow), grown))
    return std::nullopt;
  if (grown % pieces != 0)
    return std::nullopt;
  return grown / pieces;
}

/// Result dims are operand dims gathered over `grow` and sliced over `shrink` (one axis list per dim; null: none).
static LogicalResult verifyShape(Operation *op, ArrayAttr grow, ArrayAttr shrink) {
  for (ArrayAttr dims : {grow, shrink})
    if (dims && failed(verifyAxesPerDim(op, dims)))
      return failure();
  MeshAttr mesh = getMesh(op);
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return op->emitOpError() << "result " << to << " does not have the rank and element type of operand " << from;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    Attribute gathered = grow ? grow[dim] : Attribute(), sliced = shrink ? shrink[dim] : Attribute();
    std::optional<int64_t> extent = computeExtent(from.getDimSize(dim), mesh, gathered, sliced);
    if (extent == to.getDimSize(dim))
      continue;
    InFlightDiagnostic error = op->emitOpError() << "result dim " << dim << " is " << to.getDimSize(dim)
                                                 << " but operand dim " << from.getDimSize(dim);
    if (gathered)
      error << " gathered over " << describeAxes(mesh, gathered);
    if (sliced)
      error << " sliced over " << describeAxes(mesh, sliced);
    return error << " gives " << (extent ? std::to_string(*extent) : "no whole number");
  }
  return success();
}

/// Sharding is what these ops change, and all that they may.
static LogicalResult verifySameShape(Operation *op) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return op->emitOpError() << "result " << to << " differs from operand " << from << " in more than sharding";
  return success();
}

/// An annotation must not go with the value that it is for: somebody has to be told.
void PinOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getAnnotation())
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult ConstrainOp::verify() {
  if (!getSharding(getResult().getType()))
    return emitOpError() << "result " << getResult().getType() << " has no sharding";
  return verifySameShape(*this);
}

LogicalResult ReshardOp::verify() {
  for (auto [type, what] : {std::pair(getInput().getType(), "operand"), std::pair(getResult().getType(), "result")})
    if (!getSharding(type))
      return emitOpError() << what << " " << type << " has no sharding";
  MeshAttr from = getSharding(getInput().getType()).getMesh(), to = getSharding(getResult().getType()).getMesh();
  if (from != to)
    return emitOpError() << "operand is sharded over " << from << " but result over " << to;
  return verifySameShape(*this);
}

LogicalResult AllGatherOp::verify() { return verifyShape(*this, getDims(), nullptr); }
LogicalResult LocalSliceOp::verify() { return verifyShape(*this, nullptr, getDims()); }
LogicalResult ReduceScatterOp::verify() { return verifyShape(*this, nullptr, getDims()); }

/// A piece of an axis: its name, how much of the axis is major to it, and its size.
using AxisPiece = std::tuple<StringRef, int64_t, int64_t>;

/// The axes in `dims`, sub-axes that touch made one: `a` is the same as `a:(1)2` and `a:(2)2`.
static SmallVector<AxisPiece> mergeAxes(ArrayAttr dims, MeshAttr mesh) {
  SmallVector<AxisPiece> pieces, merged;
  for (AxisAttr axis : flatten(dims))
    pieces.push_back({axis.getName(), axis.isSubAxis() ? axis.getPreSize() : 1, axis.getExtent(mesh)});
  llvm::sort(pieces);
  for (auto [name, major, size] : pieces)
    if (!merged.empty() && std::get<0>(merged.back()) == name &&
        std::get<1>(merged.back()) * std::get<2>(merged.back()) == major)
      std::get<2>(merged.back()) *= size;
    else
      merged.push_back({name, major, size});
  return merged;
}

LogicalResult AllToAllOp::verify() {
  MeshAttr mesh = getMesh(*this);
  auto emitError = [&] { return emitOpError(); };
  if (failed(verifyAxes(emitError, mesh, flatten(getSlice()))))
    return failure();
  if (mergeAxes(getGather(), mesh) != mergeAxes(getSlice(), mesh))
    return emitOpError() << "does not slice over the axes that it gathers over";
  return verifyShape(*this, getGather(), getSlice());
}

/// C1 to C3 of one side of a permute.
static LogicalResult verifySide(PermuteOp op, MeshAttr mesh, ShardingAttr sharding, Type type, StringRef what) {
  auto global = cast<RankedTensorType>(op.getGlobal());
  auto emitError = [&] { return op.emitOpError(); };
  if (sharding.isPartial())
    return op.emitOpError() << "sharding " << sharding << " of the " << what << " is partial";
  if (sharding.getMesh() != mesh) {
    InFlightDiagnostic error = op.emitOpError() << what << " is sharded over " << sharding.getMesh()
                                                << " but the module's mesh is " << mesh;
    Operation *owner = op;
    while (!owner->hasAttr(SpmdDialect::kMeshAttr))
      owner = owner->getParentOp();
    error.attachNote(owner->getLoc()) << "which stands here";
    return error;
  }
  if (failed(sharding.verifyEncoding(global.getShape(), global.getElementType(), emitError)))
    return failure();
  Type local = getLocalType(withSharding(global, sharding));
  if (type != local)
    return op.emitOpError() << what << " is " << type << " but its shard of " << global << " is " << local;
  return success();
}

LogicalResult PermuteOp::verify() {
  MeshAttr mesh = getMesh(*this);
  if (failed(verifySide(*this, mesh, getFrom(), getInput().getType(), "operand")) ||
      failed(verifySide(*this, mesh, getTo(), getResult().getType(), "result")))
    return failure();
  return success(MeshAtoms::create(mesh, *this, {getFrom(), getTo()}) != nullptr); // C4
}

/// C6.
static LogicalResult verifyMissing(WindowOp op, RankedTensorType from, MeshAttr mesh) {
  if (!op.getMissing() && !op.getFirsts() && !op.getEnds() && !op.getTakers())
    return success();
  for (auto [name, list] :
       {std::pair("missing", op.getMissing()), {"from", op.getFirsts()}, {"to", op.getEnds()}, {"on", op.getTakers()}})
    if (!list || list->size() != size_t(from.getRank()))
      return op.emitOpError() << "says " << name << " of " << (list ? list->size() : 0) << " dims, but operand has "
                              << from.getRank() << " (C6)";
  for (auto [dim, missing] : llvm::enumerate(*op.getMissing())) {
    bool isSplit = !cast<ArrayAttr>(op.getDims()[dim]).empty();
    int64_t room = from.getDimSize(dim) * getExtent(mesh, op.getDims()[dim]);
    if (missing < 0 || missing > room || (!isSplit && missing))
      return op.emitOpError() << "misses " << missing << " positions along dim " << dim << ", of "
                              << (isSplit ? room : 0) << " in shards (C6)";
  }
  return success();
}

LogicalResult WindowOp::verify() {
  MeshAttr mesh = getMesh(*this);
  auto from = cast<RankedTensorType>(getInput().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyAxesPerDim(*this, getDims())))
    return failure();
  size_t rank = from.getRank();
  for (auto [name, list] :
       {std::pair("steps", getSteps()), std::pair("lows", getLows()), std::pair("highs", getHighs())})
    if (list.size() != rank)
      return emitOpError() << "has " << list.size() << " " << name << " but operand has " << rank << " dims";
  if (from.getElementType() != to.getElementType() || to.getRank() != from.getRank())
    return emitOpError() << "result " << to << " does not have the rank and element type of operand " << from;
  if (TypedAttr fill = getFillAttr(); fill && fill.getType() != from.getElementType())
    return emitOpError() << "fills " << from.getElementType() << " with a number of type " << fill.getType();
  if (failed(verifyMissing(*this, from, mesh)))
    return failure();
  if (getWraps() && getFillAttr())
    return emitOpError() << "wraps, and has something to fill in";
  if (getReflects() && (getWraps() || getFillAttr()))
    return emitOpError() << "reflects, and " << (getWraps() ? "wraps" : "has something to fill in");
  for (size_t dim = 0; dim < rank; ++dim) {
    if (getSteps()[dim] != 0 && cast<ArrayAttr>(getDims()[dim]).empty())
      return emitOpError() << "has the step " << getSteps()[dim] << " along dim " << dim << " cut over "
                           << getExtent(mesh, getDims()[dim]) << " ranks";
    int64_t wanted = 0, ranks = getExtent(mesh, getDims()[dim]), last = 0, end = 0;
    if (llvm::SubOverflow(getHighs()[dim], getLows()[dim], wanted) || wanted != to.getShape()[dim])
      return emitOpError() << "result dim " << dim << " is " << to.getShape()[dim] << " but the interval from "
                           << getLows()[dim] << " to " << getHighs()[dim] << " is of another size";
    if (llvm::MulOverflow(getSteps()[dim], ranks, last) || llvm::AddOverflow(last, getHighs()[dim], end) ||
        llvm::AddOverflow(last, getLows()[dim], end) || llvm::MulOverflow(from.getShape()[dim], ranks, end))
      return emitOpError() << "reaches beyond counting along dim " << dim;
  }
  return success();
}

/// Positions that a rank has of parts: of each by itself, and of all of them put one behind the other.
struct PartShards {
  int64_t apart = 0, together = 0;
};

template <typename OpT> static FailureOr<PartShards> getPartShards(OpT op, StringRef verb) {
  int64_t dim = op.getDim(), members = getExtent(getMesh(op), op.getAxes()), rank = op.getInput().getType().getRank();
  if (dim < 0 || dim >= rank)
    return op.emitOpError() << verb << " along dim " << dim << " but operand has " << rank << " dims";
  int64_t all = 0, ignored = 0;
  for (int64_t part : op.getParts())
    if (part < 0 || llvm::AddOverflow(all, part, all) || llvm::AddOverflow(all, members, ignored))
      return op.emitOpError() << "has a part of " << part << " positions";
  PartShards shards;
  for (int64_t part : op.getParts())
    shards.apart += llvm::divideCeil(part, members);
  shards.together = llvm::divideCeil(all, members);
  return shards;
}

/// Operand and result have so many positions along the dim.
template <typename OpT> static LogicalResult checkParts(OpT op, int64_t have, int64_t make, StringRef what) {
  RankedTensorType from = op.getInput().getType(), to = op.getResult().getType();
  SmallVector<int64_t> wanted(from.getShape());
  wanted[op.getDim()] = make;
  auto expected = RankedTensorType::get(wanted, from.getElementType());
  if (from.getDimSize(op.getDim()) != have || to != expected)
    return op.emitOpError() << "makes " << to << " of " << from << " but " << what << " " << have
                            << " positions along dim " << op.getDim() << " and make " << expected;
  return success();
}

LogicalResult JoinOp::verify() {
  FailureOr<PartShards> shards = getPartShards(*this, "joins");
  return failed(shards) ? failure() : checkParts(*this, shards->apart, shards->together, "shards of its parts are");
}

LogicalResult SplitOp::verify() {
  FailureOr<PartShards> shards = getPartShards(*this, "splits");
  return failed(shards) ? failure()
                        : checkParts(*this, shards->together, shards->apart, "a shard of all its parts has");
}

SmallVector<DimWindow, 4> WindowOp::getWindows() {
  MeshAttr mesh = getMesh(*this);
  Beyond beyond = getWraps()      ? Beyond::Wrap
                  : getReflects() ? Beyond::Reflect
                  : getFillAttr() ? Beyond::Fill
                                  : Beyond::Nearest;
  SmallVector<DimWindow, 4> windows;
  for (auto [dim, extent] : llvm::enumerate(cast<RankedTensorType>(getInput().getType()).getShape())) {
    DimWindow &window = windows.emplace_back(
        DimWindow{extent, getExtent(mesh, getDims()[dim]), getSteps()[dim], getLows()[dim], getHighs()[dim], beyond});
    if (!getMissing() || cast<ArrayAttr>(getDims()[dim]).empty())
      continue;
    window.missing = (*getMissing())[dim];
    window.first = (*getFirsts())[dim];
    window.end = (*getEnds())[dim];
    window.takers = (*getTakers())[dim];
  }
  return windows;
}

/// What a rank has is what it wants.
OpFoldResult WindowOp::fold(FoldAdaptor) {
  if (getMesh(*this) && llvm::all_of(getWindows(), [](const DimWindow &window) { return window.isIdentity(); }))
    return getInput();
  return {};
}

RankGroups cleave::spmd::getRankGroups(CollectiveOpInterface collective) {
  return getMesh(collective).getRankGroups(collective.getGroupAxes());
}

int64_t cleave::spmd::countOthersInGroup(Operation *collective) {
  return getRankGroups(cast<CollectiveOpInterface>(collective)).size() - 1;
}

/// For every collective, through the interface: what one of them needs besides stands in its own `verify`.
LogicalResult cleave::spmd::verifyCollective(Operation *op) {
  MeshAttr mesh = getMesh(op);
  if (!mesh)
    return op->emitOpError() << "needs a mesh, but no enclosing op has the attribute '" << SpmdDialect::kMeshAttr
                             << "'";
  auto collective = cast<CollectiveOpInterface>(op);
  if (failed(verifyAxes([&] { return op->emitOpError(); }, mesh, collective.getGroupAxes())))
    return failure();
  std::optional<ReductionKind> kind = collective.getReductionKind();
  if (!kind || op->getNumOperands() == 0)
    return success();
  Type type = getElementTypeOrSelf(op->getOperand(0));
  if (isLegalReduction(*kind, type))
    return success();
  return op->emitOpError() << "cannot combine " << type << " by " << stringifyReductionKind(*kind) << " (S6)";
}

//===----------------------------------------------------------------------===//
// CollectiveOpInterface: groups and kinds
//===----------------------------------------------------------------------===//

static SmallVector<AxisAttr> toList(ArrayAttr axes) { return llvm::to_vector(axes.getAsRange<AxisAttr>()); }

SmallVector<AxisAttr> AllReduceOp::getGroupAxes() { return toList(getAxes()); }
SmallVector<AxisAttr> AllGatherOp::getGroupAxes() { return flatten(getDims()); }
SmallVector<AxisAttr> ReduceScatterOp::getGroupAxes() { return flatten(getDims()); }
SmallVector<AxisAttr> AllToAllOp::getGroupAxes() { return flatten(getGather()); }
SmallVector<AxisAttr> WindowOp::getGroupAxes() { return flatten(getDims()); }
SmallVector<AxisAttr> JoinOp::getGroupAxes() { return toList(getAxes()); }
SmallVector<AxisAttr> SplitOp::getGroupAxes() { return toList(getAxes()); }
SmallVector<AxisAttr> LocalSliceOp::getGroupAxes() { return flatten(getDims()); }
SmallVector<AxisAttr> KeepOnFirstOp::getGroupAxes() { return toList(getAxes()); }
SmallVector<AxisAttr> AxisIndexOp::getGroupAxes() { return toList(getAxes()); }

/// As the planner counts them: ranks that differ in nothing else have nothing for each other.
SmallVector<AxisAttr> PermuteOp::getGroupAxes() {
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getFrom().getMesh(), *this, {getFrom(), getTo()});
  if (!atoms)
    return {};
  return SmallVector<AxisAttr>(atoms->toAxes(
      movedAtoms(atoms->getAtoms(), ReshardStepKind::Exchange, atoms->toState(getFrom()), atoms->toState(getTo()))));
}

std::optional<ReductionKind> AllReduceOp::getReductionKind() { return getKind(); }
std::optional<ReductionKind> ReduceScatterOp::getReductionKind() { return getKind(); }

//===----------------------------------------------------------------------===//
// CollectiveOpInterface: what is sent
//===----------------------------------------------------------------------===//

/// `times` (n-1)/n of the bytes of `value`, n ranks in a group.
static int64_t countBytes(CollectiveOpInterface op, Value value, int64_t times = 1) {
  int64_t group = getRankGroups(op).size();
  return llvm::divideCeil(times * (group - 1) * getBytes(value.getType()), group);
}

int64_t AllReduceOp::getWireBytes() { return countBytes(*this, getInput(), 2); }
int64_t AllGatherOp::getWireBytes() { return countBytes(*this, getResult()); }
int64_t ReduceScatterOp::getWireBytes() { return countBytes(*this, getInput()); }
int64_t AllToAllOp::getWireBytes() { return countBytes(*this, getInput()); }

/// Not every rank sends the same: the busiest one counts, as for the planner.
int64_t PermuteOp::getWireBytes() {
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getFrom().getMesh(), *this, {getFrom(), getTo()});
  auto global = cast<RankedTensorType>(getGlobal());
  return exchangeBytes(atoms->getAtoms(), global.getShape(), getElementBytes(global.getElementType()),
                       atoms->toState(getFrom()), atoms->toState(getTo()));
}

int64_t PermuteOp::getNumPeers() {
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getFrom().getMesh(), *this, {getFrom(), getTo()});
  return exchangePeers(atoms->getAtoms(), cast<RankedTensorType>(getGlobal()).getShape(), atoms->toState(getFrom()),
                       atoms->toState(getTo()));
}

/// Those at the ends send less than those in the middle, which count.
int64_t WindowOp::getWireBytes() {
  return countSentElements(getWindows()) *
         getElementBytes(cast<RankedTensorType>(getInput().getType()).getElementType());
}

int64_t WindowOp::getNumPeers() { return countPeers(getWindows()); }

/// Of one position a rank sends all that it has along the other dims.
template <typename OpT> static int64_t countPartBytes(OpT op, decltype(countSentOfParts) countSent) {
  int64_t extent = op.getInput().getType().getDimSize(op.getDim());
  int64_t sent = extent == 0 ? 0 : countSent(op.getParts(), getRankGroups(op).size());
  return sent == 0 ? 0 : sent * (getBytes(op.getInput().getType()) / extent);
}

int64_t JoinOp::getWireBytes() { return countPartBytes(*this, countSentOfParts); }
int64_t SplitOp::getWireBytes() { return countPartBytes(*this, countSentOfSplit); }
int64_t JoinOp::getNumPeers() { return countPeersOfParts(getParts(), spmd::getRankGroups(*this).size()); }
int64_t SplitOp::getNumPeers() { return countPeersOfSplit(getParts(), spmd::getRankGroups(*this).size()); }

void cleave::spmd::forEachCollective(Operation *root, function_ref<void(CollectiveOpInterface, int64_t)> visit) {
  auto func = dyn_cast<func::FuncOp>(root);
  if (!func || !func.getBody().hasOneBlock())
    return root->walk([&](CollectiveOpInterface op) { visit(op, getTimes(op)); }), void();
  Spans spans(func);
  for (Operation &op : func.getBody().front())
    op.walk([&](CollectiveOpInterface collective) {
      visit(collective, multiplyTimes(spans.getTimes(spans.get(&op)), getTimes(collective)));
    });
}

int64_t cleave::spmd::countWireBytes(Operation *root) {
  int64_t total = 0;
  forEachCollective(root, [&](CollectiveOpInterface op, int64_t runs) { total += runs * op.getWireBytes(); });
  return total;
}

int64_t cleave::spmd::getTimes(Operation *op) {
  int64_t times = 1;
  for (Operation *around = op->getParentOp(); around; around = around->getParentOp())
    if (auto here = around->getAttrOfType<IntegerAttr>(kTimesAttr))
      times = multiplyTimes(times, here.getInt());
  return times;
}
