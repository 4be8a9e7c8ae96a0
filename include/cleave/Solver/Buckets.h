//===- Buckets.h - which reductions of gradients go together ----*- C++ -*-===//
//
// The backward pass makes gradients one after the other, and each may travel while the next ones are computed. A collective takes a time to
// begin, whatever it sends, so several gradients go together; but the first of them then waits for the last:
//
//   ready      g0    g1    g2          g3
//   sent              [g0 g1 ──▶][g2 ─▶]    [g3 ─▶]         finish
//
// Those that go together are neighbors in the order in which they are ready, and collectives go one after the other. With f(j) the time at
// which the first j gradients are through,
//
//   f(j) = min over i < j of  max(f(i), ready(j)) + begin + bytes(i .. j) * perByte
//
// is the least there is, as a later f(i) never makes an earlier f(j).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_BUCKETS_H
#define CLEAVE_SOLVER_BUCKETS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <vector>

namespace cleave {

/// A gradient that is to be reduced.
struct BucketItem {
  /// Nanoseconds from the start of the step until it is made. Precondition: not before the one in front of it.
  double readyNs = 0;
  /// That it takes to send, without what a collective takes to begin.
  double sendNs = 0;
};

/// Consecutive items, one list of which each is a collective.
struct Buckets {
  /// Behind the last item of each.
  std::vector<size_t> ends;
  /// When the last one is through.
  double finishNs = 0;
};

/// The buckets that are through first, and of those the fewest, where a collective takes `beginNs` to begin. Exact for up to `window` items,
/// beyond within windows of so many, one behind the other, each of which knows when the one before is through.
Buckets chooseBuckets(llvm::ArrayRef<BucketItem> items, double beginNs, size_t window = 2000);

/// Buckets of up to `most` bytes, but the first one of up to `first`, so that something travels soon; an item that has more is one by itself.
/// Where nothing is known of times.
std::vector<size_t> fillBuckets(llvm::ArrayRef<double> bytes, double first, double most);

} // namespace cleave

#endif // CLEAVE_SOLVER_BUCKETS_H
