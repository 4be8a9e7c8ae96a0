//===- Elimination.cpp - exact minima over sparse graphs ------------------===//
//
// Everything that is large lies in one arena. A variable's lists of tables and neighbors are cleaned lazily: entries
// of used tables and eliminated variables are passed over. Tables are normalized (least cell 0), so sums stay small
// however long the chain; what is taken off adds up in `total`.
//
// Eliminating a variable sums the tables that it is in, keeps the least over its options for each combination of its
// neighbors' options, and joins the neighbors; at the end options are read backwards. That is exact, and takes time
// and memory exponential in the number of neighbors at once (the width), so the variable with the fewest goes first
// (min-degree, the usual heuristic for bucket elimination: Dechter 1999). Where a table would have more than `maxCells`
// cells a neighbor is frozen at its present option first: only then is the answer no minimum.
//
// Equal layers bring the same tables in the same places, so a sum that was made once is looked up: by the tables that go in,
// which are the same if their address is, and by how they lie to each other. Tables that come out equal are one table too, so
// a chain of layers costs as many of them as it takes for what the layers before say to settle, and a lookup for each variable
// of the others.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Elimination.h"
#include "cleave/Support/HashIndex.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Allocator.h"
#include <queue>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

namespace {
/// Cells in row-major order, the last variable of the scope fastest.
struct Table {
  ArrayRef<uint32_t> scope;
  const int64_t *cells;
  bool isUsed = false;
};

/// What eliminating a variable leaves: per combination of its neighbors' options the least cost, of which `least` is taken
/// off, and the option that has it.
struct Residue {
  const int64_t *cells;
  const uint8_t *best;
  int64_t least;
};

/// What is needed to read a variable's option backwards.
struct Elimination {
  uint32_t variable;
  /// The neighbors it had, ascending, and per combination of their options the best one.
  ArrayRef<uint32_t> scope;
  const uint8_t *best;
};

/// One table while it is summed: where the odometer stands in it.
struct Cursor {
  const int64_t *cells;
  /// Step per variable of the scope, 0 if the table does not have it, and of the eliminated one.
  SmallVector<size_t, 6> strides;
  size_t ownStride;
};

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

class Eliminator {
public:
  /// What costs what is left out with `isDry`, for the order in which variables go follows from which of them share tables.
  Eliminator(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, size_t maxCells, ArrayRef<uint32_t> spared,
             bool isDry);
  /// Without `mayFreeze` up to where a variable would be frozen.
  Minimum run(bool mayFreeze);

private:
  void connect(uint32_t lhs, uint32_t rhs);
  bool areConnected(uint32_t lhs, uint32_t rhs);
  void addTable(ArrayRef<uint32_t> scope, const int64_t *cells);
  SmallVector<uint32_t, 8> liveNeighbors(uint32_t variable);
  bool fits(uint32_t variable, ArrayRef<uint32_t> scope) const;

  void eliminate(uint32_t variable, ArrayRef<uint32_t> neighbors);
  void sumUp(uint32_t variable, ArrayRef<uint32_t> scope);
  SmallVector<Cursor, 4> takeTables(uint32_t variable, ArrayRef<uint32_t> scope);
  const Residue &getResidue(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned ownDomain);
  Residue makeResidue(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned ownDomain);
  template <unsigned Size>
  void sumAndMinimize(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned numOptions, int64_t *cells,
                      uint8_t *best, size_t numCells);
  const int64_t *findSum(ArrayRef<int64_t> cells);
  void settle(uint32_t variable, ArrayRef<uint32_t> neighbors);
  void freezeBusiest(ArrayRef<uint32_t> candidates);
  void sliceAtFirst(const Table &table, uint32_t variable);
  void readBackwards();

  template <typename T> T *allocate(size_t count) { return arena.Allocate<T>(count); }
  template <typename T> ArrayRef<T> keep(ArrayRef<T> list) {
    T *copy = allocate<T>(list.size());
    llvm::copy(list, copy);
    return {copy, list.size()};
  }

