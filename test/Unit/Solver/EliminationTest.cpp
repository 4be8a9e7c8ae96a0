//===- EliminationTest.cpp - against trying everything --------------------===//
#include "Elimination.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave::spmd;

namespace {

/// Tables over a few variables, with the sum at any options.
struct Model {
  std::vector<uint16_t> domains;
  std::vector<std::vector<int64_t>> tables;
  std::vector<std::pair<uint32_t, uint32_t>> scopes;

  void add(uint32_t first, uint32_t second, std::vector<int64_t> cells) {
    scopes.push_back({first, second});
    tables.push_back(std::move(cells));
  }
  std::vector<CostTerm> terms() const {
    std::vector<CostTerm> result;
    for (size_t i = 0; i < tables.size(); ++i)
      result.push_back({scopes[i].first, scopes[i].second, tables[i].data()});
    return result;
  }
  int64_t sum(const std::vector<uint16_t> &options) const {
    int64_t total = 0;
    for (size_t i = 0; i < tables.size(); ++i) {
      auto [first, second] = scopes[i];
      size_t cell = options[first];
      if (second != kNoVariable)
        cell = cell * domains[second] + options[second];
      total += tables[i][cell];
    }
    return total;
  }
  int64_t leastSum() const {
    std::vector<uint16_t> options(domains.size(), 0);
    int64_t least = sum(options);
    for (size_t place = 0; place < options.size();) {
      if (++options[place] == domains[place]) {
        options[place++] = 0;
        continue;
      }
      least = std::min(least, sum(options));
      place = 0;
    }
    return least;
  }
};

/// Costs from -50 to 49; one table in four forbids some cells, never the first.
Model randomModel(std::mt19937 &random, unsigned maxVariables, unsigned maxDomain) {
  Model model;
  auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  unsigned numVariables = 1 + below(maxVariables);
  for (unsigned i = 0; i < numVariables; ++i)
    model.domains.push_back(1 + below(maxDomain));
  auto cells = [&](size_t count) {
    std::vector<int64_t> result(count);
    bool forbids = below(4) == 0;
    for (size_t i = 0; i < count; ++i)
      result[i] = forbids && i > 0 && below(3) == 0 ? kForbidden : int64_t(below(100)) - 50;
    return result;
  };
  for (unsigned i = 0; i < numVariables; ++i)
    if (below(2))
      model.add(i, kNoVariable, cells(model.domains[i]));
  for (unsigned count = below(3 * numVariables); count > 0; --count)
    if (unsigned first = below(numVariables), second = below(numVariables); first != second)
      model.add(first, second, cells(size_t(model.domains[first]) * model.domains[second]));
  return model;
}

TEST(EliminationTest, FindsTheMinimumOfSmallGraphs) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 600; ++trial) {
    Model model = randomModel(random, 7, 4);
    Minimum minimum = minimise(model.domains, model.terms());
    EXPECT_EQ(minimum.numFrozen, 0u);
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
    Minimum minimum = minimise(model.domains, model.terms(), /*maxCells=*/16);
    numFrozen += minimum.numFrozen;
    EXPECT_EQ(minimum.total, model.sum(minimum.options)) << "trial " << trial;
    EXPECT_LE(minimum.total, model.sum(std::vector<uint16_t>(model.domains.size(), 0))) << "trial " << trial;
  }
  EXPECT_GT(numFrozen, 50u);
}

// A ring of leaves around a hub, with room for tables of three variables only: without the hub, which has the most
// neighbours, the ring needs no more. So one variable is frozen, and the rest is exact.
TEST(EliminationTest, FreezesTheBusiestNeighbour) {
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
  Minimum minimum = minimise(model.domains, model.terms(), /*maxCells=*/domain * domain * domain);
  EXPECT_EQ(minimum.numFrozen, 1u);
  EXPECT_EQ(minimum.options[ring], 0);
  EXPECT_EQ(minimum.total, rest.leastSum());
}

TEST(EliminationTest, PrefersTheFirstOptionOnTies) {
  Model model;
  model.domains = {3, 4, 2};
  model.add(0, 1, std::vector<int64_t>(12, 7));
  model.add(1, 2, std::vector<int64_t>(8, 5));
  Minimum minimum = minimise(model.domains, model.terms());
  EXPECT_EQ(minimum.options, (std::vector<uint16_t>{0, 0, 0}));
  EXPECT_EQ(minimum.total, 12);
}

TEST(EliminationTest, GivesTheSameAnswerTwice) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    Model model = randomModel(random, 9, 4);
    EXPECT_EQ(minimise(model.domains, model.terms()).options, minimise(model.domains, model.terms()).options);
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
  Minimum minimum = minimise(model.domains, model.terms());
  EXPECT_EQ(minimum.total, *std::min_element(best.begin(), best.end()));
  EXPECT_EQ(minimum.total, model.sum(minimum.options));
  EXPECT_LE(minimum.width, 2u);
}

// One variable with very many neighbours (a value that every layer uses) costs no more than its edges.
TEST(EliminationTest, SolvesAStar) {
  constexpr unsigned numLeaves = 100000;
  Model model;
  model.domains.assign(numLeaves + 1, 2);
  for (unsigned leaf = 1; leaf <= numLeaves; ++leaf)
    model.add(0, leaf, {1, 2, 3, 0}); // Option 1 of both costs nothing.
  Minimum minimum = minimise(model.domains, model.terms());
  EXPECT_EQ(minimum.total, 0);
  EXPECT_EQ(minimum.width, 1u);
  EXPECT_EQ(minimum.options, std::vector<uint16_t>(numLeaves + 1, 1));
}

} // namespace
