//===- FactorMeshTest.cpp - a mesh for lists of shards --------------------===//
//
// Meshes are found back from what their axes split; lists that no axes make are refused.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/FactorMesh.h"

#include "gtest/gtest.h"
#include <random>

using namespace cleave::spmd;

/// What every device holds of a dim that `cuts` of a mesh cut.
static HeldShards hold(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> splits) {
  HeldShards held;
  int64_t devices = 1;
  for (int64_t size : sizes)
    devices *= size;
  for (unsigned axis : splits)
    held.count *= sizes[axis];
  for (int64_t device = 0; device < devices; ++device) {
    std::vector<int64_t> digits(sizes.size());
    int64_t rest = device;
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      digits[axis] = rest % sizes[axis];
    int64_t shard = 0;
    for (unsigned axis : splits)
      shard = shard * sizes[axis] + digits[axis];
    held.shards.push_back(shard);
  }
  return held;
}

using Sizes = llvm::SmallVector<int64_t>;

TEST(FactorMesh, TakesTheFewestAxes) {
  EXPECT_EQ(factorMesh(1, {}), Sizes());
  EXPECT_EQ(factorMesh(8, {}), Sizes({8}));
  EXPECT_EQ(factorMesh(8, {hold({8}, {0})}), Sizes({8}));
  EXPECT_EQ(factorMesh(8, {hold({2, 4}, {0})}), Sizes({2, 4}));
  EXPECT_EQ(factorMesh(8, {hold({2, 4}, {0}), hold({2, 4}, {1})}), Sizes({2, 4}));
  // The same two axes, once one behind the other and once turned.
  EXPECT_EQ(factorMesh(8, {hold({2, 4}, {0, 1})}), Sizes({8}));
  EXPECT_EQ(factorMesh(8, {hold({2, 4}, {1, 0})}), Sizes({2, 4}));
  EXPECT_EQ(factorMesh(8, {hold({4, 2}, {0}), hold({2, 4}, {0})}), Sizes({2, 2, 2}));
}

TEST(FactorMesh, TriesEachOrderOfPrimes) {
  EXPECT_EQ(factorMesh(6, {hold({2, 3}, {0})}), Sizes({2, 3}));
  EXPECT_EQ(factorMesh(6, {hold({3, 2}, {0})}), Sizes({3, 2}));
  EXPECT_EQ(factorMesh(6, {hold({3, 2}, {0}), hold({2, 3}, {0})}), std::nullopt);
}

TEST(FactorMesh, RefusesWhatNoAxesMake) {
  EXPECT_EQ(factorMesh(4, {{{0, 1, 1, 0}, 2}}), std::nullopt);
  EXPECT_EQ(factorMesh(4, {{{1, 1, 0, 0}, 2}}), std::nullopt);
  EXPECT_EQ(factorMesh(4, {{{0, 0, 0, 1}, 2}}), std::nullopt);
  // One of two shards is nobody's.
  EXPECT_EQ(factorMesh(4, {{{0, 0, 0, 0}, 2}}), std::nullopt);
}

/// Any mesh and any splits: the axes that are found make the same lists.
TEST(FactorMesh, ServesRandomMeshes) {
  std::mt19937 random(7);
  size_t compared = 0;
  for (int round = 0; round < 2000; ++round) {
    Sizes sizes;
    for (int axis = 0, axes = 1 + random() % 4; axis < axes; ++axis)
      sizes.push_back(1 + random() % 4);
    std::vector<HeldShards> lists;
    for (int list = 0, count = random() % 4; list < count; ++list) {
      llvm::SmallVector<unsigned> splits;
      for (unsigned axis = 0; axis < sizes.size(); ++axis)
        if (random() % 2)
          splits.insert(splits.begin() + random() % (splits.size() + 1), axis);
      lists.push_back(hold(sizes, splits));
    }
    int64_t devices = 1;
    for (int64_t size : sizes)
      devices *= size;
    std::optional<Sizes> found = factorMesh(devices, lists);
    ASSERT_TRUE(found) << "round " << round;
    for (const HeldShards &held : lists) {
      auto splits = findSplits(*found, held);
      ASSERT_TRUE(splits) << "round " << round;
      EXPECT_EQ(hold(*found, *splits), held) << "round " << round;
      ++compared;
    }
  }
  EXPECT_GT(compared, 2000u);
}
