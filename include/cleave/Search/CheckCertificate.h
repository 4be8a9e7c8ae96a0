//===- CheckCertificate.h - does a proof hold? ------------------*- C++ -*-===//
//
// Makes the tables of each cell anew, lets the messages of the certificate move what they say, adds up what is least, and compares. It
// shares the tables with the solver, and nothing of the search or of what finds messages: a mistake there makes a certificate that
// does not hold.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_CHECKCERTIFICATE_H
#define CLEAVE_SEARCH_CHECKCERTIFICATE_H

#include "cleave/Search/Certificate.h"

#include <limits>

namespace cleave::spmd {

/// Calls back with the problem of a cell, and what deciding it costs; false, and not called, where the model has no such program.
using VisitProblem = llvm::function_ref<void(const Problem &, const SolverOptions &)>;
using ProblemOfCell = llvm::function_ref<bool(const SpaceCell &cell, VisitProblem visit)>;

/// What a certificate comes to.
struct Proof {
  /// What does not hold, one sentence each; empty: it holds.
  std::vector<std::string> mistakes;
  /// Of the plan by the solver's costs, and the bound of its own cell: of one microbatch.
  double ns = 0, ownBoundNs = 0;
  /// What is to be least, where no stage had to wait but for the first microbatch: of the plan, the least of all cells, and that of those with one
  /// stage; infinite: there are none.
  double measureNs = 0, boundNs = std::numeric_limits<double>::infinity(),
         oneStageNs = std::numeric_limits<double>::infinity();
  /// Ops for which one option stands for all, edges that count nothing, of the meshes together (`JointTables`).
  unsigned numRelaxed = 0, numDropped = 0;

  /// A cell is known to take no less.
  void addBound(const StageCell &stages, double leastNs) {
    boundNs = std::min(boundNs, leastNs);
    if (!stages.isPipeline())
      oneStageNs = std::min(oneStageNs, leastNs);
  }

  /// How far the plan is above the bound, at most; above that of one stage; and how far its decision is above that of its cell.
  double getGap() const { return findGap(measureNs, boundNs); }
  double getOneStageGap() const { return findGap(measureNs, oneStageNs); }
  double getOwnGap() const { return findGap(ns, ownBoundNs); }

private:
  static double findGap(double ns, double boundNs) { return boundNs > 0 ? std::max(ns / boundNs - 1, 0.0) : 0; }
};

/// `space`: the cells, of which all that have a program must be there. `makeProblem` is asked for one at a time.
Proof checkCertificate(const Certificate &certificate, llvm::ArrayRef<SpaceCell> space, ProblemOfCell makeProblem);

/// What is to be least takes at least that, where a microbatch of the cell takes `ns`, and some op of it at least `largestNs`.
double boundMeasure(const Certificate &certificate, const StageCell &stages, const Problem &problem, double ns,
                    double largestNs);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_CHECKCERTIFICATE_H
