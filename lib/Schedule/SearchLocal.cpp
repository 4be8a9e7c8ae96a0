//===- SearchLocal.cpp - changes to the orders of ranks -------------------===//
//
// A move takes one step of one rank to another place:
//
//   late       what a gap waits for comes late where a rank did something else first: that goes behind it. Found by
//              walking back from the gap, over hops to whoever made the operand, and along what ran before it
//   fill       a W from behind into a gap, or another step that stands soon after it
//   postpone   a W to later
//   swap       a step before its neighbors
//
// Ranks with the worst span are chosen more often. Annealing, cold: at first two hundredths of a microbatch's time may
// be lost, at the end nothing.
//
//===----------------------------------------------------------------------===//
#include "Searcher.h"
#include <algorithm>
#include <cmath>

using namespace cleave::schedule;

/// A W behind the gap whose I stands before it, one of the first three; otherwise one of the next four steps.
int32_t Searcher::findGapFiller(llvm::ArrayRef<Step> order, int32_t gap) {
  auto size = static_cast<int32_t>(order.size());
  int32_t found = -1, count = 1 + changes.below(3);
  for (int32_t position = gap; position < size && count > 0; ++position) {
    const Step &step = order[position];
    if (step.kind != kWeightGrad)
      continue;
    bool isDue = llvm::any_of(llvm::reverse(order.take_front(gap)), [&](const Step &before) {
      return before.kind == kInputGrad && before.index == step.index;
    });
    if (!isDue)
      continue;
    found = position;
    --count;
  }
  return found >= 0 ? found : std::min(size - 1, gap + 1 + changes.below(4));
}

/// Takes the step at `from` to `to`; what lies between moves by one.
static void moveStep(std::vector<Step> &order, int32_t from, int32_t to) {
  auto begin = order.begin();
  if (from < to)
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  else
    std::rotate(begin + to, begin + from, begin + from + 1);
}

/// Where a rank waits before a step, one of those places; -1 if it never does.
int32_t Searcher::drawGap(llvm::ArrayRef<Step> order, llvm::ArrayRef<Ticks> starts) {
  int32_t found = -1, count = 0;
  for (int32_t position = 1; position < static_cast<int32_t>(order.size()); ++position)
    if (starts[position] > starts[position - 1] + problem.getCost(order[position - 1]) && changes.below(++count) == 0)
      found = position;
  return found;
}

/// The operand of the step that comes last, and its rank; false if it has none on another rank or stage.
static bool findOperand(const SearchProblem &problem, const Evaluator &at, const Step &step, Step &operand) {
  bool isForward = step.kind == kForward;
  Ticks latest = -1;
  if (step.kind == kWeightGrad)
    return false;
  for (const Link &link : (isForward ? problem.sources : problem.sinks)[step.stage]) {
    Step candidate = problem.makeStep(step.kind, link.stage, step.index - step.stage * problem.microbatches);
    Ticks there = at.getEnd(candidate) + link.delay;
    if (there > latest) {
      latest = there;
      operand = candidate;
    }
  }
  return latest >= 0;
}

/// The move `late`, from the gap before `position` of `rank`. The rank whose order was changed, or -1.
int32_t Searcher::hasten(Orders &orders, int32_t rank, int32_t position, const Evaluator &at,
                         std::vector<Step> &before) {
  for (int32_t walked = 0; walked < 64 && position > 0; ++walked) {
    std::vector<Step> &order = orders[rank];
    llvm::ArrayRef<Ticks> starts = at.getStarts(rank);
    bool isWaiting = starts[position] > starts[position - 1] + problem.getCost(order[position - 1]);
    Step operand;
    if (isWaiting) {
      if (!findOperand(problem, at, order[position], operand))
        return -1;
      rank = problem.rankOf[operand.stage];
      llvm::ArrayRef<Ticks> there = at.getStarts(rank);
      position =
          static_cast<int32_t>(llvm::lower_bound(there, at.getEnd(operand) - problem.getCost(operand)) - there.begin());
      while (orders[rank][position].index != operand.index || orders[rank][position].kind != operand.kind)
        ++position;
      continue;
    }
    if (changes.below(3) > 0) {
      // The nearest W that ran before it, or else its neighbor.
      int32_t from = position - 1, reach = std::max(0, position - 1 - changes.below(8));
      while (from > reach && order[from].kind != kWeightGrad)
        --from;
      if (order[from].kind != kWeightGrad)
        from = position - 1;
      before = order;
      moveStep(order, from, position);
      return rank;
    }
    --position;
  }
  return -1;
}

/// The rank whose order was changed, which was `before`; -1 if the drawn move does not exist.
int32_t Searcher::move(Orders &orders, int32_t rank, const Evaluator &at, std::vector<Step> &before) {
  std::vector<Step> &order = orders[rank];
  auto size = static_cast<int32_t>(order.size());
  if (size < 2)
    return -1;
  double kind = changes.unit();
  if (kind < 0.6) {
    int32_t gap = drawGap(order, at.getStarts(rank));
    if (gap < 0)
      return -1;
    if (kind < 0.3)
      return hasten(orders, rank, gap, at, before);
    before = order;
    moveStep(order, findGapFiller(order, gap), gap);
    return rank;
  }
  int32_t position = changes.below(size - 1);
  before = order;
  if (kind >= 0.8) {
    moveStep(order, std::min(size - 1, position + 1 + changes.below(3)), position);
    return rank;
  }
  while (position < size - 1 && order[position].kind != kWeightGrad)
    ++position;
  moveStep(order, position, std::min(size - 1, position + 1 + changes.below(12)));
  return rank;
}

void Searcher::improve(int64_t budget) {
  if (!hasAnswer() || problem.numKinds == 1)
    return;
  // Two evaluators: where the gaps of the current orders are, and what the changed ones give.
  Evaluator first(problem), second(problem), *current = &first, *changed = &second;
  Orders orders = best;
  Evaluation evaluation, next;
  current->run(orders, evaluation);
  double perMicrobatch = static_cast<double>(problem.work[0]) / problem.microbatches;
  const int64_t all = budget;
  std::vector<Step> before;
  while (budget > 0 && !isDone()) {
    double temperature = std::max(1.0, 0.02 * perMicrobatch * static_cast<double>(budget) / static_cast<double>(all));
    // What a move costs that does not even reach evaluation.
    budget -= 200;
    int32_t rank = changes.below(problem.ranks);
    if (changes.unit() < 0.4)
      rank = static_cast<int32_t>(llvm::max_element(evaluation.spans) - evaluation.spans.begin());
    rank = move(orders, rank, *current, before);
    if (rank < 0)
      continue;
    ++moves;
    if (problem.fitsMemory(rank, orders[rank])) {
      budget -= static_cast<int64_t>(problem.numSteps);
      if (changed->run(orders, next) && (next.score <= evaluation.score ||
                                         changes.unit() < std::exp((evaluation.score - next.score) / temperature))) {
        std::swap(current, changed);
        std::swap(evaluation, next);
        if (evaluation.isBetterThan(bestEvaluation)) {
          best = orders;
          bestEvaluation = evaluation;
        }
        continue;
      }
    }
    std::swap(orders[rank], before);
  }
}
