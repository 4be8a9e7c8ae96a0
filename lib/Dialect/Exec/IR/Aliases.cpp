//===- Aliases.cpp - other views of the same bytes ------------------------===//
//
// What such an op gives is known without running anything: an offset in its operand.
//
//   reshape, and whatever else keeps the order of elements     0
//   what is read to be made again                              0
//   a slice of one range: of one dim, whole behind it          start, in elements
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/SliceRange.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// True if the dims that have more than one element stay in order.
static bool keepsOrder(nn::TransposeOp op) {
  ArrayRef<int64_t> shape = op.getInput().getType().getShape();
  return llvm::is_sorted(llvm::filter_to_vector(op.getPermutation(), [&](int64_t dim) { return shape[dim] != 1; }));
}

std::optional<int64_t> cleave::exec::getAliasOffset(Operation *op) {
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    return nn::getRangeStart(slice);
  auto transpose = dyn_cast<nn::TransposeOp>(op);
  auto broadcast = dyn_cast<nn::BroadcastOp>(op);
  bool isSame = isa<nn::ReshapeOp, AgainOp>(op) || (transpose && keepsOrder(transpose)) ||
                (broadcast &&
                 broadcast.getInput().getType().getNumElements() == broadcast.getResult().getType().getNumElements());
  return isSame ? std::optional<int64_t>(0) : std::nullopt;
}
