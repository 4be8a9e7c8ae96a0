//===- Analysis.h - what a plan says, and what is wrong with it -*- C++ -*-===//
//
//   text ──parsed, checked (Plan)──▶ rules ──placed on the imported model──▶ what each picks ──propagated──▶ how that is sharded
//
// An error is of one rule mostly: the rule is left out then, and the rest looked at, so that one error does not hide the others.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EDITOR_ANALYSIS_H
#define CLEAVE_LIB_EDITOR_ANALYSIS_H

#include "Text.h"
#include "cleave/Compiler/CompileOptions.h"
#include "cleave/Compiler/Diagnostic.h"
#include "cleave/Plan/Plan.h"

namespace cleave::editor {

/// A tensor that a rule picks. Sharded as the rule asks, or, where the plan is right, as it is in the end.
struct PickedTensor {
  std::string name, type, sharding, local;
};

struct Analysis {
  /// In the order in which they came up; places are of the text, or 0 where it is about no place of it.
  std::vector<Diagnostic> diagnostics;
  /// What could be read of the plan, rules with errors left out.
  spmd::Plan plan;
  bool isRead = false;
  /// Of a rule, by line and column of where it begins.
  std::map<std::pair<unsigned, unsigned>, std::vector<PickedTensor>> picked;
  /// The model was propagated.
  bool isSharded = false;

  const std::vector<PickedTensor> *findPicked(const spmd::PlanPlace &rule) const;
};

/// `options` have the model, which may be none.
Analysis analyze(const Text &text, const CompileOptions &options);

} // namespace cleave::editor

#endif // CLEAVE_LIB_EDITOR_ANALYSIS_H
