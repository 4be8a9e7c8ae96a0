//===- CellPlan.h - one mesh, and the plan of a decision --------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_CELLPLAN_H
#define CLEAVE_LIB_COMPILER_CELLPLAN_H

#include "MeshProblem.h"

#include "cleave/Plan/Plan.h"
#include "cleave/Search/CellSearch.h"
#include "cleave/Search/DimClasses.h"

namespace cleave {

/// One mesh: its problem, and what is found of it. Of a pipeline it is the mesh of a stage, and the problem that of a microbatch.
class CellPlan {
public:
  /// With all axes free, and the storage of weights open.
  /// `names`: of the model as it was loaded.
  CellPlan(std::unique_ptr<MeshProblem> made, const spmd::ModelNames &names);

  spmd::CellSearch &getSearch() { return *search; }
  /// The plan that says what was decided: axes with names, where the cell's have none (`borders`: see `nameAxes`), and a rule for each
  /// parameter and input that is split. `given` is the cell's own plan, and stays but for that.
  spmd::Plan makePlan(const spmd::CellAnswer &answer, const spmd::Plan &given,
                      std::optional<llvm::ArrayRef<unsigned>> borders) const;

private:
  std::vector<spmd::PlanRule> makeRules(const spmd::Decision &decision, const spmd::AtomMesh &mesh,
                                        llvm::ArrayRef<spmd::MeshAxis> axes) const;

  std::unique_ptr<MeshProblem> problem;
  const spmd::ModelNames &names;
  std::unique_ptr<spmd::DimClasses> classes;
  std::unique_ptr<spmd::CellSearch> search;
};

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_CELLPLAN_H
