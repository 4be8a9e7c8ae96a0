//===- PlanText.h - the small texts inside a plan ---------------*- C++ -*-===//
//
// Axes and dim entries, shared by the YAML reader and the command-line options.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PLAN_PLANTEXT_H
#define CLEAVE_LIB_PLAN_PLANTEXT_H

#include "cleave/Plan/Plan.h"

namespace cleave::spmd {

/// `model` or `model:(1)2`; `axis.place` is left alone. The reason of a failure is in `reason`.
llvm::LogicalResult parseAxisText(llvm::StringRef text, PlanAxis &axis, std::string &reason);

/// One of `_`, `?`, an axis, an axis followed by `?`: appended to `dim`.
llvm::LogicalResult parseDimEntry(llvm::StringRef text, const PlanPlace &place, PlanDim &dim, std::string &reason);

/// A text that is just a list of dims, `[data, _]`.
llvm::LogicalResult parseDimsText(llvm::StringRef text, llvm::StringRef file, PlanRule &rule, PlanError &error);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_PLANTEXT_H
