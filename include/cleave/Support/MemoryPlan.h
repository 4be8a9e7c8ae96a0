//===- MemoryPlan.h - places for buffers in one arena -----------*- C++ -*-===//
//
// Buffers that are needed at different steps may share memory:
//
//   offset
//     12 +---------+
//        |    b    |
//      8 +----+----+---------+      a, c and d are never needed at one step with each other,
//        | a  |    c    | d  |      b is needed together with a and c
//      0 +----+---------+----+
//   step   0    1    2    3
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_MEMORYPLAN_H
#define CLEAVE_SUPPORT_MEMORYPLAN_H

#include "cleave/Support/Liveness.h"

namespace cleave {

struct MemoryPlan {
  /// Per buffer, in bytes from the start of the arena; a multiple of the alignment.
  std::vector<int64_t> offsets;
  /// Size of the arena: the greatest end of a buffer, padded to the alignment.
  int64_t bytes = 0;
  /// What is needed at one step at the most, with every buffer padded to the alignment: no plan has fewer bytes.
  int64_t bound = 0;
};

/// Places buffers such that two that are needed at one step never overlap. Finding the smallest arena is NP-hard
/// (dynamic storage allocation); this one is rarely far above the bound. Deterministic. n log n plus a small multiple of
/// the number of pairs that are needed at one step.
/// Preconditions: `alignment` is a power of two; all bytes together fit 62 bits.
MemoryPlan planMemory(llvm::ArrayRef<LiveInterval> buffers, int64_t alignment = 64);

} // namespace cleave

#endif // CLEAVE_SUPPORT_MEMORYPLAN_H
