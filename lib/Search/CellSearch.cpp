//===- CellSearch.cpp - one mesh, all prices of memory --------------------===//
//
// Prices are raised by steps of ten until an answer fits. Between one that fits and one that does not the next price is that at which both
// are as good: what is best there lies on the front between them, or there is nothing between them.
//
//   time |  x small                 the slope of the line is the price; what is found at it is below the line,
//        |     `-.  o               or the line is the front
//        |        `-. `-.
//        |            `-- x fast
//        +----------------------- memory
//
// Whatever was solved is kept.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/CellSearch.h"
#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// Units per byte: of equal times the least price prefers less memory, 1 MB of which counts as a byte over the fastest link.
constexpr double kLeastUnits = 1.0 / 1024;
/// Nanoseconds per byte, where the search begins.
constexpr double kFirstPrice = 1e-6;
/// Between neighbors a price is raised by so much, and so many prices are tried between two.
constexpr double kStep = 10;
constexpr unsigned kMostBetween = 6;
} // namespace

CellSearch::CellSearch(const Problem &problem, SolverOptions options, std::vector<SearchStyle> styles)
    : problem(problem), options(std::move(options)), styles(std::move(styles)) {
  assert(this->options.costs.isTime() && "memory is held against time");
}

/// Parameters whose storage an annotation says count as well: a limit is one of all.
int64_t CellSearch::countStored(const Decision &decision) const {
  int64_t bytes = 0;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (problem.producer(value) == kNone && (problem.isStorageDecided(value) || problem.isParameter(value)))
      bytes += localBytes(problem.getMesh(), problem.shape(value), problem.elementBytes(value),
                          decision.states[decision.valueStates[value]]);
  return bytes;
}

double CellSearch::countValues(const Decision &decision) const {
  double bytes = 0;
  auto add = [&](ValueId value, StateId state) {
    bytes += static_cast<double>(
        localBytes(problem.getMesh(), problem.shape(value), problem.elementBytes(value), decision.states[state]));
  };
  for (OpId op = 0; op < problem.numOps(); ++op) {
    for (auto [index, value] : enumerate(problem.operands(op)))
      add(value, decision.operandStates[problem.firstOperand(op) + index]);
    for (auto [index, value] : enumerate(problem.results(op)))
      add(value, decision.resultStates[problem.firstResult(op) + index]);
  }
  return bytes;
}

/// What has been solved before is looked up. Prices are costs of the solver for as long as it searches, and no part of the time of an answer.
const CellAnswer *CellSearch::solve(double price, int style) {
  for (const auto &answer : answers)
    if (answer->price == price && answer->style == style && answer->valueShare == valueShare)
      return answer.get();
  SolverOptions priced = options;
  priced.perStoredByte = price * options.costs.perNs;
  priced.perValueByte = priced.perStoredByte * valueShare;
  if (style >= 0)
    priced.maySplit = styles[style];
  Solver solver(problem, priced);
  if (!solver.solve())
    return nullptr;
  auto answer = std::make_unique<CellAnswer>();
  answer->decision = solver.getDecision();
  answer->price = price;
  answer->style = style;
  answer->valueShare = valueShare;
  answer->storedBytes = countStored(answer->getDecision());
  answer->pricedBytes = static_cast<double>(answer->storedBytes) + valueShare * countValues(answer->getDecision());
  answer->ns = static_cast<double>(answer->getDecision().objective) / options.costs.perNs - price * answer->pricedBytes;
  return answers.emplace_back(std::move(answer)).get();
}

std::vector<const CellAnswer *> CellSearch::findOthers(const CellAnswer &answer) {
  std::vector<const CellAnswer *> found{&answer};
  auto isNew = [&](const CellAnswer &one) {
    return none_of(found, [&](const CellAnswer *other) {
      return one.getDecision().objective == other->getDecision().objective && one.storedBytes == other->storedBytes &&
             one.getDecision().wireBytes == other->getDecision().wireBytes;
    });
  };
  for (int style = 0; style < static_cast<int>(styles.size()); ++style)
    if (const CellAnswer *one = solve(answer.price, style); one && isNew(*one))
      found.push_back(one);
  return found;
}

/// So little of a limit is left that the least price which fits is hardly lower.
static bool fillsWell(const CellAnswer &answer, int64_t mostBytes) {
  constexpr double kWell = 0.98;
  return static_cast<double>(answer.storedBytes) >= kWell * static_cast<double>(mostBytes);
}

/// Of the line through both; where they do not lie on a front, for searches are not exact, the price in the middle.
static double getPriceBetween(const CellAnswer &fast, const CellAnswer &small) {
  double price = (small.ns - fast.ns) / (fast.pricedBytes - small.pricedBytes);
  return price > fast.price && price < small.price ? price : std::sqrt(fast.price * small.price);
}

/// At its price it is no better than what was known on either side.
static bool isOnLine(const CellAnswer &met, const CellAnswer &fast, const CellAnswer &small) {
  constexpr double kEqual = 1e-9;
  auto cost = [&](const CellAnswer &answer) { return answer.ns + met.price * answer.pricedBytes; };
  return cost(met) >= std::min(cost(fast), cost(small)) * (1 - kEqual);
}

const CellAnswer *CellSearch::find(int64_t mostBytes) {
  auto fits = [&](const CellAnswer *answer) { return answer->storedBytes <= mostBytes; };
  double least = kLeastUnits / options.costs.perNs, low = least;
  const CellAnswer *fast = solve(low);
  if (!fast || fits(fast))
    return fast;
  // Where the last search ended, another limit is not far from it.
  double high = lastPrice > 0 ? lastPrice : std::max(kFirstPrice, kStep * low);
  while (high > kStep * least && fits(solve(high / kStep)))
    high /= kStep;
  low = std::max(least, high / kStep);
  while (high < kMostPrice && !fits(solve(high))) {
    low = high;
    high *= kStep;
  }
  const CellAnswer *small = solve(high);
  if (!fits(small))
    return nullptr;
  fast = solve(low);
  for (unsigned round = 0; round < kMostBetween && !fillsWell(*small, mostBytes); ++round) {
    const CellAnswer *met = solve(getPriceBetween(*fast, *small));
    if (isOnLine(*met, *fast, *small))
      break;
    (fits(met) ? small : fast) = met;
  }
  lastPrice = small->price;
  // Searches are not exact: a higher price may have met a faster answer.
  const CellAnswer *best = nullptr;
  for (const auto &answer : answers)
    if (fits(answer.get()) && answer->valueShare == valueShare && (!best || answer->ns < best->ns))
      best = answer.get();
  return best;
}

const CellAnswer *CellSearch::findFaster(const CellAnswer &than) const {
  const CellAnswer *nearest = nullptr;
  for (const auto &answer : answers)
    if (answer->ns < than.ns && answer->style < 0 && (!nearest || answer->ns > nearest->ns))
      nearest = answer.get();
  return nearest;
}
