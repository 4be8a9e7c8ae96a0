//===- Liveness.h - how long buffers are needed -----------------*- C++ -*-===//
//
// A program is a list of steps; a buffer is needed from the first step that writes it to the last one that reads it, at
// both of which it shares memory with nobody:
//
//   step       0    1    2    3
//   a         def  use
//   b              def       use        at steps 1 to 3
//   c                   def             at step 2 alone: nothing reads it
//
// What a report states as peak memory, and what a planner of memory must keep apart.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_LIVENESS_H
#define CLEAVE_SUPPORT_LIVENESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <vector>

namespace cleave {

/// Steps at which a buffer is needed, both ends included.
struct LiveInterval {
  int64_t first, last;
  int64_t bytes;

  bool overlaps(const LiveInterval &other) const { return first <= other.last && other.first <= last; }
};

/// The intervals of a program's buffers, numbered as they are defined.
class Liveness {
public:
  using Buffer = uint32_t;

  /// A new buffer that `step` writes first. Precondition: step >= 0, bytes >= 0.
  Buffer define(int64_t step, int64_t bytes);
  /// `step` reads or writes the buffer, too. Precondition: no earlier than its definition.
  void use(Buffer buffer, int64_t step);

  /// By number.
  llvm::ArrayRef<LiveInterval> getIntervals() const { return intervals; }
  /// The most bytes that are needed at one step: no plan of memory does with less. n log n for n buffers.
  int64_t getPeakBytes() const { return findPeak().second; }
  /// The first step at which that is so, and those bytes; step 0 where nothing is needed.
  std::pair<int64_t, int64_t> findPeak() const;

private:
  std::vector<LiveInterval> intervals;
};

/// Finds what overlaps among fixed intervals.
class OverlapIndex {
public:
  /// n log n for n intervals, which are copied.
  explicit OverlapIndex(llvm::ArrayRef<LiveInterval> intervals);
  /// Calls back with every other buffer that is needed at one of the steps of `buffer`, by ascending first step, then
  /// number. log n and their number.
  void forEachOverlap(Liveness::Buffer buffer, llvm::function_ref<void(Liveness::Buffer other)> callback) const;

private:
  int64_t buildLast(size_t begin, size_t end);

  std::vector<LiveInterval> intervals;
  /// Buffers by first step, then number. Read as a search tree, the middle of each range being its root.
  std::vector<Liveness::Buffer> order;
  /// Per place in `order` the greatest last step of the tree below.
  std::vector<int64_t> last;
};

} // namespace cleave

#endif // CLEAVE_SUPPORT_LIVENESS_H
