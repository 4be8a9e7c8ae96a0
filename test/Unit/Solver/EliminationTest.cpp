//===- EliminationTest.cpp - against trying everything --------------------===//
#include "RandomSum.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

TEST(EliminationTest, FindsTheMinimumOfSmallGraphs) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 600; ++trial) {
    Model model = randomModel(random, 7, 4);
    Minimum minimum = minimize(model.domains, model.terms());
    EXPECT_TRUE(minimum.frozen.empty());
    EXPECT_EQ(minimum.total, model.leastSum()) << "trial " << trial;
    EXPECT_EQ(minimum.total, model.sum(minimum.options)) << "trial " << trial;
  }
}

// With little room some variables keep option 0: the sum is that of the options, and never above the start.
TEST(EliminationTest, WithLittleRoomIsNeverWorseThanTheStart) {
  std::mt19937 random(2);
  unsigned numFrozen = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Model model = randomModel(random, 9, 4);
    Minimum minimum = minimize(model.domains, model.terms(), /*maxCells=*/16);
    numFrozen += minimum.frozen.size();
    EXPECT_EQ(minimum.total, model.sum(minimum.options)) << "trial " << trial;
    EXPECT_LE(minimum.total, model.sum(std::vector<uint16_t>(model.domains.size(), 0))) << "trial " << trial;
  }
  EXPECT_GT(numFrozen, 50u);
}

// A ring of leaves around a hub, with room for tables of three variables only: without the hub, which has the most
// neighbors, the ring needs no more. So one variable is frozen, and the rest is exact.
TEST(EliminationTest, FreezesTheBusiestNeighbor) {
  std::mt19937 random(5);
  constexpr unsigned ring = 6, domain = 3;
  Model model, rest;
  model.domains.assign(ring + 1, domain);
  auto cells = [&] {
    std::vector<int64_t> result(domain * domain);
    for (int64_t &cell : result)
      cell = random() % 100;
    return result;
  };
  rest.domains.assign(ring, domain);
  for (unsigned leaf = 0; leaf < ring; ++leaf) {
    std::vector<int64_t> toNext = cells(), toHub = cells();
    model.add(leaf, (leaf + 1) % ring, toNext);
    rest.add(leaf, (leaf + 1) % ring, toNext);
    model.add(ring, leaf, toHub);
    rest.add(leaf, kNoVariable, {toHub[0], toHub[1], toHub[2]}); // The hub's option 0.
  }
  Minimum minimum = minimize(model.domains, model.terms(), /*maxCells=*/domain * domain * domain);
  EXPECT_EQ(minimum.frozen.size(), 1u);
  EXPECT_EQ(minimum.options[ring], 0);
  EXPECT_EQ(minimum.total, rest.leastSum());
}

TEST(EliminationTest, PrefersTheFirstOptionOnTies) {
  Model model;
  model.domains = {3, 4, 2};
  model.add(0, 1, std::vector<int64_t>(12, 7));
  model.add(1, 2, std::vector<int64_t>(8, 5));
  Minimum minimum = minimize(model.domains, model.terms());
  EXPECT_EQ(minimum.options, (std::vector<uint16_t>{0, 0, 0}));
  EXPECT_EQ(minimum.total, 12);
}

TEST(EliminationTest, GivesTheSameAnswerTwice) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    Model model = randomModel(random, 9, 4);
    EXPECT_EQ(minimize(model.domains, model.terms()).options, minimize(model.domains, model.terms()).options);
  }
}

// A chain as long as a large model, against dynamic programming from one end.
TEST(EliminationTest, SolvesALongChain) {
  std::mt19937 random(4);
  constexpr unsigned length = 100000, domain = 5;
  Model model;
  model.domains.assign(length, domain);
  std::vector<int64_t> best(domain, 0);
  for (unsigned i = 0; i + 1 < length; ++i) {
    std::vector<int64_t> cells(domain * domain), next(domain, kForbidden);
    for (int64_t &cell : cells)
      cell = random() % 1000;
    for (unsigned from = 0; from < domain; ++from)
      for (unsigned to = 0; to < domain; ++to)
        next[to] = std::min(next[to], best[from] + cells[from * domain + to]);
    best = next;
    model.add(i, i + 1, std::move(cells));
  }
  Minimum minimum = minimize(model.domains, model.terms());
  EXPECT_EQ(minimum.total, *std::min_element(best.begin(), best.end()));
  EXPECT_EQ(minimum.total, model.sum(minimum.options));
  EXPECT_LE(minimum.width, 2u);
}

