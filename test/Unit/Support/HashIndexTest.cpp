//===- HashIndexTest.cpp - equal things get one number --------------------===//
//
// Words, numbered as a map numbers them, with hashes that tell all apart, few, or none.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/HashIndex.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace cleave;

namespace {

TEST(HashIndexTest, NumbersAsAMapDoesWhateverTheHashes) {
  for (uint64_t numHashes : {1ull, 7ull, 0x8000000000000000ull}) {
    HashIndex index;
    std::vector<uint64_t> words;
    std::map<uint64_t, uint32_t> expected;
    std::mt19937_64 random(3);
    for (int step = 0; step < 2000; ++step) {
      uint64_t word = random() % 300, hash = hashWords<uint64_t>(word) % numHashes;
      uint32_t id = index.find(hash, [&](uint32_t other) { return words[other] == word; });
      if (id == words.size())
        words.push_back(word);
      ASSERT_EQ(id, expected.try_emplace(word, expected.size()).first->second);
    }
    EXPECT_EQ(words.size(), 300u);
  }
}

TEST(HashIndexTest, HashesOfListsSeeOrderAndLength) {
  EXPECT_NE(hashWords<uint8_t>({1, 2}), hashWords<uint8_t>({2, 1}));
  EXPECT_NE(hashWords<uint8_t>({0}), hashWords<uint8_t>({0, 0}));
  EXPECT_EQ(hashWords<int64_t>({5, -1}), hashWords<int64_t>({5, -1}));
}

} // namespace
