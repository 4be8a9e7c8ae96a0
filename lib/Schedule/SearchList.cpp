//===- SearchList.cpp - schedules made in the order of time ---------------===//
//
// Time goes from one rank's decision to the next: each rank has the time at which it may have something to decide, the
// least of which is next. A step that starts tells those that wait for it when they may look again.
//
//   time 3   rank 1 is free: its F is there -> F starts, ends at 4; rank 2, one hop further, may look at 4 + latency
//   time 4   rank 1 is free: nothing is there, an I comes at 4.5, a W is due: patience says whether it waits
//
// What is known of the future is what has started, no more: a decision never has to be taken back, and a schedule is
// made in one pass. Quality comes from trying many preferences (Searcher.cpp), not from looking ahead.
//
//===----------------------------------------------------------------------===//
#include "SearchList.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace cleave::schedule;

static constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

ListScheduler::ListScheduler(const SearchProblem &problem) : problem(problem), half(problem.stages, 0) {
  for (const std::vector<int32_t> &stages : problem.stagesOf)
    for (auto [position, stage] : llvm::enumerate(stages))
      half[stage] = 2 * position >= stages.size() && stages.size() > 1;
}

bool ListScheduler::run(llvm::ArrayRef<Preference> wanted, Orders &orders) {
  preferences = wanted;
  fixed = nullptr;
  return runAll(orders);
}

/// Only the order of F and I is kept: the fixed W are skipped when the rank comes to them (`act`), as its own are due by
/// then, done, or better later.
bool ListScheduler::refit(const Orders &order, llvm::ArrayRef<Preference> wanted, Orders &orders) {
  preferences = wanted;
  fixed = &order;
  return runAll(orders);
}

bool ListScheduler::runAll(Orders &orders) {
  size_t pairs = static_cast<size_t>(problem.stages) * problem.microbatches;
  // Arrays keep their memory from one table to the next: there are thousands.
  states.resize(problem.ranks);
  orders.resize(problem.ranks);
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    Rank &state = states[rank];
    state.freeAt = 0;
    state.held = 0;
    state.due.clear();
    state.dueFrom = state.done = state.next = 0;
    orders[rank].clear();
  }
  wakeAt.assign(problem.ranks, 0);
  numForward.assign(problem.stages, 0);
  numGrad.assign(problem.stages, 0);
  forwardEnds.assign(pairs, kUnknown);
  gradEnds.assign(pairs, kUnknown);
  size_t placed = 0;
  while (placed < problem.numSteps) {
    // Few ranks: looking at all of them is quicker than keeping a heap. Ties go to the first rank.
    auto next = std::min_element(wakeAt.begin(), wakeAt.end());
    if (*next == kNever)
      return false;
    auto rank = static_cast<int32_t>(next - wakeAt.begin());
    now = *next;
    size_t before = orders[rank].size();
    act(rank, orders);
    placed += orders[rank].size() - before;
  }
  return true;
}

/// Takes the step into account: it is there now and preferred, or later, or kept out by memory or caps.
void ListScheduler::offer(Choice &choice, const Step &step, int32_t priority, int32_t rank) const {
  Ticks ready = problem.getReady(step, forwardEnds, gradEnds);
  if (ready == kUnknown)
    return;
  bool fits = problem.fits(rank, states[rank].held, step);
  if (fits && !fixed && step.kind == kForward)
    fits = numForward[step.stage] - numGrad[step.stage] < preferences[rank].caps[half[step.stage]];
  if (ready > now) {
    if (fits)
      choice.soon = std::min(choice.soon, ready);
  } else if (!fits) {
    choice.isBlocked = true;
  } else if (priority < choice.priority) {
    choice.step = step;
    choice.priority = priority;
    choice.isNow = true;
  }
}

/// Of stages in the same class, F of the last and I of the first: what has come furthest.
ListScheduler::Choice ListScheduler::choose(int32_t rank) const {
  Choice choice;
  choice.soon = kNever;
  const std::vector<int32_t> &stages = problem.stagesOf[rank];
  auto count = static_cast<int32_t>(stages.size());
  const Preference &preference = preferences[rank];
  for (int32_t position = 0; position < count; ++position) {
    int32_t stage = stages[position], forward = numForward[stage], grad = numGrad[stage];
    if (forward < problem.microbatches)
      offer(choice, problem.makeStep(kForward, stage, forward),
            preference.order[half[stage]] * count + count - 1 - position, rank);
    if (grad < forward && problem.numKinds == 3)
      offer(choice, problem.makeStep(kInputGrad, stage, grad), preference.order[2 + half[stage]] * count + position,
            rank);
  }
  return choice;
}

ListScheduler::Choice ListScheduler::chooseFixed(int32_t rank) const {
  Choice choice;
  choice.soon = kNever;
  llvm::ArrayRef<Step> order = (*fixed)[rank];
  if (states[rank].next < order.size())
    offer(choice, order[states[rank].next], 0, rank);
  return choice;
}

/// A rank in the middle of a step looks again when that ends.
void ListScheduler::wake(int32_t rank, Ticks time) {
  wakeAt[rank] = std::min(wakeAt[rank], std::max(time, states[rank].freeAt));
}

/// One decision of a free rank: a step that starts now, or a time to look again, or neither, until it is woken.
void ListScheduler::act(int32_t rank, Orders &orders) {
  Rank &state = states[rank];
  wakeAt[rank] = kNever;
  if (fixed)
    while (state.next < (*fixed)[rank].size() && (*fixed)[rank][state.next].kind == kWeightGrad)
      ++state.next;
  Choice choice = fixed ? chooseFixed(rank) : choose(rank);
  const Preference &preference = preferences[rank];
  auto numDue = static_cast<int32_t>(state.due.size() - state.dueFrom);
  // A rank without anything that is sure to come takes a W at once: whatever makes it ready has not started yet.
  bool isFull = numDue > preference.bank;
  if (numDue > 0 && (!choice.isNow || isFull)) {
    Step step = state.due[state.dueFrom];
    double patience = preference.patience * static_cast<double>(problem.getCost(step));
    if (isFull || choice.isBlocked || choice.soon == kNever || static_cast<double>(choice.soon - now) >= patience)
      return take(rank, step, orders);
  }
  if (choice.isNow)
    return take(rank, choice.step, orders);
  if (choice.soon != kNever)
    wake(rank, choice.soon);
}

void ListScheduler::take(int32_t rank, const Step &step, Orders &orders) {
  Rank &state = states[rank];
  orders[rank].push_back(step);
  state.held += problem.getMemory(step);
  Ticks end = state.freeAt = now + problem.getCost(step);
  // A rank that is done is never asked again; others may have more to do at the end of this step.
  if (++state.done < static_cast<size_t>(problem.numKinds) * problem.microbatches * problem.stagesOf[rank].size())
    wakeAt[rank] = end;
  if (step.kind == kWeightGrad) {
    ++state.dueFrom;
    return;
  }
  bool isForward = step.kind == kForward;
  (isForward ? forwardEnds : gradEnds)[step.index] = end;
  ++(isForward ? numForward : numGrad)[step.stage];
  if (fixed)
    ++state.next;
  if (!isForward) {
    Step due = step;
    due.kind = kWeightGrad;
    state.due.push_back(due);
  }
  for (const Link &link : (isForward ? problem.sinks : problem.sources)[step.stage])
    if (int32_t other = problem.rankOf[link.stage]; other != rank)
      wake(other, end + link.delay);
}
