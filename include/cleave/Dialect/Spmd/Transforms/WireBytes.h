//===- WireBytes.h - what a collective sends --------------------*- C++ -*-===//
//
// Bytes that the busiest rank of a group of n sends: all_gather (n-1)/n of the result, reduce_scatter and all_to_all
// (n-1)/n of the operand, all_reduce 2(n-1)/n of it, permute what the largest sender passes on. Fractions of a byte are
// rounded up per collective. `local_slice` and `axis_index` send nothing.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_WIREBYTES_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_WIREBYTES_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::spmd {

/// True for the ops that communicate.
bool isCollective(mlir::Operation *op);

/// The mesh axes over which the ranks of a group differ. Empty for other ops.
llvm::SmallVector<AxisAttr> getCollectiveAxes(mlir::Operation *op);

/// Bytes that the busiest rank sends; 0 for ops that do not communicate.
int64_t getWireBytes(mlir::Operation *op);

/// Sum over the ops of a function.
int64_t countWireBytes(mlir::func::FuncOp func);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_WIREBYTES_H
