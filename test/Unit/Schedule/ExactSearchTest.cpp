// Branch and bound against all orders, where these can be listed, and list scheduling with local search against both.
#include "ExactSearch.h"
#include "RandomCandidates.h"
#include "Searcher.h"
#include "gtest/gtest.h"
#include <limits>

using namespace cleave::schedule;

namespace {
/// Every order of every rank, one after the other: no cleverness.
class AllOrders {
public:
  explicit AllOrders(const SearchProblem &problem) : problem(problem), evaluator(problem), orders(problem.ranks) {}
  Ticks getLeastSpan() {
    visit(0);
    return least;
  }

private:
  /// Steps of a rank in any order that keeps F before I before W, microbatches in turn.
  void visit(int32_t rank) {
    if (rank == problem.ranks) {
      Evaluation evaluation;
      if (evaluator.run(orders, evaluation))
        least = std::min(least, evaluation.span);
      return;
    }
    std::vector<std::array<int32_t, 3>> counts(problem.stages, {0, 0, 0});
    extend(rank, counts, 0);
  }

  void extend(int32_t rank, std::vector<std::array<int32_t, 3>> &counts, double held) {
    if (orders[rank].size() == size_t(3) * problem.microbatches * problem.stagesOf[rank].size())
      return visit(rank + 1);
    for (int32_t stage : problem.stagesOf[rank])
      for (StepKind kind : {kForward, kInputGrad, kWeightGrad}) {
        int32_t &count = counts[stage][kind];
        if (count == (kind == kForward ? problem.microbatches : counts[stage][kind - 1]))
          continue;
        Step step = problem.makeStep(kind, stage, count);
        if (!problem.fits(rank, held, step))
          continue;
        ++count;
        orders[rank].push_back(step);
        extend(rank, counts, held + problem.getMemory(step));
        orders[rank].pop_back();
        --count;
      }
  }

  const SearchProblem &problem;
  Evaluator evaluator;
  Orders orders;
  Ticks least = std::numeric_limits<Ticks>::max();
};
} // namespace

static Ticks getExactSpan(const SearchProblem &problem, bool &isComplete) {
  ExactAnswer answer = searchExactly(problem, std::numeric_limits<Ticks>::max(), 1000000);
  isComplete = answer.isComplete;
  Evaluation evaluation;
  EXPECT_TRUE(!answer.orders.empty() && Evaluator(problem).run(answer.orders, evaluation));
  return evaluation.span;
}

TEST(ExactSearchTest, FindsTheLeastOfAllOrders) {
  struct {
    Placement placement;
    int32_t ranks, chunks, microbatches;
  } shapes[] = {{Placement::Linear, 2, 1, 2}, {Placement::Linear, 3, 1, 2}, {Placement::Linear, 2, 1, 3},
                {Placement::V, 1, 2, 2},      {Placement::V, 2, 2, 1},      {Placement::Loop, 2, 2, 1}};
  std::mt19937 random(11);
  for (const auto &shape : shapes)
    for (int32_t round = 0; round < 12; ++round) {
      SearchCandidate candidate = makeRandomCandidate(random, shape.placement, shape.ranks, shape.chunks,
                                                      shape.microbatches, 0.25 * (round % 5));
      SearchProblem problem(candidate);
      ASSERT_TRUE(isSmall(problem));
      Ticks least = AllOrders(problem).getLeastSpan();
      bool isComplete = false;
      EXPECT_EQ(getExactSpan(problem, isComplete), least) << "round " << round;
      EXPECT_TRUE(isComplete);
      EXPECT_LE(computeLowerBound(candidate.schedule, candidate.costs).span, problem.toUnits(least) * (1 + 1e-12));
    }
}

/// Up to three ranks and microbatches: what the search finds without proof is never below what is proved, most often
/// equal, and no more than 15 % above; no bound is above it.
TEST(ExactSearchTest, AgreesWithSearchAndBound) {
  std::mt19937 random(5);
  int32_t proved = 0, equal = 0;
  for (int32_t round = 0; round < 60; ++round) {
    bool isV = round % 3 == 0;
    auto ranks = static_cast<int32_t>(2 + random() % (isV ? 1 : 2)),
         microbatches = static_cast<int32_t>(2 + random() % 2);
    SearchCandidate candidate = makeRandomCandidate(random, isV ? Placement::V : Placement::Linear, ranks, isV ? 2 : 1,
                                                    microbatches, 0.2 * (round % 6));
    SearchProblem problem(candidate);
    bool isComplete = false;
    double exact = problem.toUnits(getExactSpan(problem, isComplete));
    Searcher searcher(candidate, 1);
    searcher.tryNamed();
    searcher.climb(1000000);
    searcher.improve(500000);
    ASSERT_TRUE(searcher.hasAnswer());
    EXPECT_LE(searcher.bound.span, searcher.getSpan() * (1 + 1e-12));
    if (!isComplete)
      continue;
    ++proved;
    EXPECT_LE(searcher.bound.span, exact * (1 + 1e-12)) << searcher.bound.why;
    EXPECT_GE(searcher.getSpan(), exact * (1 - 1e-12));
    EXPECT_LE(searcher.getSpan(), exact * 1.15) << "round " << round;
    equal += searcher.getSpan() <= exact * (1 + 1e-12);
  }
  EXPECT_EQ(proved, 60);
  EXPECT_GE(equal, 50);
}

/// Unit costs, four ranks, four microbatches: 15 with four activations (published for ZB-1p), and 12 is the work.
TEST(ExactSearchTest, ProvesFourRanks) {
  SearchCandidate candidate{makeSchedule("auto", placeStages(Placement::Linear, 4, 1), 4, 4), Costs::uniform(4, 1)};
  candidate.costs.memoryLimit.assign(4, 4);
  SearchProblem problem(candidate);
  bool isComplete = false;
  Ticks span = getExactSpan(problem, isComplete);
  EXPECT_TRUE(isComplete);
  EXPECT_NEAR(problem.toUnits(span), 15, 1e-9);
}
