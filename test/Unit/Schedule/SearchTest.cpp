// The search: published cells at their memory, the same answer twice, limits of memory and costs per stage.
#include "RandomCandidates.h"
#include "Simulated.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Messages.h"

using namespace cleave::schedule;

namespace {
struct Cell {
  int32_t ranks, microbatches;
  double forward, inputGrad, weightGrad, latency, activations;
  std::optional<Placement> placement;
  /// The bubble of Qi et al. 2024 with this memory.
  double published;
};
} // namespace

static SearchOptions quick() {
  SearchOptions options;
  options.effort = Effort::Quick;
  return options;
}

static SearchResult findCell(const Cell &cell, double &rate) {
  std::vector<SearchCandidate> candidates;
  for (Schedule &schedule : getPlacements(cell.ranks, cell.microbatches, cell.placement, 0)) {
    int32_t stages = schedule.numStages, chunks = stages / cell.ranks;
    Costs costs = Costs::uniform(stages, chunks, cell.forward, cell.inputGrad, cell.weightGrad);
    costs.memoryForward.assign(stages, 66.0 / chunks);
    costs.memoryInputGrad.assign(stages, -34.0 / chunks);
    costs.memoryWeightGrad.assign(stages, -32.0 / chunks);
    costs.memoryLimit.assign(cell.ranks, 66 * cell.activations);
    for (Channel &channel : schedule.channels)
      channel.latency = cell.latency;
    candidates.push_back({std::move(schedule), std::move(costs)});
  }
  SearchResult result = llvm::cantFail(search(candidates, quick()));
  // By the one simulator and the one check, not by the search's own: time and memory.
  const Costs &costs = candidates[result.candidate].costs;
  EXPECT_NEAR(llvm::cantFail(simulate(result.schedule, costs)).span, result.span, 1e-6);
  EXPECT_GE(result.span, result.bound.span * (1 - 1e-9));
  llvm::cantFail(addMessages(result.schedule));
  for (const Violation &violation : check(result.schedule, costs).violations)
    ADD_FAILURE() << violation.constraint << ' ' << violation.message;
  rate = 1 - cell.microbatches * (cell.forward + cell.inputGrad + cell.weightGrad) / result.span;
  return result;
}

TEST(SearchTest, IsBelowPublishedBubblesAtEqualMemory) {
  const Cell cells[] = {
      {8, 24, 18.522, 18.086, 9.337, .601, 8, std::nullopt, .1585},
      {8, 64, 29.935, 29.621, 19.388, .535, 8, Placement::V, .0554},
      {16, 48, 11.347, 11.248, 8.132, .377, 31, std::nullopt, .0672},
      {32, 128, 10.408, 10.204, 7.703, .408, 64, std::nullopt, .0029},
  };
  for (const Cell &cell : cells) {
    double rate = 1;
    findCell(cell, rate);
    EXPECT_LT(rate, cell.published - 5e-5) << "p=" << cell.ranks << " m=" << cell.microbatches;
  }
}

TEST(SearchTest, ReachesPublishedBubblesWithOneStagePerRank) {
  const Cell cells[] = {
      {8, 24, 18.522, 18.086, 9.337, .601, 8, Placement::Linear, .1585},
      {8, 24, 18.522, 18.086, 9.337, .601, 16, Placement::Linear, .0433},
      {32, 96, 10.419, 10.207, 7.715, .408, 64, Placement::Linear, .0038},
  };
  for (const Cell &cell : cells) {
    double rate = 1;
    SearchResult result = findCell(cell, rate);
    EXPECT_LT(rate, cell.published + 5e-5) << "p=" << cell.ranks << " activations=" << cell.activations;
    if (cell.activations == 16) {
      EXPECT_TRUE(result.isOptimal);
      EXPECT_NEAR(result.span, result.bound.span, 1e-6);
    }
  }
}

TEST(SearchTest, AnswersTheSameTwice) {
  std::mt19937 random(17);
  SearchCandidate candidate = makeRandomCandidate(random, Placement::V, 3, 2, 4, 0.5);
  SearchResult first = llvm::cantFail(search(candidate, quick())), second = llvm::cantFail(search(candidate, quick()));
  EXPECT_EQ(first.schedule.programs, second.schedule.programs);
  EXPECT_EQ(first.tables, second.tables);
  EXPECT_EQ(first.moves, second.moves);
}

