//===- PlanText.h - the small texts inside a plan ---------------*- C++ -*-===//
//
// Axes and dim entries, shared by the YAML reader and the command-line options.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PLAN_PLANTEXT_H
#define CLEAVE_LIB_PLAN_PLANTEXT_H

#include "cleave/Plan/Plan.h"
#include "llvm/Support/Error.h"

namespace cleave::spmd {

/// `model` or `model:(1)2`; `axis.place` is left alone.
llvm::Error parseAxisText(llvm::StringRef text, PlanAxis &axis);

/// One of `_`, `?`, an axis, an axis followed by `?`: appended to `dim`.
llvm::Error parseDimEntry(llvm::StringRef text, const PlanPlace &place, PlanDim &dim);

/// A text that is just a list of dims, `[data, _]`.
llvm::LogicalResult parseDimsText(llvm::StringRef text, llvm::StringRef file, PlanRule &rule, PlanError &error);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANTEXT_H
