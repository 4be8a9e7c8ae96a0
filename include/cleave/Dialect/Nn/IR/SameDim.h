//===- SameDim.h - where movement takes a dim -------------------*- C++ -*-===//
//
// What follows rows of a tensor through ops that only move elements: padding behind the rows that were found, keys on their way
// to attention; and what puts dims into another order.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_SAMEDIM_H
#define CLEAVE_DIALECT_NN_IR_SAMEDIM_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include <optional>
#include <utility>

namespace cleave::nn {

/// True for ops that move elements of their operand, repeat or drop them, and change none: what is the same everywhere, or is only
/// multiplied, is so behind them.
inline bool onlyMoves(mlir::Operation *op) {
  return mlir::isa<MovesDimsOpInterface>(op) && !op->hasTrait<Elementwise>();
}

/// The dim of `to`, a reshape of `from`, that has the extent of `dim` with as many elements before it; nothing where there is none.
inline std::optional<int64_t> findReshapedDim(llvm::ArrayRef<int64_t> from, int64_t dim, llvm::ArrayRef<int64_t> to) {
  int64_t before = mlir::ShapedType::getNumElements(from.take_front(dim)), count = 1;
  for (auto [index, extent] : llvm::enumerate(to)) {
    if (count == before && extent == from[dim])
      return index;
    count *= extent;
  }
  return std::nullopt;
}

/// The dim of `to` that `dim` becomes where `from` is broadcast, aligned at the end; nothing where it is longer there.
inline std::optional<int64_t> findBroadcastDim(llvm::ArrayRef<int64_t> from, int64_t dim, llvm::ArrayRef<int64_t> to) {
  int64_t aligned = dim + int64_t(to.size()) - int64_t(from.size());
  return to[aligned] == from[dim] ? std::optional(aligned) : std::nullopt;
}

/// Where `dim` is when dim i is the former dim `order[i]`.
inline int64_t findInOrder(llvm::ArrayRef<int64_t> order, int64_t dim) {
  return llvm::find(order, dim) - order.begin();
}

/// Entries, one a dim, in that order.
template <typename T> llvm::SmallVector<T> putInOrder(llvm::ArrayRef<int64_t> order, llvm::ArrayRef<T> entries) {
  return llvm::map_to_vector(order, [&](int64_t dim) { return entries[dim]; });
}

/// True if these of the dims stand as they did, one before the other.
inline bool keepsOrder(llvm::ArrayRef<int64_t> order, llvm::function_ref<bool(int64_t)> isOne) {
  int64_t last = -1;
  for (int64_t dim : order)
    if (isOne(dim) && std::exchange(last, dim) > dim)
      return false;
  return true;
}

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_SAMEDIM_H
