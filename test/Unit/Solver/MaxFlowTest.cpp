//===- MaxFlowTest.cpp - against trying every minimum cut -----------------===//
#include "cleave/Solver/MaxFlow.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;

namespace {

struct Edge {
  unsigned from, to;
  int64_t capacity;
};

/// Of the nodes of `sinkSide`, a set of bits.
int64_t getCapacity(const std::vector<Edge> &edges, unsigned sinkSide) {
  int64_t sum = 0;
  for (const Edge &edge : edges)
    if (!(sinkSide >> edge.from & 1) && (sinkSide >> edge.to & 1))
      sum += edge.capacity;
  return sum;
}

MaxFlow makeNetwork(unsigned nodes, const std::vector<Edge> &edges) {
  MaxFlow network;
  for (unsigned node = 2; node < nodes; ++node)
    network.addNode();
  for (const Edge &edge : edges)
    network.addEdge(edge.from, edge.to, edge.capacity);
  return network;
}

// The picture of the header.
TEST(MaxFlowTest, PartsThePicture) {
  MaxFlow network = makeNetwork(4, {{0, 2, 3}, {2, 1, 1}, {0, 3, 2}, {3, 1, 5}});
  EXPECT_EQ(network.solve(), 3);
  llvm::BitVector side = network.getSinkSide();
  EXPECT_FALSE(side.test(0));
  EXPECT_TRUE(side.test(1));
  EXPECT_FALSE(side.test(2));
  EXPECT_TRUE(side.test(3));
}

// A way along which nothing has an end; capacities are not added beyond that.
TEST(MaxFlowTest, SaysWhereNothingCanBeParted) {
  MaxFlow network =
      makeNetwork(3, {{0, 2, MaxFlow::kInfinite}, {2, 1, MaxFlow::kInfinite}, {0, 1, MaxFlow::kInfinite}});
  EXPECT_EQ(network.solve(), MaxFlow::kInfinite);
}

// Least of all cuts, and of these with as few nodes on the sink's side as can be.
TEST(MaxFlowTest, IsTheLeastThatPartsSourceAndSink) {
  std::mt19937 random(37);
  for (int trial = 0; trial < 2000; ++trial) {
    unsigned nodes = 2 + random() % 7;
    std::vector<Edge> edges(random() % (3 * nodes));
    for (Edge &edge : edges)
      edge = {static_cast<unsigned>(random() % nodes), static_cast<unsigned>(random() % nodes),
              static_cast<int64_t>(random() % 10)};
    int64_t least = INT64_MAX;
    int fewest = 0;
    for (unsigned side = 0; side < 1U << nodes; ++side) {
      int64_t capacity = (side & 3) == 2 ? getCapacity(edges, side) : INT64_MAX;
      int count = __builtin_popcount(side);
      if (capacity < least || (capacity == least && count < fewest))
        fewest = count;
      least = std::min(least, capacity);
    }
    MaxFlow network = makeNetwork(nodes, edges);
    ASSERT_EQ(network.solve(), least);
    llvm::BitVector side = network.getSinkSide();
    unsigned bits = 0;
    for (unsigned node : side.set_bits())
      bits |= 1U << node;
    EXPECT_EQ(getCapacity(edges, bits), least);
    EXPECT_EQ(int(side.count()), fewest);
  }
}

} // namespace
