//===- CellSearch.cpp - one mesh, all prices of memory --------------------===//
//
// Prices are raised by steps of ten until an answer fits, and then bisected by their logarithm, for the front is far from even in them.
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
/// Between neighbors a price is raised by so much, and bisected so often.
constexpr double kStep = 10;
constexpr unsigned kBisections = 6;
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
  answer->ns = static_cast<double>(answer->getDecision().objective) / options.costs.perNs -
               price * (static_cast<double>(answer->storedBytes) + valueShare * countValues(answer->getDecision()));
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

const CellAnswer *CellSearch::find(int64_t mostBytes) {
  auto fits = [&](const CellAnswer *answer) { return answer->storedBytes <= mostBytes; };
  double least = kLeastUnits / options.costs.perNs, low = least;
  const CellAnswer *dear = solve(low);
  if (!dear || fits(dear))
    return dear;
  // Where the last search ended, another limit is not far from it.
  double high = lastPrice > 0 ? lastPrice : std::max(kFirstPrice, kStep * low);
  while (high > kStep * least && fits(solve(high / kStep)))
    high /= kStep;
  low = std::max(least, high / kStep);
  while (high < kMostPrice && !fits(solve(high))) {
    low = high;
    high *= kStep;
  }
  if (!fits(solve(high)))
    return nullptr;
  for (unsigned round = 0; round < kBisections && !fillsWell(*solve(high), mostBytes); ++round) {
    double middle = std::sqrt(low * high);
    (fits(solve(middle)) ? high : low) = middle;
  }
  lastPrice = high;
  // Searches are not exact: a higher price may have met a faster answer.
  const CellAnswer *best = nullptr;
  for (const auto &answer : answers)
    if (fits(answer.get()) && answer->valueShare == valueShare && (!best || answer->ns < best->ns))
      best = answer.get();
  return best;
}
