//===- Searcher.cpp - named starts, and climbing over preferences ---------===//
//
// List scheduling with the same preferences on all ranks, drawn at random; from the best of sixty, single ranks and runs
// of ranks are changed as long as the score does not get worse (equal is taken: plateaus are wide). When nothing was
// gained for long, it starts over, until the budget is spent or the bound reached.
//
// Named schedules are starts because they are good where costs are even: ZBV with its W put anew is often the best that
// is found at all. Their order of F and I stays; W go where the costs leave time, or memory asks for them. With one
// stage per rank the number of F before the first I decides most: 1F1B has p - r, H2 about twice as many, and exactly as
// many as there is time for is what reaches the bound where memory allows it.
//
//
//===----------------------------------------------------------------------===//
#include "Searcher.h"
#include "ExactSearch.h"
#include "cleave/Schedule/Generate.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace cleave::schedule;

static constexpr double kPatience[] = {0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 3};

Searcher::Searcher(const SearchCandidate &candidate, uint64_t seed)
    : candidate(candidate), bound(computeLowerBound(candidate.schedule, candidate.costs)), problem(candidate),
      lister(problem), evaluator(problem), random(seed), changes(seed) {
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    // By the stage that takes most: caps are preferences, exact memory is counted step by step.
    int64_t most = static_cast<int64_t>(problem.microbatches) * problem.stagesOf[rank].size();
    double forward = 0, held = 0;
    for (int32_t stage : problem.stagesOf[rank]) {
      forward = std::max(forward, problem.memory[kForward][stage]);
      held = std::max(held, -problem.memory[kWeightGrad][stage]);
    }
    auto count = [&](double each) {
      double fit = each > 0 ? problem.limits[rank] / each : static_cast<double>(most);
      return static_cast<int32_t>(std::max(1.0, std::min(fit, static_cast<double>(most))));
    };
    numFit.push_back(count(forward));
    numDue.push_back(count(held));
  }
}

bool Searcher::consider(const Orders &orders, Evaluation &evaluation) {
  if (!evaluator.run(orders, evaluation))
    return false;
  if (!hasAnswer() || evaluation.isBetterThan(bestEvaluation)) {
    best = orders;
    bestEvaluation = evaluation;
  }
  return true;
}

/// As they are, and with W put anew: fixed orders may pass the limit, where W wait for memory they do not.
void Searcher::tryOrders(const Orders &orders) {
  Evaluation evaluation;
  ++tables;
  bool fits = true;
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    fits &= problem.fitsMemory(rank, orders[rank]) && orders[rank].size() == getNumSteps(rank);
  // What passes the limit is still a start: put anew, its W make room.
  if (fits)
    consider(orders, evaluation);
  for (double patience : {0.0, 0.25, 0.5, 1.0}) {
    Preference preference;
    preference.patience = patience;
    ++tables;
    if (lister.refit(orders, Preferences(problem.ranks, preference), scratch))
      consider(scratch, evaluation);
  }
}

/// Whatever memory holds at least, holds this.
void Searcher::tryOneAfterTheOther() {
  Orders orders(problem.ranks);
  for (int32_t microbatch = 0; microbatch < problem.microbatches; ++microbatch) {
    auto add = [&](StepKind kind, int32_t stage) {
      orders[problem.rankOf[stage]].push_back(problem.makeStep(kind, stage, microbatch));
    };
    for (int32_t stage = 0; stage < problem.stages; ++stage)
      add(kForward, stage);
    for (int32_t stage = problem.stages; stage-- > 0 && problem.numKinds == 3;) {
      add(kInputGrad, stage);
      add(kWeightGrad, stage);
    }
  }
  tryOrders(orders);
}

/// One stage per rank: 1F1B with other numbers of F before the first I.
void Searcher::tryWarmUps(llvm::ArrayRef<int32_t> warmUps) {
  Orders orders(problem.ranks);
  for (int32_t rank = 0; rank < problem.ranks; ++rank) {
    int32_t warmUp = std::max(1, warmUps[rank]), stage = problem.stagesOf[rank][0];
    for (int32_t next = 0; next < problem.microbatches + warmUp; ++next) {
      if (next >= warmUp)
        orders[rank].push_back(problem.makeStep(kInputGrad, stage, next - warmUp));
      if (next < problem.microbatches)
        orders[rank].push_back(problem.makeStep(kForward, stage, next));
    }
  }
  tryOrders(orders);
}

/// From as many as 1F1B has to twice as many and more; and as many as there is time for before the first I can come.
void Searcher::tryAllWarmUps() {
  std::vector<int32_t> warmUps(problem.ranks);
  for (int32_t halves = 2; halves <= 5; ++halves)
    for (int32_t more = -1; more <= 1; ++more) {
      for (int32_t rank = 0; rank < problem.ranks; ++rank)
        warmUps[rank] = halves * (problem.ranks - rank) / 2 + more;
      tryWarmUps(warmUps);
    }
  for (int32_t more = -1; more <= 1; ++more) {
    Ticks time = 0;
    // From the last rank up: what lies between a rank's first F and its first I is the way of the rank below, two hops,
    // its I, and the rank's own F.
    for (int32_t rank = problem.ranks; rank-- > 0;) {
      int32_t stage = problem.stagesOf[rank][0];
      for (const Link &link : problem.sinks[stage])
        time += 2 * link.delay + problem.costs[kInputGrad][link.stage];
      Ticks forward = problem.costs[kForward][stage];
      time += forward;
      int64_t count = forward > 0 ? time / forward + more : problem.microbatches;
      warmUps[rank] = static_cast<int32_t>(std::min<int64_t>(count, numFit[rank]));
    }
    tryWarmUps(warmUps);
  }
}

