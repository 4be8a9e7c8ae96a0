//===- ClassColoringTest.cpp - which classes of dims are cut --------------===//
#include "cleave/Search/ClassColoring.h"
#include "../Solver/GraphBuilder.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

/// x [32, 64] times up [64, wide] times down [wide, 64].
struct Pair {
  explicit Pair(int64_t wide) : graph({2}) {
    ValueId x = graph.input({32, 64}), up = graph.parameter({64, wide}), down = graph.parameter({wide, 64});
    ValueId hidden = graph.pointwise({graph.einsum("ik,kj->ij", {x, up})});
    graph.problem.addOutput(graph.add(x, graph.einsum("ik,kj->ij", {hidden, down})));
  }
  ClassColoring color(const DimClasses &classes, DimTag tag = DimTag::Weight) const {
    return colorClasses(graph.problem, classes, 2, [&](DimClassId id) { return classes.getTag(id) == tag; });
  }
  GraphBuilder graph;
};

// Either class would do: what is summed is as long as the other one.
TEST(ClassColoringTest, TheShorterSumIsTaken) {
  for (int64_t wide : {256, 16}) {
    Pair pair(wide);
    DimClasses classes(pair.graph.problem);
    ClassColoring found = pair.color(classes);
    DimClassId inner = classes.ofFactor(0, 2), outer = classes.ofFactor(0, 1);
    EXPECT_EQ(found.isSplit[inner], wide == 256);
    EXPECT_EQ(found.isSplit[outer], wide == 16);
    EXPECT_EQ(found.splitShare, 1.0);
  }
}

// Each product is cut along one factor: rows of the first are columns of the second.
TEST(ClassColoringTest, FactorsOfOps) {
  Pair pair(256);
  DimClasses classes(pair.graph.problem);
  ClassColoring found = pair.color(classes);
  EXPECT_EQ(found.factors[0], 2);
  EXPECT_TRUE(pair.graph.problem.rule(pair.graph.problem.ruleOf(2)).isReduction(found.factors[2]));
}

TEST(ClassColoringTest, WhatMayNotBeSplitStaysReplicated) {
  Pair pair(256);
  DimClasses classes(pair.graph.problem);
  ClassColoring found = pair.color(classes, DimTag::Expert);
  EXPECT_EQ(found.splitShare, 0.0);
  for (DimPlace place = 0; place < classes.numPlaces(); ++place)
    EXPECT_FALSE(found.isSplit[classes.ofPlace(place)]);
}

// Of heads [2 kv, 4 groups] the first digit is cut: what is next is the second.
TEST(DimClassesTest, WhatIsLeftOfAClass) {
  GraphBuilder graph({2});
  ValueId x = graph.input({2, 64});
  ValueId heads = graph.splitDim(graph.einsum("ik,kj->ij", {x, graph.parameter({64, 64})}), 1, 2); // [2, 2, 32]
  graph.problem.addOutput(graph.splitDim(heads, 2, 4));                                            // [2, 2, 4, 8]
  DimClasses whole(graph.problem);
  OpId last = graph.problem.numOps() - 1;
  auto digit = [&](unsigned dim) { return graph.problem.rule(graph.problem.ruleOf(last)).results[0][dim].front(); };
  EXPECT_EQ(whole.ofFactor(0, 2), whole.ofFactor(last, digit(1)));
  EXPECT_NE(whole.ofFactor(0, 2), whole.ofFactor(last, digit(2)));
  std::vector<int64_t> pieces(whole.numPlaces(), 1);
  for (DimPlace place = 0; place < whole.numPlaces(); ++place)
    if (whole.ofPlace(place) == whole.ofFactor(0, 2))
      pieces[place] = 2;
  DimClasses left(graph.problem, pieces);
  EXPECT_EQ(left.ofFactor(0, 2), left.ofFactor(last, digit(2)));
}

} // namespace
