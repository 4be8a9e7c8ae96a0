//===- MeshProblem.h - a model on a mesh, as a problem to decide -*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_MESHPROBLEM_H
#define CLEAVE_LIB_COMPILER_MESHPROBLEM_H

#include "State.h"

#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Search/PlanRules.h"
#include "cleave/Search/StageCells.h"
#include "cleave/Search/Styles.h"

namespace cleave {

/// Of the annotated program of a plan: `Compilation::State::makeProblem`.
struct MeshProblem {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<spmd::MeshAtoms> atoms;
  std::unique_ptr<spmd::FunctionProblem> source;
  /// By the costs of its options.
  spmd::SolverOptions options;

  const spmd::Problem &getProblem() const { return source->getProblem(); }
};

/// Decisions are looked up by numbers of ops and values. What a rule names is kept as it is: a mask of windows in one dim, where without the
/// rule it would be taken apart into rows and columns of windows. The program is then another one.
bool haveSameValues(const spmd::Problem &one, const spmd::Problem &other);

/// The plan of a cell: `given` on a mesh, of which each stage has one. Stages are far from each other: their axis is the major one.
spmd::Plan makeCellPlan(spmd::Plan given, const spmd::StageCell &stages, std::vector<spmd::MeshAxis> mesh);

/// What styles want to know of values beside the problem.
spmd::StyledModel makeStyledModel(const MeshProblem &problem);

/// What a style splits, as dims of a plan over these axes. What a rule names already, and what has no name, is left out.
std::vector<spmd::TensorDims> listStyled(const MeshProblem &problem, const spmd::StyledPlan &styled,
                                         llvm::ArrayRef<spmd::MeshAxis> axes);

/// All names by which plans address values of a model as it was loaded. Annotation merges some of these values, but keeps apart what a rule
/// names: a rule that is made later must not pick them.
spmd::ModelNames listNames(mlir::ModuleOp module);

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_MESHPROBLEM_H
