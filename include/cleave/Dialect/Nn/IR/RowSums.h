//===- RowSums.h - sums of rows, by where they go ---------------*- C++ -*-===//
//
// The gradient of a lookup: rows of updates are added up in the rows of a table that begins as one number.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_ROWSUMS_H
#define CLEAVE_DIALECT_NN_IR_ROWSUMS_H

#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Splat.h"

namespace cleave::nn {

/// True for a scatter that adds rows of floats to a number, so that a row of the result is known from the updates that go there alone.
inline bool sumsRows(mlir::Operation *op) {
  // Of shorter rows it takes longer to find out what goes there than to add it up.
  constexpr int64_t shortestRow = 8;
  auto scatter = mlir::dyn_cast<ScatterNdOp>(op);
  if (!scatter || scatter.getKind() != ScatterKind::Add)
    return false;
  mlir::Value begins = scatter.getInput();
  if (auto broadcast = begins.getDefiningOp<BroadcastOp>())
    begins = broadcast.getInput();
  auto countFrom = [](mlir::Value value, int64_t dim) {
    llvm::ArrayRef<int64_t> shape = mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
    return mlir::ShapedType::getNumElements(shape.drop_front(dim));
  };
  int64_t depth = mlir::cast<mlir::RankedTensorType>(scatter.getIndices().getType()).getShape().back();
  return getSplatNumber(begins) && countFrom(scatter.getInput(), depth) >= shortestRow &&
         countFrom(scatter.getInput(), 0) > 0 && countFrom(scatter.getUpdates(), 0) > 0;
}

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_ROWSUMS_H
