//===- MessagesTest.cpp - a bound on all decisions ------------------------===//
//
// Random sums of small tables, all of whose combinations are tried.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Messages.h"
#include "SumLeast.h"
#include <deque>
#include <gtest/gtest.h>
#include <random>

using namespace cleave::spmd;

namespace {

/// A graph that owns what it is made of.
struct RandomGraph {
  /// Of a tree each variable has an edge to one before it.
  RandomGraph(uint32_t seed, bool isTree) : random(seed) {
    unsigned count = 1 + random() % 5;
    for (unsigned variable = 0; variable < count; ++variable) {
      JointDomain &domain = domains.emplace_back();
      for (unsigned options = 1 + random() % 4; options > 0; --options)
        domain.costs.push_back(draw());
      if (random() % 3 == 0)
        for (size_t option = 0; option < domain.costs.size(); ++option)
          domain.storedBytes.push_back(random() % 1000);
      graph.variables.push_back(&domain);
      for (unsigned other = 0; other < variable; ++other)
        if (isTree ? other == variable / 2 : random() % 2 == 0)
          random() % 2 ? addEdge(other, variable) : addEdge(variable, other);
    }
  }
  int64_t draw() { return int64_t(random() % 2000) * 1'000'000 - (random() % 4 == 0 ? 500'000'000 : 0); }

  /// Several options may have the same row.
  const std::vector<uint16_t> &drawLabels(size_t options, uint32_t &count) {
    std::vector<uint16_t> &made = labels.emplace_back();
    count = 1 + random() % options;
    for (size_t option = 0; option < options; ++option)
      made.push_back(option < count ? option : random() % count);
    return made;
  }
  void addEdge(uint32_t from, uint32_t to) {
    JointTable &table = tables.emplace_back();
    const auto &rows = drawLabels(domains[from].size(), table.rows);
    const auto &columns = drawLabels(domains[to].size(), table.columns);
    // Some of its cells are forbidden, not all.
    for (uint32_t cell = 0; cell < table.rows * table.columns; ++cell)
      table.cells.push_back(cell > 0 && random() % 8 == 0 ? kForbiddenCell : draw());
    graph.edges.push_back({from, to, &table, &rows, &columns});
  }
  __int128 findLeast(MemoryPrice price) const {
    std::vector<uint16_t> options(domains.size(), 0);
    std::optional<__int128> least;
    while (true) {
      __int128 sum = 0;
      for (size_t variable = 0; variable < domains.size(); ++variable) {
        sum += domains[variable].costs[options[variable]];
        if (!domains[variable].storedBytes.empty())
          sum += price.of(domains[variable].storedBytes[options[variable]]);
      }
      for (const JointEdge &edge : graph.edges)
        sum += edge.getCell(options[edge.from], options[edge.to]);
      least = std::min(least.value_or(sum), sum);
      size_t place = 0;
      while (place < options.size() && ++options[place] == domains[place].size())
        options[place++] = 0;
      if (place == options.size())
        return *least;
    }
  }

  std::mt19937 random;
  std::deque<JointDomain> domains;
  std::deque<JointTable> tables;
  std::deque<std::vector<uint16_t>> labels;
  JointGraph graph;
};

// Whatever moves, least cells add up to no more than the least sum.
TEST(MessagesTest, AnyMessagesGiveABound) {
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    RandomGraph random(seed, /*isTree=*/false);
    MemoryPrice price{int64_t(random.random() % 1000) << 50};
    Messages messages;
    for (const JointEdge &edge : random.graph.edges) {
      EdgeMessage &message = messages.emplace_back();
      for (uint32_t row = 0; row < edge.table->rows; ++row)
        message.toRows.push_back(random.draw());
      for (uint32_t column = 0; column < edge.table->columns; ++column)
        message.toColumns.push_back(random.draw());
    }
    ASSERT_LE(sumLeast(random.graph, price, messages), random.findLeast(price)) << seed;
  }
}

// What is said to be the bound is what the messages prove. Of trees it is the least sum, but for what is rounded down.
TEST(MessagesTest, PassesProveWhatTheySay) {
  constexpr int64_t kRounding = 1000;
  for (bool isTree : {false, true})
    for (uint32_t seed = 0; seed < 10'000; ++seed) {
      RandomGraph random(seed, isTree);
      MemoryPrice price{seed % 2 ? 0 : int64_t(random.random() % 1000) << 50};
      PassedMessages passed = passMessages(random.graph, price);
      __int128 least = random.findLeast(price);
      ASSERT_EQ(sumLeast(random.graph, price, passed.messages), passed.bound) << seed;
      ASSERT_LE(passed.bound, least) << seed;
      // Where nothing is possible the bound says so, too.
      if (isTree && least < kForbiddenCell)
        ASSERT_GE(passed.bound + kRounding, least) << seed;
    }
}

// No pass makes the bound lower, but for what is rounded down; the next begins where the last one ended.
TEST(MessagesTest, PassesGoOn) {
  for (uint32_t seed = 0; seed < 2'000; ++seed) {
    RandomGraph random(seed, /*isTree=*/false);
    PassOptions few;
    few.mostPasses = 2;
    PassedMessages before = passMessages(random.graph, {}, few);
    for (int round = 0; round < 10; ++round) {
      PassedMessages next = passMessages(random.graph, {}, few, &before.unfinished);
      ASSERT_GE(next.bound + 1000, before.bound) << seed;
      before = std::move(next);
    }
    ASSERT_LE(before.bound, random.findLeast({})) << seed;
  }
}

// Cells that say less than they cost are found out where they matter: then the bound is that of all.
TEST(MessagesTest, CellsAreFoundOutWhereTheyMatter) {
  size_t refined = 0, all = 0;
  for (uint32_t seed = 0; seed < 2'000; ++seed) {
    RandomGraph random(seed, /*isTree=*/true);
    __int128 least = random.findLeast({});
    for (JointTable &table : random.tables) {
      table.costOf = [&table, cells = table.cells](uint32_t row, uint32_t column) {
        return cells[size_t(row) * table.columns + column];
      };
      table.exact.assign(table.cells.size(), false);
      for (int64_t &cell : table.cells)
        cell -= std::max<int64_t>(cell / 8, 0);
      all += table.cells.size();
    }
    PassedMessages passed;
    for (size_t count = 1; count > 0; refined += count) {
      passed = passMessages(random.graph, {});
      ASSERT_LE(passed.bound, least) << seed;
      count = refineLeast(random.graph, passed.messages, 0);
    }
    if (least < kForbiddenCell)
      ASSERT_GE(passed.bound + 1000, least) << seed;
  }
  // Of tables this small many cells matter.
  EXPECT_LT(refined, all * 2 / 3);
}

// An answer that is known ends them.
TEST(MessagesTest, PassesEndWhereNothingIsToBeGained) {
  RandomGraph random(7, /*isTree=*/true);
  PassOptions options;
  options.reach = static_cast<int64_t>(random.findLeast({}));
  EXPECT_EQ(passMessages(random.graph, {}, options).passes, 2u);
  EXPECT_LE(passMessages(random.graph, {}).passes, PassOptions().mostPasses);
}

} // namespace
