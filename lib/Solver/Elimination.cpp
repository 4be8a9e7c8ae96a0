//===- Elimination.cpp - exact minima over sparse graphs ------------------===//
//
// Everything that is large lies in one arena. Tables are normalized (least cell 0), so sums stay small however long the chain; what is taken
// off adds up in `total`.
//
// Eliminating a variable sums the tables that it is in, and keeps the least over its options for each combination of its neighbors' options;
// at the end options are read backwards. That is exact but for what is frozen. What is summed when is known before (EliminationOrder.h).
//
// Equal layers bring the same tables in the same places, so a sum that was made once is looked up: by the tables that go in,
// which are the same if their address is, and by how they are laid out. Tables that come out equal are one table too, so
// a chain of layers costs as many of them as it takes for what the layers before say to settle, and a lookup for each variable
// of the others.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Elimination.h"
#include "EliminationOrder.h"
#include "cleave/Support/HashIndex.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

namespace {
/// What eliminating a variable leaves: per combination of its neighbors' options the least cost, of which `least` is taken
/// off, and the option that has it.
struct Residue {
  const int64_t *cells;
  const uint8_t *best;
  int64_t least;
};

/// One table while it is summed: where the odometer stands in it.
struct Cursor {
  const int64_t *cells;
  /// Step per variable of the scope, 0 if the table does not have it, and of the eliminated one.
  SmallVector<size_t, 6> strides;
  size_t ownStride;
};

class Eliminator {
public:
  Eliminator(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, const EliminationOrder &order);
  Minimum run();

private:
  void sumUp(size_t step);
  const Residue &getResidue(size_t step);
  SmallVector<Cursor, 4> makeCursors(size_t step) const;
  Residue makeResidue(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned ownDomain);
  template <unsigned Size>
  void sumAndMinimize(MutableArrayRef<Cursor> cursors, ArrayRef<uint32_t> scope, unsigned numOptions, int64_t *cells,
                      uint8_t *best, size_t numCells);
  const int64_t *findSum(ArrayRef<int64_t> cells);
  void freeze(size_t step);
  void sliceAtFirst(const int64_t *table, ArrayRef<uint64_t> places, size_t step);
  void readBackwards();

  template <typename T> T *allocate(size_t count) { return arena.Allocate<T>(count); }
  template <typename T> ArrayRef<T> keep(ArrayRef<T> list) {
    T *copy = allocate<T>(list.size());
    llvm::copy(list, copy);
    return {copy, list.size()};
  }

  ArrayRef<uint16_t> domains;
  const EliminationOrder &order;
  BumpPtrAllocatorImpl<MallocAllocator, 1 << 16> arena;
  /// The cells of each, in row-major order, the last variable of the scope fastest.
  std::vector<const int64_t *> tables;
  /// By step, per combination of the options of its scope the best one.
  std::vector<const uint8_t *> bests;
  /// With what went into the sum (`getResidue`).
  std::vector<std::pair<ArrayRef<uint64_t>, Residue>> residues;
  HashIndex residueIndex;
  /// Tables that came out of sums, each distinct one once.
  std::vector<ArrayRef<int64_t>> sums;
  HashIndex sumIndex;
  Minimum result;
};
} // namespace

Eliminator::Eliminator(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, const EliminationOrder &order)
    : domains(domains), order(order), bests(order.numSteps()) {
  result.options.assign(domains.size(), 0);
  tables.reserve(order.numTables());
  for (const CostTerm &term : terms)
    tables.push_back(term.cells);
}

//===----------------------------------------------------------------------===//
// One variable
//===----------------------------------------------------------------------===//

