//===- Resize.cpp - more than a rank's part, and then that ----------------===//
//
// A rank's positions of the result are samples of its own piece and of some positions around it. What these make in
// front of the rank's part and behind it is dropped:
//
//   reads       [. 0 0 1]              rank 0 of a resize to twice the size, one position more on each side
//   makes       [- - 0 0 0 0 - -]
//
//===----------------------------------------------------------------------===//
#include "LocalBuilder.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

LogicalResult ResizeOp::partition(PartitionContext &context, SmallVectorImpl<Value> &results) {
  LocalBuilder build(context);
  auto read = build.readWindows(/*fill=*/{});
  RankedTensorType type = context.resultTypes.front();
  SmallVector<int64_t> shape(type.getShape()), starts(shape.size(), 0), steps(shape.size(), 1);
  for (const LocalBuilder::ReadDim &at : read) {
    // Both are whole numbers, as the rule sees to it.
    int64_t own = at.window.step, made = type.getDimSize(at.dim);
    shape[at.dim] = (at.window.high - at.window.low) * made / own;
    starts[at.dim] = -at.window.low * made / own;
  }
  auto clone = cast<ResizeOp>(cloneLocal(*this, context));
  clone.getResult().setType(RankedTensorType::get(shape, type.getElementType()));
  results.push_back(
      context.builder.createOrFold<SliceOp>(context.loc, clone.getResult(), starts, type.getShape(), steps));
  return success();
}
