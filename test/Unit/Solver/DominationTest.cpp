//===- DominationTest.cpp - against trying everything ---------------------===//
#include "Domination.h"
#include "RandomSum.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

std::vector<uint16_t> zeros(const Model &model) { return std::vector<uint16_t>(model.domains.size(), 0); }

/// The least sum over options that are kept.
int64_t leastKept(const Model &model, const std::vector<KeptOptions> &kept) {
  std::vector<size_t> places(kept.size(), 0);
  std::vector<uint16_t> options(kept.size());
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t place = 0; place < kept.size();) {
    for (size_t i = 0; i < kept.size(); ++i)
      options[i] = kept[i][places[i]];
    least = std::min(least, model.sum(options));
    for (place = 0; place < kept.size() && ++places[place] == kept[place].size(); ++place)
      places[place] = 0;
  }
  return least;
}

TEST(DominationTest, KeepsAMinimum) {
  std::mt19937 random(6);
  size_t all = 0, left = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Model model = randomModel(random, 7, 4);
    std::vector<uint16_t> preferred;
    for (uint16_t domain : model.domains)
      preferred.push_back(random() % domain);
    std::vector<KeptOptions> kept = findUndominated(model.domains, model.terms(), preferred);
    for (size_t i = 0; i < kept.size(); ++i) {
      all += model.domains[i];
      left += kept[i].size();
      ASSERT_FALSE(kept[i].empty());
      EXPECT_TRUE(std::is_sorted(kept[i].begin() + (kept[i].front() == preferred[i]), kept[i].end()));
    }
    EXPECT_EQ(leastKept(model, kept), model.leastSum()) << "trial " << trial;
  }
  EXPECT_LT(left, all * 3 / 4);
}

// Option 0 costs 5, option 1 costs 4, and beside each option of the neighbor 0 costs at least 1 more.
TEST(DominationTest, DropsWhatIsDearerBesideEverything) {
  Model model;
  model.domains = {2, 3};
  model.add(0, kNoVariable, {5, 4});
  model.add(0, 1, {3, 2, 9, 0, 1, 7});
  std::vector<KeptOptions> kept = findUndominated(model.domains, model.terms(), zeros(model));
  EXPECT_EQ(kept[0], KeptOptions({1}));
  EXPECT_EQ(kept[1], KeptOptions({0})); // of 0, 1 and 7 the least, once the other row has gone
}

// Beside option 1 of the neighbor only the more expensive one is allowed.
TEST(DominationTest, KeepsWhatAloneIsAllowed) {
  Model model;
  model.domains = {2, 2};
  model.add(0, kNoVariable, {100, 0});
  model.add(0, 1, {0, 0, 0, kForbidden});
  model.add(1, kNoVariable, {50, 0});
  std::vector<KeptOptions> kept = findUndominated(model.domains, model.terms(), zeros(model));
  EXPECT_EQ(kept[0], KeptOptions({0, 1}));
}

// By the definition: whatever each neighbor does, table by table, none that is left costs less than another one that is left.
TEST(DominationTest, LeavesNothingThatIsBeaten) {
  std::mt19937 random(11);
  size_t compared = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Model model = randomModel(random, 6, 6);
    for (std::vector<int64_t> &table : model.tables)
      for (int64_t &cell : table)
        cell = std::min<int64_t>(cell, 60);
    std::vector<KeptOptions> kept = findUndominated(model.domains, model.terms(), zeros(model));
    auto leastSaved = [&](uint32_t variable, uint16_t option, uint16_t by) {
      int64_t sum = 0;
      for (size_t number = 0; number < model.scopes.size(); ++number) {
        uint32_t first = model.scopes[number].first, second = model.scopes[number].second;
        if (first != variable && second != variable)
          continue;
        bool isPair = second != kNoVariable;
        int64_t least = std::numeric_limits<int64_t>::max();
        for (uint16_t beside : isPair ? kept[first == variable ? second : first] : KeptOptions({0})) {
          auto cell = [&](uint16_t own) {
            uint16_t row = first == variable ? own : beside, column = first == variable ? beside : own;
            return model.tables[number][isPair ? size_t(row) * model.domains[second] + column : own];
          };
          least = std::min(least, cell(option) - cell(by));
        }
        sum += least;
      }
      return sum;
    };
    for (uint32_t variable = 0; variable < kept.size(); ++variable)
      for (uint16_t option : kept[variable])
        for (uint16_t by : kept[variable])
          if (option != by) {
            EXPECT_LE(leastSaved(variable, option, by), 0) << "trial " << trial;
            ++compared;
          }
  }
  EXPECT_GT(compared, 1000u);
}

