//===- Resize.cpp - what is wrong with a resampling -----------------------===//
//
// The result's extents are given, not computed: a model rounds `extent * scale` in ways of its own, so only what no
// rounding explains is refused.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"

#include <cmath>

using namespace mlir;
using namespace cleave::nn;

LogicalResult ResizeOp::verify() {
  auto from = getInput().getType(), to = getResult().getType();
  if (from.getRank() != to.getRank() || from.getElementType() != to.getElementType())
    return emitOpError() << "operand " << from << " and result " << to << " differ in rank or element type (C1)";
  if (static_cast<int64_t>(getScales().size()) != from.getRank())
    return emitOpError() << "has " << getScales().size() << " scales for " << from.getRank() << " dims (C2)";
  for (auto [dim, scale] : llvm::enumerate(getScales())) {
    if (!std::isfinite(scale) || scale <= 0)
      return emitOpError() << "scale of dim " << dim << " is not positive (C2)";
    if (scale == 1 && from.getDimSize(dim) != to.getDimSize(dim))
      return emitOpError() << "dim " << dim << " has scale 1 but goes from " << from.getDimSize(dim) << " to "
                           << to.getDimSize(dim) << " (C3)";
  }
  return success();
}

/// Dims are resized one after the other, and what is added up in another order rounds otherwise.
bool ResizeOp::canReorder(ArrayRef<int64_t> order) {
  return keepsOrder(order, [&](int64_t dim) { return getScales()[dim] != 1; });
}

void ResizeOp::reorder(ArrayRef<int64_t> order) { setScales(putInOrder(order, getScales())); }
