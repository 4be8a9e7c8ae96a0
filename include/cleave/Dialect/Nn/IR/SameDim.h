//===- SameDim.h - where movement takes a dim -------------------*- C++ -*-===//
//
// What follows rows of a tensor through ops that only move elements: padding behind the rows that were found, keys on their way
// to attention.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_SAMEDIM_H
#define CLEAVE_DIALECT_NN_IR_SAMEDIM_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

namespace cleave::nn {

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

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_SAMEDIM_H