/// A table knows nothing of the others: its cursor has a step for each variable of the sum, 0 for those that it lacks.
SmallVector<Cursor, 4> Eliminator::makeCursors(size_t step) const {
  ArrayRef<uint32_t> scope = order.scope(step);
  ArrayRef<uint64_t> pattern = order.getPattern(step).drop_front();
  SmallVector<Cursor, 4> cursors;
  for (uint32_t id : order.inputs(step)) {
    Cursor &cursor = cursors.emplace_back();
    cursor.cells = tables[id];
    cursor.strides.assign(scope.size(), 0);
    size_t stride = 1;
    for (uint64_t place : reverse(pattern.slice(1, pattern.front()))) {
      bool isOwn = place == EliminationOrder::kOwn;
      (isOwn ? cursor.ownStride : cursor.strides[place]) = stride;
      stride *= domains[isOwn ? order.step(step).variable : scope[place]];
    }
    pattern = pattern.drop_front(pattern.front() + 1);
  }
  return cursors;
}

namespace {
/// A table as the options of the last neighbor and of the eliminated variable lead through it. Handed on by reference: a copy is written in
/// words and read in pairs of them, for which the processor waits.
struct FastTable {
  const int64_t *cells;
  /// Steps per option of the last neighbor, and of the eliminated variable.
  size_t stride, ownStride;
};
} // namespace

/// Adds a table to `sums` for each option of the last neighbor, and finds the first of the least sums on the way: of nearly all sums it is the
/// only table that changes with that, and a loop of its own for the least would take as long as all else.
///
/// Of what is all forbidden the first is taken, whatever else was added: sums of forbidden ones say nothing, and answers stay what they are
/// however sums are made.
template <unsigned Size, bool IsDense>
static void addAndFindLeast(const int64_t *sums, const FastTable &table, unsigned numOptions,
                            MutableArrayRef<int64_t> cells, uint8_t *best) {
  const unsigned ownDomain = Size ? Size : numOptions;
  const size_t ownStride = IsDense ? 1 : table.ownStride;
  int64_t copies[Size ? Size : 1]; // That nothing else points to: these stay in registers.
  if constexpr (Size != 0)
    std::copy_n(sums, Size, copies);
  const int64_t *own = Size ? copies : sums, *cell = table.cells;
  for (size_t number = 0; number < cells.size(); ++number, cell += table.stride) {
    int64_t least = own[0] + cell[0];
    unsigned place = 0;
    for (unsigned option = 1; option < ownDomain; ++option) {
      int64_t sum = own[option] + cell[option * ownStride];
      place = sum < least ? option : place;
      least = sum < least ? sum : least;
    }
    cells[number] = std::min(least, kForbidden);
    best[number] = least < kForbidden ? place : 0;
  }
}

/// Adds a table's costs of each option of the eliminated variable, at an option of the last neighbor.
template <unsigned Size>
static void addOptions(const Cursor &cursor, size_t place, int64_t *sums, unsigned numOptions) {
  const unsigned ownDomain = Size ? Size : numOptions;
  const int64_t *cell = cursor.cells + (place == 0 ? 0 : place * cursor.strides.back());
  size_t stride = cursor.ownStride;
  if (stride == 1)
    for (unsigned option = 0; option < ownDomain; ++option)
      sums[option] += cell[option];
  else
    for (unsigned option = 0; option < ownDomain; ++option)
      sums[option] += cell[option * stride];
}

/// So many sums do not overflow.
static constexpr size_t kMostAdded = 16;
static_assert(kForbidden <= std::numeric_limits<int64_t>::max() / int64_t(kMostAdded + 1));

template <unsigned Size>
static void addAll(ArrayRef<const Cursor *> tables, size_t place, int64_t *sums, unsigned numOptions, bool isAll) {
  const unsigned ownDomain = Size ? Size : numOptions;
  for (auto [number, cursor] : enumerate(tables)) {
    addOptions<Size>(*cursor, place, sums, ownDomain);
    // `isAll`: nothing is added afterwards.
    if (number % kMostAdded == kMostAdded - 1 || (isAll && number + 1 == tables.size()))
      for (unsigned option = 0; option < ownDomain; ++option)
        sums[option] = std::min(sums[option], kForbidden);
  }
}

