//===- ExactSearch.cpp - the best schedule of few ranks, proved -----------===//
//
// Branch and bound over orders, built in time (Giffler and Thompson 1960): of all steps that can be next on their rank,
// the one that would end first decides the rank; one of its steps that can start before that end comes next there,
// because otherwise the first could be put before all of them for free. Where a step takes memory under a limit that is
// not free; then it comes next, or is held until the rank has done something else.
//
// Microbatches of a stage are alike, so that a state is a count per stage and kind, and the times at which ranks are
// free and operands there. A state none of whose times is before another's of the same counts is left out. A state ends
// where a bound of its span is no better than the best:
//
//   what its rank has to do yet;  the way of its last F through all stages and back, and of its last I, to stage 0
//
//===----------------------------------------------------------------------===//
#include "ExactSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <map>

using namespace cleave::schedule;

static constexpr int32_t kMaxRanks = 4, kMaxMicrobatches = 4, kMaxStages = 16;

bool cleave::schedule::isSmall(const SearchProblem &problem) {
  if (problem.ranks > kMaxRanks || problem.microbatches > kMaxMicrobatches || problem.stages > kMaxStages ||
      problem.numKinds != 3)
    return false;
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    const std::vector<Link> &sources = problem.sources[stage];
    if (stage == 0 ? !sources.empty() : sources.size() != 1 || sources[0].stage != stage - 1)
      return false;
    // Only F is held back for memory.
    if (problem.memory[kInputGrad][stage] > 0 || problem.memory[kWeightGrad][stage] > 0)
      return false;
  }
  return true;
}

namespace {
struct State {
  /// Per kind and stage, how many are placed.
  std::array<std::array<int8_t, kMaxStages>, 3> counts{};
  /// The next F of the stage may not be next on its rank.
  std::array<bool, kMaxStages> isHeld{};
  std::array<Ticks, kMaxRanks> freeAt{}, startAt{};
  std::array<double, kMaxRanks> held{};
  /// Ends of F and I per stage and microbatch.
  std::array<std::array<Ticks, size_t(kMaxStages) * kMaxMicrobatches>, 2> ends;
};

struct Option {
  Step step;
  Ticks start, end;
};

class ExactSearch {
public:
  ExactSearch(const SearchProblem &problem, Ticks below, int64_t maxStates)
      : problem(problem), least(below), statesLeft(maxStates) {
    findPaths();
  }

  ExactAnswer run() {
    State first;
    first.startAt.fill(kUnknown);
    for (auto &list : first.ends)
      list.fill(kUnknown);
    path.reserve(problem.numSteps);
    visit(first);
    ExactAnswer answer;
    answer.isComplete = statesLeft > 0;
    if (!best.empty())
      answer.orders.resize(problem.ranks);
    for (const Step &step : best)
      answer.orders[problem.rankOf[step.stage]].push_back(step);
    return answer;
  }

private:
  /// A chain: sums along it. `back` includes the F of all later stages and their I, `tail` the I of all earlier ones.
  void findPaths() {
    back.assign(problem.stages, 0);
    tail.assign(problem.stages, 0);
    for (int32_t stage = problem.stages - 1; stage-- > 0;) {
      const Link &next = problem.sinks[stage][0];
      back[stage] =
          back[stage + 1] + problem.costs[kForward][stage + 1] + problem.costs[kInputGrad][stage + 1] + 2 * next.delay;
    }
    for (int32_t stage = 1; stage < problem.stages; ++stage)
      tail[stage] = tail[stage - 1] + problem.costs[kInputGrad][stage - 1] + problem.sources[stage][0].delay;
  }

  /// When the next step of the kind on the stage could start; unknown if it cannot be next.
  Ticks getStart(const State &state, StepKind kind, int32_t stage, Step &step) const {
    int32_t count = state.counts[kind][stage], rank = problem.rankOf[stage];
    if (count == problem.microbatches || (kind > kForward && count == state.counts[kind - 1][stage]))
      return kUnknown;
    step = problem.makeStep(kind, stage, count);
    if (!problem.fits(rank, state.held[rank], step) || (kind == kForward && state.isHeld[stage]))
      return kUnknown;
    Ticks ready = problem.getReady(step, state.ends[kForward], state.ends[kInputGrad]);
    return ready == kUnknown ? kUnknown : std::max(ready, state.freeAt[rank]);
  }

  llvm::SmallVector<Option, 16> getOptions(const State &state) const {
    llvm::SmallVector<Option, 16> options;
    for (int32_t stage = 0; stage < problem.stages; ++stage)
      for (StepKind kind : {kForward, kInputGrad, kWeightGrad}) {
        Step step;
        Ticks start = getStart(state, kind, stage, step);
        if (start != kUnknown)
          options.push_back({step, start, start + problem.getCost(step)});
      }
    return options;
  }

