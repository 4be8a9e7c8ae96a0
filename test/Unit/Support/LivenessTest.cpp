//===- LivenessTest.cpp - how long buffers are needed ---------------------===//
//
// The picture of the header by hand, and random programs against what asking every step, and every pair, gives.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Liveness.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace cleave;

namespace {

using Buffers = std::vector<Liveness::Buffer>;

Buffers overlapsOf(const Liveness &liveness, Liveness::Buffer buffer) {
  Buffers result;
  OverlapIndex(liveness.getIntervals()).forEachOverlap(buffer, [&](Liveness::Buffer other) {
    result.push_back(other);
  });
  return result;
}

// a at steps 0 and 1, b at 1 to 3, c at 2: 10 + 5 at step 1, 5 + 7 at step 2.
TEST(LivenessTest, BuffersLiveFromTheirDefinitionToTheirLastUse) {
  Liveness liveness;
  Liveness::Buffer a = liveness.define(0, 10), b = liveness.define(1, 5), c = liveness.define(2, 7);
  liveness.use(a, 1);
  liveness.use(b, 3);
  liveness.use(b, 2);
  EXPECT_EQ(liveness.getIntervals()[b].first, 1);
  EXPECT_EQ(liveness.getIntervals()[b].last, 3);
  EXPECT_EQ(liveness.getIntervals()[c].last, 2);
  EXPECT_EQ(liveness.getPeakBytes(), 15);
  EXPECT_EQ(overlapsOf(liveness, a), (Buffers{b}));
  EXPECT_EQ(overlapsOf(liveness, b), (Buffers{a, c}));
  EXPECT_EQ(overlapsOf(liveness, c), (Buffers{b}));
}

// What is read for the last time is still there while the result is written: 4 + 4, never 12.
TEST(LivenessTest, AChainNeedsTwoBuffersAtATime) {
  Liveness liveness;
  for (int64_t step = 0; step < 10; ++step)
    liveness.use(liveness.define(step, 4), step + 1);
  EXPECT_EQ(liveness.getPeakBytes(), 8);
}

TEST(LivenessTest, WithoutBuffersNothingIsNeeded) {
  EXPECT_EQ(Liveness().getPeakBytes(), 0);
  OverlapIndex({});
}

Liveness makeRandom(std::mt19937 &random, unsigned count, int64_t steps, int64_t reach) {
  Liveness liveness;
  for (unsigned i = 0; i < count; ++i) {
    int64_t step = random() % steps;
    Liveness::Buffer buffer = liveness.define(step, random() % 100);
    for (unsigned uses = random() % 3; uses > 0; --uses)
      liveness.use(buffer, step + random() % reach);
  }
  return liveness;
}

TEST(LivenessTest, ThePeakIsThatOfSomeStep) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Liveness liveness = makeRandom(random, random() % 30, 20, 1 + round % 20);
    int64_t peak = 0, first = 0;
    for (int64_t step = 0; step < 50; ++step) {
      int64_t bytes = 0;
      for (const LiveInterval &interval : liveness.getIntervals())
        bytes += interval.first <= step && step <= interval.last ? interval.bytes : 0;
      first = bytes > peak ? step : first;
      peak = std::max(peak, bytes);
    }
    EXPECT_EQ(liveness.findPeak(), std::pair(first, peak));
  }
}

TEST(LivenessTest, OverlapsAreThoseOfAllPairs) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Liveness liveness = makeRandom(random, 1 + random() % 30, 20, 1 + round % 20);
    llvm::ArrayRef<LiveInterval> intervals = liveness.getIntervals();
    OverlapIndex index(intervals);
    for (Liveness::Buffer buffer = 0; buffer < intervals.size(); ++buffer) {
      std::vector<std::pair<int64_t, Liveness::Buffer>> expected, found;
      for (Liveness::Buffer other = 0; other < intervals.size(); ++other)
        for (int64_t step = intervals[buffer].first; step <= intervals[buffer].last; ++step)
          if (other != buffer && intervals[other].first <= step && step <= intervals[other].last) {
            expected.push_back({intervals[other].first, other});
            break;
          }
      std::sort(expected.begin(), expected.end());
      index.forEachOverlap(buffer, [&](Liveness::Buffer other) { found.push_back({intervals[other].first, other}); });
      EXPECT_EQ(found, expected);
    }
  }
}

// A million short intervals, each asked about: all pairs would take hours.
TEST(LivenessTest, LargeProgramsAreLinear) {
  Liveness liveness;
  for (int64_t step = 0; step < 1000000; ++step)
    liveness.use(liveness.define(step, 1), step + 2);
  EXPECT_EQ(liveness.getPeakBytes(), 3);
  OverlapIndex index(liveness.getIntervals());
  int64_t pairs = 0;
  for (Liveness::Buffer buffer = 0; buffer < 1000000; ++buffer)
    index.forEachOverlap(buffer, [&](Liveness::Buffer) { ++pairs; });
  EXPECT_EQ(pairs, 2 * (999999 + 999998));
}

} // namespace