  ArrayRef<uint16_t> domains;
  size_t maxCells;
  ArrayRef<uint32_t> spared;
  bool isDry;
  BumpPtrAllocatorImpl<MallocAllocator, 1 << 16> arena;
  std::vector<Table> tables;
  std::vector<SmallVector<uint32_t, 6>> tablesOf, neighborsOf;
  std::vector<uint32_t> degrees;
  std::vector<char> isDone;
  DegreeQueue queue;
  std::vector<Elimination> eliminations;
  /// With what went into the sum (`getResidue`).
  std::vector<std::pair<ArrayRef<uint64_t>, Residue>> residues;
  HashIndex residueIndex;
  /// Tables that came out of sums, each distinct one once.
  std::vector<ArrayRef<int64_t>> sums;
  HashIndex sumIndex;
  Minimum result;
};
} // namespace

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

Eliminator::Eliminator(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, size_t maxCells, ArrayRef<uint32_t> spared,
                       bool isDry)
    : domains(domains), maxCells(maxCells), spared(spared), isDry(isDry), tablesOf(domains.size()),
      neighborsOf(domains.size()), degrees(domains.size(), 0), isDone(domains.size(), false), queue(degrees) {
  result.options.assign(domains.size(), 0);
  tables.reserve(terms.size() + domains.size());
  for (const CostTerm &term : terms) {
    if (term.second == kNoVariable) {
      addTable(keep<uint32_t>(term.first), term.cells);
      continue;
    }
    addTable(keep<uint32_t>({term.first, term.second}), term.cells);
    connect(term.first, term.second);
  }
}

void Eliminator::addTable(ArrayRef<uint32_t> scope, const int64_t *cells) {
  // Neighbors alone say what comes next.
  if (isDry)
    return;
  for (uint32_t variable : scope)
    tablesOf[variable].push_back(tables.size());
  tables.push_back({scope, cells});
}

/// Scans the shorter list, so that a variable with thousands of neighbors costs nothing.
bool Eliminator::areConnected(uint32_t lhs, uint32_t rhs) {
  if (neighborsOf[lhs].size() > neighborsOf[rhs].size())
    std::swap(lhs, rhs);
  return is_contained(neighborsOf[lhs], rhs);
}

void Eliminator::connect(uint32_t lhs, uint32_t rhs) {
  if (areConnected(lhs, rhs))
    return;
  neighborsOf[lhs].push_back(rhs);
  neighborsOf[rhs].push_back(lhs);
  ++degrees[lhs];
  ++degrees[rhs];
}

SmallVector<uint32_t, 8> Eliminator::liveNeighbors(uint32_t variable) {
  SmallVector<uint32_t, 8> live;
  for (uint32_t neighbor : neighborsOf[variable])
    if (!isDone[neighbor])
      live.push_back(neighbor);
  std::sort(live.begin(), live.end()); // LLVM's would call for each comparison
  return live;
}

/// The product grows table by table, and is given up as soon as it is too large: it could overflow.
bool Eliminator::fits(uint32_t variable, ArrayRef<uint32_t> scope) const {
  size_t numCells = domains[variable];
  for (uint32_t neighbor : scope)
    if ((numCells *= domains[neighbor]) > maxCells)
      return false;
  return true;
}

/// `variable` is out of the graph. Its neighbors are out of the queue until all that changes them is done.
void Eliminator::settle(uint32_t variable, ArrayRef<uint32_t> neighbors) {
  queue.erase(variable);
  isDone[variable] = true;
  for (uint32_t neighbor : neighbors) {
    queue.erase(neighbor);
    --degrees[neighbor];
  }
}

//===----------------------------------------------------------------------===//
// One variable
//===----------------------------------------------------------------------===//

/// A table knows nothing of the others: its cursor has a step for each variable of the sum, 0 for those that it lacks.
SmallVector<Cursor, 4> Eliminator::takeTables(uint32_t variable, ArrayRef<uint32_t> scope) {
  SmallVector<Cursor, 4> cursors;
  for (uint32_t id : tablesOf[variable]) {
    Table &table = tables[id];
    if (table.isUsed)
      continue;
    table.isUsed = true;
    Cursor &cursor = cursors.emplace_back();
    cursor.cells = table.cells;
    cursor.strides.assign(scope.size(), 0);
    size_t stride = 1;
    for (uint32_t member : reverse(table.scope)) {
      if (member == variable)
        cursor.ownStride = stride;
      else
        cursor.strides[lower_bound(scope, member) - scope.begin()] = stride;
      stride *= domains[member];
    }
  }
  return cursors;
}

