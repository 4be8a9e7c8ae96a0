//===- Buckets.cpp - which reductions of gradients go together ------------===//
//
// The recurrence of the header, as it stands there: a window has n^2 / 2 steps of a few instructions each, 2 million for 2,000 gradients.
//
// Of the buckets that are through by then the fewest, from the back: the last bucket takes in as much as it may without being late. Whatever it
// leaves out would be in another one, which then is through no sooner; so nobody is left with more buckets by a larger last one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Buckets.h"

#include <algorithm>
#include <cassert>
#include <limits>

using namespace cleave;

/// Times are sums in several orders: what differs by less is equal.
static constexpr double kRounding = 1e-12;

/// When the first items of a window are through at best, by their number.
static std::vector<double> findFinishes(llvm::ArrayRef<BucketItem> items, double beginNs, double freeNs) {
  std::vector<double> finishes(items.size() + 1, std::numeric_limits<double>::infinity());
  finishes[0] = freeNs;
  for (size_t end = 1; end <= items.size(); ++end) {
    double sendNs = 0;
    for (size_t begin = end; begin-- > 0;) {
      sendNs += items[begin].sendNs;
      finishes[end] = std::min(finishes[end], std::max(finishes[begin], items[end - 1].readyNs) + beginNs + sendNs);
    }
  }
  return finishes;
}

/// Appends the ends of the buckets of one window, that begins at item `offset`, and returns when it is through.
static double chooseInWindow(llvm::ArrayRef<BucketItem> items, size_t offset, double beginNs, double freeNs,
                             std::vector<size_t> &ends) {
  std::vector<double> finishes = findFinishes(items, beginNs, freeNs);
  double dueNs = finishes.back(), slackNs = kRounding * finishes.back();
  size_t first = ends.size();
  for (size_t end = items.size(); end > 0;) {
    ends.push_back(offset + end);
    double sendNs = 0, dueOfRestNs = 0;
    size_t taken = end;
    for (size_t begin = end; begin-- > 0;) {
      sendNs += items[begin].sendNs;
      double startNs = dueNs - beginNs - sendNs;
      if (items[end - 1].readyNs > startNs + slackNs)
        break;
      if (finishes[begin] > startNs + slackNs)
        continue;
      taken = begin;
      dueOfRestNs = startNs;
    }
    // The recurrence came by one that is in time.
    assert(taken < end && "no bucket is in time");
    end = taken < end ? taken : end - 1;
    dueNs = dueOfRestNs;
  }
  std::reverse(ends.begin() + static_cast<std::ptrdiff_t>(first), ends.end());
  return finishes.back();
}

Buckets cleave::chooseBuckets(llvm::ArrayRef<BucketItem> items, double beginNs, size_t window) {
  assert(window > 0 && "nothing to look at");
  Buckets buckets;
  for (size_t at = 0; at < items.size(); at += window)
    buckets.finishNs = chooseInWindow(items.slice(at, std::min(window, items.size() - at)), at, beginNs,
                                      buckets.finishNs, buckets.ends);
  return buckets;
}

std::vector<size_t> cleave::fillBuckets(llvm::ArrayRef<double> bytes, double first, double most) {
  std::vector<size_t> ends;
  double sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && sum > 0 && sum + bytes[i] > (ends.empty() ? first : most)) {
      ends.push_back(i);
      sum = 0;
    }
    sum += bytes[i];
  }
  if (!bytes.empty())
    ends.push_back(bytes.size());
  return ends;
}
