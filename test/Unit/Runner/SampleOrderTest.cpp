//===- SampleOrderTest.cpp - which sample comes when ----------------------===//
#include "SampleOrder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

using cleave::runner::SampleOrder;

static std::vector<uint64_t> list(uint64_t count, uint64_t seed, uint64_t epoch, bool isShuffled = true) {
  SampleOrder order(count, isShuffled, seed, epoch);
  std::vector<uint64_t> all;
  for (uint64_t place = 0; place < count; ++place)
    all.push_back(order.at(place));
  return all;
}

// Each sample comes once, however many there are.
TEST(SampleOrder, IsAPermutation) {
  for (uint64_t count : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097})
    for (uint64_t seed : {0, 1, 77}) {
      std::vector<uint64_t> all = list(count, seed, seed % 3);
      EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), count);
      EXPECT_LT(*std::max_element(all.begin(), all.end()), count);
    }
}

// Another epoch is another order, and so is another seed; none is the given one.
TEST(SampleOrder, FollowsFromSeedAndEpoch) {
  std::vector<uint64_t> given = list(1000, 3, 2, false);
  for (uint64_t place = 0; place < 1000; ++place)
    EXPECT_EQ(given[place], place);
  std::set<std::vector<uint64_t>> orders = {given};
  for (uint64_t seed = 0; seed < 5; ++seed)
    for (uint64_t epoch = 0; epoch < 5; ++epoch)
      orders.insert(list(1000, seed, epoch));
  EXPECT_EQ(orders.size(), 26u);
  EXPECT_EQ(list(1000, 3, 2), list(1000, 3, 2));
}

// Any sample may come at any place: over many seeds each is about as often at the first place, and next to each other one.
TEST(SampleOrder, PrefersNoSample) {
  constexpr int samples = 10, seeds = 20000;
  std::vector<int> first(samples), pairs(samples * samples);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SampleOrder order(samples, true, seed, 0);
    ++first[order.at(0)];
    ++pairs[order.at(3) * samples + order.at(7)];
  }
  for (int count : first)
    EXPECT_NEAR(count, seeds / samples, 250);
  for (int a = 0; a < samples; ++a)
    for (int b = 0; b < samples; ++b)
      EXPECT_NEAR(pairs[a * samples + b], a == b ? 0 : seeds / 90.0, a == b ? 0 : 90) << a << ", " << b;
}
