//===- Domination.cpp - options that cannot be best -----------------------===//
//
// A worklist of variables, first all of them in order. For each the pairs of its options are compared over the tables it
// is in; every table is counted by itself, at the neighbor's option that is worst for the claim, which proves less than
// is true and never more. Then the tables are copied without what has gone, and variables with one option left are folded
// into their neighbors.
//
// Equal layers have the same tables: what was found of one variable holds for all that have its tables and whose neighbors have the same
// options, and a table is copied once for all variables that keep the same of it, so that elimination finds the layers equal, too.
//
//===----------------------------------------------------------------------===//
#include "Domination.h"
#include "Interner.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// Lists of options by numbers: equal ones have one.
class OptionLists {
public:
  uint32_t intern(ArrayRef<uint16_t> options) {
    words.assign(options.begin(), options.end());
    return lists.intern(words).first;
  }

private:
  Interner lists;
  SmallVector<uint64_t, 32> words;
};

/// By how much one option is more expensive than another in one table, and the option of the neighbor that it is so beside.
struct Difference {
  int64_t cost;
  uint16_t beside;
};

class Pruner {
public:
  Pruner(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, ArrayRef<uint16_t> preferred);
  void run();

  std::vector<KeptOptions> kept;

private:
  bool prune(uint32_t variable);
  ArrayRef<uint64_t> makeKey(uint32_t variable);
  bool isBeaten(uint32_t variable, uint16_t option, uint16_t by);
  bool mayBeBeaten(uint32_t variable, uint16_t option, uint16_t by) const;
  Difference leastDifference(const CostTerm &term, uint32_t variable, uint16_t option, uint16_t by,
                             ArrayRef<uint16_t> neighbors) const;

  ArrayRef<uint16_t> domains;
  ArrayRef<CostTerm> terms;
  std::vector<SmallVector<uint32_t, 4>> termsOf;
  std::deque<uint32_t> worklist;
  std::vector<char> isQueued;
  OptionLists lists;
  /// Of `kept`.
  std::vector<uint32_t> listOf;
  /// What was found out before, by all that it depends on.
  Interner keys;
  std::vector<KeptOptions> known;
  SmallVector<uint64_t, 64> key;
  /// Of the variable that is pruned, by option: what neighbors did, table by table, when another one last failed to beat it. Most others fail
  /// beside the same.
  std::vector<SmallVector<uint16_t, 4>> savedBy;
};
} // namespace

Pruner::Pruner(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, ArrayRef<uint16_t> preferred)
    : domains(domains), terms(terms), termsOf(domains.size()), isQueued(domains.size(), true) {
  for (auto [variable, domain] : enumerate(domains)) {
    worklist.push_back(variable);
    KeptOptions &options = kept.emplace_back();
    options.push_back(preferred[variable]);
    for (uint16_t option = 0; option < domain; ++option)
      if (option != preferred[variable])
        options.push_back(option);
    listOf.push_back(lists.intern(options));
  }
  for (auto [number, term] : enumerate(terms)) {
    termsOf[term.first].push_back(number);
    if (term.second != kNoVariable)
      termsOf[term.second].push_back(number);
  }
}

/// The options that are kept of whatever else the table is about; of a table of one variable no list counts.
static uint32_t neighborIn(const CostTerm &term, uint32_t variable) {
  return term.second == kNoVariable ? variable : term.first == variable ? term.second : term.first;
}

/// The least of them, beside those options of the neighbor. What forbids both says nothing.
Difference Pruner::leastDifference(const CostTerm &term, uint32_t variable, uint16_t option, uint16_t by,
                                   ArrayRef<uint16_t> neighbors) const {
  auto difference = [](int64_t one, int64_t other) {
    return one >= kForbidden ? kForbidden : other >= kForbidden ? -kForbidden : one - other;
  };
  if (term.second == kNoVariable) {
    int64_t one = term.cells[option], other = term.cells[by];
    return {one >= kForbidden && other >= kForbidden ? 0 : difference(one, other), 0};
  }
  bool isFirst = term.first == variable;
  size_t own = isFirst ? domains[term.second] : 1, step = isFirst ? 1 : domains[variable];
  Difference least = {kForbidden, neighbors.front()};
  for (uint16_t beside : neighbors) {
    int64_t one = term.cells[option * own + beside * step], other = term.cells[by * own + beside * step];
    if (one >= kForbidden && other >= kForbidden)
      continue;
    if (int64_t cost = difference(one, other); cost < least.cost)
      least = {cost, beside};
  }
  return least;
}

