//===- ShardMoves.h - who gives whom what when a sharding changes -*- C++ -*-===//
//
// When a tensor's state changes, each rank's new shard is put together from *pieces*, each a box that one rank had:
//
//   from [x], 3 ranks      |0 0 0 0|1 1 1 1|2 2 2 2|
//   to [y], y = 2          |0 0 0 0 0 0|1 1 1 1 1 1|      new shard 0: all of the old 0 and the first half of the old 1
//
// A piece comes from the holder that shares the target's coordinates outside of the atoms that split the old state, so
// that every element has one source: the target itself where it holds it. Copies along other atoms, and terms of a
// partial value, stay among the ranks that have the same coordinate there.
//
// `permute` is defined by this: the evaluator copies by it, `exchangeBytes` counts what it sends in closed form, and send lists
// are made from it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_SHARDMOVES_H
#define CLEAVE_SHARDING_SHARDMOVES_H

#include "cleave/Sharding/State.h"

namespace cleave::spmd {

/// A box of a tensor: its first element and its extents.
struct Box {
  llvm::SmallVector<int64_t, 4> start, extents;

  int64_t numElements() const;
};

/// What of a tensor of `shape` a rank holds, padding left out. May be empty.
Box shardOf(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &state, int64_t rank);

/// Part of the new shard of `target` that `source` held; both may be the same rank.
struct Piece {
  int64_t source, target;
  /// In elements of the whole tensor.
  const Box &box;
};

/// The pieces of a change from `from` to `to`, found rank by rank and not stored. What is passed must outlive this.
class ShardMoves {
public:
  using Callback = llvm::function_ref<void(const Piece &)>;

  /// Precondition: one extent per dim of both states.
  ShardMoves(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &from, const State &to);

  /// Calls back for every piece of the new shard of `target`, by ascending place in the tensor (row-major, by start).
  /// Linear in their number.
  void forEachInto(int64_t target, Callback callback) const;
  /// Calls back for every piece that comes from `source`, by ascending place in the tensor, then by target.
  void forEachFrom(int64_t source, Callback callback) const;

private:
  void forEachPartner(int64_t rank, const State &own, const State &other,
                      llvm::function_ref<void(int64_t partner, const Box &box)> callback) const;

  const AtomMesh &mesh;
  llvm::ArrayRef<int64_t> shape;
  const State &from, &to;
  /// All atoms that split a dim of `from`: where a source and its target may differ.
  AtomList moving;
};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_SHARDMOVES_H
