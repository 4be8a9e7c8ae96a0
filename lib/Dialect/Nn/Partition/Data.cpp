//===- Data.cpp - each rank makes its own piece ---------------------------===//
//
// Nothing is sent. A constant's piece is cut out by the rank's position, a load reads its shard from the file, an iota
// starts at the rank's offset.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Fit.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

/// Axes that cut each dim of result 0.
static SmallVector<SmallVector<AxisAttr>> getAllSplits(const PartitionContext &context) {
  SmallVector<SmallVector<AxisAttr>> splits;
  for (unsigned dim = 0; dim < context.rule.results[0].size(); ++dim)
    splits.push_back(context.getResultSplits(0, dim));
  return splits;
}

/// True if no dim is split: every rank has all elements.
static bool isReplicated(ArrayRef<SmallVector<AxisAttr>> splits) {
  return llvm::all_of(splits, [](const SmallVector<AxisAttr> &axes) { return axes.empty(); });
}

// A splat is made in place; other constants are cut out of the whole, which is small.
LogicalResult ConstantOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  RankedTensorType localType = context.resultTypes.front();
  SmallVector<SmallVector<AxisAttr>> splits = getAllSplits(context);
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  if (dense && dense.isSplat()) {
    results.push_back(ConstantOp::create(context.builder, context.loc, dense.resizeSplat(localType)));
    return success();
  }
  Value whole = ConstantOp::create(context.builder, context.loc, getValue());
  if (isReplicated(splits)) {
    results.push_back(whole);
    return success();
  }
  SmallVector<Attribute> dims;
  SmallVector<int64_t> padded(localType.getShape());
  for (auto [extent, axes] : llvm::zip_equal(padded, splits))
    extent *= context.getExtent(axes);
  whole = fit(context.builder, context.loc, whole, padded);
  for (const SmallVector<AxisAttr> &axes : splits)
    dims.push_back(context.builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end())));
  results.push_back(
      LocalSliceOp::create(context.builder, context.loc, localType, whole, context.builder.getArrayAttr(dims)));
  return success();
}

// The shard that a rank reads is an attribute, so that no rank ever holds the whole weight.
LogicalResult LoadOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<SmallVector<AxisAttr>> splits = getAllSplits(context);
  auto load = cast<LoadOp>(cloneLocal(*this, context));
  results.push_back(load);
  if (isReplicated(splits))
    return success();
  MLIRContext *mlirContext = context.builder.getContext();
  bool isUneven = llvm::any_of(llvm::zip_equal(getResult().getType().getShape(), splits),
                               [&](const auto &dim) { return context.isPadded(std::get<0>(dim), std::get<1>(dim)); });
  auto dims = llvm::map_to_vector(splits, [&](const SmallVector<AxisAttr> &axes) {
    return DimShardingAttr::get(mlirContext, axes, /*isOpen=*/false, /*priority=*/0);
  });
  load.setShardingAttr(ShardingAttr::get(mlirContext, context.mesh, dims, /*partial=*/{}, ReductionKind::Sum,
                                         /*replicated=*/{}, isUneven));
  return success();
}

// Counted in i64 and converted once, as the whole op would: narrow types round large positions.
LogicalResult IotaOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  int64_t dim = getDim();
  SmallVector<AxisAttr> axes = context.getResultSplits(0, dim);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  RankedTensorType type = context.resultTypes.front();
  int64_t start = getStart(), step = getStep(), extent = type.getDimSize(dim);
  Value local = build.positions(extent, start, step, type.getRank(), dim);
  Value shifted = build.add(local, build.shardOffset(axes, extent * step));
  results.push_back(build.broadcast(build.cast(shifted, type.getElementType()), type.getShape()));
  return success();
}
