//===- ShardBox.h - a rank's box of a tensor --------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_SPMD_IR_SHARDBOX_H
#define CLEAVE_DIALECT_SPMD_IR_SHARDBOX_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"

namespace cleave::spmd {

/// Per dim where a rank's shard begins in the whole, how much of the whole it has, and its extent. Of dims that shards do not divide,
/// the last ones hold less than their extent; what is behind is padding.
struct ShardBox {
  llvm::SmallVector<int64_t> start, present, extents;

  bool isPadded() const { return present != extents; }
};

/// The shard of `rank` of a tensor of `shape`. No sharding: all of it.
ShardBox getShardBox(ShardingAttr sharding, llvm::ArrayRef<int64_t> shape, int64_t rank);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_SHARDBOX_H
