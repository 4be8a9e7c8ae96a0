//===- RolesTest.cpp - what weights are to a model, by structure ----------===//
#include "cleave/Search/Roles.h"
#include "../Solver/GraphBuilder.h"
#include "Repeats.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

/// A step of a transformer: attention, then a gated feed-forward.
struct Layer {
  ValueId norm, query, key, value, output, gate, up, down;

  ValueId build(GraphBuilder &graph, ValueId x) {
    auto weight = [&](int64_t rows, int64_t columns) { return graph.parameter({rows, columns}); };
    norm = graph.parameter({64});
    query = weight(64, 64);
    key = weight(64, 64);
    value = weight(64, 64);
    output = weight(64, 64);
    gate = weight(64, 256);
    up = weight(64, 256);
    down = weight(256, 64);
    ValueId normed = graph.normalize({x, norm}, 2);
    auto project = [&](ValueId from) {
      return graph.splitDim(graph.einsum("bsk,kj->bsj", {normed, from}), 2, 8); // [2, 16, 8, 8]
    };
    ValueId keys = project(key), values = project(value), queries = project(query);
    // Keys first: which operand is which follows from what the second product sums over.
    ValueId scores = graph.einsum("bkhd,bqhd->bhqk", {keys, queries});
    ValueId mixed = graph.einsum("bhqk,bkhd->bqhd", {graph.normalize({scores}, 2), values});
    ValueId attended = graph.einsum("bsk,kj->bsj", {graph.mergeDims(mixed, 2), output});
    ValueId stream = graph.add(x, attended);
    ValueId gated = graph.pointwise(
        {graph.pointwise({graph.einsum("bsk,kj->bsj", {stream, gate})}), graph.einsum("bsk,kj->bsj", {stream, up})});
    return graph.add(stream, graph.einsum("bsk,kj->bsj", {gated, down}));
  }
};

std::vector<Role> rolesOf(const GraphBuilder &graph, ValueId x) {
  std::vector<char> given(graph.problem.numValues(), false);
  given[x] = true;
  std::vector<char> weights(graph.problem.numValues(), false);
  for (ValueId value = 0; value < graph.problem.numValues(); ++value)
    weights[value] = graph.problem.producer(value) == kNone && graph.problem.isParameter(value);
  return findRoles(graph.problem, given, weights);
}

std::string roleOf(llvm::ArrayRef<Role> roles, ValueId weight) {
  for (const Role &role : roles)
    if (role.weight == weight)
      return describe(role.kinds) + (role.block ? " " + std::to_string(role.block) : "");
  return "";
}

TEST(RolesTest, TwoLayers) {
  GraphBuilder graph({1});
  ValueId x = graph.input({2, 16, 64});
  Layer first, second;
  ValueId head = graph.parameter({64, 1000});
  graph.problem.addOutput(graph.einsum("bsk,kj->bsj", {second.build(graph, first.build(graph, x)), head}));
  std::vector<Role> roles = rolesOf(graph, x);
  for (unsigned number : {1, 2}) {
    const Layer *layer = number == 1 ? &first : &second;
    auto expect = [&](ValueId weight, std::string role) {
      EXPECT_EQ(roleOf(roles, weight), role + " " + std::to_string(number));
    };
    expect(layer->norm, "norm");
    expect(layer->query, "query");
    expect(layer->key, "key");
    expect(layer->value, "value");
    expect(layer->output, "attention output");
    expect(layer->gate, "gate");
    expect(layer->up, "up");
    expect(layer->down, "down");
  }
  EXPECT_EQ(roleOf(roles, head), "head");
}

// One weight for queries, keys and values; what is added to a product is a bias.
TEST(RolesTest, FusedWeightsAndBiases) {
  GraphBuilder graph({1});
  ValueId x = graph.input({2, 16, 64}), fused = graph.parameter({64, 64}), bias = graph.parameter({64});
  ValueId all = graph.splitDim(graph.add(graph.einsum("bsk,kj->bsj", {x, fused}), bias), 2, 8);
  ValueId scores = graph.einsum("bqhd,bkhd->bhqk", {all, all});
  graph.problem.addOutput(graph.einsum("bhqk,bkhd->bqhd", {graph.normalize({scores}, 2), all}));
  std::vector<Role> roles = rolesOf(graph, x);
  EXPECT_EQ(roleOf(roles, fused), "query, key, value");
  EXPECT_EQ(roleOf(roles, bias), "bias");
}

TEST(RolesTest, Experts) {
  GraphBuilder graph({1});
  ValueId x = graph.input({8, 16, 64}), up = graph.parameter({8, 64, 256}), down = graph.parameter({8, 256, 64});
  ValueId wide = graph.einsum("eck,ekj->ecj", {x, up});
  graph.problem.addOutput(graph.einsum("eck,ekj->ecj", {graph.pointwise({wide}), down}));
  std::vector<Role> roles = rolesOf(graph, x);
  EXPECT_EQ(roleOf(roles, up), "expert up");
  EXPECT_EQ(roleOf(roles, down), "expert down");
}