  /// No schedule that goes on from here has a lesser span.
  Ticks getBound(const State &state) const {
    Ticks bound = 0;
    const int32_t first = problem.rankOf[0];
    for (int32_t rank = 0; rank < problem.ranks; ++rank) {
      Ticks forward = 0, grad = 0, weight = 0, throughForward = -1, throughGrad = -1;
      for (int32_t stage : problem.stagesOf[rank]) {
        auto left = [&](StepKind kind) { return problem.microbatches - state.counts[kind][stage]; };
        forward += left(kForward) * problem.costs[kForward][stage];
        grad += left(kInputGrad) * problem.costs[kInputGrad][stage];
        weight += left(kWeightGrad) * problem.costs[kWeightGrad][stage];
        Ticks out = problem.costs[kInputGrad][stage] + tail[stage];
        if (left(kForward) > 0 && (throughForward < 0 || back[stage] + out < throughForward))
          throughForward = back[stage] + out;
        if (left(kInputGrad) > 0 && (throughGrad < 0 || tail[stage] < throughGrad))
          throughGrad = tail[stage];
      }
      // Ranks that have not begun are free at 0: their first start is not known, nor is their span.
      Ticks now = state.freeAt[rank];
      if (state.startAt[rank] != kUnknown)
        bound = std::max(bound, now + forward + grad + weight - state.startAt[rank]);
      if (state.startAt[first] == kUnknown)
        continue;
      Ticks last = problem.costs[kWeightGrad][0] - state.startAt[first];
      if (throughForward >= 0)
        bound = std::max(bound, now + forward + throughForward + last);
      if (throughGrad >= 0)
        bound = std::max(bound, now + forward + grad + throughGrad + last);
    }
    return bound;
  }

  /// Whether a state of the same counts was there whose times are all no later.
  bool isDominated(const State &state) {
    std::vector<int8_t> key;
    std::vector<Ticks> times;
    for (int32_t stage = 0; stage < problem.stages; ++stage) {
      for (const auto &list : state.counts)
        key.push_back(list[stage]);
      key.push_back(state.isHeld[stage]);
      auto addEnds = [&](StepKind kind, int32_t from) {
        for (int32_t next = from; next < state.counts[kind][stage]; ++next)
          times.push_back(state.ends[kind][stage * problem.microbatches + next]);
      };
      // Times that still matter, in one order for all states of the same counts: what the neighbors have not taken yet.
      // (What the rank itself waits for lies before the time that it is free.)
      if (stage + 1 < problem.stages)
        addEnds(kForward, state.counts[kForward][stage + 1]);
      if (stage > 0)
        addEnds(kInputGrad, state.counts[kInputGrad][stage - 1]);
    }
    for (int32_t rank = 0; rank < problem.ranks; ++rank) {
      times.push_back(state.freeAt[rank]);
      times.push_back(-state.startAt[rank]);
    }
    std::vector<std::vector<Ticks>> &known = seen[key];
    for (const std::vector<Ticks> &other : known)
      if (std::equal(times.begin(), times.end(), other.begin(),
                     [](Ticks mine, Ticks theirs) { return theirs <= mine; }))
        return true;
    known.push_back(std::move(times));
    return false;
  }

  void finish(const State &state) {
    Ticks span = 0;
    for (int32_t rank = 0; rank < problem.ranks; ++rank)
      span = std::max(span, state.freeAt[rank] - state.startAt[rank]);
    // Only better ones: the bound of later states is held against it.
    if (span >= least)
      return;
    least = span;
    best = path;
  }

  /// Goes on with the step as its rank's next; the copy of the state is the way back.
  void take(State state, const Option &option) {
    const Step &step = option.step;
    int32_t rank = problem.rankOf[step.stage];
    ++state.counts[step.kind][step.stage];
    if (step.kind != kWeightGrad)
      state.ends[step.kind][step.index] = option.end;
    state.held[rank] += problem.getMemory(step);
    state.freeAt[rank] = option.end;
    if (state.startAt[rank] == kUnknown)
      state.startAt[rank] = option.start;
    for (int32_t stage : problem.stagesOf[rank])
      state.isHeld[stage] = false;
    path.push_back(step);
    visit(state);
    path.pop_back();
  }

  void visit(const State &state) {
    if (path.size() == problem.numSteps)
      return finish(state);
    if (statesLeft <= 0 || getBound(state) >= least || isDominated(state))
      return;
    --statesLeft;
    llvm::SmallVector<Option, 16> options = getOptions(state);
    if (options.empty())
      return;
    const Option first = *llvm::min_element(options, [](const Option &left, const Option &right) {
      return std::pair(left.end, left.start) < std::pair(right.end, right.start);
    });
    int32_t rank = problem.rankOf[first.step.stage];
    bool takesMemory = problem.getMemory(first.step) > 0 && problem.limits[rank] < kUnlimited;
    if (takesMemory) {
      take(state, first);
      State holding = state;
      holding.isHeld[first.step.stage] = true;
      return visit(holding);
    }
    llvm::erase_if(options, [&](const Option &option) {
      return problem.rankOf[option.step.stage] != rank || option.start >= std::max(first.end, first.start + 1);
    });
    // What others wait for first; the best answer early prunes the most.
    llvm::sort(options, [](const Option &left, const Option &right) {
      auto rankOf = [](const Option &option) {
        return std::tuple(option.start, option.step.kind == kWeightGrad, option.step.kind == kForward,
                          option.step.stage);
      };
      return rankOf(left) < rankOf(right);
    });
    for (const Option &option : options)
      take(state, option);
  }

  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  const SearchProblem &problem;
  Ticks least;
  int64_t statesLeft;
  std::vector<Ticks> back, tail;
  std::vector<Step> path, best;
  std::map<std::vector<int8_t>, std::vector<std::vector<Ticks>>> seen;
};
} // namespace

ExactAnswer cleave::schedule::searchExactly(const SearchProblem &problem, Ticks below, int64_t maxStates) {
  assert(isSmall(problem) && "its states have no place");
  return ExactSearch(problem, below, maxStates).run();
}