namespace {
/// The sum of tables that do not change with the last neighbor. Most do not change with the one before it either, so they are added in the order
/// of the last neighbor that each changes with, and where one takes its next option all up to there are as they were.
template <unsigned Size> class SlowSums {
public:
  SlowSums(SmallVector<const Cursor *, 8> cursors, unsigned numOptions)
      : tables(std::move(cursors)), ownDomain(Size ? Size : numOptions), isOneLevel(tables.size() > kMostAdded) {
    if (isOneLevel) {
      sums.assign(ownDomain, 0);
      return;
    }
    std::stable_sort(tables.begin(), tables.end(),
                     [](const Cursor *lhs, const Cursor *rhs) { return levelOf(*lhs) < levelOf(*rhs); });
    for (const Cursor *table : tables)
      levels.push_back(levelOf(*table));
    sums.assign((tables.size() + 2) * ownDomain, 0);
  }

  /// What tables say at present, where neighbors from place `changed - 1` on have other options than at the last call; with 0 at the first one.
  const int64_t *add(size_t changed) {
    if (isOneLevel) {
      std::fill(sums.begin(), sums.end(), 0);
      addAll<Size>(tables, 0, sums.data(), ownDomain, /*isAll=*/true);
      return sums.data();
    }
    size_t first = lower_bound(levels, changed) - levels.begin();
    int64_t *total = sums.data() + (tables.size() + 1) * ownDomain;
    if (first == tables.size())
      return total;
    int64_t *sum = sums.data() + first * ownDomain;
    for (const Cursor *table : drop_begin(tables, first)) {
      std::copy_n(sum, ownDomain, sum + ownDomain);
      sum += ownDomain;
      addOptions<Size>(*table, 0, sum, ownDomain);
    }
    for (unsigned option = 0; option < ownDomain; ++option)
      total[option] = std::min(sum[option], kForbidden);
    return total;
  }

private:
  /// One more than the place of the last neighbor that it changes with.
  static size_t levelOf(const Cursor &cursor) {
    size_t level = cursor.strides.size();
    while (level > 0 && cursor.strides[level - 1] == 0)
      --level;
    return level;
  }

  SmallVector<const Cursor *, 8> tables;
  unsigned ownDomain;
  /// There are so many that sums are held to what is forbidden in between.
  bool isOneLevel;
  /// Ascending.
  SmallVector<size_t, 8> levels;
  /// Of no table, of one, of two, ..., and of all, at most forbidden.
  SmallVector<int64_t, 64> sums;
};
} // namespace

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
  // One cell per option of the variable; domains are at most 256.
  int64_t row[256];
  size_t fastDomain = scope.empty() ? 1 : domains[scope.back()];
  const Cursor *lastFast = fast.empty() || fast.size() >= kMostAdded ? nullptr : fast.pop_back_val();
  auto minimizeCells = [&](const int64_t *sums, const FastTable &table, size_t cell, size_t count) {
    auto minimize = table.ownStride == 1 ? addAndFindLeast<Size, true> : addAndFindLeast<Size, false>;
    minimize(sums, table, ownDomain, {cells + cell, count}, best + cell);
  };
  SlowSums<Size> slowSums(std::move(slow), ownDomain);
  size_t changed = 0;
  for (size_t cell = 0; cell < numCells; cell += fastDomain) {
    const int64_t *sums = slowSums.add(changed);
    if (fast.empty() && lastFast)
      minimizeCells(sums, {lastFast->cells, lastFast->strides.back(), lastFast->ownStride}, cell, fastDomain);
    else if (fast.empty())
      minimizeCells(sums, {kNothing, 0, 0}, cell, fastDomain);
    else
      for (size_t option = 0; option < fastDomain; ++option) {
        std::copy_n(sums, ownDomain, row);
        addAll<Size>(fast, option, row, ownDomain, /*isAll=*/!lastFast);
        FastTable table = {kNothing, 0, 0};
        if (lastFast)
          table = {lastFast->cells + option * lastFast->strides.back(), 0, lastFast->ownStride};
        minimizeCells(row, table, cell + option, 1);
      }
    for (size_t place = scope.size(); place-- > 1;) { // Odometer over the others, the last one fastest.
      changed = place;
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

/// Says in numbers all that a sum depends on: how its tables are laid out, sizes, and where their cells are.
const Residue &Eliminator::getResidue(size_t step) {
  ArrayRef<uint32_t> scope = order.scope(step);
  unsigned ownDomain = domains[order.step(step).variable];
  SmallVector<uint64_t, 32> key = {uint64_t(order.step(step).pattern) << 32 | ownDomain};
  for (uint32_t neighbor : scope)
    key.push_back(domains[neighbor]);
  for (uint32_t id : order.inputs(step))
    key.push_back(reinterpret_cast<uintptr_t>(tables[id]));
  uint32_t id = residueIndex.find(hashWords<uint64_t>(key),
                                  [&](uint32_t other) { return residues[other].first == ArrayRef<uint64_t>(key); });
  if (id == residues.size()) {
    SmallVector<Cursor, 4> cursors = makeCursors(step);
    residues.push_back({keep(ArrayRef<uint64_t>(key)), makeResidue(cursors, scope, ownDomain)});
  }
  return residues[id].second;
}

void Eliminator::sumUp(size_t step) {
  const Residue &residue = getResidue(step);
  bests[step] = residue.best;
  result.total = std::min(result.total + residue.least, kForbidden);
  if (!order.scope(step).empty())
    tables.push_back(residue.cells);
}

//===----------------------------------------------------------------------===//
// Tables that would grow too large
//===----------------------------------------------------------------------===//

/// Adds what is left of a table when the variable of `step` has option 0: of equal layers one table again.
void Eliminator::sliceAtFirst(const int64_t *table, ArrayRef<uint64_t> places, size_t step) {
  size_t inner = 1, outer = 1;
  bool isBefore = true;
  for (uint64_t place : places) {
    if (place == EliminationOrder::kOwn)
      isBefore = false;
    else
      (isBefore ? outer : inner) *= domains[order.scope(step)[place]];
  }
  if (places.size() == 1) {
    result.total = std::min(result.total + table[0], kForbidden);
    return;
  }
  int64_t *cells = allocate<int64_t>(outer * inner);
  for (size_t i = 0; i < outer; ++i)
    std::copy_n(table + i * inner * domains[order.step(step).variable], inner, cells + i * inner);
  tables.push_back(findSum({cells, outer * inner}));
}

void Eliminator::freeze(size_t step) {
  ArrayRef<uint64_t> pattern = order.getPattern(step).drop_front();
  for (uint32_t id : order.inputs(step)) {
    sliceAtFirst(tables[id], pattern.slice(1, pattern.front()), step);
    pattern = pattern.drop_front(pattern.front() + 1);
  }
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

void Eliminator::readBackwards() {
  for (size_t step = order.numSteps(); step-- > 0;) {
    if (order.step(step).isFrozen)
      continue;
    size_t cell = 0;
    for (uint32_t member : order.scope(step))
      cell = cell * domains[member] + result.options[member];
    result.options[order.step(step).variable] = bests[step][cell];
  }
}

Minimum Eliminator::run() {
  for (size_t step = 0; step < order.numSteps(); ++step)
    order.step(step).isFrozen ? freeze(step) : sumUp(step);
  readBackwards();
  return std::move(result);
}

Minimum cleave::spmd::minimize(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, size_t maxCells,
                               ArrayRef<uint32_t> spared, bool mayFreeze, KnownOrders *known) {
  KnownOrders none;
  std::shared_ptr<const EliminationOrder> order =
      (known ? *known : none).find(domains, {domains.size(), terms, maxCells, spared, mayFreeze});
  Minimum minimum;
  // Most of the time goes into sums: whether they all fit is known before the first one.
  if (mayFreeze || order->getFrozen().empty())
    minimum = Eliminator(domains, terms, *order).run();
  else
    minimum.options.assign(domains.size(), 0);
  minimum.width = order->getWidth();
  minimum.frozen = order->getFrozen();
  return minimum;
}
