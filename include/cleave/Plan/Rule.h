//===- Rule.h - what a plan asks of some tensors ----------------*- C++ -*-===//
//
// One entry of `shard`, and what it is made of:
//
//   {tensor: "encoder.*.weight", dims: [data, _], priority: 1}
//
// An error of a plan has the place where it was written. The format is fixed in docs/plan-file.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_RULE_H
#define CLEAVE_PLAN_RULE_H

#include "cleave/Plan/Pipeline.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::spmd {

/// What is wrong, where, and other places that belong to it.
struct PlanError {
  PlanPlace place;
  std::string message;
  std::vector<std::pair<PlanPlace, std::string>> notes;

  /// `plan.yaml:4:60: error: ...`, one line, then one per note.
  std::string format() const;
};

/// An axis, or the digit `model:(1)2` of one. `size` is 0 for a whole axis.
struct PlanAxis {
  std::string name;
  int64_t preSize = 1, size = 0;
  PlanPlace place;

  bool isSubAxis() const { return size != 0; }
  /// `model`, or `model:(1)2`.
  std::string format() const;
};

/// One entry of `dims`: `_` (closed, no axes), `?` (open), `data`, `data?`, `[data, model]`, or `...`, which stands for
/// all dims that the others leave, each closed.
struct PlanDim {
  llvm::SmallVector<PlanAxis, 2> axes;
  bool isOpen = false, isRest = false;
  PlanPlace place;
};

/// Something to say about a place of a plan.
struct PlanNote {
  PlanPlace place;
  std::string message;
};

class NamePattern;

/// One entry of `shard`.
struct PlanRule {
  enum class Target { Tensor, Operand, Result, Module }; ///< of a module the weight of as many dims (ModuleWeights.h)
  Target target = Target::Tensor;
  /// Of a tensor's name, of a node's, or of a module's.
  std::string pattern;
  /// Which operand or result of the node.
  unsigned index = 0;
  std::vector<PlanDim> dims;
  /// The tensors are weights of experts, one each: they are stacked, and this is asked of the dim that counts them.
  std::optional<PlanDim> experts;
  int64_t priority = 0;
  std::vector<PlanAxis> replicated;
  /// Its axes need not divide what they cut, anywhere.
  bool uneven = false;
  /// Names that it does not pick.
  std::vector<PlanPattern> except;
  /// `where: divides`: a dim that its axes do not divide is left to propagation.
  bool whereDivides = false;
  /// Of the rule, of its pattern, and of its list of dims.
  PlanPlace place, patternPlace, dimsPlace;

  /// The names that it picks: those of `pattern` without those of `except`. Precondition: they are patterns.
  NamePattern getPattern() const;
  /// True if what it asks of a tensor is more than its `dims`: see `fitRule`.
  bool dependsOnShape() const;
  /// All axes that it names, of dims, of experts and replicated ones.
  llvm::SmallVector<const PlanAxis *> getAxes() const;
  /// True if it leaves everything to propagation.
  bool asksNothing() const;
  /// One entry per dim of a tensor of this rank; nothing where there are too few dims, or without `...` too many.
  std::optional<std::vector<PlanDim>> expand(size_t rank) const;
  /// True if both ask for the same, whatever tensors they pick.
  bool asksSameAs(const PlanRule &other) const;
  /// What it addresses, as in --shard: `hidden`, `node:*/MatMul#1`, `module:*.mlp.up_proj`.
  std::string formatTarget() const;
  /// `[data, _]`, as in the plan.
  std::string formatDims() const;
  /// The same with what else it asks for: `[data, _], priority 1`.
  std::string formatAnnotation() const;
};

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_RULE_H
