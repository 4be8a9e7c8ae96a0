//===- SearchProblem.cpp - a placement and its costs, densely -------------===//
//
// Evaluation is a longest path: ranks that can go on stand in a queue; one goes through its order until an operand is
// missing, and whoever makes that queues it again. Linear in steps. It is what local search spends its time on, so that
// nothing is allocated after the first run, and links of a stage lie in one array each.
//
//===----------------------------------------------------------------------===//
#include "SearchProblem.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace cleave::schedule;

/// A scale at which all times are whole, if there is a decimal one; otherwise one that is fine enough.
static double findScale(llvm::ArrayRef<double> times) {
  double largest = 0;
  for (double time : times)
    largest = std::max(largest, time);
  if (largest <= 0)
    return 1;
  // A twelfth of a decimal: shares of two, three and four chunks are whole too.
  for (double scale = 12; scale * largest < 1e9; scale *= 10)
    if (llvm::all_of(times, [&](double time) { return std::abs(time * scale - std::round(time * scale)) < 1e-6; }))
      return scale;
  return 1e7 / largest;
}

SearchProblem::SearchProblem(const SearchCandidate &candidate)
    : empty(candidate.schedule), ranks(empty.numRanks), stages(empty.numStages), microbatches(empty.numMicrobatches),
      numKinds(empty.isForwardOnly ? 1 : 3), rankOf(empty.replicas[0].placement), stagesOf(ranks), sources(stages),
      sinks(stages), work(ranks, 0) {
  const Costs &given = candidate.costs;
  // Hops within a rank take no time, whatever their channel says: nothing is sent.
  const std::vector<double> *times[] = {&given.forward, &given.inputGrad, &given.weightGrad};
  const std::vector<double> *held[] = {&given.memoryForward, &given.memoryInputGrad, &given.memoryWeightGrad};
  auto getDelay = [&](const Channel &channel) {
    return rankOf[channel.from] == rankOf[channel.to] ? 0 : given.getHop(channel);
  };
  std::vector<double> all;
  for (const std::vector<double> *list : times)
    all.insert(all.end(), list->begin(), list->end());
  for (const Channel &channel : empty.channels)
    all.push_back(getDelay(channel));
  ticksPerUnit = findScale(all);
  for (int32_t kind = 0; kind < 3; ++kind) {
    for (double time : *times[kind])
      costs[kind].push_back(std::llround(time * ticksPerUnit));
    memory[kind] = *held[kind];
  }
  for (const Channel &channel : empty.channels) {
    Ticks delay = std::llround(getDelay(channel) * ticksPerUnit);
    sources[channel.to].push_back({channel.from, delay});
    sinks[channel.from].push_back({channel.to, delay});
  }
  for (int32_t stage = 0; stage < stages; ++stage) {
    stagesOf[rankOf[stage]].push_back(stage);
    for (int32_t kind = 0; kind < numKinds; ++kind)
      work[rankOf[stage]] += costs[kind][stage] * microbatches;
  }
  for (int32_t rank = 0; rank < ranks; ++rank)
    limits.push_back(given.getMemoryLimit(rank));
  numSteps = static_cast<size_t>(stages) * microbatches * numKinds;
}

bool SearchProblem::fitsMemory(int32_t rank, llvm::ArrayRef<Step> order) const {
  double held = 0;
  for (const Step &step : order) {
    if (!fits(rank, held, step))
      return false;
    held += getMemory(step);
  }
  return true;
}

/// By StepKind.
static constexpr ActionKind kActions[] = {ActionKind::F, ActionKind::I, ActionKind::W};

Schedule SearchProblem::getSchedule(const Orders &orders) const {
  Schedule schedule = empty;
  schedule.programs.assign(ranks, {});
  for (auto [rank, order] : llvm::enumerate(orders))
    for (const Step &step : order) {
      Action &action = schedule.programs[rank].emplace_back();
      action.kind = kActions[step.kind];
      action.stage = step.stage;
      action.microbatch = step.index % microbatches;
    }
  return schedule;
}

std::optional<Orders> SearchProblem::getOrders(const Schedule &schedule) const {
  if (schedule.replicas.size() != 1 || llvm::ArrayRef<int32_t>(schedule.replicas[0].placement) != rankOf)
    return std::nullopt;
  Orders orders(ranks);
  for (auto [rank, program] : llvm::enumerate(schedule.programs))
    for (const Action &action : program) {
      if (action.kind == ActionKind::F)
        orders[rank].push_back(makeStep(kForward, action.stage, action.microbatch));
      if (action.kind == ActionKind::I || action.kind == ActionKind::B)
        orders[rank].push_back(makeStep(kInputGrad, action.stage, action.microbatch));
      if (action.kind == ActionKind::W || action.kind == ActionKind::B)
        orders[rank].push_back(makeStep(kWeightGrad, action.stage, action.microbatch));
    }
  return orders;
}

Evaluator::Evaluator(const SearchProblem &problem) : problem(problem), starts(problem.ranks) {}

/// Goes through a rank's order as far as operands are known; true at its end.
bool Evaluator::advance(int32_t rank, llvm::ArrayRef<Step> order) {
  std::vector<Ticks> &times = starts[rank];
  Ticks now = freeAt[rank];
  while (times.size() < order.size()) {
    const Step &step = order[times.size()];
    Ticks ready = problem.getReady(step, forwardEnds, gradEnds);
    if (ready == kUnknown)
      break;
    now = std::max(now, ready);
    times.push_back(now);
    now += problem.getCost(step);
    if (step.kind == kWeightGrad)
      continue;
    (step.kind == kForward ? forwardEnds : gradEnds)[step.index] = now;
    for (const Link &link : (step.kind == kForward ? problem.sinks : problem.sources)[step.stage]) {
      int32_t other = problem.rankOf[link.stage];
      if (other != rank && !isQueued[other]) {
        isQueued[other] = 1;
        queue.push_back(other);
      }
    }
  }
  freeAt[rank] = now;
  return times.size() == order.size();
}

bool Evaluator::run(const Orders &orders, Evaluation &evaluation) {
  size_t pairs = static_cast<size_t>(problem.stages) * problem.microbatches;
  forwardEnds.assign(pairs, kUnknown);
  gradEnds.assign(pairs, kUnknown);
  freeAt.assign(problem.ranks, 0);
  isQueued.assign(problem.ranks, 1);
  queue.clear();
  // The queue is a stack: rank 0, which others wait for first, is on top.
  for (int32_t rank = problem.ranks; rank-- > 0;) {
    starts[rank].clear();
    queue.push_back(rank);
  }
  while (!queue.empty()) {
    int32_t rank = queue.back();
    queue.pop_back();
    isQueued[rank] = 0;
    advance(rank, orders[rank]);
  }
  evaluation.span = 0;
  evaluation.spans.assign(problem.ranks, 0);
  Ticks waits = 0, worst = 0;
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    if (starts[rank].size() < orders[rank].size())
      return false;
    Ticks span = orders[rank].empty() ? 0 : freeAt[rank] - starts[rank].front();
    evaluation.spans[rank] = span;
    // What ranks with less to do wait is no loss of theirs alone: all wait for the worst, but on a plateau of the worst
    // span the sum says which way is down.
    evaluation.span = std::max(evaluation.span, span);
    waits += span - problem.work[rank];
    worst = std::max(worst, span);
  }
  evaluation.score = static_cast<double>(worst) + 0.3 * static_cast<double>(waits) / problem.ranks;
  return true;
}
