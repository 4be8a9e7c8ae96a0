//===- Collectives.cpp - verifiers of reshards and collectives ------------===//
//
// Collectives name axes of the module's mesh; without one they cannot be checked, which is an error too. In the text
// form axes stand in braces: `{"data", "model"}`, and per dim `[{"data"}, {}]`.
//
//===----------------------------------------------------------------------===//
#include "AxisLists.h"

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

/// Result dims are operand dims times `grow` over `shrink` (one axis list per dim; null: none).
static LogicalResult verifyShape(Operation *op, MeshAttr mesh, ArrayAttr grow, ArrayAttr shrink) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return op->emitOpError() << "result type " << to << " does not match operand type " << from;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    int64_t grown = from.getDimSize(dim) * (grow ? getExtent(mesh, grow[dim]) : 1);
    int64_t pieces = shrink ? getExtent(mesh, shrink[dim]) : 1;
    if (to.getDimSize(dim) * pieces != grown)
      return op->emitOpError() << "result dim " << dim << " is " << to.getDimSize(dim) << " but operand dim "
                               << from.getDimSize(dim) << (grow ? " gathered" : " cut") << " gives "
                               << (grown % pieces ? "a fraction" : std::to_string(grown / pieces));
  }
  return success();
}

static LogicalResult verifySameShape(Operation *op) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return op->emitOpError() << "result type " << to << " differs from operand type " << from
                             << " in more than sharding";
  return success();
}

LogicalResult ConstrainOp::verify() {
  if (!getSharding(getResult().getType()))
    return emitOpError() << "result type " << getResult().getType() << " has no sharding";
  return verifySameShape(*this);
}

LogicalResult ReshardOp::verify() {
  ShardingAttr from = getSharding(getInput().getType()), to = getSharding(getResult().getType());
  if (!from || !to)
    return emitOpError() << (from ? "result" : "operand") << " type has no sharding";
  if (from.getMesh() != to.getMesh())
    return emitOpError() << "operand is sharded over " << from.getMesh() << " but result over " << to.getMesh();
  return verifySameShape(*this);
}

LogicalResult AllReduceOp::verify() {
  MeshAttr mesh = requireMesh(*this);
  if (!mesh)
    return failure();
  SmallVector<AxisAttr> axes = llvm::to_vector(getAxes().getAsRange<AxisAttr>());
  return verifyAxes([&] { return emitOpError(); }, mesh, axes);
}

LogicalResult AxisIndexOp::verify() {
  MeshAttr mesh = requireMesh(*this);
  if (!mesh)
    return failure();
  SmallVector<AxisAttr> axes = llvm::to_vector(getAxes().getAsRange<AxisAttr>());
  return verifyAxes([&] { return emitOpError(); }, mesh, axes);
}

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

LogicalResult ReduceScatterOp::verify() { return verifyScatter(*this, getDims()); }
LogicalResult LocalSliceOp::verify() { return verifyScatter(*this, getDims()); }

LogicalResult AllToAllOp::verify() {
  MeshAttr mesh = requireMesh(*this);
  if (!mesh || failed(verifyAxesPerDim(*this, mesh, getGather())) ||
      failed(verifyAxesPerDim(*this, mesh, getSlice())))
    return failure();
  auto order = [](AxisAttr lhs, AxisAttr rhs) {
    return std::make_tuple(lhs.getName(), lhs.getPreSize()) < std::make_tuple(rhs.getName(), rhs.getPreSize());
  };
  SmallVector<AxisAttr> gathered = flatten(getGather()), sliced = flatten(getSlice());
  llvm::sort(gathered, order);
  llvm::sort(sliced, order);
  if (gathered != sliced)
    return emitOpError() << "gathers other axes than it slices";
  return verifyShape(*this, mesh, getGather(), getSlice());
}

LogicalResult PermuteOp::verify() {
  auto global = cast<RankedTensorType>(getGlobal());
  for (ShardingAttr sharding : {getFrom(), getTo()})
    if (sharding.isPartial())
      return emitOpError() << "sharding " << sharding << " is partial";
  auto check = [&](ShardingAttr sharding, Type type, StringRef what) -> LogicalResult {
    if (failed(sharding.verifyEncoding(global.getShape(), global.getElementType(), [&] { return emitOpError(); })))
      return failure();
    Type local = getLocalType(withSharding(global, sharding));
    if (type != local)
      return emitOpError() << what << " type is " << type << " but the shard of " << global << " is " << local;
    return success();
  };
  if (failed(check(getFrom(), getInput().getType(), "operand")))
    return failure();
  return check(getTo(), getResult().getType(), "result");
}
