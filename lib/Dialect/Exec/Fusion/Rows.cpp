//===- Rows.cpp - what an op walks ----------------------------------------===//
//
// Two ops walk the same rows if they walk the same dims of one shape, in as many rows:
//
//   softmax %x dim 1 : 8x128      8 rows of 128      one element a row: 8x1, and 8 without the dim
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/Fusion/Clusters.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

std::optional<Rows> Rows::get(Operation *op) {
  auto form = dyn_cast<nn::FormOpInterface>(op);
  if (!form || !spmd::isRowForm(form.getForm()))
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
  return Rows{SmallVector<int64_t>(shape), form.getRowDims(), form.getNumRows(), form.getForm() == nn::Form::Scan};
}

bool Rows::operator==(const Rows &other) const {
  return shape == other.shape && dims == other.dims && count == other.count;
}

SmallVector<int64_t> Rows::getKeptShape() const {
  SmallVector<int64_t> kept = shape;
  for (int64_t dim : dims)
    kept[dim] = 1;
  return kept;
}

bool Rows::hasOneARow(ArrayRef<int64_t> other) const {
  SmallVector<int64_t> dropped;
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, int64_t(dim)))
      dropped.push_back(extent);
  return other == ArrayRef<int64_t>(dropped) || other == ArrayRef<int64_t>(getKeptShape());
}
