//===- ReshardPlanner.cpp - the cheapest way between two states -----------===//
//
// A route is a start (free slices, then reductions) and a finish (all_to_all and gathers, or one exchange). The starts
// differ in three things, each of which can only pay in the cases named:
//
//   early       an atom is blocked from its own place: it waits, or is split early in its own dim, or in another one
//   scatterAll  something is reduced that the target does not split: all_reduce, or reduce_scatter and a gather last
//   splitIdle     something is reduced while other ranks hold copies: they may share the work
//
// So most pairs of states compare two routes, and none more than 24. Where beginning a collective costs something, two
// more things can pay, which send more in fewer collectives:
//
//   reduceJointly  some of what is reduced is split by the target and some is not: one all_reduce, then slices
//   no all_to_all  one all_gather of all that is in the way, then slices
//
// And where some links are faster than others, an all_to_all over the slow ones may take along what is gathered over the fast ones
// afterwards: less goes over the slow ones than with the gather first, or by an exchange.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReshardPlanner.h"
#include "ReshardRoute.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cassert>
#include <numeric>

using namespace llvm;

namespace cleave::spmd {

StringRef toString(ReshardStepKind kind) {
  switch (kind) {
  case ReshardStepKind::Slice:
    return "slice";
  case ReshardStepKind::MakePartial:
    return "make_partial";
  case ReshardStepKind::Exchange:
    return program::getWord(program::CollectiveKind::Exchange);
#define CLEAVE_WORD(name, word, ...)                                                                                   \
  case ReshardStepKind::name:                                                                                          \
    return word;
    CLEAVE_COLLECTIVES(CLEAVE_WORD)
#undef CLEAVE_WORD
  }
  return "unknown";
}

unsigned ReshardPlan::numCollectives() const {
  return count_if(steps, [](const ReshardStep &step) {
    return step.kind != ReshardStepKind::Slice && step.kind != ReshardStepKind::MakePartial;
  });
}

void printPlan(raw_ostream &os, const AtomMesh &mesh, ArrayRef<std::string> axisNames, const ReshardPlan &plan) {
  interleaveComma(plan.steps, os, [&](const ReshardStep &step) {
    os << toString(step.kind) << ' ';
    printState(os, mesh, axisNames, step.after);
  });
}

//===----------------------------------------------------------------------===//
// Comparing routes
//===----------------------------------------------------------------------===//

namespace {
// Keeps the best of the routes it is shown; of equal ones the first.
class Cheapest {
public:
  void bound(Route &route) const {
    if (best)
      route.giveUpAbove(best->cost);
  }
  void take(const Route &route) {
    if (best && !(route.getRank() < rank))
      return;
    rank = route.getRank();
    best = route.getPlan();
  }

  std::optional<ReshardPlan> best;

private:
  RouteRank rank;
};

// Keeps the costs of those that are cheapest at some size.
class CheapestBySize {
public:
  void bound(Route &route) const { route.giveUpBeside(costs); }
  void take(const Route &route) {
    SizedCost added = route.getSizedCost();
    isCounted &= added.varying < kImpossibleCost && added.fixed < kImpossibleCost;
    erase_if(costs, [&](const SizedCost &one) { return added.isAtMost(one); });
    costs.push_back(added);
  }

  SmallVector<SizedCost, 2> costs;
  bool isCounted = true;
};
} // namespace

/// Shows `comparison` all finishes of `how`. Returns true if an atom had to wait, so that other starts may be better.
template <typename Comparison>
static bool tryStart(const ReshardProblem &problem, Comparison &comparison, const RouteStart &how) {
  Route route(problem);
  comparison.bound(route);
  bool waited = route.start(how);
  auto offer = [&](auto finish) {
    Route finished = route;
    comparison.bound(finished);
    finish(finished);
    if (finished.isLegal())
      comparison.take(finished);
  };
  offer([](Route &one) { one.finishByGather(UseAllToAll::ForOwn); });
  // However it is finished, what is left is to make terms: the other ways are this one.
  if (route.isInPlace())
    return waited;
  // Where an all_to_all has nothing to do these are the same.
  if (route.hasStrays() && problem.costs.hasLatency())
    offer([](Route &one) { one.finishByGather(UseAllToAll::No); });
  if (route.hasStrays() && problem.costs.hasSeveralLinks())
    offer([](Route &one) { one.finishByGather(UseAllToAll::ForMore); });
  // The last one needs no copy.
  comparison.bound(route);
  route.finishByExchange();
  if (route.isLegal())
    comparison.take(route);
  return waited;
}

std::optional<ReshardPlan> ReshardPlanner::plan(ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                                                const State &to, bool wantsSteps) const {
  assert(from.rank() == shape.size() && to.rank() == shape.size() && "a state has one entry per dim");
  assert(all_of(shape, [](int64_t extent) { return extent >= 0; }) && "a negative extent");
  if (from == to)
    return ReshardPlan();
  Cheapest comparison;
  tryRoutes(ReshardProblem(mesh, shape, elementBytes, from, to, options.costs, wantsSteps), comparison);
  return std::move(comparison.best);
}

std::optional<SmallVector<SizedCost, 2>> ReshardPlanner::listCosts(ArrayRef<int64_t> shape, int64_t elementBytes,
                                                                   const State &from, const State &to) const {
  assert(!isUneven(mesh, shape, from) && !isUneven(mesh, shape, to) && "padding does not grow with a tensor");
  CheapestBySize comparison;
  tryRoutes(ReshardProblem(mesh, shape, elementBytes, from, to, options.costs, /*wantsSteps=*/false), comparison);
  if (!comparison.isCounted || comparison.costs.empty())
    return std::nullopt;
  return std::move(comparison.costs);
}

template <typename Comparison>
void ReshardPlanner::tryRoutes(const ReshardProblem &problem, Comparison &comparison) const {
  const State &from = problem.from;
  bool reduces = false, reducesToReplicated = false, reducesToSplit = false, hasIdle = false;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom) {
    bool reduced = from.isPartialOver(atom) && !problem.keepsPartial(atom), splits = problem.targetDim[atom] >= 0;
    reduces |= reduced;
    reducesToReplicated |= reduced && !splits;
    reducesToSplit |= reduced && splits;
    hasIdle |= problem.beginsIdle(atom) && !splits;
  }
  for (bool splitIdle : {false, true})
    for (bool scatterAll : {false, true}) {
      if ((splitIdle && !(options.useIdleAtoms && reduces && hasIdle)) || (scatterAll && !reducesToReplicated))
        continue;
      if (tryStart(problem, comparison, {EarlyPlace::Never, scatterAll, splitIdle})) {
        tryStart(problem, comparison, {EarlyPlace::OwnDim, scatterAll, splitIdle});
        tryStart(problem, comparison, {EarlyPlace::OtherDim, scatterAll, splitIdle});
      }
    }
  if (options.costs.hasLatency() && reducesToReplicated && reducesToSplit)
    tryStart(problem, comparison,
             {EarlyPlace::Never, /*scatterAll=*/false, /*splitIdle=*/false, /*reduceJointly=*/true});
}

} // namespace cleave::spmd
