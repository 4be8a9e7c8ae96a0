//===- PlanTargets.h - the tensors that a plan's rules address --*- C++ -*-===//
//
// A table from the names of a model, kept in locations and attributes, to values and function results.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_SPMD_TRANSFORMS_PLANTARGETS_H
#define CLEAVE_LIB_DIALECT_SPMD_TRANSFORMS_PLANTARGETS_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace cleave::spmd {

/// A value, or result number `result` of `func`.
struct PlanTarget {
  mlir::Value value;
  mlir::func::FuncOp func;
  unsigned result = 0;
  llvm::StringRef name;

  /// Equal for equal targets.
  using Key = std::pair<const void *, unsigned>;
  Key getKey() const;
  mlir::RankedTensorType getType() const;
  mlir::Location getLoc() const;
  /// The load, if this is a part of a parameter only (`nn-split-weights`); what is wanted of the whole holds for each.
  nn::LoadOp getPart() const;
};

class PlanTargets {
public:
  explicit PlanTargets(mlir::ModuleOp module);

  /// What `rule` addresses, each once, in program order. Fails, with the reason in `error`, if that is nothing.
  llvm::LogicalResult find(const PlanRule &rule, llvm::SmallVectorImpl<PlanTarget> &targets, PlanError &error) const;

  /// Tensors that `rule` addressed before canonicalisation and that are gone: no op needs them.
  llvm::SmallVector<llvm::StringRef, 1> findUnused(const PlanRule &rule) const;

private:
  void add(mlir::func::FuncOp func);
  mlir::ArrayAttr getNamed(const PlanRule &rule) const;
  bool findTensors(const PlanRule &rule, llvm::SmallVectorImpl<PlanTarget> &targets) const;
  bool findNodes(const PlanRule &rule, llvm::SmallVectorImpl<PlanTarget> &targets, std::string &reason) const;

  llvm::MapVector<llvm::StringRef, llvm::SmallVector<PlanTarget, 1>> tensors;
  /// What rules addressed before canonicalisation (`spmd.named`); null if nothing was noted.
  mlir::DictionaryAttr named;
  /// The ops made for each node.
  llvm::MapVector<llvm::StringRef, llvm::SmallVector<mlir::Operation *, 2>> nodes;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_DIALECT_SPMD_TRANSFORMS_PLANTARGETS_H
