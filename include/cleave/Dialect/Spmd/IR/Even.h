//===- Even.h - sizes that are not padded -----------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_SPMD_IR_EVEN_H
#define CLEAVE_DIALECT_SPMD_IR_EVEN_H

#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

/// Of an argument or result (i64): a dim that is not split unevenly, whatever a plan allows. Of a function (i64): what has a multiple of so
/// many elements along a dim is not split so there. Between pipe-microbatch and partitioning: microbatches are dealt out to devices
/// in equal numbers, and of a program for two sizes the padding of one is none of the other.
inline constexpr llvm::StringLiteral kEvenAttr = "spmd.even";

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_EVEN_H
