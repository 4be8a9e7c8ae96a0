//===- RuleMatches.h - the rule of each op, and how it is split -*- C++ -*-===//
//
// Ops with one name, one set of attributes and the same sharded types have one rule and one match; a model's equal
// layers share them, so that asking costs one hash lookup per op.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_SPMD_DECIDING_RULEMATCHES_H
#define CLEAVE_LIB_DIALECT_SPMD_DECIDING_RULEMATCHES_H

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/SameRule.h"
#include "cleave/Sharding/RuleMatch.h"

namespace cleave::spmd {

class RuleMatches {
public:
  struct Entry {
    ShardingRule rule;
    /// Nothing, and the reason in `error`, if operands and results do not agree under the rule.
    std::optional<RuleMatch> match;
    std::string error;
    /// Per factor the axes that split it.
    llvm::SmallVector<llvm::SmallVector<AxisAttr, 2>> splits;
    llvm::SmallVector<mlir::RankedTensorType> localResults;
  };

  explicit RuleMatches(MeshAtoms &atoms) : atoms(atoms) {}

  /// Precondition: all operands and results of `op` are ranked tensors.
  const Entry &get(ShardingRuleOpInterface op);

private:
  std::unique_ptr<Entry> build(ShardingRuleOpInterface op);

  MeshAtoms &atoms;
  SameRuleMap<std::unique_ptr<Entry>> entries;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_DIALECT_SPMD_DECIDING_RULEMATCHES_H
