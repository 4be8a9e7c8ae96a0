//===- CellPlan.h - one mesh, and the plan of a decision --------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_CELLPLAN_H
#define CLEAVE_LIB_COMPILER_CELLPLAN_H

#include "MeshProblem.h"

#include "cleave/Plan/Plan.h"
#include "cleave/Search/CellSearch.h"
#include "cleave/Search/DimClasses.h"

namespace cleave {

/// A tensor that a plan may name, an input, a parameter or a result, and all ways to split it: each axis along a dim that it divides, or along none.
struct PlaceableTensor {
  std::string name;
  std::vector<std::vector<spmd::PlanDim>> ways;
  /// How the answer splits it, from 1 on; 0: in no such way.
  size_t decided = 0;
};

/// One mesh: its problem, and what is found of it. Of a pipeline it is the mesh of a stage, and the problem that of a microbatch.
class CellPlan {
public:
  /// With all axes free, and the storage of weights open.
  /// `names`: of the model as it was loaded.
  CellPlan(std::unique_ptr<MeshProblem> made, const spmd::ModelNames &names);

  spmd::CellSearch &getSearch() { return *search; }
  const spmd::Problem &getProblem() const { return problem->getProblem(); }

  /// Tensors of another answer in the place of those of the first: so many of those that differ, the first of the model or its last.
  struct Mixture {
    const spmd::CellAnswer &other;
    size_t count = 0;
    bool isOfFirst = true;
  };
  /// The plan that says what was decided: axes with names, where the cell's have none (`borders`: see `nameAxes`), and a rule for each
  /// parameter and input that is split. `given` is the cell's own plan, and stays but for that.
  spmd::Plan makePlan(const spmd::CellAnswer &answer, const spmd::Plan &given,
                      std::optional<llvm::ArrayRef<unsigned>> borders, const Mixture *mixture = nullptr) const;
  /// That plan without its rules.
  spmd::Plan makeBarePlan(const spmd::CellAnswer &answer, const spmd::Plan &given,
                          std::optional<llvm::ArrayRef<unsigned>> borders) const;
  /// Of a model of few ops; empty: it has more, or its tensors have more ways than anybody looks at.
  /// \param axes of the plan, as it names them
  std::vector<PlaceableTensor> listPlaceable(const spmd::CellAnswer &answer, llvm::ArrayRef<spmd::MeshAxis> axes) const;
  /// Bytes that some rank of any program on these devices needs at once, whatever is split: weights and inputs, or weights and what is
  /// returned, or weights and what a product reads and makes, each in as many pieces as its dims and the devices of a stage allow. Of several
  /// stages one holds each weight, so some rank has no less than the mean, and one runs each product.
  int64_t countLeastBytes(int64_t stages) const;
  /// How many tensors that a plan names the two split in different ways.
  size_t countDifferent(const spmd::CellAnswer &answer, const spmd::CellAnswer &other) const;
  /// The plan of a style for each axis, rules alone; nothing where the model cannot be split so.
  std::optional<spmd::Plan> makeStyledPlan(llvm::ArrayRef<spmd::Style> styles, const spmd::Plan &given,
                                           bool namesAxes) const;

private:
  std::vector<spmd::SearchStyle> listStyles() const;
  std::vector<spmd::PlanRule> makeRules(const spmd::CellAnswer &answer, const Mixture *mixture,
                                        const spmd::AtomMesh &mesh, llvm::ArrayRef<spmd::MeshAxis> axes) const;
  llvm::StringRef getRuledName(spmd::ValueId value) const;
  std::vector<spmd::MeshAxis> nameInnerAxes(const spmd::CellAnswer &answer, const spmd::Plan &given,
                                            std::optional<llvm::ArrayRef<unsigned>> borders) const;

  std::unique_ptr<MeshProblem> problem;
  const spmd::ModelNames &names;
  std::unique_ptr<spmd::DimClasses> classes;
  std::unique_ptr<spmd::CellSearch> search;
};

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_CELLPLAN_H
