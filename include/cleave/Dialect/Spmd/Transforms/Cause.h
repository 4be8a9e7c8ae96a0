//===- Cause.h - why something is in the program ----------------*- C++ -*-===//
//
// Kept in locations, which survive rewrites and do not hinder the merging of equal ops.
//
// What a collective is for: a sentence such as `contracting dim of nn.einsum is sharded over model`, kept in the
// location of the collective,
//
//   loc(fused<{cause = "..."}>[the location of the op that needs it])
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace cleave::spmd {

/// `loc` with a cause; replaces one that it has.
mlir::Location withCause(mlir::Location loc, const llvm::Twine &cause);
/// The cause in a location; empty if it has none.
llvm::StringRef getCause(mlir::Location loc);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H
