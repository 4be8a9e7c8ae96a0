//===- Reduce.h - a module made small that still shows something *- C++ -*-===//
//
//   cleave::ReduceSummary summary = cleave::reduceModule(module, [](mlir::ModuleOp candidate) { return crashes(candidate); });
//
// Delta debugging (A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002) with the edits that programs of tensors
// allow: a program may end earlier, begin later, and leave an op out.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TRANSFORMS_REDUCE_H
#define CLEAVE_TRANSFORMS_REDUCE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cleave {

struct ReduceSummary {
  /// Ops in functions, before and after; how many candidates were tried.
  unsigned before = 0, after = 0, tried = 0;
};

/// Replaces `module` by smaller ones that verify and are interesting, until no edit gives another. Functions that others call keep their
/// types. Precondition: `module` is interesting itself. As many tries as there are ops, times a few, for what is in one place.
ReduceSummary reduceModule(mlir::OwningOpRef<mlir::ModuleOp> &module,
                           llvm::function_ref<bool(mlir::ModuleOp)> isInteresting);

} // namespace cleave

#endif // CLEAVE_TRANSFORMS_REDUCE_H