TEST(SearchTest, SaysTheLeastMemoryThatWouldDo) {
  SearchCandidate candidate{makeSchedule("auto", placeStages(Placement::V, 2, 2), 2, 4), Costs::uniform(4, 2)};
  candidate.costs.memoryLimit.assign(2, 0.75);
  llvm::Expected<SearchResult> result = search(candidate, quick());
  ASSERT_FALSE(!!result);
  EXPECT_EQ(llvm::toString(result.takeError()),
            "no schedule stays under the memory limit: one microbatch alone takes 1.00 on a rank");
  candidate.costs.memoryLimit.assign(2, 1);
  EXPECT_TRUE(!!search(candidate, quick()));
  // Gradients of inputs take a quarter each, before W gives everything back.
  candidate.costs.memoryInputGrad.assign(4, 0.25);
  candidate.costs.memoryWeightGrad.assign(4, -0.75);
  result = search(candidate, quick());
  ASSERT_FALSE(!!result);
  EXPECT_EQ(llvm::toString(result.takeError()),
            "no schedule stays under the memory limit: one microbatch alone takes 1.25 on a rank");
  candidate.costs.memoryLimit.assign(2, 1.25);
  EXPECT_TRUE(!!search(candidate, quick()));
}

TEST(SearchTest, SaysWhichPlacementsThereAre) {
  EXPECT_EQ(getPlacements(4, 8, std::nullopt, 0).size(), 6u);
  EXPECT_EQ(getPlacements(4, 8, Placement::Wave, 6).size(), 1u);
  EXPECT_EQ(getPlacements(4, 8, std::nullopt, 6).size(), 2u);
  EXPECT_EQ(getPlacements(4, 8, Placement::Linear, 2).size(), 0u);
  llvm::Expected<SearchResult> result = search({}, {});
  ASSERT_FALSE(!!result);
  EXPECT_EQ(llvm::toString(result.takeError()),
            "no placement has this number of chunks: linear has 1, v 2, wave an even number, loop any");
}

/// A stage of twice the time: at best nobody else is in its way.
TEST(SearchTest, PutsASlowStageFirst) {
  SearchCandidate candidate{makeSchedule("auto", placeStages(Placement::Linear, 4, 1), 4, 8), Costs::uniform(4, 1)};
  candidate.costs.forward[2] = candidate.costs.inputGrad[2] = candidate.costs.weightGrad[2] = 2;
  SearchResult result = llvm::cantFail(search(candidate, quick()));
  EXPECT_TRUE(result.isOptimal);
  EXPECT_NEAR(result.span, 48, 1e-9);
}

TEST(SearchTest, SaysTheLeastMemoryOfInference) {
  SearchCandidate candidate{makeSchedule("auto", placeStages(Placement::V, 2, 2), 2, 4), Costs::uniform(4, 2)};
  candidate.schedule.isForwardOnly = true;
  candidate.costs.memoryLimit.assign(2, 0.25);
  llvm::Expected<SearchResult> result = search(candidate, quick());
  ASSERT_FALSE(!!result);
  EXPECT_EQ(llvm::toString(result.takeError()),
            "no schedule stays under the memory limit: one microbatch alone takes 0.50 on a rank");
}

/// Inference: the pipeline fills once.
TEST(SearchTest, FindsInference) {
  SearchCandidate candidate{makeSchedule("auto", placeStages(Placement::Linear, 4, 1), 4, 8), Costs::uniform(4, 1)};
  candidate.schedule.isForwardOnly = true;
  // Nothing is kept: memory for one F at a time is enough, and less is not.
  candidate.costs.memoryLimit.assign(4, 1);
  SearchResult result = llvm::cantFail(search(candidate, quick()));
  EXPECT_TRUE(check(result.schedule, candidate.costs).violations.empty());
  EXPECT_NEAR(result.span, 8, 1e-9);
  EXPECT_NEAR(llvm::cantFail(simulate(result.schedule, candidate.costs)).makespan, 11, 1e-9);
  EXPECT_TRUE(result.isOptimal);
}
