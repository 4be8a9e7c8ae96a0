//===- FactorMesh.h - a mesh for lists of shards ----------------*- C++ -*-===//
//
// A list that says which shard each device holds knows no mesh: [0, 0, 1, 1] and [0, 1, 0, 1] on four devices. Here axes
// are found of which every list is made: 2 x 2, where the first list is split by the first axis and the second by the other.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_FACTORMESH_H
#define CLEAVE_SHARDING_FACTORMESH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::spmd {

/// Which of the shards of a dim each device holds: a number below `count` for every device.
struct HeldShards {
  std::vector<int64_t> shards;
  int64_t count = 1;

  bool operator==(const HeldShards &other) const { return count == other.count && shards == other.shards; }
};

/// The axes of a mesh of these sizes (major to minor) that split a dim so, major to minor: the number of a shard is the
/// number that a device's digits along them form. Nothing if no axes do. Precondition: one entry per device of the mesh.
std::optional<llvm::SmallVector<unsigned>> findSplits(llvm::ArrayRef<int64_t> sizes, const HeldShards &held);

/// Sizes of the axes, major to minor, of the mesh with the fewest axes of which every list is split by whole ones; no axes for one
/// device. Nothing if there is no such mesh, or none among the first few thousand orders of prime factors.
std::optional<llvm::SmallVector<int64_t>> factorMesh(int64_t devices, llvm::ArrayRef<HeldShards> lists);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_FACTORMESH_H