/// No, where `by` costs more beside what the last one failed, or beside what neighbors prefer: of most pairs that is all there is to ask.
bool Pruner::mayBeBeaten(uint32_t variable, uint16_t option, uint16_t by) const {
  __int128 saved = 0, preferred = 0;
  if (ArrayRef<uint16_t> savers = savedBy[option]; !savers.empty())
    for (auto [number, saver] : zip_equal(termsOf[variable], savers))
      saved += leastDifference(terms[number], variable, option, by, saver).cost;
  if (saved < 0)
    return false;
  for (uint32_t number : termsOf[variable])
    preferred +=
        leastDifference(terms[number], variable, option, by, kept[neighborIn(terms[number], variable)].front()).cost;
  return preferred >= 0;
}

/// `by` costs less than `option`, or no more and stands before it.
bool Pruner::isBeaten(uint32_t variable, uint16_t option, uint16_t by) {
  if (!mayBeBeaten(variable, option, by))
    return false;
  int64_t sum = 0;
  bool isAllowed = true;
  SmallVector<uint16_t, 4> savers;
  for (uint32_t number : termsOf[variable]) {
    Difference least = leastDifference(terms[number], variable, option, by, kept[neighborIn(terms[number], variable)]);
    isAllowed &= least.cost > -kForbidden; // Or else beside some options only `option` is allowed.
    sum = std::min(sum + least.cost, kForbidden);
    savers.push_back(least.beside);
  }
  if (sum < 0 || !isAllowed) {
    savedBy[option] = std::move(savers);
    return false;
  }
  const KeptOptions &options = kept[variable];
  return sum > 0 || find(options, by) < find(options, option);
}

/// All that `prune` asks for: the options, and of each table its cells, which side the variable has, and the options beside it. Tables of pairs
/// are shared where they are equal, those of one variable are not.
ArrayRef<uint64_t> Pruner::makeKey(uint32_t variable) {
  key = {domains[variable], listOf[variable]};
  for (uint32_t number : termsOf[variable]) {
    const CostTerm &term = terms[number];
    if (term.second == kNoVariable) {
      append_range(key, ArrayRef(term.cells, domains[variable]));
      continue;
    }
    bool isFirst = term.first == variable;
    key.push_back(reinterpret_cast<uintptr_t>(term.cells));
    key.push_back(uint64_t(listOf[isFirst ? term.second : term.first]) << 1 | isFirst);
  }
  return key;
}

/// True if options have gone.
bool Pruner::prune(uint32_t variable) {
  KeptOptions &options = kept[variable];
  size_t before = options.size();
  auto [entry, isNew] = keys.intern(makeKey(variable));
  if (isNew) {
    savedBy.assign(domains[variable], {});
    // From the last on: of equal ones the first stays. What is left beats, itself or by what it was beaten by, all that went.
    for (size_t place = options.size(); place-- > 0;)
      if (any_of(options, [&](uint16_t by) { return by != options[place] && isBeaten(variable, options[place], by); }))
        options.erase(options.begin() + place);
    known.push_back(options);
  }
  options = known[entry];
  if (options.size() == before)
    return false;
  listOf[variable] = lists.intern(options);
  return true;
}

void Pruner::run() {
  while (!worklist.empty()) {
    uint32_t variable = worklist.front();
    worklist.pop_front();
    isQueued[variable] = false;
    if (kept[variable].size() < 2 || !prune(variable))
      continue;
    for (uint32_t number : termsOf[variable])
      for (uint32_t other : {terms[number].first, terms[number].second})
        if (other != kNoVariable && other != variable && !isQueued[other]) {
          isQueued[other] = true;
          worklist.push_back(other);
        }
  }
}

std::vector<KeptOptions> cleave::spmd::findUndominated(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms,
                                                       ArrayRef<uint16_t> preferred) {
  Pruner pruner(domains, terms, preferred);
  pruner.run();
  return std::move(pruner.kept);
}

//===----------------------------------------------------------------------===//
// What is left, as a smaller sum
//===----------------------------------------------------------------------===//

namespace {
/// The same sum over the options that are kept. Variables with one option are no variables any more.
struct SmallerSum {
  SmallerSum(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, ArrayRef<KeptOptions> kept);

  std::vector<uint32_t> numbers; ///< of variables here, kNoVariable if it has one option
  std::vector<uint16_t> domains;
  std::vector<CostTerm> terms;
  int64_t constant = 0;

private:
  const int64_t *copy(const CostTerm &term, size_t stride, ArrayRef<KeptOptions> kept);

  std::deque<std::vector<int64_t>> cells;
  /// By the table as it was, and what is kept of its rows and columns.
  DenseMap<std::pair<const int64_t *, std::pair<uint32_t, uint32_t>>, const int64_t *> known;
};
} // namespace

