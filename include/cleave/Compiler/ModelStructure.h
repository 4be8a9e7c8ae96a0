//===- ModelStructure.h - what a model is made of ---------------*- C++ -*-===//
//
// A loaded model as a problem to decide, before anything is decided: what dims and weights are to it (Search), and which ops can be split.
// Values are called as plans call them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_MODELSTRUCTURE_H
#define CLEAVE_COMPILER_MODELSTRUCTURE_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Search/PlanRules.h"
#include "cleave/Search/Roles.h"
#include "cleave/Search/Styles.h"

namespace cleave {

struct MeshProblem;

/// What a weight is, under the name that a plan has for it.
struct NamedRole {
  std::string weight, role;
  /// The layer that it belongs to; 0: none that repeats.
  unsigned block = 0;
  std::vector<int64_t> shape;
  /// Its dims in the plan of the compilation; empty: no rule is about it.
  std::string dims;
};

/// Ops of one kind that no axis splits, and why.
struct ReplicatedOps {
  std::string op, reason;
  unsigned count = 0;
};

struct SupportReport {
  unsigned ops = 0, splittable = 0;
  std::vector<ReplicatedOps> replicated;
  /// Kinds of ops whose time only their bytes tell, and how many there are.
  std::vector<std::pair<std::string, unsigned>> uncosted;
};

class ModelStructure {
public:
  /// Of a loaded model that is not sharded yet, on that mesh, with the annotations of `plan` (null: none). Null after an error.
  static std::unique_ptr<ModelStructure> create(Compilation &compilation, std::shared_ptr<const spmd::Plan> plan);
  ~ModelStructure();

  const spmd::Problem &getProblem() const;
  /// What the problem does not know of its values.
  const spmd::StyledModel &getModel() const { return model; }
  /// What a style splits, as dims of a plan over these axes; see `listStyled`.
  std::vector<spmd::TensorDims> listTensors(const spmd::StyledPlan &styled, llvm::ArrayRef<spmd::MeshAxis> axes) const;
  /// What a plan calls it; empty: nothing.
  llvm::StringRef getName(spmd::ValueId value) const;
  /// All names by which plans address anything, those of values that annotation merges into others too.
  const spmd::ModelNames &getNames() const { return names; }
  /// Says of a name whether `rule` picks the tensor by it or, as a weight, by a module that reads it. Not by nodes.
  std::function<bool(llvm::StringRef)> getPicker(const spmd::PlanRule &rule) const;

  /// In the order in which the model uses them. `plan`: whose rules say how they are split; may be null.
  std::vector<NamedRole> findRoles(const spmd::Plan *plan) const;
  /// By node the layer of those that repeat, from 1: that of the weight that was read last, for collectives that it needs. 0: none.
  std::map<std::string, unsigned> numberNodes() const;
  SupportReport findSupport() const;

private:
  ModelStructure();
  std::vector<char> findNamedWeights() const;

  std::unique_ptr<MeshProblem> made;
  spmd::StyledModel model;
  spmd::ModelNames names;
};

} // namespace cleave

#endif // CLEAVE_COMPILER_MODELSTRUCTURE_H
