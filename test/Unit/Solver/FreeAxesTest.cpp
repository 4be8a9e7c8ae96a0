//===- FreeAxesTest.cpp - axes that may split whatever they can -----------===//
//
// Bytes follow from closed formulas, as in SolverTest.cpp. Where no formula says what is least, annotations do: whatever they ask for, axes
// that are free find no more.
//
//===----------------------------------------------------------------------===//
#include "Solved.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/STLExtras.h"
#include <random>

using namespace cleave::spmd;

namespace {

/// Time on the default cluster, of a graph whose axes are all free.
SolverOptions byTime(GraphBuilder &graph, bool isFree = true) {
  const AtomMesh &mesh = graph.problem.getMesh();
  ClusterMesh named;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    named.names.push_back("axis" + std::to_string(axis));
    named.sizes.push_back(mesh.axisSize(axis));
  }
  for (AtomId atom = 0; isFree && atom < mesh.numAtoms(); ++atom)
    graph.problem.setFree(atom);
  SolverOptions options;
  options.costs = makeCostModel(Cluster(), named, named.names, Optimize::Time);
  return options;
}

/// x [rows, 4096] times w1, times w2.
struct Mlp {
  Mlp(std::vector<int64_t> mesh, int64_t rows) : graph(mesh) {
    x = graph.input({rows, 4096});
    first = graph.parameter({4096, 16384});
    second = graph.parameter({16384, 4096});
    hidden = graph.pointwise({graph.einsum("ik,kj->ij", {x, first})});
    y = graph.einsum("ik,kj->ij", {hidden, second});
    graph.problem.addOutput(y);
  }
  void decideStorage() {
    graph.problem.decideStorage(first);
    graph.problem.decideStorage(second);
  }

  GraphBuilder graph;
  ValueId x, first, second, hidden, y;
};

TEST(FreeAxesTest, NothingIsSplitWithoutThem) {
  Mlp mlp({4}, 64);
  Solved solved(mlp.graph, byTime(mlp.graph, /*isFree=*/false));
  EXPECT_TRUE(solved.value(mlp.hidden).isReplicated());
}

// Five ranks divide neither rows nor columns: they split them where they may pad, and what a rank stores of the rows is the largest part.
TEST(FreeAxesTest, WhatDoesNotDivideIsSplitWhereAxesMayBeUneven) {
  Mlp even({5}, 65536);
  EXPECT_TRUE(Solved(even.graph, byTime(even.graph)).value(even.hidden).isReplicated());
  Mlp uneven({5}, 65536);
  SolverOptions options = byTime(uneven.graph, /*isFree=*/false);
  uneven.graph.problem.setFree(0, /*isUneven=*/true);
  Solved solved(uneven.graph, options);
  EXPECT_EQ(solved.value(uneven.hidden), uneven.graph.state({{0}, {}}));
}

// Of many rows each rank takes some, and nothing is sent.
TEST(FreeAxesTest, RowsAreSplitWhereThereAreMany) {
  Mlp mlp({4}, 65536);
  Solved solved(mlp.graph, byTime(mlp.graph));
  EXPECT_EQ(solved.value(mlp.hidden), mlp.graph.state({{0}, {}}));
  EXPECT_EQ(solved.bytes(), 0);
  EXPECT_TRUE(solved.solver.getDecision().forced.empty());
  std::vector<CauseLink> chain = solved.solver.explain(0, 0, 0);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[1].kind, CauseLink::Kind::Free);
}

// One row cannot be split: columns, then rows of the weights, and the sum of [1, 4096], left where it is added: 3/4 of it.
TEST(FreeAxesTest, WeightsAreSplitWhereThereIsOneRow) {
  Mlp mlp({4}, 1);
  Solved solved(mlp.graph, byTime(mlp.graph));
  EXPECT_EQ(solved.value(mlp.hidden), mlp.graph.state({{}, {0}}));
  EXPECT_EQ(solved.value(mlp.first), mlp.graph.state({{}, {0}}));
  EXPECT_EQ(solved.bytes(), 3 * (4096 * 4) / 4);
}

TEST(FreeAxesTest, OnlyThoseThatAreFreeSplit) {
  Mlp mlp({2, 2}, 65536);
  SolverOptions options = byTime(mlp.graph, /*isFree=*/false);
  mlp.graph.problem.setFree(1);
  EXPECT_EQ(Solved(mlp.graph, options).value(mlp.hidden), mlp.graph.state({{1}, {}}));
}

// What an annotation closes stays, whatever it costs.
TEST(FreeAxesTest, AnnotationsStay) {
  Mlp mlp({4}, 65536);
  mlp.graph.problem.setAnnotation(mlp.hidden, mlp.graph.annotation({{}, {0}}));
  mlp.graph.problem.setAnnotation(mlp.x, mlp.graph.annotation({{}, {}}));
  Solved solved(mlp.graph, byTime(mlp.graph));
  EXPECT_EQ(solved.value(mlp.hidden), mlp.graph.state({{}, {0}}));
  EXPECT_TRUE(solved.value(mlp.x).isReplicated());
}

