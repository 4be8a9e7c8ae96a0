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
  offer([](Route &one) { one.finishByExchange(); });
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
  assert(elementBytes % mesh.numRanks() == 0 && "pieces of bytes are rounded");
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

//===----------------------------------------------------------------------===//
// ReshardCosts
//===----------------------------------------------------------------------===//

/// The number of an equal one that came before, or the next.
ShapeId ReshardCosts::addShape(ArrayRef<int64_t> shape, int64_t elementBytes) {
  SmallVector<int64_t, 8> words(shape);
  words.push_back(elementBytes);
  ShapeId id = shapeIndex.find(hashWords<int64_t>(words), [&](ShapeId other) {
    return shapes[other].elementBytes == elementBytes && ArrayRef<int64_t>(shapes[other].extents) == shape;
  });
  if (id == shapes.size())
    shapes.push_back({SmallVector<int64_t, 4>(shape), elementBytes});
  return id;
}

/// Elements of a core have as many bytes as there are ranks, so that its all_reduces send whole bytes, too.
void ReshardCosts::findCore(ShapeId id) {
  int64_t ranks = planner.getMesh().numRanks();
  SmallVector<int64_t, 4> extents;
  __int128 times = shapes[id].elementBytes, bytes = ranks;
  for (int64_t extent : shapes[id].extents) {
    extents.push_back(std::gcd(extent, ranks));
    times *= extent / extents.back();
    bytes *= extents.back();
  }
  if (bytes >= kImpossibleCost || times >= kImpossibleCost)
    return;
  shapes[id].core = addShape(extents, ranks); // Of a deque, so that shapes stay where they are.
  shapes[id].scale = static_cast<int64_t>(times);
}

ShapeId ReshardCosts::internShape(ArrayRef<int64_t> shape, int64_t elementBytes) {
  size_t known = shapes.size();
  ShapeId id = addShape(shape, elementBytes);
  if (shapes.size() > known)
    findCore(id);
  return id;
}

/// Most states are between others of their core whose routes are known: these are counted once for all sizes.
ReshardCosts::CoreRoutes ReshardCosts::routesOf(ShapeId core, StateId from, StateId to) {
  auto [entry, isNew] = ofCores.try_emplace({core, uint64_t(from) << 32 | to});
  auto divides = [&](StateId state) { return !isUneven(planner.getMesh(), shapes[core].extents, states[state]); };
  if (!isNew || !divides(from) || !divides(to))
    return entry->second;
  ++numPlanned;
  if (auto found = planner.listCosts(shapes[core].extents, shapes[core].elementBytes, states[from], states[to])) {
    entry->second = {static_cast<uint32_t>(routes.size()), static_cast<uint32_t>(found->size())};
    append_range(routes, *found);
  }
  return entry->second;
}

/// A search asks for far more costs than it has shapes and states: each of these is looked for once, and a cost by numbers alone.
int64_t ReshardCosts::costOfPlanned(ShapeId shape, StateId from, StateId to) {
  constexpr uint32_t kUnknown = ~uint32_t(0);
  auto known = [&](std::vector<uint32_t> &numbers, uint32_t own, auto find) {
    if (own >= numbers.size())
      numbers.resize(own + 1, kUnknown);
    if (numbers[own] == kUnknown)
      numbers[own] = find();
    return numbers[own];
  };
  auto stateOf = [&](StateId id) { return known(shared.states, id, [&] { return planned->internState(states[id]); }); };
  ShapeId theirs = known(shared.shapes, shape,
                         [&] { return planned->internShape(shapes[shape].extents, shapes[shape].elementBytes); });
  return planned->cost(theirs, stateOf(from), stateOf(to));
}

int64_t ReshardCosts::cost(ShapeId id, StateId from, StateId to) {
  if (from == to)
    return 0;
  if (planned)
    return costOfPlanned(id, from, to);
  const Shape &shape = shapes[id];
  if (shape.core != kNoCore)
    if (auto [first, count] = routesOf(shape.core, from, to); count > 0) {
      if (shape.scale == 0) // Nothing moves of a tensor without elements.
        return 0;
      // An all_reduce alone rounds up, and there is one at most: rounding the sum is the same.
      int64_t ranks = planner.getMesh().numRanks(), least = kMostCost;
      for (const SizedCost &route : ArrayRef(routes).slice(first, count))
        least = std::min(least,
                         clampCost((__int128(route.varying) * shape.scale + ranks - 1) / ranks + route.fixed));
      return least;
    }
  auto [entry, isNew] = ofShapes.try_emplace({id, uint64_t(from) << 32 | to}, kImpossibleCost);
  if (!isNew)
    return entry->second;
  ++numPlanned;
  if (std::optional<ReshardPlan> found = plan(id, from, to, /*wantsSteps=*/false))
    entry->second = std::min(found->cost, kMostCost);
  return entry->second;
}

std::optional<ReshardPlan> ReshardCosts::plan(ShapeId shape, StateId from, StateId to, bool wantsSteps) const {
  return planner.plan(shapes[shape].extents, shapes[shape].elementBytes, states[from], states[to], wantsSteps);
}

//===----------------------------------------------------------------------===//
// PlannedCosts
//===----------------------------------------------------------------------===//

bool PlannedCosts::isOf(const AtomMesh &mesh, const CostModel &model) const {
  return areSame(planner.getMesh(), mesh) && areSame(planner.getCosts(), model);
}

bool areSame(const AtomMesh &lhs, const AtomMesh &rhs) {
  if (lhs.numAxes() != rhs.numAxes() || lhs.numAtoms() != rhs.numAtoms())
    return false;
  return all_of(seq<unsigned>(0, lhs.numAtoms()),
                [&](AtomId atom) { return lhs.size(atom) == rhs.size(atom) && lhs.axisOf(atom) == rhs.axisOf(atom); });
}

bool areSame(const CostModel &lhs, const CostModel &rhs) {
  auto areNear = [](ArrayRef<NearLink> one, ArrayRef<NearLink> other) {
    return equal(one, other,
                 [](const NearLink &a, const NearLink &b) { return a.block == b.block && a.link == b.link; });
  };
  auto key = [](const CostModel &model) {
    return std::tuple(model.perCollective, model.perNs, model.perMemoryByte, model.perCacheByte, model.cacheBytes,
                      model.perLaunch, model.flopShares, model.perFlop, model.perRepeatedFlop, model.repetitionSlack,
                      model.perExtraWrite, model.perMovedByte, model.perReshard, model.perMadePartial,
                      model.perKeptPartial, model.fallbackSurcharge, model.tornSurcharge, model.parameterSurcharge);
  };
  return key(lhs) == key(rhs) && lhs.anyLink == rhs.anyLink && lhs.links == rhs.links &&
         equal(lhs.nearLinks, rhs.nearLinks, areNear);
}

} // namespace cleave::spmd
