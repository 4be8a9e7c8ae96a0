//===- Convolution.cpp - the same window, fewer groups --------------------===//
//
// A cut group factor leaves fewer groups on each rank; their number follows from the local shapes. Sums over channels
// in are partial, and so is the bias then: it arrives on one rank only.
//
//===----------------------------------------------------------------------===//
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

LogicalResult ConvOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  auto clone = cast<ConvOp>(cloneLocal(*this, context));
  Shape input = LocalBuilder::getShape(clone.getInput()), weight = LocalBuilder::getShape(clone.getWeight());
  if (weight[1] > 0)
    clone.setGroups(input[1] / weight[1]);
  results.push_back(clone);
  return success();
}

LogicalResult ConvTransposeOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  auto clone = cast<ConvTransposeOp>(cloneLocal(*this, context));
  Shape weight = LocalBuilder::getShape(clone.getWeight());
  if (weight[1] > 0)
    clone.setGroups(context.resultTypes.front().getDimSize(1) / weight[1]);
  results.push_back(clone);
  return success();
}
