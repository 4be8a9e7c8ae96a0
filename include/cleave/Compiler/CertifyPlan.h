//===- CertifyPlan.h - how far a plan is from the best ----------*- C++ -*-===//
//
//   std::optional<cleave::FoundPlan> found = cleave::findPlan(compilation, request);
//   std::optional<cleave::PlanProof> proof = cleave::certifyPlan(compilation, *found, request);
//   writeFile("c.json", proof->certificate);
//
// What is proved is of the costs of the solver, and of plans with one stage (docs/finding-plans.md).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_CERTIFYPLAN_H
#define CLEAVE_COMPILER_CERTIFYPLAN_H

#include "cleave/Compiler/FindPlan.h"

namespace cleave {

struct PlanProof {
  /// What does not hold, a sentence each; empty: all does.
  std::vector<std::string> mistakes;
  /// What the plan takes by the costs of the solver, launches that there are in any case included; and what no plan of the space is below.
  double ns = 0, boundNs = 0;
  /// How far the plan is above the bound, at most.
  double gap = 0;
  /// `4 meshes of 8 devices, of up to 3 axes, 1 stage`.
  std::string space;
  /// What counts less than it costs, as it would be too much to tabulate; empty: nothing.
  std::string relaxed;
  /// The text of the file; empty where it was checked.
  std::string certificate;
  double seconds = 0;

  /// `89.40 ms by the solver's costs, bound 89.10 ms, gap 0.34 %; space: ..`.
  std::string format() const;
};

/// Bounds what plans of the space of `request` take, of which `found` is the best that was met. Nothing after an error.
std::optional<PlanProof> certifyPlan(Compilation &compilation, const FoundPlan &found, const PlanRequest &request);

/// The sizes of dims that the text of a certificate is of: a model is loaded with them. Errors: it is not a certificate.
llvm::Expected<std::map<std::string, int64_t>> readCertifiedDims(llvm::StringRef text);

/// Checks the text of a certificate against the model, which is loaded where it is not yet. What the request leaves open (0 devices) the
/// certificate says. Nothing after an error: no certificate, or none of such a model.
std::optional<PlanProof> verifyPlan(Compilation &compilation, llvm::StringRef text, PlanRequest request);

} // namespace cleave

#endif // CLEAVE_COMPILER_CERTIFYPLAN_H