/// Adds what the last of `tables` has at an option of the last neighbor to `sums`, and finds the first of the least sums on the way: of
/// nearly all sums it is the only table, and a loop of its own for the least would take as long as all else.
template <unsigned Size>
static std::pair<int64_t, unsigned> addAndFindLeast(const int64_t *sums, const int64_t *cell, size_t stride,
                                                    unsigned numOptions) {
  const unsigned ownDomain = Size ? Size : numOptions;
  int64_t least = sums[0] + cell[0];
  unsigned place = 0;
  for (unsigned option = 1; option < ownDomain; ++option) {
    int64_t sum = sums[option] + cell[option * stride];
    place = sum < least ? option : place;
    least = sum < least ? sum : least;
  }
  return {least, place};
}

/// What does not change with the last neighbor, the fastest, is added up once for all of its options. Sums are held to what is forbidden now
/// and then, before they could overflow: a loop that only adds is the faster one.
///
/// Most variables have few options, and loops over so few are mostly beginnings and ends: with a `Size` they are written out.
template <unsigned Size>
void Eliminator::sumAndMinimize(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned numOptions,
                                int64_t *cells, uint8_t *best, size_t numCells) {
  const unsigned ownDomain = Size ? Size : numOptions;
  SmallVector<const Cursor *, 8> fast, slow;
  for (const Cursor &cursor : cursors)
    (scope.empty() || cursor.strides.back() == 0 ? slow : fast).push_back(&cursor);
  SmallVector<unsigned, 6> digits(scope.size(), 0);
  constexpr int64_t kNothing[] = {0};
  // One cell per option of the variable; domains are far smaller than 256.
  int64_t slowSums[256], row[256];
  constexpr size_t kMostAdded = 16;
  static_assert(kForbidden <= std::numeric_limits<int64_t>::max() / int64_t(kMostAdded + 1),
                "so many sums do not overflow");
  // `isAll`: nothing is added afterwards.
  auto add = [&](ArrayRef<const Cursor *> tables, size_t place, int64_t *sums, bool isAll) {
    for (auto [number, cursor] : enumerate(tables)) {
      const int64_t *cell = cursor->cells + (place == 0 ? 0 : place * cursor->strides.back());
      size_t stride = cursor->ownStride;
      if (stride == 1)
        for (unsigned option = 0; option < ownDomain; ++option)
          sums[option] += cell[option];
      else
        for (unsigned option = 0; option < ownDomain; ++option)
          sums[option] += cell[option * stride];
      if (number % kMostAdded == kMostAdded - 1 || (isAll && number + 1 == tables.size()))
        for (unsigned option = 0; option < ownDomain; ++option)
          sums[option] = std::min(sums[option], kForbidden);
    }
  };
  size_t fastDomain = scope.empty() ? 1 : domains[scope.back()];
  const Cursor *lastFast = fast.empty() || fast.size() >= kMostAdded ? nullptr : fast.pop_back_val();
  for (size_t cell = 0; cell < numCells;) {
    std::fill_n(slowSums, ownDomain, 0);
    add(slow, 0, slowSums, /*isAll=*/true);
    for (size_t option = 0; option < fastDomain; ++option, ++cell) {
      const int64_t *sums = slowSums;
      if (!fast.empty()) {
        std::copy_n(slowSums, ownDomain, row);
        add(fast, option, row, /*isAll=*/!lastFast);
        sums = row;
      }
      auto [least, place] =
          !lastFast ? addAndFindLeast<Size>(sums, kNothing, 0, ownDomain)
          : lastFast->ownStride == 1
              ? addAndFindLeast<Size>(sums, lastFast->cells + option * lastFast->strides.back(), 1, ownDomain)
              : addAndFindLeast<Size>(sums, lastFast->cells + option * lastFast->strides.back(), lastFast->ownStride,
                                      ownDomain);
      // Of what is all forbidden the first is taken, whatever else was added: sums of forbidden ones say nothing, and answers stay what they
      // are however sums are made.
      cells[cell] = std::min(least, kForbidden);
      best[cell] = least < kForbidden ? place : 0;
    }
    for (size_t place = scope.size(); place-- > 1;) { // Odometer over the others, the last one fastest.
      bool wraps = ++digits[place - 1] == domains[scope[place - 1]];
      for (Cursor &cursor : cursors)
        cursor.cells += wraps ? -static_cast<ptrdiff_t>(cursor.strides[place - 1] * (digits[place - 1] - 1))
                              : static_cast<ptrdiff_t>(cursor.strides[place - 1]);
      if (!wraps)
        break;
      digits[place - 1] = 0;
    }
  }
}

