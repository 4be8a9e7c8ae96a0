//===- CheckCertificate.h - does a proof hold? ------------------*- C++ -*-===//
//
// Makes the tables of each mesh anew, lets the messages of the certificate move what they say, adds up what is least, and compares. It
// shares the tables with the solver, and nothing of the search or of what finds messages: a mistake there makes a certificate that
// does not hold.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_CHECKCERTIFICATE_H
#define CLEAVE_SEARCH_CHECKCERTIFICATE_H

#include "cleave/Search/Certificate.h"

namespace cleave::spmd {

/// Calls back with the problem of a mesh of these sizes, and what deciding it costs; false, and not called, where there is none.
using VisitProblem = llvm::function_ref<void(const Problem &, const SolverOptions &)>;
using ProblemOfMesh = llvm::function_ref<bool(llvm::ArrayRef<int64_t> mesh, VisitProblem visit)>;

/// What a certificate comes to.
struct Proof {
  /// What does not hold, one sentence each; empty: it holds.
  std::vector<std::string> mistakes;
  /// Of the plan, and the least bound of all meshes.
  double ns = 0, boundNs = 0;
  /// Ops for which one option stands for all, edges that count nothing, of the meshes together (`JointTables`).
  unsigned numRelaxed = 0, numDropped = 0;

  /// How far the plan is above the bound, at most.
  double getGap() const { return boundNs > 0 ? std::max(ns / boundNs - 1, 0.0) : 0; }
};

/// `space`: the meshes of which all must be there. `makeProblem` is asked for one at a time.
Proof checkCertificate(const Certificate &certificate, llvm::ArrayRef<std::vector<int64_t>> space,
                       ProblemOfMesh makeProblem);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_CHECKCERTIFICATE_H