// One variable with very many neighbors (a value that every layer uses) costs no more than its edges.
TEST(EliminationTest, SolvesAStar) {
  constexpr unsigned numLeaves = 100000;
  Model model;
  model.domains.assign(numLeaves + 1, 2);
  for (unsigned leaf = 1; leaf <= numLeaves; ++leaf)
    model.add(0, leaf, {1, 2, 3, 0}); // Option 1 of both costs nothing.
  Minimum minimum = minimize(model.domains, model.terms());
  EXPECT_EQ(minimum.total, 0);
  EXPECT_EQ(minimum.width, 1u);
  EXPECT_EQ(minimum.options, std::vector<uint16_t>(numLeaves + 1, 1));
}

// In a tree a leaf always has the fewest neighbors, so no table ever has more than two variables: not around hubs either,
// which have more neighbors than any set of the queue is for until most of their leaves are gone.
TEST(EliminationTest, TakesTheLeavesOfATreeFirst) {
  std::mt19937 random(5);
  constexpr unsigned size = 20000;
  Model model;
  model.domains.assign(size, 2);
  for (unsigned i = 1; i < size; ++i) {
    unsigned parent = random() % 3 == 0 ? random() % i / 100 : random() % i;
    model.add(parent, i, {int64_t(random() % 9), int64_t(random() % 9), int64_t(random() % 9), int64_t(random() % 9)});
  }
  Minimum minimum = minimize(model.domains, model.terms());
  EXPECT_EQ(minimum.width, 1u);
  EXPECT_TRUE(minimum.frozen.empty());
  EXPECT_EQ(minimum.total, model.sum(minimum.options));
}

// Sums over one graph with other tables, other numbers of options and other variables that are spared, mixed up with those over others: what an
// order that is known leads to is what is found without.
TEST(EliminationTest, KnownOrdersChangeNothing) {
  std::mt19937 random(6);
  unsigned numFrozen = 0, numGivenUp = 0, numShared = 0;
  KnownOrders known;
  for (int graph = 0; graph < 100; ++graph) {
    Model shape = randomModel(random, 12, 5);
    std::vector<uint16_t> before;
    for (int trial = 0; trial < 12; ++trial) {
      Model model;
      for (uint16_t domain : shape.domains)
        model.domains.push_back(random() % 4 ? domain : 1 + random() % 5);
      numShared += model.domains == before;
      before = model.domains;
      for (auto [first, second] : shape.scopes) {
        std::vector<int64_t> cells(model.domains[first] * (second == kNoVariable ? 1 : model.domains[second]));
        for (int64_t &cell : cells)
          cell = int64_t(random() % 100) - 50;
        model.add(first, second, std::move(cells));
      }
      std::vector<uint32_t> spared;
      if (trial % 3 == 0 && shape.domains.size() > 1)
        spared = {0, static_cast<uint32_t>(shape.domains.size() - 1)};
      bool mayFreeze = trial % 4 != 0;
      Minimum alone = minimize(model.domains, model.terms(), /*maxCells=*/40, spared, mayFreeze);
      Minimum again = minimize(model.domains, model.terms(), /*maxCells=*/40, spared, mayFreeze, &known);
      EXPECT_EQ(alone.frozen, again.frozen) << "graph " << graph << ", trial " << trial;
      EXPECT_EQ(alone.width, again.width) << "graph " << graph << ", trial " << trial;
      EXPECT_EQ(alone.options, again.options) << "graph " << graph << ", trial " << trial;
      EXPECT_EQ(alone.total, again.total) << "graph " << graph << ", trial " << trial;
      (mayFreeze ? numFrozen : numGivenUp) += alone.frozen.size();
      if (mayFreeze || alone.frozen.empty())
        EXPECT_EQ(again.total, model.sum(again.options)) << "graph " << graph << ", trial " << trial;
    }
  }
  EXPECT_GT(numFrozen, 100u);
  EXPECT_GT(numGivenUp, 20u);
  EXPECT_GT(numShared, 20u);
}

} // namespace
