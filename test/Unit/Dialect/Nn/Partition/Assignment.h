//===- Assignment.h - a choice of a rule for each mesh axis -----*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_ASSIGNMENT_H
#define CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_ASSIGNMENT_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Sharding/ShardingRule.h"

namespace cleave::spmd {

/// One choice of the rule per mesh axis.
struct Assignment {
  llvm::ArrayRef<int64_t> mesh;
  llvm::SmallVector<unsigned> choices;

  /// Axes that split `factor`, in mesh order.
  llvm::SmallVector<unsigned> getSplits(const ShardingRule &rule, FactorId factor) const {
    llvm::SmallVector<unsigned> axes;
    for (auto [axis, choice] : llvm::enumerate(choices))
      if (llvm::is_contained(rule.choices[choice].factors, factor))
        axes.push_back(axis);
    return axes;
  }
  int64_t getExtent(llvm::ArrayRef<unsigned> axes) const {
    int64_t extent = 1;
    for (unsigned axis : axes)
      extent *= mesh[axis];
    return extent;
  }
  bool isValid(const ShardingRule &rule) const;
  /// What the rule says that the op sends inside, in bytes, by the formulas of `InnerCost`.
  int64_t getInnerBytes(const ShardingRule &rule) const;
};

} // namespace cleave::spmd

#endif // CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_ASSIGNMENT_H
