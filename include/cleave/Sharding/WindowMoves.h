//===- WindowMoves.h - who gives whom what of its edges ---------*- C++ -*-===//
//
// A dim is split into shards, one after the other, and each rank wants an interval of it that moves on by a step from rank
// to rank: its own piece with the edges of its neighbors, or another piece. What lies beyond the ends of the dim comes
// from nobody, or is the nearest position that there is, or goes on at the other end.
//
//   shards of 4          |0 0 0 0|1 1 1 1|2 2 2 2|
//   step 4, [-1, 5)     [. 0 0 0 0 1]                      rank 0, `.` lies beyond
//                             [0 1 1 1 1 2]                rank 1
//
// Along several dims a rank wants the box of its intervals. What it has it keeps; the rest travels, each element from the
// one rank of the group that has it, also over more than one neighbor.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_WINDOWMOVES_H
#define CLEAVE_SHARDING_WINDOWMOVES_H

#include "cleave/Sharding/Beyond.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>

namespace cleave::spmd {

/// One dim: `pieces` shards of `extent`, and per piece p the interval [p * step + low, p * step + high).
///
/// Where shards are uneven the dim has fewer positions than all shards have room for: what lies behind them is beyond its
/// end. Nor has the result of whoever reads the intervals as many: the first `takers` pieces want their intervals, and of these
/// only what lies in [first, end); the rest may be anything.
struct DimWindow {
  int64_t extent;
  int64_t pieces = 1;
  int64_t step = 0, low = 0, high = 0;
  Beyond beyond = Beyond::Fill;
  int64_t missing = 0; ///< positions that the shards have room for, and that are not there
  int64_t first = std::numeric_limits<int64_t>::min(), end = std::numeric_limits<int64_t>::max();
  int64_t takers = std::numeric_limits<int64_t>::max();

  /// A dim that is not split, and that each rank wants as it is.
  static DimWindow whole(int64_t extent) { return {extent, 1, 0, 0, extent}; }
  /// Where the interval of a piece begins.
  int64_t startOf(int64_t piece) const { return piece * step + low; }
  /// Positions of the dim.
  int64_t size() const { return pieces * extent - missing; }
  /// True if each rank wants just what it has, and nothing of what lies beyond.
  bool isIdentity() const {
    return low == 0 && high == extent && (pieces == 1 || step == extent) && (missing == 0 || end <= size());
  }
};

/// Part of what a member of the group wants, and whose it is. Members are numbered row-major by their pieces.
struct WindowPiece {
  int64_t source;
  /// In elements of the whole value: where it is, and where it goes, which differ beyond the ends.
  llvm::ArrayRef<int64_t> from, to, extents;
};

/// Calls back for every part of the box of `target`, its own included, by ascending place.
void forEachWindowPiece(llvm::ArrayRef<DimWindow> dims, int64_t target,
                        llvm::function_ref<void(const WindowPiece &)> callback);

/// Elements that the busiest member sends.
int64_t countSentElements(llvm::ArrayRef<DimWindow> dims);
/// Other members that one sends to, or gets from, at most.
int64_t countPeers(llvm::ArrayRef<DimWindow> dims);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_WINDOWMOVES_H
