//===- PartMoves.h - parts of a concatenation to their places ---*- C++ -*-===//
//
// Some values are each split into shards along one dim, over the same ranks, and what is wanted is a shard of all of them put
// one behind the other:
//
//   rank                 0       1
//   has of a, b, c       a b c   a b c        two positions each
//   wants                a a b   b c c        positions 0 to 5, and 6 to 11
//
// A rank holds its shards one behind the other, in the order of the parts. What it has it keeps; the rest travels once. Or the
// other way round: it has what is wanted above, and wants what it has there. Where
// ranks do not divide an extent, shards are rounded up, and the last ones have fewer positions or none.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_PARTMOVES_H
#define CLEAVE_SHARDING_PARTMOVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace cleave::spmd {

/// Positions that go from one member of the group to another, or stay: where they lie among what `source` has, and where
/// among what the target wants.
struct PartPiece {
  int64_t source, from, to, extent;
};

/// Calls back for every run of positions that `target` wants, its own included, in ascending order of `to`.
/// \param parts the extent of each part, of all its shards together
/// \param members how many ranks have a shard of each
void forEachPartPiece(llvm::ArrayRef<int64_t> parts, int64_t members, int64_t target,
                      llvm::function_ref<void(const PartPiece &)> callback);

/// The same for a target that wants its shard of each part, where members have shards of all of them together.
void forEachSplitPiece(llvm::ArrayRef<int64_t> parts, int64_t members, int64_t target,
                       llvm::function_ref<void(const PartPiece &)> callback);

/// Positions that the busiest member sends, where parts are put together and where they are taken apart.
int64_t countSentOfParts(llvm::ArrayRef<int64_t> parts, int64_t members);
int64_t countSentOfSplit(llvm::ArrayRef<int64_t> parts, int64_t members);

/// Other members that one sends to, or gets from, at most.
int64_t countPeersOfParts(llvm::ArrayRef<int64_t> parts, int64_t members);
int64_t countPeersOfSplit(llvm::ArrayRef<int64_t> parts, int64_t members);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_PARTMOVES_H
