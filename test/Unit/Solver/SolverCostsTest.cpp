//===- SolverCostsTest.cpp - decisions follow the cost model --------------===//
#include "Solved.h"

using namespace cleave::spmd;

namespace {

SolverOptions optionsWith(llvm::ArrayRef<LinkCost> links, int64_t perCollective = 0) {
  SolverOptions options;
  options.costs.links.assign(links.begin(), links.end());
  options.costs.perCollective = perCollective;
  return options;
}

// Two values of two rows, one split by each axis, are added: only one axis can have the rows, the other's value is
// gathered. That must be the axis with the fast links.
TEST(SolverCostsTest, TheSlowerAxisKeepsItsRows) {
  constexpr int64_t slow = 10 * kCostUnitsPerByte, fast = kCostUnitsPerByte;
  for (unsigned slowAxis : {0u, 1u}) {
    GraphBuilder graph({2, 2});
    ValueId a = graph.input({2, 64}, {{0}, {}}), b = graph.input({2, 64}, {{1}, {}});
    ValueId sum = graph.add(a, b);
    graph.problem.addOutput(sum);
    Solved solved(graph, optionsWith({{slowAxis == 0 ? slow : fast, 0}, {slowAxis == 1 ? slow : fast, 0}}));
    EXPECT_EQ(solved.value(sum), graph.state({{slowAxis}, {}})) << slowAxis;
    EXPECT_EQ(solved.bytes(), 64 * 4);
  }
}

// Softmax over split columns, 4x64: two all_reduces of 16 bytes, or one gather of half of 1024 bytes and 2 bytes for
// writing the result twice as large, half a byte for being a reshard. They break even where beginning one costs 482.5.
TEST(SolverCostsTest, LatencyMakesOneLargeGatherBeatTwoSmallReductions) {
  for (int64_t begin : {482, 483}) {
    GraphBuilder graph({2});
    ValueId y = graph.normalize({graph.input({4, 64}, {{}, {0}})}, 2);
    addOutput(graph, y, {{}, {0}});
    Solved solved(graph, optionsWith({}, begin * kCostUnitsPerByte));
    EXPECT_EQ(solved.bytes(), begin == 482 ? 2 * 16 : 512) << begin;
  }
}

// Two all_reduces on 2 ranks are two steps each, a gather is one: 32 + 4 L against 514.5 + L.
TEST(SolverCostsTest, LatencyOfLinksCountsPerStep) {
  auto bytesWith = [](int64_t latency) {
    GraphBuilder graph({2});
    ValueId y = graph.normalize({graph.input({4, 64}, {{}, {0}})}, 2);
    addOutput(graph, y, {{}, {0}});
    return Solved(graph, optionsWith({{kCostUnitsPerByte, latency * kCostUnitsPerByte}})).bytes();
  };
  EXPECT_EQ(bytesWith(160), 2 * 16);
  EXPECT_EQ(bytesWith(161), 512);
}

// What is read three times is resharded once: to put x of 512 bytes otherwise takes half of a rank's half, 128, while another user has it as
// it is. Counted for each operand it would be more expensive than to gather z, 16 bytes, and put the result otherwise, 128.
TEST(SolverCostsTest, AValueThatIsReadAgainIsReshardedOnce) {
  GraphBuilder graph({2});
  ValueId x = graph.input({16, 8}, {{0}, {}}), z = graph.input({8}, {{0}});
  addOutput(graph, graph.pointwise({x, x, x, z}), {{}, {0}});
  addOutput(graph, graph.pointwise({x}), {{0}, {}});
  Solved solved(graph);
  EXPECT_EQ(solved.bytes(), 128);
  EXPECT_EQ(solved.result(0), graph.state({{}, {0}}));
}

// The same model in units half as long.
TEST(SolverCostsTest, CostsAreToldAsBytesOfTheFastestLink) {
  GraphBuilder graph({2});
  ValueId y = graph.normalize({graph.input({4, 64}, {{}, {0}})}, 2);
  addOutput(graph, y, {{}, {0}});
  Solved usual(graph), doubled(graph, [] {
    SolverOptions options = optionsWith({{2 * kCostUnitsPerByte, 0}});
    options.costs.perExtraWrite *= 2;
    options.costs.perReshard *= 2;
    return options;
  }());
  auto nextBest = [&](const Solved &solved) { return solved.solver.findNextBest(y, 0); };
  ASSERT_TRUE(nextBest(usual) && nextBest(doubled));
  EXPECT_EQ(nextBest(usual)->bytes, nextBest(doubled)->bytes);
}

} // namespace
