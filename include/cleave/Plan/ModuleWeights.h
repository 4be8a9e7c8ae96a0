//===- ModuleWeights.h - weights by the modules that read them --*- C++ -*-===//
//
//   {module: "model.layers.*.self_attn.q_proj", dims: [_, model]}
//
// A rule by module addresses the weight of as many dims as it has entries, of each module that it picks: of a linear layer the matrix by two
// entries, the bias by one. So most layers need no other name, however their exporter calls tensors.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_MODULEWEIGHTS_H
#define CLEAVE_PLAN_MODULEWEIGHTS_H

#include "cleave/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::spmd {

class ModuleWeights {
public:
  /// A weight of `rank` dims, which nodes of these modules read. All names must outlive this.
  void add(llvm::StringRef weight, size_t rank, llvm::ArrayRef<llvm::StringRef> modules);

  /// No weight has a module.
  bool isEmpty() const { return modules.empty(); }
  /// The names of the weights that a rule by module addresses, in the order of modules. Error: no module matches, none has a weight of that
  /// many dims, or one has several, between which `dims` cannot tell.
  llvm::Expected<std::vector<llvm::StringRef>> find(const PlanRule &rule) const;
  /// The module of which this weight is the only one of its rank, by which a rule may address it; empty: there is none.
  llvm::StringRef findModule(llvm::StringRef weight) const;
  /// Modules that have weights, or weights of `rank` dims.
  std::vector<llvm::StringRef> listModules() const;
  std::vector<llvm::StringRef> listModules(size_t rank) const;
  /// Dims of a weight; 0 for what is none.
  size_t getRank(llvm::StringRef weight) const { return ranks.lookup(weight); }

private:
  std::string describeWeights(llvm::StringRef module) const;
  llvm::Error explainNone(const PlanRule &rule, llvm::ArrayRef<llvm::StringRef> matched) const;

  llvm::MapVector<llvm::StringRef, std::vector<llvm::StringRef>> modules;
  llvm::StringMap<size_t> ranks;
  llvm::StringMap<std::vector<llvm::StringRef>> modulesOf;
};

/// What is said where a model has no module names.
llvm::StringRef explainNoModules();

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_MODULEWEIGHTS_H
