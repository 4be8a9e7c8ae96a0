//===- StylesTest.cpp - what an axis cuts in a style ----------------------===//
#include "cleave/Search/Styles.h"
#include "../Solver/GraphBuilder.h"
#include <gmock/gmock.h>

using namespace cleave::spmd;
using testing::HasSubstr;

namespace {

StyledPlan makeStyled(const GraphBuilder &graph, ValueId input) {
  const Problem &problem = graph.problem;
  StyledModel model;
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    model.isGiven.push_back(value == input);
    model.isWeight.push_back(problem.producer(value) == kNone && problem.isParameter(value));
    model.isNamed.push_back(true);
  }
  return {problem, model};
}

/// A layer as transformers have it: attention of `heads` heads, keys of `keyHeads`, then a feed-forward.
struct Layer {
  Layer(std::vector<int64_t> mesh, int64_t heads, int64_t keyHeads, int64_t batch = 4, int64_t tokens = 16)
      : graph(mesh), x(graph.input({batch, tokens, 8 * heads})) {
    int64_t width = 8 * heads, groups = heads / keyHeads;
    wq = graph.parameter({width, width});
    wk = graph.parameter({width, 8 * keyHeads});
    wv = graph.parameter({width, 8 * keyHeads});
    wo = graph.parameter({width, width});
    up = graph.parameter({width, 4 * width});
    down = graph.parameter({4 * width, width});
    auto project = [&](ValueId weight, int64_t parts) {
      return graph.splitDim(graph.einsum("bsk,kj->bsj", {x, weight}), 2, parts);
    };
    ValueId query = graph.splitDim(project(wq, heads), 2, keyHeads); // [b, s, kv, groups, 8]
    ValueId scores = graph.einsum("bqhgd,bkhd->bhgqk", {query, project(wk, keyHeads)});
    ValueId mixed = graph.einsum("bhgqk,bkhd->bqhgd", {graph.normalize({scores}, 2), project(wv, keyHeads)});
    ValueId flat =
        groups > 1 ? graph.mergeDims(graph.mergeDims(mixed, 3), 2) : graph.mergeDims(graph.mergeDims(mixed, 3), 2);
    attended = graph.einsum("bsk,kj->bsj", {flat, wo});
    ValueId stream = graph.add(x, attended);
    ValueId wide = graph.pointwise({graph.einsum("bsk,kj->bsj", {graph.normalize({stream}, 2), up})});
    lowered = graph.einsum("bsk,kj->bsj", {wide, down});
    graph.problem.addOutput(graph.add(stream, lowered));
  }

  StyledPlan makePlan() const { return makeStyled(graph, x); }

  GraphBuilder graph;
  ValueId x, wq, wk, wv, wo, up, down, attended, lowered;
};

/// `[_, 0 1]`: the atoms of each dim; `-` of what is whole.
std::string splitsOf(const StyledPlan &plan, ValueId value) {
  auto found = plan.getSplits().find(value);
  if (found == plan.getSplits().end())
    return "-";
  std::string text;
  for (const AtomList &atoms : found->second) {
    text += text.empty() ? "[" : ", ";
    for (AtomId atom : atoms)
      text += std::to_string(atom);
    text += atoms.empty() ? "_" : "";
  }
  return text + "]";
}

std::string apply(StyledPlan &plan, Style style, AtomList atoms = {0, 1}) {
  return llvm::toString(plan.apply(style, atoms));
}

// Columns of one product are rows of the next; the residual stream and inputs stay whole.
TEST(StylesTest, MegatronSplitsColumnsAndRows) {
  Layer layer({4}, 8, 8);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Megatron), "");
  for (ValueId weight : {layer.wq, layer.wk, layer.wv, layer.up})
    EXPECT_EQ(splitsOf(plan, weight), "[_, 01]");
  for (ValueId weight : {layer.wo, layer.down})
    EXPECT_EQ(splitsOf(plan, weight), "[01, _]");
  EXPECT_EQ(splitsOf(plan, layer.x), "-");
}

// Two ranks share a head of keys: what is left of heads are groups of queries.
TEST(StylesTest, FewHeadsOfKeys) {
  Layer layer({4}, 8, 2);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Megatron), "");
  EXPECT_EQ(splitsOf(plan, layer.wq), "[_, 01]");
  EXPECT_EQ(splitsOf(plan, layer.wk), "[_, 0]");
  EXPECT_EQ(splitsOf(plan, layer.wv), "[_, 0]");
  EXPECT_EQ(splitsOf(plan, layer.wo), "[01, _]");
}

TEST(StylesTest, HeadsThatDoNotDivide) {
  Layer layer({8}, 12, 12);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Megatron, {0, 1, 2}),
            "12 heads on 8 ranks: 2, 3, 4, 6 or 12 would divide; without --like, --uneven pads");
}

// A head is not taken apart.
TEST(StylesTest, MoreRanksThanHeads) {
  Layer layer({8}, 4, 4);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Megatron, {0, 1, 2}),
            "4 heads on 8 ranks: 2 or 4 would divide; without --like, --uneven pads");
}

