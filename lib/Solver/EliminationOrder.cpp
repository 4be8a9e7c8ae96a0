//===- EliminationOrder.cpp - which variable goes next --------------------===//
//
// A variable's lists of tables and neighbors are cleaned lazily: entries of used tables and eliminated variables are passed over.
//
// Elimination takes time and memory exponential in the number of neighbors at once (the width), so the variable with the fewest goes first
// (min-degree, the usual heuristic for bucket elimination: Dechter 1999). Where a table would have more than `maxCells` cells a neighbor is
// frozen first.
//
//===----------------------------------------------------------------------===//
#include "EliminationOrder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include <queue>

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// A set of numbers below a limit that tells the least: a bit for each, a bit for each word of these that is not 0, and so on
/// up to one word. A heap would miss the cache at each of its steps.
class NumberSet {
public:
  explicit NumberSet(size_t limit) {
    do {
      limit = limit / 64 + 1;
      levels.emplace_back(limit, 0);
    } while (limit > 1);
  }

  bool empty() const { return levels.back().front() == 0; }

  void insert(uint32_t number) {
    for (std::vector<uint64_t> &level : levels) {
      level[number / 64] |= uint64_t(1) << number % 64;
      number /= 64;
    }
  }

  void erase(uint32_t number) {
    for (std::vector<uint64_t> &level : levels) {
      if (level[number / 64] &= ~(uint64_t(1) << number % 64))
        return;
      number /= 64;
    }
  }

  uint32_t front() const {
    uint32_t place = 0;
    for (const std::vector<uint64_t> &level : reverse(levels))
      place = place * 64 + llvm::countr_zero(level[place]);
    return place;
  }

private:
  SmallVector<std::vector<uint64_t>, 4> levels;
};

/// Which variable has the fewest neighbors, the lowest number on ties. Nearly all have few, and are in the set of their number
/// of neighbors; an entry of another stays when it changes, and does not count any more.
class DegreeQueue {
public:
  explicit DegreeQueue(ArrayRef<uint32_t> degrees) : degrees(degrees), few(kFew, NumberSet(degrees.size())) {}

  void insert(uint32_t variable) {
    if (degrees[variable] < kFew)
      few[degrees[variable]].insert(variable);
    else
      many.push(uint64_t(degrees[variable]) << 32 | variable);
  }

  /// Before the variable's degree changes, or it goes.
  void erase(uint32_t variable) {
    if (degrees[variable] < kFew)
      few[degrees[variable]].erase(variable);
  }

  /// Takes the next one out; of `isDone` none counts.
  std::optional<uint32_t> pop(ArrayRef<char> isDone) {
    for (NumberSet &variables : few)
      if (!variables.empty()) {
        uint32_t variable = variables.front();
        variables.erase(variable);
        return variable;
      }
    while (!many.empty()) {
      uint64_t top = many.top();
      many.pop();
      if (uint32_t variable = static_cast<uint32_t>(top); !isDone[variable] && degrees[variable] == top >> 32)
        return variable;
    }
    return std::nullopt;
  }

private:
  static constexpr unsigned kFew = 12;
  ArrayRef<uint32_t> degrees;
  std::vector<NumberSet> few;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> many;
};

} // namespace

/// The product grows table by table, and is given up as soon as it is too large: it could overflow.
static bool fits(uint32_t variable, ArrayRef<uint32_t> scope, ArrayRef<uint16_t> domains, size_t maxCells) {
  size_t numCells = domains[variable];
  for (uint32_t neighbor : scope)
    if ((numCells *= domains[neighbor]) > maxCells)
      return false;
  return true;
}

