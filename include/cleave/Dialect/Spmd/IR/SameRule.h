//===- SameRule.h - ops that have one rule ----------------------*- C++ -*-===//
//
// A model's equal layers are made of ops that differ in operands only: what is found out about one of them holds for
// all.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_SAMERULE_H
#define CLEAVE_DIALECT_SPMD_IR_SAMERULE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::spmd {

/// Ops compare equal that differ in operands and location only, not in the types of operands.
struct SameRuleInfo : llvm::DenseMapInfo<mlir::Operation *> {
  static unsigned getHashValue(const mlir::Operation *op);
  static bool isEqual(const mlir::Operation *lhs, const mlir::Operation *rhs);
};

/// Map in which an op that has been seen stands for all its equals. Ops must not change while they are in it.
template <typename T> using SameRuleMap = llvm::DenseMap<mlir::Operation *, T, SameRuleInfo>;

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_SAMERULE_H
