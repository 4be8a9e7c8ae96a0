//===- CellSearchTest.cpp - the least time within a limit of memory -------===//
#include "cleave/Search/CellSearch.h"
#include "../Solver/GraphBuilder.h"
#include "cleave/Sharding/Cluster.h"
#include <gtest/gtest.h>
#include <limits>

using namespace cleave::spmd;

namespace {

/// Two layers of [65536, 4096] on 8 ranks: whole weights take no time, cut ones are gathered.
struct Layers {
  Layers() : graph({8}) {
    ValueId value = graph.input({65536, 4096});
    for (int layer = 0; layer < 2; ++layer) {
      ValueId weight = graph.parameter({4096, 4096});
      graph.problem.decideStorage(weight);
      value = graph.einsum("ik,kj->ij", {value, weight});
    }
    graph.problem.addOutput(value);
    for (AtomId atom = 0; atom < graph.problem.getMesh().numAtoms(); ++atom)
      graph.problem.setFree(atom);
    options.costs = makeCostModel(Cluster(), {{"a"}, {8}, {}}, std::vector<std::string>{"a"}, Optimize::Time);
  }
  GraphBuilder graph;
  SolverOptions options;
};

constexpr int64_t kWeight = int64_t(4096) * 4096 * 4;

TEST(CellSearchTest, EverythingStaysReplicatedWhereItFits) {
  Layers layers;
  CellSearch search(layers.graph.problem, layers.options, {});
  const CellAnswer *found = search.find(2 * kWeight);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->storedBytes, 2 * kWeight);
  EXPECT_EQ(found->getDecision().wireBytes, 0);
  EXPECT_EQ(search.countSolves(), 1u);
}

// An eighth of each is the least; less than that does not fit anywhere.
TEST(CellSearchTest, LimitsAreKept) {
  Layers layers;
  CellSearch search(layers.graph.problem, layers.options, {});
  double before = 0;
  for (int64_t limit : {2 * kWeight, 2 * kWeight - 1, kWeight, kWeight / 2, kWeight / 4}) {
    const CellAnswer *found = search.find(limit);
    ASSERT_TRUE(found) << limit;
    EXPECT_LE(found->storedBytes, limit);
    EXPECT_GE(found->ns, before) << "less memory takes no less time";
    before = found->ns;
  }
  EXPECT_EQ(search.findSmallest()->storedBytes, kWeight / 4);
  EXPECT_FALSE(search.find(kWeight / 4 - 1));
  EXPECT_FALSE(search.find(0));
}

// Styles in which the same is found are no other answers.
TEST(CellSearchTest, OthersDiffer) {
  Layers layers;
  CellSearch search(layers.graph.problem, layers.options,
                    {[](OpId, FactorId) { return true; }, [](OpId, FactorId factor) { return factor == 0; }});
  const CellAnswer *found = search.find(std::numeric_limits<int64_t>::max());
  std::vector<const CellAnswer *> all = search.findOthers(*found);
  EXPECT_EQ(all.front(), found);
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(search.countSolves(), 3u);
}

} // namespace