/// The neighbor with most neighbors is in the way of most tables to come, so freezing it saves most.
static uint32_t findBusiest(ArrayRef<uint32_t> candidates, function_ref<uint32_t(size_t)> degreeAt,
                            ArrayRef<uint16_t> domains, ArrayRef<uint32_t> spared) {
  auto key = [&](size_t place) {
    uint32_t candidate = candidates[place];
    return std::tuple(!std::binary_search(spared.begin(), spared.end(), candidate), degreeAt(place),
                      domains[candidate]);
  };
  size_t busiest = 0;
  for (size_t place = 1; place < candidates.size(); ++place)
    if (key(place) > key(busiest))
      busiest = place;
  return candidates[busiest];
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

namespace cleave::spmd {
class OrderFinder {
public:
  OrderFinder(ArrayRef<uint16_t> domains, const OrderQuestion &question, EliminationOrder &order);
  void run();

private:
  struct Table {
    SmallVector<uint32_t, 4> scope;
    bool isUsed = false;
  };

  void connect(uint32_t lhs, uint32_t rhs);
  bool areConnected(uint32_t lhs, uint32_t rhs) const;
  void addTable(SmallVector<uint32_t, 4> scope);
  SmallVector<uint32_t, 8> liveNeighbors(uint32_t variable) const;
  void addStep(uint32_t variable, ArrayRef<uint32_t> neighbors, bool isFrozen);
  void eliminate(uint32_t variable, ArrayRef<uint32_t> neighbors);
  void freezeBusiest(uint32_t variable, ArrayRef<uint32_t> candidates);
  void settle(uint32_t variable, ArrayRef<uint32_t> neighbors);
  void endSteps();

  ArrayRef<uint16_t> domains;
  const OrderQuestion &question;
  EliminationOrder &order;
  std::vector<Table> tables;
  std::vector<SmallVector<uint32_t, 6>> tablesOf, neighborsOf;
  std::vector<uint32_t> degrees;
  std::vector<char> isDone;
  DegreeQueue queue;
  SmallVector<uint64_t, 32> pattern;
};
} // namespace cleave::spmd

OrderFinder::OrderFinder(ArrayRef<uint16_t> domains, const OrderQuestion &question, EliminationOrder &order)
    : domains(domains), question(question), order(order), tablesOf(domains.size()), neighborsOf(domains.size()),
      degrees(domains.size(), 0), isDone(domains.size(), false), queue(degrees) {
  tables.reserve(question.terms.size() + domains.size());
  for (const CostTerm &term : question.terms) {
    if (term.second == kNoVariable) {
      addTable({term.first});
      continue;
    }
    addTable({term.first, term.second});
    connect(term.first, term.second);
  }
}

void OrderFinder::addTable(SmallVector<uint32_t, 4> scope) {
  for (uint32_t variable : scope)
    tablesOf[variable].push_back(tables.size());
  tables.push_back({std::move(scope)});
}

/// Scans the shorter list, so that a variable with thousands of neighbors costs nothing.
bool OrderFinder::areConnected(uint32_t lhs, uint32_t rhs) const {
  if (neighborsOf[lhs].size() > neighborsOf[rhs].size())
    std::swap(lhs, rhs);
  return is_contained(neighborsOf[lhs], rhs);
}

void OrderFinder::connect(uint32_t lhs, uint32_t rhs) {
  if (areConnected(lhs, rhs))
    return;
  neighborsOf[lhs].push_back(rhs);
  neighborsOf[rhs].push_back(lhs);
  ++degrees[lhs];
  ++degrees[rhs];
}

SmallVector<uint32_t, 8> OrderFinder::liveNeighbors(uint32_t variable) const {
  SmallVector<uint32_t, 8> live;
  for (uint32_t neighbor : neighborsOf[variable])
    if (!isDone[neighbor])
      live.push_back(neighbor);
  std::sort(live.begin(), live.end()); // LLVM's would call for each comparison
  return live;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Uses up the tables that `variable` is in.
void OrderFinder::addStep(uint32_t variable, ArrayRef<uint32_t> neighbors, bool isFrozen) {
  EliminationOrder::Step step = {variable, 0, isFrozen, order.scopes.size(), order.inputTables.size()};
  append_range(order.scopes, neighbors);
  pattern = {neighbors.size()};
  for (uint32_t id : tablesOf[variable]) {
    Table &table = tables[id];
    if (table.isUsed)
      continue;
    table.isUsed = true;
    order.inputTables.push_back(id);
    pattern.push_back(table.scope.size());
    for (uint32_t member : table.scope)
      pattern.push_back(member == variable ? EliminationOrder::kOwn
                                           : lower_bound(neighbors, member) - neighbors.begin());
  }
  step.pattern = order.patterns.intern(pattern).first;
  order.steps.push_back(step);
}

/// `variable` is out of the graph. Its neighbors are out of the queue until all that changes them is done.
void OrderFinder::settle(uint32_t variable, ArrayRef<uint32_t> neighbors) {
  queue.erase(variable);
  isDone[variable] = true;
  for (uint32_t neighbor : neighbors) {
    queue.erase(neighbor);
    --degrees[neighbor];
  }
}

/// Puts one table in the place of all that `variable` is in.
void OrderFinder::eliminate(uint32_t variable, ArrayRef<uint32_t> neighbors) {
  addStep(variable, neighbors, /*isFrozen=*/false);
  order.width = std::max<unsigned>(order.width, neighbors.size());
  if (!neighbors.empty())
    addTable(SmallVector<uint32_t, 4>(neighbors));
  settle(variable, neighbors);
  for (size_t i = 0; i < neighbors.size(); ++i)
    for (size_t j = i + 1; j < neighbors.size(); ++j)
      connect(neighbors[i], neighbors[j]);
  for (uint32_t neighbor : neighbors)
    queue.insert(neighbor);
}

/// What is left of its tables are tables of the others.
void OrderFinder::freezeBusiest(uint32_t variable, ArrayRef<uint32_t> candidates) {
  order.freezes.push_back({variable, order.candidates.size()});
  append_range(order.candidates, candidates);
  for (uint32_t candidate : candidates)
    order.degrees.push_back(degrees[candidate]);
  uint32_t busiest =
      findBusiest(candidates, [&](size_t place) { return degrees[candidates[place]]; }, domains, question.spared);
  order.frozen.push_back(busiest);
  SmallVector<uint32_t, 8> neighbors = liveNeighbors(busiest);
  addStep(busiest, neighbors, /*isFrozen=*/true);
  for (uint32_t id : ArrayRef(order.inputTables).drop_front(order.steps.back().firstInput)) {
    SmallVector<uint32_t, 4> rest;
    copy_if(tables[id].scope, std::back_inserter(rest), [&](uint32_t member) { return member != busiest; });
    if (!rest.empty())
      addTable(std::move(rest));
  }
  settle(busiest, neighbors);
  for (uint32_t neighbor : neighbors)
    queue.insert(neighbor);
}

/// The last one says where the others end.
void OrderFinder::endSteps() {
  order.steps.push_back({kNoVariable, 0, false, order.scopes.size(), order.inputTables.size()});
  order.freezes.push_back({kNoVariable, order.candidates.size()});
  order.tableCount = tables.size();
}

void OrderFinder::run() {
  order.steps.reserve(domains.size() + 1);
  for (uint32_t variable = 0; variable < domains.size(); ++variable)
    queue.insert(variable);
  while (std::optional<uint32_t> variable = queue.pop(isDone)) {
    SmallVector<uint32_t, 8> neighbors = liveNeighbors(*variable);
    if (fits(*variable, neighbors, domains, question.maxCells)) {
      eliminate(*variable, neighbors);
      continue;
    }
    freezeBusiest(*variable, neighbors);
    if (!question.mayFreeze)
      break;
    queue.insert(*variable);
  }
  endSteps();
}

//===----------------------------------------------------------------------===//
// The order
//===----------------------------------------------------------------------===//

EliminationOrder::EliminationOrder(ArrayRef<uint16_t> domains, const OrderQuestion &question)
    : numVariables(question.numVariables), maxCells(question.maxCells), spared(question.spared),
      mayFreeze(question.mayFreeze) {
  OrderFinder(domains, question, *this).run();
  pairs.reserve(question.terms.size());
  for (const CostTerm &term : question.terms)
    pairs.emplace_back(term.first, term.second);
}

bool EliminationOrder::answers(const OrderQuestion &question) const {
  return numVariables == question.numVariables && maxCells == question.maxCells && mayFreeze == question.mayFreeze &&
         question.spared == ArrayRef(spared) &&
         equal(question.terms, pairs, [](const CostTerm &term, std::pair<uint32_t, uint32_t> pair) {
           return term.first == pair.first && term.second == pair.second;
         });
}

bool EliminationOrder::holdsFor(ArrayRef<uint16_t> domains) const {
  for (size_t number = 0; number < numSteps(); ++number)
    if (!steps[number].isFrozen && !fits(steps[number].variable, scope(number), domains, maxCells))
      return false;
  for (size_t number = 0; number < frozen.size(); ++number) {
    size_t first = freezes[number].firstCandidate;
    ArrayRef<uint32_t> mine = ArrayRef(candidates).slice(first, freezes[number + 1].firstCandidate - first);
    auto degreeAt = [&](size_t place) { return degrees[first + place]; };
    if (fits(freezes[number].variable, mine, domains, maxCells) ||
        findBusiest(mine, degreeAt, domains, spared) != frozen[number])
      return false;
  }
  return true;
}

std::shared_ptr<const EliminationOrder> KnownOrders::find(ArrayRef<uint16_t> domains, const OrderQuestion &question) {
  auto *known = llvm::find_if(orders, [&](const std::shared_ptr<const EliminationOrder> &order) {
    return order->answers(question) && order->holdsFor(domains);
  });
  if (known == orders.end()) {
    if (orders.size() == kMost)
      orders.pop_back();
    return *orders.insert(orders.begin(), std::make_shared<EliminationOrder>(domains, question));
  }
  std::rotate(orders.begin(), known, known + 1);
  return orders.front();
}