SmallerSum::SmallerSum(ArrayRef<uint16_t> allDomains, ArrayRef<CostTerm> allTerms, ArrayRef<KeptOptions> kept)
    : numbers(kept.size(), kNoVariable) {
  for (auto [variable, options] : enumerate(kept))
    if (options.size() > 1) {
      numbers[variable] = domains.size();
      domains.push_back(options.size());
    }
  OptionLists lists;
  std::vector<uint32_t> listOf;
  for (ArrayRef<uint16_t> options : kept)
    listOf.push_back(lists.intern(options));
  for (const CostTerm &term : allTerms) {
    bool isPair = term.second != kNoVariable;
    const int64_t *&left = known[{term.cells, {listOf[term.first], isPair ? listOf[term.second] : kNoVariable}}];
    if (!left)
      left = copy(term, isPair ? allDomains[term.second] : 1, kept);
    uint32_t first = numbers[term.first], second = isPair ? numbers[term.second] : kNoVariable;
    if (first == kNoVariable)
      std::swap(first, second);
    if (first == kNoVariable)
      constant = std::min(constant + *left, kForbidden);
    else
      terms.push_back({first, second, left});
  }
}

/// Row by row, `stride` cells one of the table as it was.
const int64_t *SmallerSum::copy(const CostTerm &term, size_t stride, ArrayRef<KeptOptions> kept) {
  const KeptOptions single = {0};
  std::vector<int64_t> &left = cells.emplace_back();
  for (uint16_t first : kept[term.first])
    for (uint16_t second : term.second == kNoVariable ? single : kept[term.second])
      left.push_back(term.cells[first * stride + second]);
  return left.data();
}

/// Numbers of variables of the smaller sum as those of the whole one, and back.
static std::vector<uint32_t> translate(ArrayRef<uint32_t> variables, ArrayRef<uint32_t> numbers) {
  std::vector<uint32_t> translated;
  for (uint32_t variable : variables)
    if (numbers[variable] != kNoVariable)
      translated.push_back(numbers[variable]);
  return translated;
}

/// Options of the whole sum, by those of the smaller one.
static void putBack(const SmallerSum &sum, ArrayRef<KeptOptions> kept, ArrayRef<uint16_t> options,
                    std::vector<uint16_t> &whole) {
  for (auto [variable, left] : enumerate(kept)) {
    uint32_t number = sum.numbers[variable];
    whole[variable] = left[number == kNoVariable ? 0 : options[number]];
  }
}

std::optional<Minimum> cleave::spmd::minimizeUndominated(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms,
                                                         size_t maxCells, KnownOrders *orders) {
  std::vector<KeptOptions> kept = findUndominated(domains, terms, std::vector<uint16_t>(domains.size(), 0));
  SmallerSum sum(domains, terms, kept);
  Minimum found = minimize(sum.domains, sum.terms, maxCells, {}, /*mayFreeze=*/false, orders);
  if (!found.frozen.empty())
    return std::nullopt;
  found.total = std::min(found.total + sum.constant, kForbidden);
  std::vector<uint16_t> options(domains.size());
  putBack(sum, kept, found.options, options);
  found.options = std::move(options);
  return found;
}

// Each try frees what those before froze, at the cost of others: a few of them go a long way. One that finds nothing is the last.
static constexpr unsigned kMostTries = 3;

Minimum cleave::spmd::improve(ArrayRef<uint16_t> domains, ArrayRef<CostTerm> terms, Minimum known, size_t maxCells,
                              KnownOrders *orders) {
  std::vector<uint32_t> spared;
  for (unsigned count = 0; count < kMostTries && !known.frozen.empty(); ++count) {
    spared.insert(spared.end(), known.frozen.begin(), known.frozen.end());
    llvm::sort(spared);
    std::vector<KeptOptions> kept = findUndominated(domains, terms, known.options);
    SmallerSum sum(domains, terms, kept);
    std::vector<uint32_t> variables(sum.domains.size());
    for (auto [variable, number] : enumerate(sum.numbers))
      if (number != kNoVariable)
        variables[number] = variable;
    Minimum found =
        minimize(sum.domains, sum.terms, maxCells, translate(spared, sum.numbers), /*mayFreeze=*/true, orders);
    known.frozen = translate(found.frozen, variables);
    known.width = std::max(known.width, found.width);
    int64_t total = std::min(found.total + sum.constant, kForbidden);
    if (total >= known.total)
      return known;
    known.total = total;
    putBack(sum, kept, found.options, known.options);
  }
  return known;
}
