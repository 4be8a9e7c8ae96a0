//===- Even.h - sizes that are not padded -----------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_SPMD_IR_EVEN_H
#define CLEAVE_DIALECT_SPMD_IR_EVEN_H

#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

/// Of an argument or result (i64): a dim that is not split unevenly, whatever a plan allows. Of a function (i64): what has a multiple of so
/// many elements along a dim is not split so there. Between pipe-microbatch and partitioning: shards of a batch that callers give or get are
/// those of each of its microbatches, and of a program for microbatches of two sizes the padding of one is none of the other.
inline constexpr llvm::StringLiteral kEvenAttr = "spmd.even";

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_EVEN_H
