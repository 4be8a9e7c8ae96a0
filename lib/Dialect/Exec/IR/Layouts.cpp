//===- Layouts.cpp - how weights lie in memory ----------------------------===//
//
// The one place where the shape of a packed weight is computed; what is in it says exec.pack. Loaders do the same by
// `getLaidOutShape` of lib/Program, which sees no MLIR.
//
//   [K, N] order [0, 1] width 16     [N / 16, K, 16, 1]: a panel has all of K for 16 neighbors of N
//   .. interleave 2                  [N / 16, K / 2, 16, 2]: two neighbors of K side by side for each of them, which is a
//                                    pair of bf16 as processors multiply it. Of an odd K the last pair ends in a zero
//
// Packing may cast floats, since whoever loads a weight touches every element of it once; unpacking never does.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// C1
static bool isPermutation(ArrayRef<int64_t> order, size_t rank) {
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  return llvm::equal(sorted, llvm::seq<int64_t>(0, rank));
}

/// C2
static bool isPossible(const Layout &layout) {
  if (layout.batch < 0 || layout.width < 0 || layout.interleave < 1)
    return false;
  if (layout.width == 0)
    return layout.batch == 0 && layout.interleave == 1;
  return layout.batch + 2 <= static_cast<int64_t>(layout.order.size());
}

std::optional<SmallVector<int64_t>> cleave::exec::getPackedShape(ArrayRef<int64_t> shape, const Layout &layout) {
  if (!isPermutation(layout.order, shape.size()) || !isPossible(layout))
    return std::nullopt;
  SmallVector<int64_t> ordered = llvm::map_to_vector(layout.order, [&](int64_t dim) { return shape[dim]; });
  if (layout.width == 0)
    return ordered;
  SmallVector<int64_t> packed(ArrayRef<int64_t>(ordered).take_front(layout.batch));
  packed.push_back(llvm::divideCeil(ordered.back(), layout.width));
  packed.append(ordered.begin() + layout.batch, ordered.end() - 1);
  packed.back() = llvm::divideCeil(packed.back(), layout.interleave);
  packed.append({layout.width, layout.interleave});
  return packed;
}

static LogicalResult verifyLayout(Operation *op, const Layout &layout, RankedTensorType plain,
                                  RankedTensorType packed) {
  if (!isPermutation(layout.order, plain.getRank()))
    return op->emitOpError() << "order is not one of the " << plain.getRank() << " dims of " << plain << " (C1)";
  std::optional<SmallVector<int64_t>> shape = getPackedShape(plain.getShape(), layout);
  if (!shape)
    return op->emitOpError() << "batch " << layout.batch << ", width " << layout.width << " and interleave "
                             << layout.interleave << " are not a layout of " << plain << " (C2)";
  bool isCast = isa<PackOp>(op) && isa<FloatType>(plain.getElementType()) && isa<FloatType>(packed.getElementType());
  auto expected = RankedTensorType::get(*shape, isCast ? packed.getElementType() : plain.getElementType());
  if (packed != expected)
    return op->emitOpError() << plain << " is packed as " << expected << ", not as " << packed << " (C3)";
  return success();
}

LogicalResult PackOp::verify() { return verifyLayout(*this, getLayout(), getInput().getType(), getResult().getType()); }

LogicalResult UnpackOp::verify() {
  return verifyLayout(*this, getLayout(), getResult().getType(), getInput().getType());
}
