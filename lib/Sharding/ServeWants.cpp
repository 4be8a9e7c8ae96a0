//===- ServeWants.cpp - copies of one value for all its users -------------===//
//
// Taking the cheapest copy that is left, again and again, is best but for one thing: a dear copy (a gather) may make
// the others free (slices of it). So every want is also tried as the first one, and so is the whole value.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ServeWants.h"
#include "llvm/ADT/DenseSet.h"

#include <cassert>

using namespace cleave::spmd;

using Served = llvm::SmallVector<ServedWant, 2>;

/// Makes want number `first` before all others, if there is one of that number.
static Served serveInOrder(ReshardCosts &costs, ShapeId shape, StateId have, llvm::ArrayRef<StateId> wants,
                           size_t first) {
  Served served;
  llvm::SmallVector<StateId, 4> copies{have};
  llvm::SmallVector<bool, 4> done(wants.size(), false);
  while (served.size() < wants.size()) {
    std::optional<ServedWant> best;
    for (unsigned want = 0; want < wants.size(); ++want) {
      if (done[want] || (served.empty() && first < wants.size() && want != first))
        continue;
      for (unsigned source = 0; source < copies.size(); ++source)
        if (int64_t cost = costs.cost(shape, copies[source], wants[want]); !best || cost < best->cost)
          best = ServedWant{want, source, cost};
    }
    done[best->want] = true;
    copies.push_back(wants[best->want]);
    served.push_back(*best);
  }
  return served;
}

static int64_t totalCost(const Served &served) {
  int64_t total = 0;
  for (const ServedWant &step : served)
    total += step.cost;
  return total;
}

Served cleave::spmd::serveWants(ReshardCosts &costs, ShapeId shape, StateId have, llvm::ArrayRef<StateId> wants,
                                StateId replicated) {
  assert(!llvm::is_contained(wants, have) && "nothing to do for what is there");
  assert(llvm::SmallDenseSet<StateId>(wants.begin(), wants.end()).size() == wants.size() && "wants are distinct");
  Served best = serveInOrder(costs, shape, have, wants, wants.size());
  if (wants.size() < 2)
    return best;
  for (size_t first = 0; first < wants.size(); ++first)
    if (Served served = serveInOrder(costs, shape, have, wants, first); totalCost(served) < totalCost(best))
      best = std::move(served);
  if (replicated == have || llvm::is_contained(wants, replicated))
    return best;
  llvm::SmallVector<StateId, 4> withReplicated(wants);
  withReplicated.push_back(replicated);
  if (Served served = serveInOrder(costs, shape, have, withReplicated, wants.size());
      totalCost(served) < totalCost(best))
    best = std::move(served);
  return best;
}
