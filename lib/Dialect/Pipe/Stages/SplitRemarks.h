//===- SplitRemarks.h - what stages have or make more than once -*- C++ -*-===//
//
// Remarks of pipe-split.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_SPLITREMARKS_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_SPLITREMARKS_H

#include "SharedInvariants.h"

namespace cleave::pipe {

/// Tells of parameters that several stages use, on ranks (`ranks`, by stage) of which each then holds one.
void tellOfShared(mlir::func::FuncOp func, const ModelParts &parts, llvm::ArrayRef<int64_t> ranks);

/// Tells of `value`, which is a `what` (a "whole value"), that several stages need: made by one or by each, whichever takes less.
void tell(llvm::StringRef what, const SharedInvariant &value);

/// Tells of what stages make again of inputs and constants, and use for what is theirs alone.
void tellOfCheap(mlir::func::FuncOp func, const ModelParts &parts, const DeviceRates &rates);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_SPLITREMARKS_H
