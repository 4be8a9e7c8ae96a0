//===- PlanRules.h - few rules for many tensors -----------------*- C++ -*-===//
//
// What was decided of each tensor, as rules that a person would write: equal layers in one line.
//
//   h.0/mlp/c_fc.weight [_, model]  ..  h.31/mlp/c_fc.weight [_, model]    ──▶    {tensor: "h.*/mlp/c_fc.weight", dims: [_, model]}
//
// A weight that a module's rule picks alone goes by its module, which people know better than what an exporter calls the tensor.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_PLANRULES_H
#define CLEAVE_SEARCH_PLANRULES_H

#include "cleave/Plan/ModuleWeights.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Mesh.h"

namespace cleave::spmd {

/// A tensor, and its dims as a plan has them.
struct TensorDims {
  std::string name;
  std::vector<PlanDim> dims;
};

/// By what plans address tensors of a model: their names, and weights by their modules.
struct ModelNames {
  std::vector<llvm::StringRef> tensors;
  ModuleWeights weights;
};

/// Dims that atoms cut, as a plan writes them: a part of an axis is a digit of it, a dim that nothing cuts is closed.
std::vector<PlanDim> makePlanDims(llvm::ArrayRef<AtomList> dims, const AtomMesh &mesh, llvm::ArrayRef<MeshAxis> axes);

/// Those that are cut, each name once. What is said of one name in two ways, as of parts of one parameter, no rule can say: it is left out.
std::vector<TensorDims> keepAgreed(llvm::ArrayRef<TensorDims> tensors);

/// Rules that say of each of `tensors` what it says, and nothing of any other tensor of the model. In the order of the
/// first tensor of each.
std::vector<PlanRule> makePlanRules(llvm::ArrayRef<TensorDims> tensors, const ModelNames &names);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_PLANRULES_H
