//===- RankGroupsTest.cpp - ranks that differ along some axes -------------===//
//
// Expected numbers by hand: a rank is the row-major index of its coordinates.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/RankGroups.h"
#include <gtest/gtest.h>
#include <vector>

using namespace cleave::spmd;

namespace {

using Ranks = std::vector<int64_t>;

std::vector<Ranks> groupsOf(const RankGroups &groups) {
  std::vector<Ranks> result;
  groups.forEachGroup([&](llvm::ArrayRef<int64_t> members) { result.emplace_back(members.begin(), members.end()); });
  return result;
}

Ranks indices(const RankGroups &groups, int64_t numRanks) {
  Ranks result;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    result.push_back(groups.indexOf(rank));
  return result;
}

// Ranks 0..5 of a mesh 2 x 3 at (0,0), (0,1), (0,2), (1,0), (1,1), (1,2).
TEST(RankGroupsTest, GroupsDifferAlongTheirAxesOnly) {
  RankGroups rows({2, 3}, {{0, 1, 2}}), columns({2, 3}, {{1, 1, 3}});
  EXPECT_EQ(groupsOf(columns), (std::vector<Ranks>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(groupsOf(rows), (std::vector<Ranks>{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(columns.size(), 3);
  EXPECT_EQ(columns.baseOf(5), 3);
  EXPECT_EQ(rows.baseOf(5), 2);
  EXPECT_EQ(indices(columns, 6), (Ranks{0, 1, 2, 0, 1, 2}));
}

TEST(RankGroupsTest, MembersComeInTheOrderOfTheAxesAsListed) {
  RankGroups minorFirst({2, 3}, {{1, 1, 3}, {0, 1, 2}});
  EXPECT_EQ(groupsOf(minorFirst), (std::vector<Ranks>{{0, 3, 1, 4, 2, 5}}));
  EXPECT_EQ(indices(minorFirst, 6), (Ranks{0, 2, 4, 1, 3, 5}));
}

// 12 = 2 * 3 * 2: the coordinate is 6 a + 2 b + c, and (2)3 is b.
TEST(RankGroupsTest, ASubAxisIsADigitOfTheCoordinate) {
  RankGroups middle({12}, {{0, 2, 3}});
  EXPECT_EQ(indices(middle, 12), (Ranks{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(groupsOf(middle), (std::vector<Ranks>{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}));
}

TEST(RankGroupsTest, WithoutAxesEachRankIsAlone) {
  RankGroups alone({3}, {});
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(groupsOf(alone), (std::vector<Ranks>{{0}, {1}, {2}}));
  EXPECT_EQ(indices(alone, 3), (Ranks{0, 0, 0}));
}

TEST(RankGroupsTest, AtomsMeanTheSameAsTheirAxes) {
  AtomMesh mesh({4, 6});
  for (const AtomList &atoms : {AtomList{0}, AtomList{3, 0}, AtomList{1, 2, 3}}) {
    RankGroups byAtoms(mesh, atoms), byAxes({4, 6}, mesh.subAxesOf(atoms));
    EXPECT_EQ(groupsOf(byAtoms), groupsOf(byAxes));
    EXPECT_EQ(indices(byAtoms, 24), indices(byAxes, 24));
  }
}

// Asking about a rank does not look at the others.
TEST(RankGroupsTest, LargeMeshesCostNothing) {
  RankGroups groups({int64_t(1) << 15, int64_t(1) << 15}, {{1, 2, 4}});
  EXPECT_EQ(groups.membersOf(5), (llvm::SmallVector<int64_t>{5, 5 + (1 << 12), 5 + (2 << 12), 5 + (3 << 12)}));
}

} // namespace
