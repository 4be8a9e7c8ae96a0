//===- Search.cpp - the schedule `auto` -----------------------------------===//
//
// Every placement is looked at for a tenth of the effort; the best of them gets the rest. A placement whose bound is no
// better than what another has reached is left out, and the search ends where the least bound is reached.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Search.h"
#include "Searcher.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <memory>

using namespace cleave;
using namespace cleave::schedule;

llvm::StringRef cleave::schedule::getWord(Effort effort) { return kEffortWords[static_cast<size_t>(effort)]; }

std::optional<Effort> cleave::schedule::parseEffort(llvm::StringRef word) {
  const auto *found = llvm::find(kEffortWords, word);
  if (found == std::end(kEffortWords))
    return std::nullopt;
  return static_cast<Effort>(found - std::begin(kEffortWords));
}

std::vector<Schedule> cleave::schedule::getPlacements(int32_t ranks, int32_t microbatches,
                                                      std::optional<Placement> placement, int32_t chunks) {
  // What does best is first: ties keep it, and what cannot be better than it is not looked at. More chunks make smaller
  // bubbles and more messages; beyond four, searching longer with fewer has found more.
  static constexpr std::pair<Placement, int32_t> shapes[] = {{Placement::V, 2},    {Placement::Linear, 1},
                                                             {Placement::Wave, 4}, {Placement::Loop, 2},
                                                             {Placement::Loop, 3}, {Placement::Loop, 4}};
  std::vector<Schedule> schedules;
  auto add = [&](Placement kind, int32_t count) {
    schedules.push_back(makeSchedule("auto", placeStages(kind, ranks, count), ranks, microbatches));
  };
  for (auto [kind, count] : shapes)
    if ((!placement || *placement == kind) && (chunks == 0 || chunks == count))
      add(kind, count);
  // Numbers of chunks that are not among those.
  if (schedules.empty())
    for (Placement kind : {Placement::Wave, Placement::Loop})
      if ((!placement || *placement == kind) && mayHaveChunks(kind, chunks))
        add(kind, chunks);
  return schedules;
}

namespace {
/// Actions that are placed in list scheduling, and in local search; states of branch and bound.
struct Budget {
  int64_t climb, improve, states;
};
} // namespace

/// Calibrated on pipelines of 8 to 32 ranks: about 40 ns per action that list scheduling places, as much for one that is
/// evaluated in local search, a microsecond for a state of branch and bound.
static Budget getBudget(Effort effort) {
  static constexpr Budget budgets[] = {
      {12000000, 12000000, 60000}, {120000000, 120000000, 400000}, {750000000, 750000000, 1000000}};
  return budgets[static_cast<size_t>(effort)];
}

/// What the fullest rank holds while a single microbatch goes through all stages and back.
static double getLeastMemory(const SearchCandidate &candidate) {
  llvm::ArrayRef<int32_t> placement = candidate.schedule.replicas[0].placement;
  std::vector<double> held(candidate.schedule.numRanks, 0);
  double peak = 0;
  auto add = [&](size_t stage, double memory) { peak = std::max(peak, held[placement[stage]] += memory); };
  // Without gradients nothing is kept.
  if (candidate.schedule.isForwardOnly)
    return *llvm::max_element(candidate.costs.memoryForward);
  for (size_t stage = 0; stage < placement.size(); ++stage)
    add(stage, candidate.costs.memoryForward[stage]);
  for (size_t stage = placement.size(); stage-- > 0;) {
    add(stage, candidate.costs.memoryInputGrad[stage]);
    add(stage, candidate.costs.memoryWeightGrad[stage]);
  }
  return peak;
}

/// The least memory per rank with which one microbatch after the other goes through.
static llvm::Error explainMemory(llvm::ArrayRef<SearchCandidate> candidates) {
  double least = std::numeric_limits<double>::infinity();
  for (const SearchCandidate &candidate : candidates)
    least = std::min(least, getLeastMemory(candidate));
  return makeError("no schedule stays under the memory limit: one microbatch alone takes {0} on a rank", least);
}

using Searchers = std::vector<std::unique_ptr<Searcher>>;

/// A look at every placement that may be the best; the one that is, or none if no schedule fits into memory.
static Searcher *findBest(const Searchers &searchers, double least, const Budget &budget) {
  Searcher *best = nullptr;
  for (const std::unique_ptr<Searcher> &searcher : searchers) {
    if (best && (best->getSpan() <= least * (1 + 1e-12) || searcher->bound.span >= best->getSpan()))
      continue;
    searcher->tryNamed();
    if (searchers.size() > 1)
      searcher->climb(budget.climb / 10);
    if (searcher->hasAnswer() && (!best || searcher->getSpan() < best->getSpan()))
      best = searcher.get();
  }
  return best;
}

/// Spends the rest. True if nothing better than the best, which may change, is possible in any placement.
static bool improve(const Searchers &searchers, Searcher *&best, double least, const Budget &budget) {
  if (best->getSpan() <= least * (1 + 1e-12))
    return true;
  // Few ranks: a proof is quicker than a search.
  bool isProved = true;
  for (const std::unique_ptr<Searcher> &searcher : searchers) {
    isProved &= searcher->prove(best->getSpan(), budget.states);
    if (searcher->hasAnswer() && searcher->getSpan() < best->getSpan())
      best = searcher.get();
  }
  if (isProved)
    return true;
  // Local search from a named schedule or the first list may end elsewhere than from what climbing finds.
  best->improve(budget.improve / 2);
  best->climb(searchers.size() > 1 ? budget.climb / 2 : budget.climb);
  best->improve(budget.improve / 2);
  return false;
}

llvm::Expected<SearchResult> cleave::schedule::search(llvm::ArrayRef<SearchCandidate> candidates,
                                                      const SearchOptions &options) {
  if (candidates.empty())
    return makeError("no placement has this number of chunks: linear has 1, v 2, wave an even number, loop any");
  Budget budget = getBudget(options.effort);
  Searchers searchers;
  LowerBound least;
  least.span = least.makespan = std::numeric_limits<double>::infinity();
  for (const SearchCandidate &candidate : candidates) {
    assert(candidate.schedule.replicas.size() == 1 && "a candidate has one replica");
    searchers.push_back(std::make_unique<Searcher>(candidate, options.seed));
    const LowerBound &bound = searchers.back()->bound;
    if (bound.span < least.span) {
      least.span = bound.span;
      least.why = bound.why;
    }
    least.makespan = std::min(least.makespan, bound.makespan);
  }
  Searcher *best = findBest(searchers, least.span, budget);
  if (!best)
    return explainMemory(candidates);
  bool isProved = improve(searchers, best, least.span, budget);
  // Times by the one simulator that all tables share, not by the search's own.
  SearchResult result;
  result.bound = least;
  for (auto [index, searcher] : llvm::enumerate(searchers)) {
    result.tables += searcher->tables;
    result.moves += searcher->moves;
    if (searcher.get() == best)
      result.candidate = index;
  }
  result.schedule = best->getSchedule();
  llvm::Expected<Simulation> simulation = simulate(result.schedule, best->candidate.costs);
  if (!simulation)
    return simulation.takeError();
  result.span = simulation->span;
  result.isOptimal = isProved || result.span <= least.span * (1 + 1e-9);
  return result;
}
