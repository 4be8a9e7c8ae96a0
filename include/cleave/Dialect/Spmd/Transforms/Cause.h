//===- Cause.h - what a collective is for -----------------------*- C++ -*-===//
//
// A sentence such as `contracting dim of nn.einsum is sharded over model`, kept in the location of the collective,
//
//   loc(fused<{cause = "..."}>[the location of the op that needs it])
//
// so that equal collectives still merge.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H

#include "mlir/IR/Operation.h"

namespace cleave::spmd {

/// `loc` with a cause; replaces one that it has.
mlir::Location withCause(mlir::Location loc, const llvm::Twine &cause);
/// The cause in a location; empty if it has none.
llvm::StringRef getCause(mlir::Location loc);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_CAUSE_H