TEST(StylesTest, SequenceSplitsTokensBehindSums) {
  Layer layer({4}, 8, 8);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Sequence), "");
  EXPECT_EQ(splitsOf(plan, layer.up), "[_, 01]");
  EXPECT_EQ(splitsOf(plan, layer.attended), "[_, 01, _]");
  EXPECT_EQ(splitsOf(plan, layer.lowered), "[_, 01, _]");
}

TEST(StylesTest, DataSplitsTheBatch) {
  Layer layer({4}, 8, 8);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Data), "");
  EXPECT_EQ(splitsOf(plan, layer.x), "[01, _, _]");
  EXPECT_EQ(plan.getSplits().size(), 1u);
  Layer small({4}, 8, 8, 2);
  StyledPlan other = small.makePlan();
  EXPECT_EQ(apply(other, Style::Data), "a batch of 2 on 4 ranks: 2 would divide; without --like, --uneven pads");
  Layer one({4}, 8, 8, 1);
  StyledPlan alone = one.makePlan();
  EXPECT_THAT(apply(alone, Style::Data), HasSubstr("no dim of an input is a batch of more than one"));
}

TEST(StylesTest, FsdpStoresWeightsInParts) {
  Layer layer({4}, 8, 8, 4, 4);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Fsdp), "");
  EXPECT_EQ(splitsOf(plan, layer.x), "[01, _, _]");
  for (ValueId weight : {layer.wq, layer.wk, layer.wv, layer.wo, layer.up, layer.down})
    EXPECT_EQ(splitsOf(plan, weight), "[01, _]");
  ASSERT_EQ(plan.getRemarks().size(), 1u) << "16 tokens meet weights of 64 rows";
  Layer large({4}, 8, 8, 4096);
  StyledPlan quiet = large.makePlan();
  EXPECT_EQ(apply(quiet, Style::Fsdp), "");
  EXPECT_TRUE(quiet.getRemarks().empty());
}

TEST(StylesTest, ContextSplitsTokens) {
  Layer layer({4}, 8, 8);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Context), "");
  EXPECT_EQ(splitsOf(plan, layer.x), "[_, 01, _]");
  EXPECT_EQ(plan.getSplits().size(), 1u);
  Layer odd({4}, 8, 8, 4, 7);
  StyledPlan other = odd.makePlan();
  EXPECT_EQ(apply(other, Style::Context), "7 tokens on 4 ranks: 7 would divide; without --like, --uneven pads");
}

// One style an axis; the second leaves to the first what that has.
TEST(StylesTest, TwoAxes) {
  Layer layer({2, 4}, 8, 8);
  StyledPlan plan = layer.makePlan();
  EXPECT_EQ(apply(plan, Style::Fsdp, {0}), "");
  EXPECT_EQ(apply(plan, Style::Megatron, {1, 2}), "");
  EXPECT_EQ(splitsOf(plan, layer.x), "[0, _, _]");
  EXPECT_EQ(splitsOf(plan, layer.wq), "[0, 12]");
  EXPECT_EQ(splitsOf(plan, layer.down), "[012, _]");
}

TEST(StylesTest, Experts) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 16, 64}), up = graph.parameter({8, 64, 256}), down = graph.parameter({8, 256, 64});
  ValueId wide = graph.einsum("eck,ekj->ecj", {x, up});
  graph.problem.addOutput(graph.einsum("eck,ekj->ecj", {graph.pointwise({wide}), down}));
  StyledPlan plan = makeStyled(graph, kNone);
  EXPECT_EQ(apply(plan, Style::Expert), "");
  EXPECT_EQ(splitsOf(plan, up), "[01, _, _]");
  EXPECT_EQ(splitsOf(plan, down), "[01, _, _]");
}

TEST(StylesTest, WhatAModelDoesNotHave) {
  GraphBuilder graph({4});
  ValueId x = graph.input({8, 64});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, graph.parameter({64, 256})}));
  StyledPlan plan = makeStyled(graph, x);
  EXPECT_EQ(apply(plan, Style::Context), "nothing mixes tokens: --like data cuts them");
  EXPECT_EQ(apply(plan, Style::Expert),
            "no weight is picked by a router or has a batch of its own: the model has no experts");
  EXPECT_THAT(apply(plan, Style::Channels), HasSubstr("no convolution"));
  EXPECT_THAT(apply(plan, Style::Spatial), HasSubstr("no window"));
  EXPECT_THAT(apply(plan, Style::Sequence), HasSubstr("no tokens are between blocks"));
}

TEST(StylesTest, Words) {
  EXPECT_EQ(llvm::cantFail(parseStyles("data,megatron")), (std::vector{Style::Data, Style::Megatron}));
  EXPECT_THAT(
      llvm::toString(parseStyles("megatorn").takeError()),
      HasSubstr("'megatorn' is not a style; there are data, fsdp, megatron, sequence, context, expert, channels, "
                "spatial; did you mean 'megatron'?"));
}

} // namespace
