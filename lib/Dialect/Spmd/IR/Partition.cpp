//===- Partition.cpp - helpers of per-device forms ------------------------===//
//
// Most ops compute on shards what they compute on the whole: `partitionByCloning` makes the same op on local types.
// What a dim is split by is said by the factors that stand in it, major to minor.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Partition.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave::spmd;

int64_t PartitionContext::getExtent(ArrayRef<AxisAttr> axes) const {
  int64_t extent = 1;
  for (AxisAttr axis : axes)
    extent *= axis.getExtent(mesh);
  return extent;
}

/// The axes that split any of `factors`, major to minor.
static SmallVector<AxisAttr> concatSplits(const PartitionContext &context, const DimFactors &factors) {
  SmallVector<AxisAttr> axes;
  for (FactorId factor : factors)
    llvm::append_range(axes, context.splits[factor]);
  return axes;
}

SmallVector<AxisAttr> PartitionContext::getOperandSplits(unsigned index, unsigned dim) const {
  return concatSplits(*this, rule.operands[index][dim]);
}

SmallVector<AxisAttr> PartitionContext::getResultSplits(unsigned index, unsigned dim) const {
  return concatSplits(*this, rule.results[index][dim]);
}

/// As collectives have them.
static ArrayAttr toArray(OpBuilder &builder, ArrayRef<AxisAttr> axes) {
  SmallVector<Attribute> list(axes.begin(), axes.end());
  return builder.getArrayAttr(list);
}

Value PartitionContext::allReduce(Value value, ReductionKind kind, ArrayRef<AxisAttr> axes) const {
  if (axes.empty())
    return value;
  return AllReduceOp::create(builder, loc, value.getType(), kind, value, toArray(builder, axes),
                             /*cause=*/StringAttr());
}

Value PartitionContext::axisIndex(ArrayRef<AxisAttr> axes) const {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return AxisIndexOp::create(builder, loc, type, toArray(builder, axes));
}

Operation *cleave::spmd::cloneLocal(Operation *op, PartitionContext &context) {
  SmallVector<Type> types(context.resultTypes.begin(), context.resultTypes.end());
  Operation *local = Operation::create(context.loc, op->getName(), types, context.operands, op->getRawDictionaryAttrs(),
                                       op->getPropertiesStorage(),
                                       /*successors=*/{}, /*numRegions=*/0);
  context.builder.insert(local);
  return local;
}

LogicalResult cleave::spmd::partitionByCloning(Operation *op, PartitionContext &context,
                                               SmallVectorImpl<Value> &results) {
  llvm::append_range(results, cloneLocal(op, context)->getResults());
  return success();
}
