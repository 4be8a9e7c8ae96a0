//===- MeshTest.cpp - atoms of mesh axes ----------------------------------===//
#include "cleave/Sharding/Mesh.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;
using Sizes = llvm::SmallVector<int64_t, 8>;

static Sizes atomSizes(const AtomMesh &mesh) {
  Sizes sizes;
  for (unsigned atom = 0; atom < mesh.numAtoms(); ++atom)
    sizes.push_back(mesh.size(atom));
  return sizes;
}

TEST(MeshTest, AxesAreSplitIntoAscendingPrimes) {
  AtomMesh mesh({4, 6, 1, 35, 7});
  EXPECT_EQ(atomSizes(mesh), (Sizes{2, 2, 2, 3, 5, 7, 7}));
  EXPECT_EQ(mesh.numRanks(), 4 * 6 * 35 * 7);
  EXPECT_EQ(mesh.axisOf(3), 1u);
  EXPECT_EQ(mesh.preSize(3), 2);
  EXPECT_EQ(mesh.atomsOf(0u), (AtomList{0, 1}));
  EXPECT_TRUE(mesh.atomsOf(2u).empty());
  EXPECT_EQ(mesh.numAtoms(3), 2u);
  EXPECT_EQ(mesh.product({0, 3, 5}), 2 * 3 * 7);
  EXPECT_EQ(mesh.product({}), 1);
}

TEST(MeshTest, MeshWithoutAxesHasOneRank) {
  AtomMesh mesh(llvm::ArrayRef<int64_t>{});
  EXPECT_EQ(mesh.numRanks(), 1);
  EXPECT_EQ(mesh.numAtoms(), 0u);
}

// Rank 17 of a mesh 4 x 6 is x = 2, y = 5; x = 2 has the digits 1, 0 and y = 5 the digits 1, 2.
TEST(MeshTest, CoordinatesAreDigitsOfTheRowMajorRank) {
  AtomMesh mesh({4, 6});
  Sizes digits;
  int64_t rank = 0;
  for (AtomId atom = 0; atom < 4; ++atom) {
    digits.push_back(mesh.coordinate(17, atom));
    rank += digits.back() * mesh.stride(atom);
  }
  EXPECT_EQ(digits, (Sizes{1, 0, 1, 2}));
  EXPECT_EQ(rank, 17);
}

TEST(MeshTest, SubAxesOnBordersAreRunsOfAtoms) {
  AtomMesh mesh({2, 12}); // atoms 0 | 1 2 3 = 2 2 3
  EXPECT_EQ(*mesh.atomsOf(SubAxis{1, 1, 12}), (AtomList{1, 2, 3}));
  EXPECT_EQ(*mesh.atomsOf(SubAxis{1, 2, 6}), (AtomList{2, 3}));
  EXPECT_EQ(*mesh.atomsOf(SubAxis{1, 1, 4}), (AtomList{1, 2}));
  EXPECT_TRUE(mesh.atomsOf(SubAxis{1, 1, 1})->empty());
}

TEST(MeshTest, SubAxesOffBordersAreRefused) {
  AtomMesh mesh({2, 12});
  EXPECT_FALSE(mesh.atomsOf(SubAxis{1, 1, 3}));
  EXPECT_FALSE(mesh.atomsOf(SubAxis{1, 3, 2}));
  EXPECT_FALSE(mesh.atomsOf(SubAxis{1, 4, 2}));
  EXPECT_FALSE(mesh.atomsOf(SubAxis{2, 1, 2}));
}

TEST(MeshTest, NeighboringAtomsMergeIntoSubAxes) {
  AtomMesh mesh({2, 12});
  using List = llvm::SmallVector<SubAxis, 2>;
  EXPECT_EQ(mesh.subAxesOf({1, 2, 3}), (List{{1, 1, 12}}));
  EXPECT_EQ(mesh.subAxesOf({0, 1, 2}), (List{{0, 1, 2}, {1, 1, 4}}));
  EXPECT_EQ(mesh.subAxesOf({2, 1}), (List{{1, 2, 2}, {1, 1, 2}}));
  EXPECT_EQ(mesh.subAxesOf({1, 3}), (List{{1, 1, 2}, {1, 4, 3}}));
}

TEST(MeshTest, AnnotatedBordersChangeTheOrderOfPrimes) {
  llvm::Expected<AtomMesh> mesh = AtomMesh::create({6, 12}, {{0, 3, 2}, {1, 1, 3}});
  ASSERT_TRUE(bool(mesh));
  EXPECT_EQ(atomSizes(*mesh), (Sizes{3, 2, 3, 2, 2}));
  EXPECT_EQ(*mesh->atomsOf(SubAxis{0, 3, 2}), (AtomList{1}));
  EXPECT_EQ(*mesh->atomsOf(SubAxis{1, 3, 4}), (AtomList{3, 4}));
}

TEST(MeshTest, AnnotationsThatExcludeEachOtherAreAnError) {
  auto getError = [](llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<SubAxis> annotations) {
    return llvm::toString(AtomMesh::create(sizes, annotations).takeError());
  };
  EXPECT_EQ(getError({6}, {{0, 1, 2}, {0, 1, 3}}),
            "sub-axes of mesh axis 0 of size 6 need borders at 2 and 3, which exclude each other");
  EXPECT_EQ(getError({6}, {{0, 1, 4}}), "sub-axis (1)4 does not divide mesh axis 0 of size 6");
  EXPECT_EQ(getError({6}, {{1, 1, 2}}), "sub-axis of mesh axis 1, but the mesh has 1");
  EXPECT_EQ(getError({0}, {}), "mesh axis 0 has size 0, expected at least 1");
}