Residue Eliminator::makeResidue(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned ownDomain) {
  size_t numCells = 1;
  for (uint32_t neighbor : scope)
    numCells *= domains[neighbor];
  int64_t *cells = allocate<int64_t>(numCells);
  uint8_t *best = allocate<uint8_t>(numCells);
  switch (ownDomain) {
#define CLEAVE_SIZE(size)                                                                                              \
  case size:                                                                                                           \
    sumAndMinimize<size>(cursors, scope, ownDomain, cells, best, numCells);                                            \
    break;
    CLEAVE_SIZE(2)
    CLEAVE_SIZE(3)
    CLEAVE_SIZE(4)
    CLEAVE_SIZE(5)
    CLEAVE_SIZE(6)
    CLEAVE_SIZE(7)
    CLEAVE_SIZE(8)
    CLEAVE_SIZE(9)
    CLEAVE_SIZE(10)
    CLEAVE_SIZE(11)
    CLEAVE_SIZE(12)
#undef CLEAVE_SIZE
  default:
    sumAndMinimize<0>(cursors, scope, ownDomain, cells, best, numCells);
  }
  // What all cells have in common cannot change what is chosen.
  int64_t least = *std::min_element(cells, cells + numCells);
  for (size_t cell = 0; cell < numCells; ++cell)
    cells[cell] = cells[cell] == kForbidden ? kForbidden : cells[cell] - least;
  return {findSum({cells, numCells}), best, least};
}

/// The same cells that came before, if they did.
const int64_t *Eliminator::findSum(ArrayRef<int64_t> cells) {
  uint32_t id = sumIndex.find(hashWords(cells), [&](uint32_t other) { return sums[other] == cells; });
  if (id == sums.size())
    sums.push_back(cells);
  return sums[id].data();
}

/// Says in numbers all that a sum depends on: sizes, and for each table where its cells are and how they are stepped through.
const Residue &Eliminator::getResidue(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned ownDomain) {
  SmallVector<uint64_t, 32> key = {uint64_t(scope.size()) << 32 | ownDomain};
  for (uint32_t neighbor : scope)
    key.push_back(domains[neighbor]);
  for (const Cursor &cursor : cursors) {
    key.push_back(reinterpret_cast<uintptr_t>(cursor.cells));
    key.push_back(cursor.ownStride);
    append_range(key, cursor.strides);
  }
  uint32_t id = residueIndex.find(hashWords<uint64_t>(key),
                                  [&](uint32_t other) { return residues[other].first == ArrayRef<uint64_t>(key); });
  if (id == residues.size())
    residues.push_back({keep(ArrayRef<uint64_t>(key)), makeResidue(cursors, scope, ownDomain)});
  return residues[id].second;
}

/// Puts one table in the place of all that `variable` is in.
void Eliminator::sumUp(uint32_t variable, ArrayRef<uint32_t> scope) {
  SmallVector<Cursor, 4> cursors = takeTables(variable, scope);
  const Residue &residue = getResidue(cursors, scope, domains[variable]);
  eliminations.push_back({variable, scope, residue.best});
  result.width = std::max<unsigned>(result.width, scope.size());
  result.total = std::min(result.total + residue.least, kForbidden);
  if (!scope.empty())
    addTable(scope, residue.cells);
}