// Every expert gets every token, and what a router says are shares: of both weights no activation has experts, and a router has nothing else.
TEST(RolesTest, ExpertsOfAllTokens) {
  GraphBuilder graph({1});
  ValueId x = graph.input({32, 64}), router = graph.parameter({64, 8});
  ValueId up = graph.parameter({8, 64, 256}), down = graph.parameter({8, 256, 64});
  ValueId shares = graph.normalize({graph.einsum("nk,ke->ne", {x, router})}, 1);
  ValueId wide = graph.pointwise({graph.einsum("nk,ekj->nej", {x, up})});
  graph.problem.addOutput(graph.einsum("nej,ne->nj", {graph.einsum("nej,ejk->nek", {wide, down}), shares}));
  std::vector<Role> roles = rolesOf(graph, x);
  EXPECT_EQ(roleOf(roles, router), "router");
  EXPECT_EQ(roleOf(roles, up), "expert up");
  EXPECT_EQ(roleOf(roles, down), "expert down");
}

/// Rows of `table` along its first dim, one for each of `ids`.
ValueId lookUp(GraphBuilder &graph, ValueId table, ValueId ids) {
  llvm::ArrayRef<int64_t> from = graph.problem.shape(table);
  RuleBuilder rule(2, 1);
  std::optional<FactorId> token = rule.addParallel(graph.problem.shape(ids)[0]);
  std::optional<FactorId> row = rule.addReduction(from[0], ReductionKind::Sum);
  std::vector<int64_t> shape{graph.problem.shape(ids)[0]};
  rule.operandDim(0, row).operandDim(1, token).resultDim(0, token);
  for (int64_t extent : from.drop_front()) {
    std::optional<FactorId> factor = rule.addParallel(extent);
    rule.operandDim(0, factor).resultDim(0, factor);
    shape.push_back(extent);
  }
  rule.rule.form = Form::Movement;
  rule.rule.isMovement = true;
  return graph.op(rule.rule, {table, ids}, shape);
}

// A router sorts its scores; what it picks for each token out of a stack is the weight of an expert, and a row of numbers its bias. Words that
// a caller gives are looked up in an embedding.
TEST(RolesTest, PickedExperts) {
  GraphBuilder graph({1});
  ValueId words = graph.input({16}), embedding = graph.parameter({100, 64}), router = graph.parameter({64, 8});
  ValueId up = graph.parameter({8, 64, 256}), bias = graph.parameter({8, 256}), down = graph.parameter({8, 256, 64});
  ValueId x = lookUp(graph, embedding, words);
  ValueId scores = graph.einsum("tk,ke->te", {x, router});
  RuleBuilder sort(1, 1);
  std::optional<FactorId> token = sort.addParallel(16);
  sort.operandDim(0, token).operandDim(0, std::optional<FactorId>()).resultDim(0, token);
  sort.rule.form = Form::Sort;
  ValueId picked = graph.op(sort.rule, {scores}, {16});
  ValueId wide = graph.einsum("tk,tkj->tj", {x, lookUp(graph, up, picked)});
  ValueId biased = graph.pointwise({graph.add(wide, lookUp(graph, bias, picked))});
  graph.problem.addOutput(graph.einsum("tk,tkj->tj", {biased, lookUp(graph, down, picked)}));
  std::vector<Role> roles = rolesOf(graph, words);
  EXPECT_EQ(roleOf(roles, embedding), "embedding");
  EXPECT_EQ(roleOf(roles, router), "router");
  EXPECT_EQ(roleOf(roles, up), "expert up");
  EXPECT_EQ(roleOf(roles, bias), "bias");
  EXPECT_EQ(roleOf(roles, down), "expert down");
}

using Letters = std::vector<unsigned>;

TEST(RepeatsTest, Layers) {
  EXPECT_EQ(numberRepeats({9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 8}), (Letters{0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0}));
  EXPECT_EQ(numberRepeats({1, 2, 3}), (Letters{0, 0, 0}));
  EXPECT_EQ(numberRepeats({}), Letters{});
  // A last layer that is not whole is none.
  EXPECT_EQ(numberRepeats({1, 2, 1, 2, 1}), (Letters{1, 1, 2, 2, 0}));
}

TEST(RepeatsTest, SeveralRuns) {
  EXPECT_EQ(numberRepeats({1, 2, 1, 2, 7, 3, 4, 5, 3, 4, 5}), (Letters{1, 1, 2, 2, 0, 3, 3, 3, 4, 4, 4}));
}

// Equal weights in a row are no layers.
TEST(RepeatsTest, OneLetter) { EXPECT_EQ(numberRepeats({1, 1, 1, 1}), (Letters{0, 0, 0, 0})); }

} // namespace