// The more a byte of memory costs, the less is stored and the longer it takes; at no price weights stay replicated.
TEST(FreeAxesTest, MemoryIsHeldAgainstTime) {
  int64_t whole = 2 * int64_t(4096) * 16384 * 4, before = whole, sentBefore = 0;
  for (double nsPerMb : {0.0, 300.0, 3e4, 1e9}) {
    Mlp mlp({2, 4}, 65536);
    mlp.decideStorage();
    SolverOptions options = byTime(mlp.graph);
    options.perStoredByte = nsPerMb * 1e-6 * options.costs.perNs;
    Solved solved(mlp.graph, options);
    int64_t stored = 0;
    for (ValueId weight : {mlp.first, mlp.second})
      stored += localBytes(mlp.graph.problem.getMesh(), mlp.graph.problem.shape(weight), 4, solved.value(weight));
    EXPECT_LE(stored, before) << nsPerMb;
    EXPECT_GE(solved.bytes(), sentBefore) << nsPerMb;
    before = stored;
    sentBefore = solved.bytes();
  }
  EXPECT_EQ(before, whole / 8);
}

// Gradients of a step are split as what they are added to, which the next call finds as it was left.
TEST(FreeAxesTest, TiedEndsHaveOneState) {
  for (bool isTied : {false, true}) {
    GraphBuilder graph({4});
    ValueId x = graph.input({65536, 4096}), weight = graph.input({4096, 4096});
    graph.problem.decideStorage(weight);
    ValueId y = graph.einsum("ik,kj->ij", {x, weight});
    ValueId gradient = graph.einsum("ik,ij->kj", {x, y});
    OutputId next = graph.problem.addOutput(graph.add(weight, gradient));
    if (isTied)
      graph.problem.tie(weight, next);
    SolverOptions options = byTime(graph);
    options.perStoredByte = options.costs.perNs;
    Solved solved(graph, options);
    EXPECT_FALSE(solved.value(weight).isReplicated());
    EXPECT_TRUE(!isTied || solved.value(weight) == solved.output(next));
  }
}

TEST(FreeAxesTest, KeptDimsStayReplicated) {
  GraphBuilder graph({4});
  ValueId cache = graph.input({8, 4096});
  graph.problem.decideStorage(cache);
  graph.problem.keepInputDim(cache, 0);
  graph.problem.addOutput(graph.pointwise({cache}));
  SolverOptions options = byTime(graph);
  options.perStoredByte = options.costs.perNs;
  EXPECT_EQ(Solved(graph, options).value(cache), graph.state({{}, {0}}));
}

// Columns of the first product are rows of the second.
TEST(FreeAxesTest, OnlyWhatIsAllowedIsSplit) {
  Mlp mlp({4}, 65536);
  SolverOptions options = byTime(mlp.graph);
  options.maySplit = [](OpId op, FactorId factor) { return factor == (op == 0 ? 2 : 1); };
  Solved solved(mlp.graph, options);
  EXPECT_EQ(solved.operand(0, 1), mlp.graph.state({{}, {0}}));
  EXPECT_EQ(solved.operand(2, 1), mlp.graph.state({{0}, {}}));
  EXPECT_GT(solved.bytes(), 0);
}

//===----------------------------------------------------------------------===//
// Against annotations
//===----------------------------------------------------------------------===//

/// A chain of three products with an elementwise op between, of random sizes; weights annotated where `dims` has an entry.
GraphBuilder makeChain(uint32_t seed, const std::vector<std::optional<DimAxes>> &dims) {
  std::mt19937 random(seed);
  auto draw = [&] { return int64_t(64) << random() % 7; };
  GraphBuilder graph({2, 2});
  int64_t width = draw();
  ValueId value = graph.input({draw(), width});
  for (const std::optional<DimAxes> &wanted : dims) {
    int64_t next = draw();
    ValueId weight = wanted ? graph.parameter({width, next}, *wanted) : graph.parameter({width, next});
    value = graph.einsum("ik,kj->ij", {value, weight});
    if (random() % 2)
      value = graph.pointwise({value});
    width = next;
  }
  graph.problem.addOutput(value);
  return graph;
}

TEST(FreeAxesTest, NoAnnotationTakesLess) {
  const DimAxes kinds[] = {{{}, {}},   {{0}, {}},  {{}, {0}},    {{1}, {}},   {{}, {1}},
                           {{0}, {1}}, {{1}, {0}}, {{0, 1}, {}}, {{}, {0, 1}}};
  unsigned compared = 0, closer = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    GraphBuilder open = makeChain(seed, {std::nullopt, std::nullopt, std::nullopt});
    int64_t least = Solved(open, byTime(open)).solver.getDecision().objective;
    for (const DimAxes &first : kinds)
      for (const DimAxes &second : kinds) {
        GraphBuilder asked = makeChain(seed, {first, second, std::nullopt});
        int64_t taken = Solved(asked, byTime(asked)).solver.getDecision().objective;
        EXPECT_LE(least, taken) << "seed " << seed;
        ++compared;
        closer += least == taken;
      }
  }
  EXPECT_EQ(compared, 24u * 81u);
  EXPECT_GT(closer, 24u) << "some annotations ask for the best";
}

} // namespace
