//===- DetoursTest.cpp - where another decision sends less, or more -------===//
//
// Expected bytes are formulas of collectives: over p ranks an all_to_all sends (p-1)/p of a rank's piece, an all_gather (p-1)/p
// of the whole.
//
//===----------------------------------------------------------------------===//
#include "Solved.h"

using namespace cleave::spmd;

namespace {

/// Attention of `heads` heads over 64 positions of 16 elements, all of it split along the sequence.
GraphBuilder attention(int64_t ranks, int64_t heads, int64_t numLayers = 1) {
  GraphBuilder graph({ranks});
  for (int64_t layer = 0; layer < numLayers; ++layer) {
    auto input = [&] { return graph.input({heads, 64, 16}, {{}, {0}, {}}); };
    ValueId query = input(), key = input(), value = input();
    ValueId scores = graph.einsum("hsd,htd->hst", {query, key});
    addOutput(graph, graph.einsum("hst,htd->hsd", {scores, value}), {{}, {0}, {}});
  }
  return graph;
}

SolverOptions lookingForFewer() {
  SolverOptions options;
  options.lookForFewerBytes = true;
  return options;
}

// Four all_to_alls instead of two all_gathers: Ulysses.
TEST(DetoursTest, AttentionByHeadsIsAnotherFormThanTheSequence) {
  GraphBuilder graph = attention(8, 8);
  Solved solved(graph);
  int64_t tensor = 8 * 64 * 16 * 4;
  EXPECT_EQ(solved.bytes(), 4 * tensor * 7 / 64);
  const std::vector<Detour> &detours = solved.solver.getDecision().detours;
  ASSERT_EQ(detours.size(), 1u);
  EXPECT_EQ(detours[0].kind, Detour::Kind::OtherStrategy);
  EXPECT_EQ(detours[0].bytes, 4 * tensor * 7 / 64);
  EXPECT_EQ(detours[0].otherBytes, 2 * tensor * 7 / 8);
  EXPECT_EQ(detours[0].ops, (std::vector<OpId>{0, 1}));
  EXPECT_EQ(detours[0].flops, detours[0].otherFlops);
}

// Four heads over eight ranks: by heads over four of them, by the sequence over two, which gather a quarter of the keys and
// values between them.
TEST(DetoursTest, HeadsTakeAsMuchOfAnAxisAsTheyDivide) {
  GraphBuilder graph = attention(8, 4);
  int64_t tensor = 4 * 64 * 16 * 4;
  EXPECT_EQ(Solved(graph).bytes(), 4 * tensor * 3 / 32 + 2 * tensor / 8);
}

TEST(DetoursTest, EqualPlacesAreCounted) {
  GraphBuilder graph = attention(4, 4, /*numLayers=*/3);
  Solved solved(graph);
  const std::vector<Detour> &detours = solved.solver.getDecision().detours;
  ASSERT_EQ(detours.size(), 1u);
  EXPECT_EQ(detours[0].numPlaces, 3);
  EXPECT_EQ(detours[0].bytes * 3, solved.bytes());
}

// Rows are split, the result is replicated: the dot is computed by rows and its result gathered, although gathering the rows and
// computing all of it everywhere would send a quarter.
TEST(DetoursTest, BytesSentToSaveComputeAreTold) {
  GraphBuilder graph({4});
  ValueId x = graph.input({64, 256}, {{0}, {}}), weight = graph.parameter({256, 1024});
  addOutput(graph, graph.einsum("ik,kj->ij", {x, weight}), {{}, {}});
  Solved solved(graph, lookingForFewer());
  const std::vector<Detour> &detours = solved.solver.getDecision().detours;
  ASSERT_EQ(detours.size(), 1u);
  EXPECT_EQ(detours[0].kind, Detour::Kind::SendsMore);
  EXPECT_EQ(detours[0].bytes, 64 * 1024 * 4 * 3 / 4);
  EXPECT_EQ(detours[0].otherBytes, 64 * 256 * 4 * 3 / 4);
  EXPECT_EQ(detours[0].otherFlops - detours[0].flops, 2.0 * 64 * 256 * 1024 * 3 / 4);
  EXPECT_TRUE(Solved(graph).solver.getDecision().detours.empty());
}

// FSDP: the batch brings the axis, so that gathering the weight is what it asks for. Where parameters are kept, the rows move:
// terms of all ranks are added and scattered.
TEST(DetoursTest, KeptParametersAreNotGathered) {
  GraphBuilder graph({4});
  ValueId x = graph.input({512, 64}, {{0}, {}}), weight = graph.parameter({64, 64}, {{0}, {}});
  addOutput(graph, graph.einsum("ik,kj->ij", {x, weight}), {{0}, {}});
  EXPECT_EQ(Solved(graph).operand(0, 1), graph.state({{}, {}}));
  SolverOptions options;
  options.keepParameters = true;
  for (Optimize optimize : {Optimize::Balanced, Optimize::Bytes, Optimize::Time}) {
    options.costs = CostModel::create(optimize);
    Solved kept(graph, options);
    EXPECT_EQ(kept.operand(0, 1), graph.state({{0}, {}}));
    EXPECT_EQ(kept.bytes(), 512 * 64 * 4 * 3 / 16 + 512 * 64 * 4 * 3 / 4);
  }
}

/// A dim of six parts of four rows, of which the rows are split, becomes one of 24: nobody can go on with the split. Columns can.
GraphBuilder mergedRows(const DimAxes *annotated) {
  GraphBuilder graph({4});
  ValueId x = graph.input({6, 4, 64}, {{}, {0}, {}});
  ValueId merged = graph.mergeDims(x, 0);
  if (annotated)
    addOutput(graph, merged, *annotated);
  else
    graph.problem.addOutput(merged);
  return graph;
}

// A result that nobody annotates otherwise costs no more than the best annotation for it: an all_to_all, no gather.
TEST(DetoursTest, AFreeResultCostsNoMoreThanTheBestAnnotationForIt) {
  DimAxes replicated = {{}, {}}, columns = {{}, {0}};
  GraphBuilder asReplicated = mergedRows(&replicated), asColumns = mergedRows(&columns), free = mergedRows(nullptr);
  int64_t tensor = 24 * 64 * 4;
  EXPECT_EQ(Solved(asReplicated).bytes(), tensor * 3 / 4);
  EXPECT_EQ(Solved(asColumns).bytes(), tensor * 3 / 16);
  EXPECT_EQ(Solved(free).bytes(), tensor * 3 / 16);
}

// But a sum over ranks is returned replicated.
TEST(DetoursTest, AFreeSumIsReturnedReplicated) {
  GraphBuilder graph({4});
  ValueId x = graph.input({64, 256}, {{}, {0}}), weight = graph.parameter({256, 64}, {{0}, {}});
  graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, weight}));
  EXPECT_EQ(Solved(graph).output(0), graph.state({{}, {}}));
}

} // namespace
