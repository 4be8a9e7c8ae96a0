//===- Spmd.h - the spmd dialect --------------------------------*- C++ -*-===//
//
// Meshes, shardings and collectives; see dialects/Spmd for what each means.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_SPMD_H
#define CLEAVE_DIALECT_SPMD_IR_SPMD_H

#include "cleave/Dialect/Spmd/IR/SpmdAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "cleave/Dialect/Spmd/IR/SpmdDialect.h.inc"

namespace cleave::spmd {
/// What an op gets when it is partitioned; see Partition.h.
struct PartitionContext;
/// The default of PartitionOpInterface: the op itself on local operands, with local result types.
llvm::LogicalResult partitionByCloning(mlir::Operation *op, PartitionContext &context,
                                       llvm::SmallVectorImpl<mlir::Value> &results);
/// The mesh of the module around `op` (its `spmd.mesh` attribute), or null.
MeshAttr getMesh(mlir::Operation *op);
/// What CollectiveOpInterface demands of every op.
llvm::LogicalResult verifyCollective(mlir::Operation *op);
/// Ranks of a collective's group but one. Precondition: the op is valid.
int64_t countOthersInGroup(mlir::Operation *collective);
} // namespace cleave::spmd

#include "cleave/Dialect/Spmd/IR/SpmdInterfaces.h.inc"
#include "cleave/Dialect/Spmd/IR/SpmdNames.h.inc"
#include "cleave/Dialect/Spmd/IR/SpmdNodeLoc.h.inc"

#define GET_OP_CLASSES
#include "cleave/Dialect/Spmd/IR/SpmdOps.h.inc"

namespace cleave::spmd {

/// True for what tensors are made of: floats of 16 to 64 bits, integers of 8 to 64 bits, bools (S8).
bool isElementType(mlir::Type type);
/// The sharding in the encoding of `type`, or null.
ShardingAttr getSharding(mlir::Type type);
/// `type` with `sharding` as its encoding; null removes it.
mlir::RankedTensorType withSharding(mlir::RankedTensorType type, ShardingAttr sharding);
/// Per-device type of a sharded one: local shape, no encoding. Unsharded types come back unchanged.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type);
/// The groups of ranks of a collective, each in the order of its index along the axes (cleave/Sharding/RankGroups.h). Precondition: the op
/// is valid.
RankGroups getRankGroups(CollectiveOpInterface collective);
/// Bytes that the busiest rank sends in all collectives inside `root` together.
int64_t countWireBytes(mlir::Operation *root);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_SPMD_H
