//===- PlanKeys.h - the keys of a plan, in one table ------------*- C++ -*-===//
//
//   Plan ─ mesh, shard, .., pipeline, train
//            │      └ Rule ─ tensor, dims, ..
//            └ Mesh ─ names of axes
//
// Readers of plans take keys from here, and so does who completes and explains them in an editor (lib/Editor).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_PLANKEYS_H
#define CLEAVE_PLAN_PLANKEYS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace cleave::spmd {

/// A mapping of a plan: what its keys are.
enum class PlanSection {
  Plan,
  Mesh,    ///< names of axes
  Symbols, ///< symbolic dims of the model
  States,  ///< inputs and outputs
  Rule,
  Pipeline,
  Batch, ///< inputs
  Stage,
  Train,
  Loss,
  Labels,
  Optimizer,
  Rate,
  Group,
  Precision,
  Zero,
  Lora,
  Expect,
  Cluster,
  Device,
  Flops,
  Unlike,
  Level, ///< a link of several
  Link,
  LinksOfAxes, ///< names of axes
};

/// What stands behind a key, alone or in a list.
enum class PlanValue {
  Number, ///< or a text that is no name: sizes, times
  Words,  ///< one of a few
  Section,
  Axis,
  DimEntry,      ///< an axis, `_`, `?`, `...`
  TensorPattern, ///< names of tensors
  WeightPattern, ///< names of parameters
  NodePattern,
  ModulePattern,
  Input,
  Output,
  InputOrTensor, ///< labels of a loss: an input, old or new
  Cluster,
  Schedule,
  AbsentKind, ///< `permute over data`
  LinkName,
};

struct PlanKey {
  llvm::StringRef name;
  PlanValue value;
  /// Where the value is a mapping, or may be one; else that of the key.
  PlanSection section;
  /// What it says, a sentence for people.
  llvm::StringRef says;
  /// Words that the value may be, of `Words` and next to what else it may be.
  std::vector<llvm::StringRef> words = {};
};

/// The keys of a section, in the order in which messages list them; empty where users choose them.
llvm::ArrayRef<PlanKey> getPlanKeys(PlanSection section);
/// Their names.
llvm::ArrayRef<llvm::StringRef> getPlanKeyNames(PlanSection section);
/// Null: there is none of this name.
const PlanKey *findPlanKey(PlanSection section, llvm::StringRef name);

inline constexpr llvm::StringRef kPlacementWords[] = {"linear", "loop", "v", "wave"};
inline constexpr llvm::StringRef kBalanceWords[] = {"throughput", "latency"};
inline constexpr llvm::StringRef kStageRecomputeWords[] = {"never", "always", "except_last"};
inline constexpr llvm::StringRef kUpdateWords[] = {"early", "end"};
inline constexpr llvm::StringRef kSendWords[] = {"direct", "relay"};

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_PLANKEYS_H
