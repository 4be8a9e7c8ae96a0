//===- Collectives.cpp - verifiers of reshards and collectives ------------===//
//
// Collectives name axes of the module's mesh; without one they cannot be checked, which is an error too. In the text
// form axes stand in braces: `{"data", "model"}`, and per dim `[{"data"}, {}]`.
//
//===----------------------------------------------------------------------===//
#include "AxisLists.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Text form
//===----------------------------------------------------------------------===//

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

/// The mesh of the module, or an error.
static MeshAttr requireMesh(Operation *op) {
  MeshAttr mesh = getMesh(op);
  if (!mesh)
    op->emitOpError() << "needs a mesh, but no enclosing op has the attribute '" << SpmdDialect::kMeshAttr << "'";
  return mesh;
}

static SmallVector<AxisAttr> flatten(ArrayAttr dims) {
  SmallVector<AxisAttr> axes;
  for (ArrayAttr list : dims.getAsRange<ArrayAttr>())
    llvm::append_range(axes, list.getAsRange<AxisAttr>());
  return axes;
}

static int64_t getExtent(MeshAttr mesh, Attribute axes) {
  int64_t extent = 1;
  for (AxisAttr axis : cast<ArrayAttr>(axes).getAsRange<AxisAttr>())
    extent *= axis.getExtent(mesh);
  return extent;
}

/// C1 and C2 of ops with one axis list per dim.
static LogicalResult verifyAxesPerDim(Operation *op, MeshAttr mesh, ArrayAttr dims) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  if (static_cast<int64_t>(dims.size()) != type.getRank())
    return op->emitOpError() << "has " << dims.size() << " axis lists but operand has " << type.getRank() << " dims";
  SmallVector<AxisAttr> axes = flatten(dims);
  return verifyAxes([&] { return op->emitOpError(); }, mesh, axes);
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
static LogicalResult verifyShape(Operation *op, MeshAttr mesh, ArrayAttr grow, ArrayAttr shrink) {
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

/// The reduction kind is one that elements of the operand have (S6).
static LogicalResult verifyKind(Operation *op, ReductionKind kind) {
  Type elementType = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
  if (isLegalReduction(kind, elementType))
    return success();
  return op->emitOpError() << "cannot combine " << elementType << " by " << stringifyReductionKind(kind) << " (S6)";
}

static LogicalResult verifySameShape(Operation *op) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return op->emitOpError() << "result " << to << " differs from operand " << from << " in more than sharding";
  return success();
}

/// A wish must not go with the value that it is for: somebody has to be told.
void PinOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getWish())
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

/// Ops over one list of axes.
static LogicalResult verifyAxisList(Operation *op, ArrayAttr axes) {
  MeshAttr mesh = requireMesh(op);
  if (!mesh)
    return failure();
  return verifyAxes([&] { return op->emitOpError(); }, mesh, llvm::to_vector(axes.getAsRange<AxisAttr>()));
}

LogicalResult AllReduceOp::verify() {
  return failed(verifyAxisList(*this, getAxes())) ? failure() : verifyKind(*this, getKind());
}

LogicalResult AxisIndexOp::verify() { return verifyAxisList(*this, getAxes()); }

LogicalResult AllGatherOp::verify() {
  MeshAttr mesh = requireMesh(*this);
  if (!mesh || failed(verifyAxesPerDim(*this, mesh, getDims())))
    return failure();
  return verifyShape(*this, mesh, getDims(), nullptr);
}

/// Ops that leave each rank one piece of its operand.
static LogicalResult verifyScatter(Operation *op, ArrayAttr dims) {
  MeshAttr mesh = requireMesh(op);
  if (!mesh || failed(verifyAxesPerDim(op, mesh, dims)))
    return failure();
  return verifyShape(op, mesh, nullptr, dims);
}

LogicalResult LocalSliceOp::verify() { return verifyScatter(*this, getDims()); }

LogicalResult ReduceScatterOp::verify() {
  return failed(verifyScatter(*this, getDims())) ? failure() : verifyKind(*this, getKind());
}

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
  MeshAttr mesh = requireMesh(*this);
  if (!mesh || failed(verifyAxesPerDim(*this, mesh, getGather())) || failed(verifyAxesPerDim(*this, mesh, getSlice())))
    return failure();
  if (mergeAxes(getGather(), mesh) != mergeAxes(getSlice(), mesh))
    return emitOpError() << "does not slice over the axes that it gathers over";
  return verifyShape(*this, mesh, getGather(), getSlice());
}

/// C1 to C3 of one side of a permute.
static LogicalResult verifySide(PermuteOp op, MeshAttr mesh, ShardingAttr sharding, Type type, StringRef what) {
  auto global = cast<RankedTensorType>(op.getGlobal());
  auto emitError = [&] { return op.emitOpError(); };
  if (sharding.isPartial())
    return op.emitOpError() << "sharding " << sharding << " of the " << what << " is partial";
  if (sharding.getMesh() != mesh)
    return op.emitOpError() << what << " is sharded over " << sharding.getMesh() << " but the module's mesh is "
                            << mesh;
  if (failed(sharding.verifyEncoding(global.getShape(), global.getElementType(), emitError)))
    return failure();
  Type local = getLocalType(withSharding(global, sharding));
  if (type != local)
    return op.emitOpError() << what << " is " << type << " but its shard of " << global << " is " << local;
  return success();
}

LogicalResult PermuteOp::verify() {
  MeshAttr mesh = requireMesh(*this);
  if (!mesh || failed(verifySide(*this, mesh, getFrom(), getInput().getType(), "operand")))
    return failure();
  if (failed(verifySide(*this, mesh, getTo(), getResult().getType(), "result")))
    return failure();
  return success(MeshAtoms::create(mesh, *this, {getFrom(), getTo()}) != nullptr); // C4
}
