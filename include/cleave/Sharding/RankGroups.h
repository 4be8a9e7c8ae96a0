//===- RankGroups.h - ranks that differ along some axes ---------*- C++ -*-===//
//
// A rank is the row-major index of its coordinates on the mesh. Ranks that differ only along given (sub-)axes form a
// *group*, and each has an *index* in it, row-major along those axes as listed. On a mesh a=2, b=3, along {b}:
//
//   rank    0 1 2  3 4 5
//   index   0 1 2  0 1 2      groups {0, 1, 2} and {3, 4, 5}, of bases 0 and 3
//
// This is what a collective runs on, where a shard of a dim lies, and what a communicator is made from. Nothing is
// stored per rank: each question costs as much as there are axes.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_RANKGROUPS_H
#define CLEAVE_SHARDING_RANKGROUPS_H

#include "cleave/Sharding/Mesh.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::spmd {

class RankGroups {
public:
  /// Preconditions: all sizes >= 1; the axes are of the mesh, divide theirs and do not overlap.
  RankGroups(llvm::ArrayRef<int64_t> axisSizes, llvm::ArrayRef<SubAxis> axes);
  RankGroups(const AtomMesh &mesh, llvm::ArrayRef<AtomId> atoms);

  /// Ranks of each group.
  int64_t size() const { return count; }
  int64_t indexOf(int64_t rank) const;
  /// The rank with index 0 in the group of `rank`: the group's name.
  int64_t baseOf(int64_t rank) const;
  /// All ranks of the group of `rank`, by index.
  llvm::SmallVector<int64_t> membersOf(int64_t rank) const;
  /// Calls back with the members of every group, by ascending base.
  void forEachGroup(llvm::function_ref<void(llvm::ArrayRef<int64_t> members)> callback) const;

private:
  /// A rank's coordinate along one (sub-)axis is `rank / stride % extent`.
  struct Digit {
    int64_t extent, stride;
  };
  void add(Digit digit);

  llvm::SmallVector<Digit, 4> digits;
  int64_t count = 1, numRanks = 1;
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_RANKGROUPS_H
