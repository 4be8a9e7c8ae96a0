//===- CellPlan.h - one mesh, and the plan of a decision --------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_CELLPLAN_H
#define CLEAVE_LIB_COMPILER_CELLPLAN_H

#include "State.h"

#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Search/CellSearch.h"
#include "cleave/Search/DimClasses.h"

namespace cleave {

/// One mesh: its problem, and what is found of it. Of a pipeline it is the mesh of a stage, and the problem that of a microbatch.
class CellPlan {
public:
  /// Of an annotated module. Null after an error: the model cannot be sharded.
  static std::unique_ptr<CellPlan> create(mlir::OwningOpRef<mlir::ModuleOp> module, spmd::SolverOptions options);

  spmd::CellSearch &getSearch() { return *search; }
  const spmd::Problem &getProblem() const { return source->getProblem(); }
  /// The plan that says what was decided: axes with names, where the cell's have none (`borders`: see `nameAxes`), and a rule for each
  /// parameter and input that is split. `given` is the cell's own plan, and stays but for that.
  spmd::Plan makePlan(const spmd::CellAnswer &answer, const spmd::Plan &given,
                      std::optional<llvm::ArrayRef<unsigned>> borders) const;

private:
  std::vector<spmd::PlanRule> makeRules(const spmd::Decision &decision, const spmd::AtomMesh &mesh,
                                        llvm::ArrayRef<spmd::MeshAxis> axes) const;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<spmd::MeshAtoms> atoms;
  std::unique_ptr<spmd::FunctionProblem> source;
  std::unique_ptr<spmd::DimClasses> classes;
  std::unique_ptr<spmd::CellSearch> search;
};

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_CELLPLAN_H
