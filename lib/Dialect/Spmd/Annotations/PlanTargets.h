//===- PlanTargets.h - the tensors that a plan's rules address --*- C++ -*-===//
//
// A table from the names of a model (Names.h) to values and function results.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLANTARGETS_H
#define CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLANTARGETS_H

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Plan/ModuleWeights.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace cleave::spmd {

/// A value, or result number `result` of `func`, under one of its names.
struct PlanTarget {
  mlir::Value value;
  mlir::func::FuncOp func;
  unsigned result = 0;
  llvm::StringRef name;

  /// Equal for equal targets: a tensor that has two names may be wanted in two ways.
  using Key = std::tuple<const void *, unsigned, llvm::StringRef>;
  Key getKey() const;
  mlir::RankedTensorType getType() const;
  mlir::Location getLoc() const;
};

/// What a value is read from, if it is a box of a parameter only (`nn-split-weights`), also behind a pin; null if not.
/// What is wanted of the whole parameter holds for each of its parts.
ParameterOpInterface getPart(mlir::Value value);

class PlanTargets {
public:
  explicit PlanTargets(mlir::ModuleOp module);

  struct Found {
    /// Each once, in program order.
    llvm::SmallVector<PlanTarget> targets;
    /// Tensors that the rule addresses and no op of the program needs (`nn.unused`).
    llvm::SmallVector<llvm::StringRef, 1> unused;
    /// What of the rule's pattern is about nothing.
    std::vector<std::string> notes;
  };
  /// What `rule` addresses. Fails, with the reason in `error`, if that is no tensor of the program.
  llvm::LogicalResult find(const PlanRule &rule, Found &found, PlanError &error) const;

private:
  void add(mlir::func::FuncOp func);
  void addNodes(mlir::Block &body, size_t numOps);
  void addUnused(mlir::ModuleOp module);
  void addName(llvm::StringRef name, Found &found) const;
  bool findTensors(const PlanRule &rule, Found &found) const;
  bool findNodes(const PlanRule &rule, Found &found, std::string &reason) const;
  bool findWeights(const PlanRule &rule, Found &found, std::string &reason) const;

  mlir::ModuleOp module;
  /// Made once a rule asks.
  mutable std::optional<ModuleWeights> modules;
  llvm::MapVector<llvm::StringRef, llvm::SmallVector<PlanTarget, 1>> tensors;
  /// What is known of each node, once per op that was made for it.
  llvm::MapVector<llvm::StringRef, llvm::SmallVector<NodeInfo, 1>> nodes;
  /// Nodes that the module tells of (`nn.unused`), as the model has them: which output is which is said there alone.
  llvm::DenseMap<llvm::StringRef, llvm::SmallVector<NodeInfo, 1>> fullNodes;
  /// Of the names in both, in the same order.
  std::optional<NameIndex> tensorIndex, nodeIndex;
  /// Tensors of the model that are not in the program.
  llvm::DenseSet<llvm::StringRef> unused;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLANTARGETS_H
