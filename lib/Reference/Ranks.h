//===- Ranks.h - tensors of all ranks ---------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_REFERENCE_RANKS_H
#define CLEAVE_LIB_REFERENCE_RANKS_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Reference/Tensor.h"

namespace cleave::reference {

/// One tensor per rank. Ranks known to hold equal values share the bytes, which also spares computing them twice.
using PerRank = llvm::SmallVector<Tensor>;

/// A tensor full of one number.
Tensor fill(mlir::RankedTensorType type, mlir::TypedAttr number);

/// A tensor of padding only: NaN, of integers a large number, as nobody may count on what it is.
Tensor makePadding(mlir::RankedTensorType type);

/// Every rank's shard of a global tensor, padded where that is uneven. Where the sharding is partial, the first rank of each
/// group has the value, and the others what changes nothing when it is combined with it.
PerRank takeShards(const Tensor &global, spmd::ShardingAttr sharding);

/// What each group of ranks has after combining their tensors, in the order of their index.
PerRank combineGroups(const PerRank &inputs, const spmd::RankGroups &groups, spmd::ReductionKind kind);
/// A tensor that changes nothing when it is combined with another one.
Tensor getIdentity(mlir::RankedTensorType type, spmd::ReductionKind kind);

/// Runs a collective, `inputs` being its operand on each rank (empty for spmd.axis_index). A failure has emitted an
/// error on the op.
mlir::FailureOr<PerRank> evaluateCollective(spmd::CollectiveOpInterface op, const PerRank &inputs);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_RANKS_H
