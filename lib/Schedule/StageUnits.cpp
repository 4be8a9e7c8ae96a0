//===- StageUnits.cpp - what may be split apart ---------------------------===//
//
// Kahn's algorithm, linear but for the heap of the given order: a unit is possible once all its producers stand.
//
//===----------------------------------------------------------------------===//
#include "StageUnits.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <queue>

using namespace cleave::schedule;

// Doubles among users would count a producer twice, and the unit would never be possible.
StageUnits cleave::schedule::makeUnits(const SplitProblem &problem, bool hasClusters) {
  StageUnits units;
  llvm::DenseMap<int32_t, uint32_t> unitOfCluster;
  for (auto [index, op] : llvm::enumerate(problem.ops)) {
    uint32_t unit = static_cast<uint32_t>(units.ops.size());
    if (hasClusters && op.cluster >= 0)
      unit = unitOfCluster.try_emplace(op.cluster, unit).first->second;
    if (unit == units.ops.size())
      units.ops.emplace_back();
    units.ops[unit].push_back(static_cast<uint32_t>(index));
    units.unitOf.push_back(unit);
  }
  units.users.resize(units.size());
  for (const SplitValue &value : problem.values)
    for (uint32_t user : value.users)
      if (units.unitOf[user] != units.unitOf[value.producer])
        units.users[units.unitOf[value.producer]].push_back(units.unitOf[user]);
  units.numProducers.assign(units.size(), 0);
  for (std::vector<uint32_t> &users : units.users) {
    llvm::sort(users);
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (uint32_t user : users)
      ++units.numProducers[user];
  }
  return units;
}

namespace {
/// Units that can come next, in one of two orders.
class Possible {
public:
  explicit Possible(UnitOrder order) : order(order) {}

  bool empty() const { return heap.empty() && stack.empty(); }
  void push(uint32_t unit) {
    if (order == UnitOrder::Given)
      heap.push(unit);
    else
      stack.push_back(unit);
  }
  uint32_t pop() {
    uint32_t unit = order == UnitOrder::Given ? heap.top() : stack.back();
    if (order == UnitOrder::Given)
      heap.pop();
    else
      stack.pop_back();
    return unit;
  }

private:
  UnitOrder order;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> heap;
  std::vector<uint32_t> stack;
};
} // namespace

// Units in a cycle miss a producer for ever, and are left out.
std::vector<uint32_t> cleave::schedule::orderUnits(const StageUnits &units, UnitOrder order) {
  std::vector<uint32_t> missing = units.numProducers, ordered;
  Possible possible(order);
  // Backwards, so that the stack gives the first of the graph first.
  for (size_t unit = units.size(); unit-- > 0;)
    if (missing[unit] == 0)
      possible.push(static_cast<uint32_t>(unit));
  while (!possible.empty()) {
    uint32_t unit = possible.pop();
    ordered.push_back(unit);
    for (uint32_t user : llvm::reverse(units.users[unit]))
      if (--missing[user] == 0)
        possible.push(user);
  }
  return ordered;
}
