//===- ComparePlans.h - where two plans of a model differ -------*- C++ -*-===//
//
//   std::optional<PlanDifference> difference = comparePlans(options, "a.yaml", "b.yaml", handler);
//   print(difference->a.sentBytes, difference->b.sentBytes, difference->places);
//
// Both are sharded as any command would; weights that are split in two ways and ops that send other things are said in words, equal layers
// once.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_COMPAREPLANS_H
#define CLEAVE_COMPILER_COMPAREPLANS_H

#include "cleave/Compiler/CompileOptions.h"
#include "cleave/Compiler/Diagnostic.h"

namespace cleave {

/// What a rank takes in one of both.
struct PlanTotals {
  std::string mesh;
  /// Of a call, as predicted; nothing where no cluster is known.
  std::optional<double> ns;
  int64_t sentBytes = 0, peakBytes = 0, storedBytes = 0;
};

struct PlanDifference {
  PlanTotals a, b;
  /// The most bytes first; empty: both do the same.
  std::vector<std::string> places;
};

/// The model of `options` by each of two plan files. Nothing after an error, which `handler` was told.
std::optional<PlanDifference> comparePlans(const CompileOptions &options, llvm::StringRef a, llvm::StringRef b,
                                           const DiagnosticHandler &handler);

} // namespace cleave

#endif // CLEAVE_COMPILER_COMPAREPLANS_H
