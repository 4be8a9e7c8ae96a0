//===- Ranks.h - ranks of a mesh, their groups and shards -------*- C++ -*-===//
#ifndef CLEAVE_LIB_REFERENCE_RANKS_H
#define CLEAVE_LIB_REFERENCE_RANKS_H

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Reference/Tensor.h"
#include <vector>

namespace cleave::reference {

/// One tensor per rank. Ranks known to hold equal values share the bytes, which also spares computing them twice.
using PerRank = llvm::SmallVector<Tensor>;

/// A rank's coordinate along (sub-)axes: `rank / stride % extent` for each, major to minor.
class Digits {
public:
  /// Precondition: `axes` are AxisAttrs of the mesh.
  Digits(spmd::MeshAttr mesh, llvm::ArrayRef<mlir::Attribute> axes);
  /// Row-major index of the rank along the axes.
  int64_t getIndex(int64_t rank) const;
  /// Number of different indices.
  int64_t getCount() const;
  /// The rank with index 0 that agrees with `rank` everywhere else.
  int64_t getBase(int64_t rank) const;

private:
  struct Digit {
    int64_t extent, stride;
  };
  llvm::SmallVector<Digit, 2> digits;
};

/// Ranks that differ only along `digits`, each group in the order of its index.
std::vector<llvm::SmallVector<int64_t>> getGroups(int64_t numRanks, const Digits &digits);

/// Every rank's shard of a global tensor; padded with zeros where uneven. Where the sharding is partial, the first rank
/// of each group has the value, and the others what changes nothing when it is combined with it.
PerRank takeShards(const Tensor &global, spmd::ShardingAttr sharding);

/// Size of rank `rank`'s shard without padding.
llvm::SmallVector<int64_t> getCroppedShape(llvm::ArrayRef<int64_t> global, spmd::ShardingAttr sharding, int64_t rank);

/// What each group of ranks has after combining their tensors, in the order of their index along `digits`.
PerRank combineGroups(const PerRank &inputs, const Digits &digits, spmd::ReductionKind kind);
/// A tensor that changes nothing when it is combined with another one.
Tensor getIdentity(mlir::RankedTensorType type, spmd::ReductionKind kind);

bool isCollective(mlir::Operation *op);
/// Runs a collective, `inputs` being its operand on each rank (empty for spmd.axis_index).
PerRank evaluateCollective(mlir::Operation *op, spmd::MeshAttr mesh, const PerRank &inputs);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_RANKS_H