void Eliminator::eliminate(uint32_t variable, ArrayRef<uint32_t> neighbors) {
  ArrayRef<uint32_t> scope = keep(neighbors);
  if (!isDry)
    sumUp(variable, scope);
  settle(variable, scope);
  for (size_t i = 0; i < scope.size(); ++i)
    for (size_t j = i + 1; j < scope.size(); ++j)
      connect(scope[i], scope[j]);
  for (uint32_t neighbor : scope)
    queue.insert(neighbor);
}

//===----------------------------------------------------------------------===//
// Tables that would grow too large
//===----------------------------------------------------------------------===//

/// Adds what is left of a table when `variable` has option 0: of equal layers one table again.
void Eliminator::sliceAtFirst(const Table &table, uint32_t variable) {
  SmallVector<uint32_t, 6> rest;
  size_t inner = 1, outer = 1;
  bool isBefore = true;
  for (uint32_t member : table.scope) {
    if (member == variable) {
      isBefore = false;
      continue;
    }
    rest.push_back(member);
    (isBefore ? outer : inner) *= domains[member];
  }
  if (rest.empty()) {
    result.total = std::min(result.total + table.cells[0], kForbidden);
    return;
  }
  int64_t *cells = allocate<int64_t>(outer * inner);
  for (size_t i = 0; i < outer; ++i)
    std::copy_n(table.cells + i * inner * domains[variable], inner, cells + i * inner);
  addTable(keep<uint32_t>(rest), findSum({cells, outer * inner}));
}

/// The neighbor with most neighbors is in the way of most tables to come, so freezing it saves most.
void Eliminator::freezeBusiest(ArrayRef<uint32_t> candidates) {
  auto key = [&](uint32_t candidate) {
    return std::tuple(!std::binary_search(spared.begin(), spared.end(), candidate), degrees[candidate],
                      domains[candidate]);
  };
  uint32_t busiest = candidates.front();
  for (uint32_t candidate : candidates)
    if (key(candidate) > key(busiest))
      busiest = candidate;
  SmallVector<uint32_t, 6> mine = std::move(tablesOf[busiest]);
  for (uint32_t id : mine)
    if (!tables[id].isUsed) {
      tables[id].isUsed = true;
      sliceAtFirst(Table(tables[id]), busiest); // A copy: the tables may move.
    }
  SmallVector<uint32_t, 8> neighbors = liveNeighbors(busiest);
  settle(busiest, neighbors);
  for (uint32_t neighbor : neighbors)
    queue.insert(neighbor);
  result.frozen.push_back(busiest);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

void Eliminator::readBackwards() {
  for (const Elimination &elimination : reverse(eliminations)) {
    size_t cell = 0;
    for (uint32_t member : elimination.scope)
      cell = cell * domains[member] + result.options[member];
    result.options[elimination.variable] = elimination.best[cell];
  }
}

Minimum Eliminator::run(bool mayFreeze) {
  eliminations.reserve(domains.size());
  for (uint32_t variable = 0; variable < domains.size(); ++variable)
    queue.insert(variable);
  while (std::optional<uint32_t> variable = queue.pop(isDone)) {
    SmallVector<uint32_t, 8> neighbors = liveNeighbors(*variable);
    if (fits(*variable, neighbors)) {
      eliminate(*variable, neighbors);
      continue;
    }
    freezeBusiest(neighbors);
    if (!mayFreeze)
      return std::move(result);
    queue.insert(*variable);
  }
  readBackwards();
  return std::move(result);
}

Minimum cleave::spmd::minimize(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, size_t maxCells,
                               ArrayRef<uint32_t> spared, bool mayFreeze) {
  // Most of the time goes into sums: whether they all fit is known before the first one.
  if (!mayFreeze)
    if (Minimum dry = Eliminator(domains, terms, maxCells, spared, /*isDry=*/true).run(mayFreeze); !dry.frozen.empty())
      return dry;
  return Eliminator(domains, terms, maxCells, spared, /*isDry=*/false).run(mayFreeze);
}
