//===- Cause.h - why something is in the program ----------------*- C++ -*-===//
//
// Kept in locations, which survive rewrites and do not hinder the merging of equal ops.
//
// What a collective is for: a sentence such as `contracting dim of nn.einsum is sharded over model`, kept in the
// location of the collective,
//
//   loc(fused<{cause = "..."}>[the location of the op that needs it])
//
// Where the wish on a value came from: the place in the plan,
//
//   loc(fused<"wish">[the value's own location, "plan.yaml":4:5])
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

/// `loc` with the place of the rule that asked for the value's sharding.
mlir::Location withWish(mlir::Location loc, mlir::FileLineColLoc place);
/// That place; null if the wish, if any, was written in the program itself.
mlir::FileLineColLoc getWish(mlir::Location loc);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H
