//===- Partition.h - what an op gets when it is partitioned -----*- C++ -*-===//
//
// The partitioner walks a function in order, and hands each op a context: its operands in per-device form, and for each
// factor of its rule the mesh axes that split it. An op that needs more than its own clone on local shapes (a masked
// lookup, statistics summed over ranks, an offset that depends on the rank) builds it with the helpers here.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_PARTITION_H
#define CLEAVE_DIALECT_SPMD_IR_PARTITION_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace cleave::spmd {

struct PartitionContext {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  MeshAttr mesh;
  /// Operands in per-device form, as many as the op has.
  llvm::SmallVector<mlir::Value> operands;
  /// Per-device types of the results.
  llvm::SmallVector<mlir::RankedTensorType> resultTypes;
  /// The op's rule, and per factor of it the axes that split it, major to minor.
  const ShardingRule &rule;
  llvm::ArrayRef<llvm::SmallVector<AxisAttr, 2>> splits;
  /// False where pieces may be of other sizes than shards are (microbatches), and none is padded.
  bool padsShards = true;

  /// True if a dim of `extent` is split over `axes` into shards of which the last ones are padded.
  bool isPadded(int64_t extent, llvm::ArrayRef<AxisAttr> axes) const {
    return padsShards && extent % getExtent(axes) != 0;
  }
  /// Number of ranks along `axes` (1 for none).
  int64_t getExtent(llvm::ArrayRef<AxisAttr> axes) const;
  /// Axes that split any factor of dim `dim` of operand / result `index`, major to minor.
  llvm::SmallVector<AxisAttr> getOperandSplits(unsigned index, unsigned dim) const;
  llvm::SmallVector<AxisAttr> getResultSplits(unsigned index, unsigned dim) const;
  /// Emits `spmd.all_reduce`; the value itself if `axes` is empty.
  mlir::Value allReduce(mlir::Value value, ReductionKind kind, llvm::ArrayRef<AxisAttr> axes) const;
  /// Emits `spmd.axis_index`: a tensor<i64>; a zero constant is the caller's business if `axes` is empty.
  mlir::Value axisIndex(llvm::ArrayRef<AxisAttr> axes) const;
};

/// Clones `op` on the context's local operands and result types; attributes may be changed afterwards.
mlir::Operation *cloneLocal(mlir::Operation *op, PartitionContext &context);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_PARTITION_H
