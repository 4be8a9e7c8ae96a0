//===- BucketsTest.cpp - against trying all ways to cut a list ------------===//
#include "cleave/Solver/Buckets.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;

namespace {

/// When buckets that end so are through, as a clock would see it.
double runBuckets(const std::vector<BucketItem> &items, const std::vector<size_t> &ends, double beginNs) {
  double nowNs = 0;
  size_t begin = 0;
  for (size_t end : ends) {
    nowNs = std::max(nowNs, items[end - 1].readyNs) + beginNs;
    for (; begin < end; ++begin)
      nowNs += items[begin].sendNs;
  }
  return nowNs;
}

/// All 2^(n - 1) ways: the least time, and the fewest buckets that take it.
Buckets tryAll(const std::vector<BucketItem> &items, double beginNs) {
  Buckets best;
  for (unsigned cuts = 0; cuts < 1u << (items.size() - 1); ++cuts) {
    std::vector<size_t> ends;
    for (size_t i = 0; i + 1 < items.size(); ++i)
      if (cuts >> i & 1)
        ends.push_back(i + 1);
    ends.push_back(items.size());
    double finishNs = runBuckets(items, ends, beginNs);
    if (best.ends.empty() || finishNs < best.finishNs || (finishNs == best.finishNs && ends.size() < best.ends.size()))
      best = {ends, finishNs};
  }
  return best;
}

// Whole numbers, so that times are exact in whatever order they add up.
TEST(BucketsTest, AreTheBestOfAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<BucketItem> items(1 + random() % 10);
    double readyNs = 0, beginNs = double(random() % 12);
    for (BucketItem &item : items) {
      readyNs += double(random() % 8);
      item = {readyNs, double(random() % 10)};
    }
    Buckets found = chooseBuckets(items, beginNs), best = tryAll(items, beginNs);
    EXPECT_EQ(found.finishNs, best.finishNs);
    EXPECT_EQ(found.ends.size(), best.ends.size());
    EXPECT_EQ(found.ends.back(), items.size());
    EXPECT_EQ(runBuckets(items, found.ends, beginNs), found.finishNs);
  }
}

// The last one goes as soon as it is there, and those before it are in time together; where nothing is computed meanwhile all go together.
TEST(BucketsTest, Extremes) {
  EXPECT_TRUE(chooseBuckets({}, 5).ends.empty());
  std::vector<BucketItem> later = {{10, 5}, {20, 5}, {30, 5}}, atOnce = {{0, 5}, {0, 5}, {0, 5}};
  EXPECT_EQ(chooseBuckets(later, 0).ends, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(chooseBuckets(later, 0).finishNs, 35);
  EXPECT_EQ(chooseBuckets(atOnce, 1).ends, (std::vector<size_t>{3}));
}

// A window begins where the one before is through, and its buckets are not those of others.
TEST(BucketsTest, Windows) {
  std::vector<BucketItem> items(7, {0, 2});
  Buckets found = chooseBuckets(items, 1, /*window=*/3);
  EXPECT_EQ(found.ends, (std::vector<size_t>{3, 6, 7}));
  EXPECT_EQ(found.finishNs, 3 + 14);
}

TEST(BucketsTest, FilledByBytes) {
  EXPECT_TRUE(fillBuckets({}, 1, 25).empty());
  EXPECT_EQ(fillBuckets({1, 1, 10, 10, 10, 40, 1}, 1, 25), (std::vector<size_t>{1, 4, 5, 6, 7}));
}

} // namespace
