//===- Spmd.cpp - the spmd dialect ----------------------------------------===//
//
// Shardings sit in the encoding of tensor types, so the functions here that read and change types are all that most
// passes need. Aliases keep such types readable: each sharding is printed once, by a name made of its axes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave::spmd;

#include "cleave/Dialect/Spmd/IR/SpmdDialect.cpp.inc"
#include "cleave/Dialect/Spmd/IR/SpmdInterfaces.cpp.inc"
#include "cleave/Dialect/Spmd/IR/SpmdNames.cpp.inc"
#include "cleave/Dialect/Spmd/IR/SpmdNodeLoc.cpp.inc"

namespace {
/// Meshes and shardings are printed once, and referred to by names: `#mesh`, and for a sharding its dims one by one, as
/// in `#data_replicated_sum_model` for `[{"data"}, {}], partial = {"model": sum}`. The printer numbers names that are equal.
struct SpmdAsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (isa<MeshAttr>(attr)) {
      os << "mesh";
      return AliasResult::FinalAlias;
    }
    if (auto sharding = dyn_cast<ShardingAttr>(attr)) {
      printShardingName(sharding, os);
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }

private:
  static void printShardingName(ShardingAttr sharding, raw_ostream &os) {
    if (sharding.getDims().empty())
      os << "scalar";
    llvm::interleave(sharding.getDims(), os, [&](DimShardingAttr dim) { printDimName(dim, os); }, "_");
    for (AxisAttr axis : sharding.getPartial())
      os << '_' << stringifyReductionKind(sharding.getPartialKind()) << '_' << axis.getName();
  }

  /// `data`, `data-model` for a dim split by both; `replicated`, or `open` for one that propagation may still split.
  static void printDimName(DimShardingAttr dim, raw_ostream &os) {
    llvm::interleave(dim.getAxes(), os, [&](AxisAttr axis) { os << axis.getName(); }, "-");
    if (dim.getAxes().empty())
      os << (dim.getIsOpen() ? "open" : "replicated");
    else if (dim.getIsOpen())
      os << "-open";
  }
};
} // namespace

void SpmdDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "cleave/Dialect/Spmd/IR/SpmdOps.cpp.inc"
      >();
  addInterfaces<SpmdAsmInterface>();
}

bool cleave::spmd::isElementType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return type.isSignlessInteger(1) ||
           (!integer.isSigned() && llvm::is_contained({2, 4, 8, 16, 32, 64}, integer.getWidth()));
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type, Float8E4M3FNType, Float8E4M3FNUZType, Float8E5M2Type,
             Float8E5M2FNUZType, Float8E8M0FNUType, Float4E2M1FNType>(type);
}

ShardingAttr cleave::spmd::getSharding(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  return ranked ? dyn_cast_if_present<ShardingAttr>(ranked.getEncoding()) : ShardingAttr();
}

RankedTensorType cleave::spmd::withSharding(RankedTensorType type, ShardingAttr sharding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), sharding);
}

RankedTensorType cleave::spmd::getLocalType(RankedTensorType type) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding)
    return type;
  return RankedTensorType::get(sharding.getLocalShape(type.getShape()), type.getElementType());
}

MeshAttr cleave::spmd::getMesh(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto mesh = op->getAttrOfType<MeshAttr>(SpmdDialect::kMeshAttr))
      return mesh;
  return {};
}
