//===- Liveness.cpp - how long buffers are needed -------------------------===//
//
// The peak: at each end of an interval the sum changes, upwards at its first step and downwards behind its last one; in
// the order of steps, those behind a step before those at the next, a running sum passes through the peak.
//
// Overlaps: a search tree over the first steps that knows, below each node, the greatest last step. A whole tree is
// passed over if that lies before what is asked for, or all its first steps behind.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Liveness.h"
#include "llvm/ADT/STLExtras.h"
#include <cassert>
#include <numeric>
#include <tuple>

using namespace cleave;

Liveness::Buffer Liveness::define(int64_t step, int64_t bytes) {
  assert(step >= 0 && bytes >= 0 && "a buffer before the first step, or of less than nothing");
  intervals.push_back({step, step, bytes});
  return intervals.size() - 1;
}

void Liveness::use(Buffer buffer, int64_t step) {
  assert(step >= intervals[buffer].first && "used before it is defined");
  intervals[buffer].last = std::max(intervals[buffer].last, step);
}

std::pair<int64_t, int64_t> Liveness::findPeak() const {
  std::vector<std::pair<int64_t, int64_t>> changes; // step, bytes; what is freed sorts before what is new
  for (const LiveInterval &interval : intervals) {
    changes.push_back({interval.first, interval.bytes});
    changes.push_back({interval.last + 1, -interval.bytes});
  }
  llvm::sort(changes);
  int64_t now = 0;
  std::pair<int64_t, int64_t> peak = {0, 0};
  for (auto [step, bytes] : changes)
    if ((now += bytes) > peak.second)
      peak = {step, now};
  return peak;
}

OverlapIndex::OverlapIndex(llvm::ArrayRef<LiveInterval> list)
    : intervals(list.begin(), list.end()), order(list.size()), last(list.size()) {
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](Liveness::Buffer a, Liveness::Buffer b) {
    return std::tie(list[a].first, a) < std::tie(list[b].first, b);
  });
  buildLast(0, order.size());
}

/// Fills in `last` below the range, and returns the greatest.
int64_t OverlapIndex::buildLast(size_t begin, size_t end) {
  if (begin == end)
    return -1;
  size_t middle = begin + (end - begin) / 2;
  int64_t below = std::max(buildLast(begin, middle), buildLast(middle + 1, end));
  return last[middle] = std::max(below, intervals[order[middle]].last);
}

void OverlapIndex::forEachOverlap(Liveness::Buffer buffer,
                                  llvm::function_ref<void(Liveness::Buffer other)> callback) const {
  const LiveInterval &wanted = intervals[buffer];
  auto search = [&](auto &&self, size_t begin, size_t end) -> void {
    size_t middle = begin + (end - begin) / 2;
    if (begin == end || last[middle] < wanted.first)
      return;
    self(self, begin, middle);
    const LiveInterval &other = intervals[order[middle]];
    if (other.first > wanted.last)
      return;
    if (order[middle] != buffer && other.overlaps(wanted))
      callback(order[middle]);
    self(self, middle + 1, end);
  };
  search(search, 0, order.size());
}
