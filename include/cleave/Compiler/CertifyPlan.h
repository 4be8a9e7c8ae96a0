//===- CertifyPlan.h - how far a plan is from the best ----------*- C++ -*-===//
//
//   std::optional<cleave::FoundPlan> found = cleave::findPlan(compilation, request);
//   std::optional<cleave::PlanProof> proof = cleave::certifyPlan(compilation, *found, request);
//   writeFile("c.json", proof->certificate);
//
// What is proved is of the costs of the solver (docs/finding-plans.md).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_CERTIFYPLAN_H
#define CLEAVE_COMPILER_CERTIFYPLAN_H

#include "cleave/Compiler/FindPlan.h"

namespace cleave {

/// What is known of a plan with stages on the way from what a microbatch takes to what a call does.
struct StagesProof {
  /// One microbatch (of a step all) in all stages together by the costs of the solver; what no decision of as many stages and microbatches and
  /// the same mesh is below; and how far the plan's is above that.
  double ns = 0, boundNs = 0, gap = 0;
  /// What is to be least, as predicted.
  double predictedNs = 0;
  StagesTime time;
  /// Of a step of training `ns` is of all microbatches.
  bool isStep = false;

  /// `a microbatch in all stages together 93.69 us by the solver's costs, bound ..`.
  std::string format() const;
};

struct PlanProof {
  /// What does not hold, a sentence each; empty: all does.
  std::vector<std::string> mistakes;
  /// What the plan takes by the costs of the solver, launches that there are in any case included, idle time and messages of stages not; what no
  /// plan of the space is below; and how far the plan is above that, at most.
  double ns = 0, boundNs = 0, gap = 0;
  /// Of a plan with one stage: what no other such plan is below, and how far it is above that; 0: it has stages.
  double oneStageNs = 0, oneStageGap = 0;
  std::optional<StagesProof> stages;
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