void Searcher::tryNamed() {
  tryOneAfterTheOther();
  if (problem.stages == problem.ranks && problem.numKinds == 3 && problem.stagesOf[0].size() == 1)
    tryAllWarmUps();
  Shape shape;
  shape.ranks = problem.ranks;
  shape.microbatches = problem.microbatches;
  shape.chunks = problem.stages / problem.ranks;
  for (const GeneratorInfo &info : getGenerators()) {
    if (info.isForwardOnly != problem.empty.isForwardOnly)
      continue;
    llvm::Expected<Schedule> schedule = generate(info.name, shape);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    // Of other placements, or with two replicas: not a schedule of this problem.
    if (std::optional<Orders> orders = problem.getOrders(*schedule))
      tryOrders(*orders);
  }
}

/// The `index`-th order of {F, I} x {first, second half}.
static std::array<uint8_t, 4> getPermutation(int32_t index) {
  std::array<uint8_t, 4> order = {0, 1, 2, 3};
  while (index-- > 0)
    std::next_permutation(order.begin(), order.end());
  return order;
}

Preferences Searcher::makeRandom() {
  Preferences preferences(problem.ranks);
  int32_t kind = random.below(4), ranks = problem.ranks;
  Preference all;
  all.patience = kPatience[random.below(std::size(kPatience))];
  all.order = getPermutation(random.below(24));
  if (random.below(2))
    all.bank = 1 + random.below(numDue[0] + 1);
  // Caps that fall along the ranks, as what is under way does: by none, as in 1F1B, as in H2, or from a drawn number. In
  // a V the second half needs room that the first must not take.
  int32_t fewer = random.below(numFit[0] / 2 + 1);
  bool isSingle = problem.stages == ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Preference &preference = preferences[rank] = all;
    int32_t most = numFit[rank] - fewer, left = ranks - rank;
    int32_t single[] = {1 << 20, left, 2 * left - 1, most - rank};
    int32_t several[] = {most, std::min(numFit[rank] - 1, 2 * left - 1 + rank), most - rank / 2, most - rank};
    preference.caps[0] = std::max(1, isSingle ? single[kind] : several[kind]);
  }
  return preferences;
}

void Searcher::mutateRank(Preference &preference, int32_t rank, int32_t what, const Preference &drawn, int32_t step) {
  auto stepped = [&](int32_t value, int32_t most) { return std::max(1, std::min(value, most) + step); };
  switch (what) {
  case 0:
    preference.patience = drawn.patience;
    break;
  case 1:
    preference.order = drawn.order;
    break;
  case 2:
  case 3:
    preference.caps[what - 2] = stepped(preference.caps[what - 2], numFit[rank]);
    break;
  default:
    preference.bank = drawn.bank >= 0 ? drawn.bank : std::max(0, std::min(preference.bank, numDue[rank] + 1) + step);
  }
}

/// One to three changes, each to one rank or to a run of ranks.
void Searcher::mutate(Preferences &preferences) {
  for (int32_t count = 1 + random.below(3); count > 0; --count) {
    int32_t from = random.below(problem.ranks);
    int32_t to = random.below(3) ? from : from + random.below(problem.ranks - from);
    int32_t what = random.below(5), step = random.below(5) - 2;
    Preference drawn;
    drawn.patience = kPatience[random.below(std::size(kPatience))];
    drawn.order = getPermutation(random.below(24));
    drawn.bank = random.below(3) ? -1 : random.below(numDue[0] + 2);
    for (int32_t rank = from; rank <= to; ++rank)
      mutateRank(preferences[rank], rank, what, drawn, step);
  }
}

bool Searcher::list(const Preferences &preferences, Evaluation &evaluation) {
  ++tables;
  return lister.run(preferences, scratch) && consider(scratch, evaluation);
}

void Searcher::climb(int64_t budget) {
  // Small tables are not listed without end.
  int64_t cost = std::max<int64_t>(static_cast<int64_t>(problem.numSteps), 1000);
  const int32_t patience = 250 + 40 * problem.ranks;
  while (budget > 0 && !isDone()) {
    Preferences current;
    Evaluation evaluation;
    double score = 0;
    for (int32_t start = 0; start < 60 && budget > 0; ++start, budget -= cost) {
      Preferences drawn = makeRandom();
      if (list(drawn, evaluation) && (current.empty() || evaluation.score < score)) {
        current = std::move(drawn);
        score = evaluation.score;
      }
    }
    for (int32_t stall = 0; !current.empty() && stall < patience && budget > 0 && !isDone(); ++stall, budget -= cost) {
      Preferences changed = current;
      mutate(changed);
      if (!list(changed, evaluation) || evaluation.score > score)
        continue;
      if (evaluation.score < score)
        stall = 0;
      score = evaluation.score;
      current = std::move(changed);
    }
  }
}

bool Searcher::prove(double below, int64_t maxStates) {
  if (bound.span >= below * (1 - 1e-12))
    return true;
  if (!isSmall(problem))
    return false;
  ExactAnswer answer = searchExactly(problem, std::llround(below * problem.ticksPerUnit), maxStates);
  Evaluation evaluation;
  if (!answer.orders.empty())
    consider(answer.orders, evaluation);
  return answer.isComplete;
}
