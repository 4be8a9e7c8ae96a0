//===- Recurrence.cpp - recurrent nets over cut states --------------------===//
//
// Directions and batch cut: the same op on local shapes. With a cut hidden dim each step needs what the ranks made in the
// one before: the op becomes its steps, with an all_gather of the state in each. Shards of a dim that does not divide end in
// padding, which is cut off behind the gather, so that no product sees it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "LocalBuilder.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using namespace cleave::spmd;

LogicalResult RecurrenceOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  SmallVector<AxisAttr> axes = context.getOperandSplits(0, 4);
  if (axes.empty())
    return partitionByCloning(*this, context, results);
  LocalBuilder build(context);
  int64_t hidden = getHidden();
  auto gather = [&](Value state) {
    Value whole = build.allGather(state, 2, axes);
    return getShape(whole)[2] == hidden ? whole : build.sliceDim(whole, 2, 0, hidden);
  };
  llvm::append_range(results, unrollRecurrence(context.builder, context.loc, *this, context.operands, gather));
  return success();
}
