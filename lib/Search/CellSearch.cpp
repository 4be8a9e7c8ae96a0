//===- CellSearch.cpp - one mesh, all prices of memory --------------------===//
//
// Prices are raised until an answer fits. Between one that fits and one that does not the next price is that at which both are as good: what is best there lies on the front between them, or there is nothing between them.
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
/// A price is raised by so much, and so many prices are tried between two.
constexpr double kStep = 10;
constexpr unsigned kMostBetween = 10;
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

/// Of what has been solved, the dearest price whose answer does not fit, and the least above it whose answer does.
CellSearch::Bracket CellSearch::findBracket(int64_t mostBytes) const {
  Bracket known;
  for (const auto &answer : answers)
    if (answer->valueShare == valueShare && answer->style < 0 && answer->storedBytes > mostBytes &&
        (!known.fast || answer->price > known.fast->price))
      known.fast = answer.get();
  for (const auto &answer : answers)
    if (answer->valueShare == valueShare && answer->style < 0 && mostBytes >= answer->storedBytes &&
        answer->price > known.fast->price && (!known.small || answer->price < known.small->price))
      known.small = answer.get();
  return known;
}

/// At first all that is stored costs a tenth of what takes time: from there on most limits are met. What does not fit at ten times that often
/// fits at no price, which the highest one shows.
bool CellSearch::closeBracket(int64_t mostBytes, Bracket &known) {
  double price = lastPrice > 0 ? lastPrice : known.fast->ns / std::max(kStep * known.fast->pricedBytes, 1.0);
  price = std::clamp(price, kStep * known.fast->price, kMostPrice);
  for (unsigned step = 0; !known.small; ++step) {
    const CellAnswer *met = solve(price);
    (met->storedBytes <= mostBytes ? known.small : known.fast) = met;
    if (!known.small && price >= kMostPrice)
      return false;
    price = step > 0 ? kMostPrice : std::min(price * kStep, kMostPrice);
  }
  return true;
}

const CellAnswer *CellSearch::find(int64_t mostBytes) {
  auto fits = [&](const CellAnswer *answer) { return answer->storedBytes <= mostBytes; };
  const CellAnswer *fastest = solve(kLeastUnits / options.costs.perNs);
  if (!fastest || fits(fastest))
    return fastest;
  Bracket known = findBracket(mostBytes);
  if (!known.small && !closeBracket(mostBytes, known))
    return nullptr;
  for (unsigned round = 0; round < kMostBetween && !fillsWell(*known.small, mostBytes); ++round) {
    const CellAnswer *met = solve(getPriceBetween(*known.fast, *known.small));
    // Searches are not exact: far from both, a line says little of what is between.
    if (isOnLine(*met, *known.fast, *known.small) && known.small->price <= kStep * known.fast->price)
      break;
    (fits(met) ? known.small : known.fast) = met;
  }
  lastPrice = known.small->price;
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
