//===- Memory.cpp - buffers, views, and what lies in them -----------------===//
//
// The rank table, and what is wrong with memory, by number. Whether views of every rank lie in their buffers, and
// commands do not get into each other's way, is asked of a whole program (VerifyPlan.cpp).
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// The column of the module around `op`; null if there is none of that name.
static DenseI64ArrayAttr findColumn(Operation *op, StringRef column) {
  auto module = op->getParentOfType<ModuleOp>();
  auto table = module ? module->getAttrOfType<DictionaryAttr>(ExecDialect::kRankTableAttr) : DictionaryAttr();
  return table ? table.getAs<DenseI64ArrayAttr>(column) : DenseI64ArrayAttr();
}

ArrayRef<int64_t> NumberAttr::getPerRank(Operation *op) const {
  assert(hasColumn() && findColumn(op, getColumn()) && "no column of the rank table");
  return findColumn(op, getColumn());
}

/// A column that the module has.
static LogicalResult checkColumn(Operation *op, NumberAttr number, StringRef constraint) {
  if (!number.hasColumn() || findColumn(op, number.getColumn()))
    return success();
  return op->emitOpError() << "column \"" << number.getColumn() << "\" is not in the rank table " << constraint;
}

static LogicalResult checkColumns(Operation *op, ArrayAttr numbers, StringRef constraint) {
  for (NumberAttr number : numbers.getAsRange<NumberAttr>())
    if (failed(checkColumn(op, number, constraint)))
      return failure();
  return success();
}

/// The rank table: a number per rank in each column. Which collectives go together: a number.
LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kBucketAttr) {
    if (isa<IntegerAttr>(attribute.getValue()) && isa<spmd::CollectiveOpInterface, CollectiveOp>(op))
      return success();
    return op->emitError() << "'" << kBucketAttr << "' is a number, of a collective";
  }
  if (attribute.getName() != kRankTableAttr)
    return op->emitError() << "has an attribute '" << attribute.getName().getValue() << "', which no pass reads";
  auto table = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!isa<ModuleOp>(op) || !table)
    return op->emitError() << "'" << kRankTableAttr << "' is a dictionary, of a module";
  spmd::MeshAttr mesh = spmd::getMesh(op);
  int64_t ranks = mesh ? mesh.getNumRanks() : 1;
  for (NamedAttribute column : table) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(column.getValue());
    if (!numbers || numbers.size() != ranks)
      return op->emitError() << "column \"" << column.getName().getValue() << "\" of the rank table does not have "
                             << ranks << " numbers, one per rank";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers and views
//===----------------------------------------------------------------------===//

LogicalResult BufferOp::verify() {
  if (int64_t(getBytes()) < 0)
    return emitOpError() << "has " << int64_t(getBytes()) << " bytes (C1)";
  if (!llvm::isPowerOf2_64(getAlign()) || getAlign() > (1 << 20))
    return emitOpError() << "is aligned to " << int64_t(getAlign()) << ", which is not a power of two up to 2^20 (C2)";
  // Callers, and loads of weights, know the memory of the device alone.
  if (getOnHost() && getKind() != BufferKind::Activations)
    return emitOpError() << "is a buffer of kind " << stringifyBufferKind(getKind()) << " in the host's memory (C3)";
  return success();
}

std::optional<SmallVector<int64_t>> cleave::exec::getStrides(MemRefType type) {
  // Where there are no elements, MLIR knows no strides.
  if (type.getLayout().isIdentity())
    return computeSuffixProduct(type.getShape());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  bool isKnown = succeeded(type.getStridesAndOffset(strides, offset)) && offset == 0 &&
                 llvm::none_of(strides, [](int64_t stride) { return ShapedType::isDynamic(stride) || stride < 0; });
  return isKnown ? std::optional(strides) : std::nullopt;
}

int64_t cleave::exec::getSpanBytes(MemRefType type) {
  assert(getStrides(type) && "a layout without strides");
  int64_t last = 0;
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), *getStrides(type))) {
    if (extent == 0)
      return 0;
    last += (extent - 1) * stride;
  }
  return (last + 1) * spmd::getElementBytes(type.getElementType());
}

LogicalResult ViewOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto buffer = tables.lookupNearestSymbolFrom<BufferOp>(*this, getBufferAttr());
  if (!buffer)
    return emitOpError() << "sees " << getBufferAttr() << ", which is not an exec.buffer (C1)";
  if (Type element = getType().getElementType(); !spmd::isElementType(element))
    return emitOpError() << "has elements of " << element << ", which tensors of programs do not have (C6)";
  if (!getStrides(getType()))
    return emitOpError() << "has the layout of " << getType() << ", expected strides from 0 up and no offset (C2)";
  if (failed(checkColumn(*this, getOffset(), "(C3)")))
    return failure();
  auto whole = getWhole() ? getWhole().getDefiningOp<ViewOp>() : ViewOp();
  if (getWhole() && (!whole || whole.getWhole() || whole.getBufferAttr() != getBufferAttr()))
    return emitOpError() << "is of what is not a view of a tensor in " << getBufferAttr() << " (C5)";
  int64_t base = getOffset().getBase(), bytes = buffer.getBytes();
  if (getOffset().hasColumn())
    return success();
  if (base < 0 || base + getSpanBytes(getType()) > bytes ||
      base % spmd::getElementBytes(getType().getElementType()) != 0)
    return emitOpError() << getType() << " at " << base << " does not lie in the " << bytes << " bytes of "
                         << getBufferAttr() << ", aligned to its elements (C4)";
  return success();
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

