//===- DimClassesTest.cpp - what dims are to a model, by structure --------===//
#include "cleave/Search/DimClasses.h"
#include "../Solver/GraphBuilder.h"
#include "cleave/Search/AxisNames.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

DimTag tagOf(const DimClasses &classes, OpId op, FactorId factor) {
  return classes.getTag(classes.ofFactor(op, factor));
}

// Factors of einsum rules are numbered in the order in which letters come.
TEST(DimClassesTest, ProductsWithWeights) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16, 64});
  ValueId hidden = graph.einsum("bsk,kj->bsj", {x, graph.parameter({64, 256})});
  ValueId moved = graph.transpose(graph.pointwise({hidden}), {1, 0, 2});
  graph.problem.addOutput(graph.einsum("sbk,kj->sbj", {moved, graph.parameter({256, 64})}));
  DimClasses classes(graph.problem);
  EXPECT_EQ(tagOf(classes, 0, 0), DimTag::Batch);
  EXPECT_EQ(tagOf(classes, 0, 1), DimTag::Batch) << "nothing mixes tokens here";
  EXPECT_EQ(tagOf(classes, 0, 2), DimTag::Weight);
  EXPECT_EQ(tagOf(classes, 0, 3), DimTag::Weight);
  EXPECT_EQ(classes.ofFactor(0, 0), classes.ofFactor(3, 1)) << "the transpose moves the batch";
  EXPECT_EQ(classes.ofFactor(0, 3), classes.ofFactor(3, 2)) << "the hidden dim goes on";
  EXPECT_NE(classes.ofFactor(0, 2), classes.ofFactor(0, 3));
}

// Queries meet keys of the same tokens; heads are rows of weights, seen through a reshape.
TEST(DimClassesTest, Attention) {
  GraphBuilder graph({2});
  ValueId x = graph.input({2, 16, 64});
  auto project = [&] {
    ValueId all = graph.einsum("bsk,kj->bsj", {x, graph.parameter({64, 64})});
    return graph.splitDim(all, 2, 4); // [2, 16, 4, 16]
  };
  ValueId query = project(), key = project();
  graph.problem.addOutput(graph.einsum("bqhd,bkhd->bhqk", {query, key}));
  DimClasses classes(graph.problem);
  OpId scores = graph.problem.numOps() - 1;
  EXPECT_EQ(tagOf(classes, scores, 0), DimTag::Batch);
  EXPECT_EQ(tagOf(classes, scores, 1), DimTag::Token);
  EXPECT_EQ(tagOf(classes, scores, 2), DimTag::Weight) << "heads";
  EXPECT_EQ(classes.ofFactor(scores, 1), classes.ofFactor(0, 1)) << "tokens of the input";
}

TEST(DimClassesTest, Experts) {
  GraphBuilder graph({2});
  ValueId x = graph.input({8, 16, 64});
  graph.problem.addOutput(graph.einsum("eck,ekj->ecj", {x, graph.parameter({8, 64, 256})}));
  DimClasses classes(graph.problem);
  EXPECT_EQ(tagOf(classes, 0, 0), DimTag::Expert);
  EXPECT_EQ(tagOf(classes, 0, 1), DimTag::Batch);
}

// What is made of weights alone is a weight.
TEST(DimClassesTest, CastWeights) {
  GraphBuilder graph({2});
  ValueId weight = graph.pointwise({graph.parameter({64, 256})});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {graph.input({8, 64}), weight}));
  DimClasses classes(graph.problem);
  EXPECT_TRUE(classes.isOfParameters(weight));
  EXPECT_EQ(tagOf(classes, 1, 2), DimTag::Weight);
}

// Of 8 ranks the first atom cuts rows and the others columns.
TEST(AxisNamesTest, RunsOfAtomsAreAxes) {
  GraphBuilder graph({8});
  ValueId x = graph.input({8, 64});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, graph.parameter({64, 256})}));
  const ShardingRule &rule = graph.problem.rule(0);
  Decision decision;
  auto split = [&](FactorId factor) { return static_cast<uint16_t>(rule.findSingleSplit(factor)); };
  decision.choices = {split(0), split(2), split(2)};
  DimClasses classes(graph.problem);
  std::vector<NamedAxis> axes = nameAxes(graph.problem, classes, decision, {});
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].name, "data");
  EXPECT_EQ(axes[0].size, 2);
  EXPECT_EQ(axes[1].name, "model");
  EXPECT_EQ(axes[1].size, 4);
  decision.choices = {split(2), split(0), split(2)};
  axes = nameAxes(graph.problem, classes, decision, {});
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[2].name, "model2");
}

} // namespace
