//===- AddAxis.cpp - one axis more in an annotation -----------------------===//
//
// An axis goes behind those that a dim has already, so that ranks along it share what the other axes leave to them together: only a dim that
// all of them divide takes it, for parts of states are of one size.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/AddAxis.h"

#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

ShardingAttr cleave::spmd::getAsked(MeshAttr mesh, AnnotationAttr known, RankedTensorType type) {
  if (known)
    return known.getSharding();
  MLIRContext *context = type.getContext();
  SmallVector<DimShardingAttr> dims(type.getRank(), DimShardingAttr::get(context, {}, /*isOpen=*/true, 0));
  return ShardingAttr::get(context, mesh, dims, ArrayRef<AxisAttr>(), ReductionKind::Sum, {}, false);
}

AnnotationAttr cleave::spmd::addAxis(MeshAttr mesh, AnnotationAttr known, RankedTensorType type, StringRef axis,
                                     Location cause) {
  MLIRContext *context = type.getContext();
  std::optional<unsigned> position = mesh ? mesh.findAxis(axis) : std::nullopt;
  if (!position)
    return {};
  ShardingAttr asked = getAsked(mesh, known, type);
  bool isAdded = llvm::any_of(asked.getDims(), [&](DimShardingAttr dim) {
    return llvm::any_of(dim.getAxes(), [&](AxisAttr other) { return other.getName() == axis; });
  });
  if (isAdded)
    return known;
  SmallVector<DimShardingAttr> dims;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    SmallVector<AxisAttr> axes(asked.getDims()[dim].getAxes());
    int64_t shards = mesh.getSizes()[*position];
    for (AxisAttr other : axes)
      shards *= other.getExtent(mesh);
    if (!isAdded && extent % shards == 0) {
      axes.push_back(AxisAttr::get(context, axis, 1, 0));
      isAdded = true;
    }
    dims.push_back(DimShardingAttr::get(context, axes, /*isOpen=*/false, 0));
  }
  if (!isAdded)
    return {};
  auto sharding =
      ShardingAttr::get(context, mesh, dims, ArrayRef<AxisAttr>(), ReductionKind::Sum, {}, asked.getUneven());
  return AnnotationAttr::get(context, sharding, cause, cause);
}