static bool isSameOrFloat(Type from, Type to) { return from == to || (isa<FloatType>(from) && isa<FloatType>(to)); }

/// C2: on every rank, as this is where a wrong column would read past the end of a file.
static LogicalResult checkBox(LoadOp op, ArrayRef<int64_t> shape) {
  if (op.getStarts().size() != shape.size() || op.getSizes().size() != shape.size())
    return op.emitOpError() << "has " << op.getStarts().size() << " starts and " << op.getSizes().size()
                            << " sizes for " << shape.size() << " dims (C2)";
  ArrayAttr present = op.getPresentAttr();
  if (present && present.size() != shape.size())
    return op.emitOpError() << "says of " << present.size() << " dims what is present, of " << shape.size() << " (C2)";
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    auto start = cast<NumberAttr>(op.getStarts()[dim]);
    auto held = present ? cast<NumberAttr>(present[dim]) : NumberAttr::get(op.getContext(), op.getSizes()[dim], "");
    size_t ranks = start.hasColumn() ? start.getPerRank(op).size() : held.hasColumn() ? held.getPerRank(op).size() : 1;
    for (size_t rank = 0; rank < ranks; ++rank) {
      int64_t from = start.evaluate(op, rank), count = held.evaluate(op, rank);
      if (from < 0 || count < 0 || count > op.getSizes()[dim] || from + count > extent)
        return op.emitOpError() << "takes a box that is not in the parameter, in dim " << dim << " (C2)";
    }
  }
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto param = tables.lookupNearestSymbolFrom<nn::ParamOp>(*this, getParamAttr());
  if (!param)
    return emitOpError() << "loads " << getParamAttr() << ", which is not an nn.param (C1)";
  auto whole = cast<RankedTensorType>(param.getType());
  if (failed(checkColumns(*this, getStarts(), "(C4)")) ||
      (getPresentAttr() && failed(checkColumns(*this, getPresentAttr(), "(C4)"))) ||
      failed(checkBox(*this, whole.getShape())))
    return failure();
  std::optional<SmallVector<int64_t>> shape = SmallVector<int64_t>(getSizes());
  if (getOrder())
    shape = getPackedShape(getSizes(), getLayout());
  MemRefType target = getTarget().getType();
  if (!shape || target.getShape() != ArrayRef<int64_t>(*shape) || !target.getLayout().isIdentity() ||
      !isSameOrFloat(whole.getElementType(), target.getElementType()))
    return emitOpError() << "puts a box of " << whole << " into " << target << ", which does not fit its layout (C3)";
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

/// Whether the last shards along a dim end behind it.
static bool isUneven(RankedTensorType global) {
  spmd::ShardingAttr sharding = spmd::getSharding(global);
  for (unsigned dim = 0; sharding && dim < global.getRank(); ++dim)
    if (global.getDimSize(dim) % sharding.getNumShards(dim) != 0)
      return true;
  return false;
}

template <typename OpT> static LogicalResult checkBoundary(OpT op) {
  auto global = cast<RankedTensorType>(op.getGlobal());
  RankedTensorType local = spmd::getLocalType(global);
  MemRefType view = op.getView().getType();
  if (view.getShape() != local.getShape() || view.getElementType() != local.getElementType())
    return op.emitOpError() << "is a " << view << ", but a shard of " << global << " is " << local << " (C1)";
  if (op.getStarts().size() != size_t(local.getRank()))
    return op.emitOpError() << "has " << op.getStarts().size() << " starts for " << local.getRank() << " dims (C2)";
  spmd::ShardingAttr sharding = spmd::getSharding(global);
  bool isPadded = isUneven(global);
  ArrayAttr present = op.getPresentAttr();
  if (isPadded != bool(present) || (present && present.size() != size_t(local.getRank())))
    return op.emitOpError() << "says of " << (present ? present.size() : 0) << " dims what is present, expected "
                            << (isPadded ? local.getRank() : 0) << " (C2)";
  if (present && failed(checkColumns(op, present, "(C4)")))
    return failure();
  if ((sharding && sharding.isPartial()) != op.getTerm().has_value())
    return op.emitOpError() << (op.getTerm() ? "is a term of " : "does not say which term of ") << global << " (C3)";
  if (op.getTerm() && failed(checkColumn(op, *op.getTerm(), "(C4)")))
    return failure();
  return checkColumns(op, op.getStarts(), "(C4)");
}

LogicalResult InputOp::verify() { return checkBoundary(*this); }
LogicalResult OutputOp::verify() { return checkBoundary(*this); }
