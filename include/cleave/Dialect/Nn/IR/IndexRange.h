//===- IndexRange.h - inputs whose numbers are indices ----------*- C++ -*-===//
//
// An argument that is looked up as it comes in (token ids of an embedding, positions) can be checked before anything runs: by the
// evaluator, and by whoever calls a program. What it may be stands with the argument, from import on, through all phases:
//
//   func.func @main(%ids: tensor<2x4xi64> {nn.index_range = ["/embed/Gather", -100, 99], nn.name = "ids"})
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_INDEXRANGE_H
#define CLEAVE_DIALECT_NN_IR_INDEXRANGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace cleave::nn {

/// Of an argument; where memory is planned, of the op that says where it lies.
inline constexpr llvm::StringLiteral kIndexRangeAttr = "nn.index_range";

/// Numbers from `least` to `most`, which `node` (may be empty) can look up.
struct IndexRange {
  llvm::StringRef node;
  int64_t least = 0, most = 0;
};

/// What the attribute says; nothing where there is none, or another.
std::optional<IndexRange> readIndexRange(mlir::Attribute attribute);

/// Gives the arguments of `func` that only move, or become wider, before all of their numbers are looked up the attribute; of several
/// lookups the narrowest range counts. Lookups in regions, which may never run, and of parts of an argument do not. Precondition:
/// shapes are whole, as imported.
void noteIndexRanges(mlir::func::FuncOp func);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_INDEXRANGE_H