TEST(DominationTest, KeepsThePreferredOfEqualOptions) {
  Model model;
  model.domains = {3};
  model.add(0, kNoVariable, {7, 7, 7});
  EXPECT_EQ(findUndominated(model.domains, model.terms(), {2})[0], KeptOptions({2}));
  EXPECT_EQ(findUndominated(model.domains, model.terms(), {0})[0], KeptOptions({0}));
}

// The same as with all options; nothing where it would need larger tables.
TEST(DominationTest, FindsTheMinimumOfWhatIsLeft) {
  std::mt19937 random(8);
  unsigned numLarge = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Model model = randomModel(random, 9, 4);
    std::optional<Minimum> found = minimizeUndominated(model.domains, model.terms(), kMostCells);
    ASSERT_TRUE(found) << "trial " << trial;
    EXPECT_EQ(found->total, model.leastSum()) << "trial " << trial;
    EXPECT_EQ(found->total, model.sum(found->options)) << "trial " << trial;
    std::optional<Minimum> small = minimizeUndominated(model.domains, model.terms(), /*maxCells=*/16);
    numLarge += !small;
    if (small)
      EXPECT_EQ(small->total, found->total) << "trial " << trial;
  }
  EXPECT_GT(numLarge, 20u);
}

// One table is between 0 and 1, and between 2 and 3, where 1 and 3 keep other options: what is left of it is not the same. 0 and 2 keep both
// of theirs, for they have to agree with 4 and 5.
TEST(DominationTest, SharedTablesAreCopiedByWhatIsKept) {
  Model model;
  model.domains = {2, 2, 2, 2, 2, 2};
  model.add(0, 4, {0, 10, 10, 0});
  model.add(2, 5, {0, 10, 10, 0});
  model.add(1, kNoVariable, {0, 100}); // keeps option 0
  model.add(3, kNoVariable, {100, 0}); // keeps option 1
  model.add(0, 1, {5, 0, 0, 7});
  std::vector<CostTerm> terms = model.terms();
  terms.push_back({2, 3, terms.back().cells});
  std::optional<Minimum> found = minimizeUndominated(model.domains, terms, kMostCells);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->total, 0);
  EXPECT_EQ(found->options, std::vector<uint16_t>({1, 0, 0, 1, 1, 0}));
}

// With room for small tables only: never worse than what froze, and mostly the minimum after all.
TEST(DominationTest, ImprovesWhatWasFrozen) {
  std::mt19937 random(7);
  unsigned numFrozen = 0, numMissed = 0, numStillMissed = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Model model = randomModel(random, 9, 4);
    Minimum known = minimize(model.domains, model.terms(), /*maxCells=*/16);
    if (known.frozen.empty())
      continue;
    Minimum better = improve(model.domains, model.terms(), known, /*maxCells=*/16);
    EXPECT_EQ(better.total, model.sum(better.options)) << "trial " << trial;
    EXPECT_LE(better.total, known.total) << "trial " << trial;
    int64_t least = model.leastSum();
    if (better.frozen.empty())
      EXPECT_EQ(better.total, least) << "trial " << trial;
    ++numFrozen;
    numMissed += known.total > least;
    numStillMissed += better.total > least;
  }
  EXPECT_GT(numFrozen, 100u);
  EXPECT_GT(numMissed, 50u);
  EXPECT_LT(numStillMissed, numMissed / 4);
}

} // namespace
