//===- Simulate.cpp - how long a schedule takes, and what it holds --------===//
//
// Each rank runs until it blocks: on a fact that no action has made yet, or, where ranks meet, on the other end of a
// message or on a group. Who makes the fact or arrives last wakes it. Times follow from operands and from the order
// within a rank alone, so the order in which ranks are taken does not matter, and a rank that runs "ahead of time" is no
// error. What a rank holds changes only with its own actions, so peaks fall out of the same walk.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Simulate.h"

#include "Operands.h"
#include "Spans.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Updates.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

using namespace cleave;
using namespace cleave::schedule;

Costs Costs::uniform(int32_t stages, int32_t chunks, double forward, double inputGrad, double weightGrad) {
  Costs costs;
  auto fill = [&](std::vector<double> &values, double share) { values.assign(stages, share / chunks); };
  fill(costs.forward, forward);
  fill(costs.inputGrad, inputGrad);
  fill(costs.weightGrad, weightGrad);
  fill(costs.memoryForward, 1);
  fill(costs.memoryInputGrad, 0);
  fill(costs.memoryWeightGrad, -1);
  return costs;
}

double Costs::getMemoryChange(const Action &action) const {
  switch (action.kind) {
  case ActionKind::F:
    return memoryForward[action.stage];
  case ActionKind::I:
    return memoryInputGrad[action.stage];
  case ActionKind::W:
    return memoryWeightGrad[action.stage];
  case ActionKind::B:
    return memoryInputGrad[action.stage] + memoryWeightGrad[action.stage];
  default:
    return 0;
  }
}

double Costs::getMemoryLimit(int32_t rank) const {
  if (memoryLimit.empty())
    return std::numeric_limits<double>::infinity();
  return memoryLimit[rank] + 1e-9 * std::abs(memoryLimit[rank]);
}

double Costs::getHop(const Channel &channel) const {
  return channel.latency + (bandwidth > 0 ? double(channel.bytes) / bandwidth : 0);
}

namespace {

/// What a rank holds.
struct Held {
  int32_t live = 0, held = 0;
  double memory = 0;
};

class Simulator {
public:
  Simulator(const Schedule &schedule, const Costs &costs, MessageMode mode)
      : schedule(schedule), costs(costs), meets(mode == MessageMode::Rendezvous),
        hasMessages(!schedule.isComputeOnly()), operands(schedule), made(operands.getNumFacts(), NAN),
        waiters(operands.getNumFacts(), schedule.numRanks), gradients(schedule.numStages), ranks(schedule.numRanks),
        arrived(schedule.reductions.size()), updated(schedule.numStages) {
    for (int32_t stage : listUpdated(schedule))
      updated.set(stage);
    result.times.resize(schedule.numRanks);
    for (auto [times, program] : llvm::zip_equal(result.times, schedule.programs))
      times.resize(program.size());
    for (std::vector<double> *values : {&result.busy, &result.start, &result.end, &result.peak.memory})
      values->assign(schedule.numRanks, 0);
    result.peak.live.assign(schedule.numRanks, 0);
    result.peak.held.assign(schedule.numRanks, 0);
  }

  llvm::Expected<Simulation> run() {
    for (int32_t rank = schedule.numRanks; rank-- > 0;)
      queue.push_back(rank);
    while (!queue.empty()) {
      int32_t rank = queue.back();
      queue.pop_back();
      while (!isDone(rank) && step(rank))
        ;
    }
    auto isBlocked = [&](int32_t rank) { return !isDone(rank); };
    if (llvm::any_of(llvm::seq(schedule.numRanks), isBlocked))
      return makeError("{0}", describeDeadlock(schedule, isBlocked, [&](int32_t rank) { return describe(rank); }));
    summarize();
    return std::move(result);
  }

private:
  struct Rank {
    size_t position = 0;
    double free = 0;
    /// The fact that it waits for, or -1.
    Fact awaited = -1;
    /// It stands at a message or a group until the other end comes.
    bool isMeeting = false;
    /// It has computed something.
    bool hasStarted = false;
    Held held;
    /// Memory of messages that are there and not used up.
    double waiting = 0;
  };

  bool isDone(int32_t rank) const { return ranks[rank].position == schedule.programs[rank].size(); }
  const Action &getAction(int32_t rank) const { return schedule.programs[rank][ranks[rank].position]; }

  /// Runs the next action of `rank`. False: it blocks.
  bool step(int32_t rank) {
    const Action &action = getAction(rank);
    if (isCompute(action.kind))
      return compute(rank, llvm::ArrayRef(&action, action.isJoined ? 2 : 1));
    if (meets && isMessage(action.kind))
      return exchange(rank, action);
    if (meets && action.kind == ActionKind::ReduceGrad && action.other >= 0)
      return reduce(rank, action.other);
    if (action.kind == ActionKind::Update || isSentHome(rank, action))
      return update(action.stage, rank);
    // What takes no time; messages that do not block are counted by those who wait for them.
    receive(rank, action);
    pass(rank, ranks[rank].free, ranks[rank].free);
    return true;
  }

  /// The action of `rank` runs from `start` to `end`.
  void pass(int32_t rank, double start, double end) {
    Rank &self = ranks[rank];
    result.times[rank][self.position++] = {start, end};
    self.free = end;
    self.awaited = -1;
    self.isMeeting = false;
  }

  bool wait(int32_t rank, Fact fact) {
    ranks[rank].awaited = fact;
    waiters.add(fact, rank);
    return false;
  }

  /// Whether it is the end of another way, whose sums go to the rank that updates their stage. Without an UPDATE they do so behind all rows.
  bool isSentHome(int32_t rank, const Action &action) const {
    return action.kind == ActionKind::ReduceGrad && action.other < 0 && updated.test(action.stage) &&
           llvm::is_contained(findGuests(schedule, action.stage), rank);
  }

  /// `rank` has come to the update of a stage, or to where it sends its sums home for it. The home waits for all of these; where ranks meet, they
  /// for the home, too.
  bool update(int32_t stage, int32_t rank) {
    int32_t home = schedule.replicas.front().placement[stage];
    std::vector<int32_t> guests = findGuests(schedule, stage);
    ranks[rank].isMeeting = true;
    ranks[rank].awaited = -1;
    if (!meets && rank != home) {
      pass(rank, ranks[rank].free, ranks[rank].free);
      gradients[stage] = std::max(gradients[stage], ranks[rank].free);
      sent.insert({stage, rank});
    }
    auto isThere = [&](int32_t guest) {
      return meets ? !isDone(guest) && ranks[guest].isMeeting && getAction(guest).stage == stage &&
                         isSentHome(guest, getAction(guest))
                   : sent.count({stage, guest}) > 0;
    };
    bool isHome = !isDone(home) && ranks[home].isMeeting && getAction(home).kind == ActionKind::Update &&
                  getAction(home).stage == stage;
    if (isHome && llvm::all_of(guests, isThere)) {
      // Whoever came last goes on by itself.
      auto wake = [&](int32_t member) {
        if (member != rank)
          queue.push_back(member);
      };
      for (int32_t guest : guests)
        if (meets) {
          gradients[stage] = std::max(gradients[stage], ranks[guest].free);
          double end = std::max(ranks[guest].free, ranks[home].free);
          pass(guest, end, end);
          wake(guest);
        }
      updateHome(home, stage);
      wake(home);
    }
    return !ranks[rank].isMeeting;
  }

  /// Once a step, when all gradients are there; that it comes behind those of its own rank is checked elsewhere.
  void updateHome(int32_t rank, int32_t stage) {
    auto get = [&](const std::vector<double> &values) { return values.empty() ? 0 : values[stage]; };
    // The reduction began when the last W ended, and went on beside whatever the rank did since.
    double start = std::max(ranks[rank].free, gradients[stage] + get(costs.reduction));
    result.busy[rank] += get(costs.update);
    pass(rank, start, start + get(costs.update));
  }

  /// Runs one action, or both of a joined pair.
  bool compute(int32_t rank, llvm::ArrayRef<Action> unit) {
    double start = ranks[rank].free;
    Fact missing = -1;
    int64_t hops = 0;
    for (const Action &action : unit)
      operands.visit(action, [&](Fact fact, int32_t channel) {
        if (std::isnan(made[fact])) {
          missing = fact;
          return;
        }
        bool isHop = channel >= 0 && schedule.isBetweenRanks(schedule.channels[channel], action.microbatch);
        hops += isHop;
        // Where ranks meet, the RECV before this action has waited already.
        start = std::max(start, made[fact] + (isHop && !meets ? costs.getHop(schedule.channels[channel]) : 0));
      });
    if (missing >= 0)
      return wait(rank, missing);
    result.messages += hops;
    double end = start + getDuration(unit);
    if (!std::exchange(ranks[rank].hasStarted, true))
      result.start[rank] = start;
    result.busy[rank] += end - start;
    hold(rank, unit);
    for (const Action &action : unit) {
      pass(rank, start, end);
      announce(operands.getResult(action), end);
      if (action.kind == ActionKind::W || action.kind == ActionKind::B)
        gradients[action.stage] = std::max(gradients[action.stage], end);
    }
    return true;
  }

  void announce(Fact fact, double end) {
    if (fact < 0)
      return;
    made[fact] = end;
    waiters.take(fact, [&](int32_t waiting) { queue.push_back(waiting); });
  }

  double getDuration(const Action &action) const {
    switch (action.kind) {
    case ActionKind::F:
      return costs.forward[action.stage];
    case ActionKind::I:
      return costs.inputGrad[action.stage];
    case ActionKind::W:
      return costs.weightGrad[action.stage];
    default:
      return costs.inputGrad[action.stage] + costs.weightGrad[action.stage];
    }
  }

  double getDuration(llvm::ArrayRef<Action> unit) const {
    if (unit.size() == 1)
      return getDuration(unit.front());
    bool isPair = (unit[0].kind == ActionKind::F && unit[1].kind == ActionKind::B) ||
                  (unit[0].kind == ActionKind::B && unit[1].kind == ActionKind::F);
    return isPair && costs.overlap >= 0 ? costs.overlap : getDuration(unit[0]) + getDuration(unit[1]);
  }

  /// What the actions of a unit take counts from its start, what they release from its end.
  void hold(int32_t rank, llvm::ArrayRef<Action> unit) {
    Held &held = ranks[rank].held;
    Held after = held;
    for (const Action &action : unit) {
      Held change = getChange(action);
      after = {after.live + change.live, after.held + change.held, after.memory + change.memory};
      held = {held.live + std::max(change.live, 0), held.held + std::max(change.held, 0),
              held.memory + std::max(change.memory, 0.0)};
    }
    result.peak.live[rank] = std::max(result.peak.live[rank], held.live);
    result.peak.held[rank] = std::max(result.peak.held[rank], held.held);
    result.peak.memory[rank] = std::max(result.peak.memory[rank], held.memory + ranks[rank].waiting);
    held = after;
    // Nothing is kept for a backward pass that never comes.
    if (!schedule.isForwardOnly)
      return;
    held = {};
    for (const Action &action : unit)
      ranks[rank].waiting -= hasMessages ? operands.getWaiting(schedule, costs, action) : 0;
  }

  /// Room is made for a message when its rank comes to the RECV.
  void receive(int32_t rank, const Action &action) {
    double &waiting = ranks[rank].waiting;
    waiting += schedule.isForwardOnly ? operands.getWaiting(schedule, costs, action) : 0;
    result.peak.memory[rank] = std::max(result.peak.memory[rank], waiting);
  }

  Held getChange(const Action &action) const {
    double memory = costs.getMemoryChange(action);
    switch (action.kind) {
    case ActionKind::F:
      return {1, 1, memory};
    case ActionKind::I:
      return {-1, 0, memory};
    case ActionKind::W:
      return {0, -1, memory};
    default:
      return {-1, -1, memory};
    }
  }

  //===--------------------------------------------------------------------===//
  // Rendezvous
  //===--------------------------------------------------------------------===//

  static bool isOtherEnd(const Action &action, const Action &other) {
    constexpr ActionKind ends[] = {ActionKind::RecvF, ActionKind::SendF, ActionKind::RecvB, ActionKind::SendB};
    size_t index = static_cast<size_t>(action.kind) - static_cast<size_t>(ActionKind::SendF);
    return other.kind == ends[index] && other.stage == action.other && other.other == action.stage &&
           other.microbatch == action.microbatch;
  }

  /// Passes both ends of a message, if the other rank stands there.
  bool exchange(int32_t rank, const Action &action) {
    // What is not there cannot be sent.
    if (isSend(action.kind)) {
      bool isForward = action.kind == ActionKind::SendF;
      Fact fact = isForward ? operands.getForward(action.stage, action.microbatch)
                            : operands.getGradient(action.stage, action.microbatch);
      if (std::isnan(made[fact]))
        return wait(rank, fact);
    }
    int32_t peer = schedule.getRank(action.other, action.microbatch);
    ranks[rank].isMeeting = true;
    ranks[rank].awaited = -1;
    if (peer == rank || isDone(peer) || !ranks[peer].isMeeting || !isOtherEnd(action, getAction(peer)))
      return false;
    int32_t channel = operands.findChannel(action);
    double start = std::max(ranks[rank].free, ranks[peer].free);
    double end = start + (channel < 0 ? 0 : costs.getHop(schedule.channels[channel]));
    for (int32_t member : {rank, peer}) {
      receive(member, getAction(member));
      pass(member, start, end);
    }
    queue.push_back(peer);
    return true;
  }

  /// Passes a reduction on all ranks of its group, if this one is the last.
  bool reduce(int32_t rank, int32_t reduction) {
    llvm::ArrayRef<int32_t> group = schedule.reductions[reduction].ranks;
    ranks[rank].isMeeting = true;
    if (++arrived[reduction] < group.size())
      return false;
    double start = 0;
    for (int32_t member : group)
      start = std::max(start, ranks[member].free);
    for (int32_t member : group) {
      pass(member, start, start);
      if (member != rank)
        queue.push_back(member);
    }
    arrived[reduction] = 0;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // The end
  //===--------------------------------------------------------------------===//

  Blocked describe(int32_t rank) const {
    const Rank &self = ranks[rank];
    if (self.awaited >= 0) {
      Action missing = operands.findAction(schedule, self.awaited);
      return {self.position, schedule.getRank(missing.stage, missing.microbatch), missing};
    }
    const Action &action = getAction(rank);
    if (isMessage(action.kind))
      return {self.position, schedule.getRank(action.other, action.microbatch), std::nullopt};
    auto isElsewhere = [&](int32_t member) {
      return isDone(member) || !ranks[member].isMeeting || !(getAction(member) == action);
    };
    if (action.kind == ActionKind::Update || action.other < 0) {
      // Of an update whose guests have all come, none of these can be told.
      std::vector<int32_t> guests = findGuests(schedule, action.stage);
      bool isHome = action.kind == ActionKind::Update && !guests.empty();
      return {self.position, isHome ? guests.front() : schedule.replicas.front().placement[action.stage], std::nullopt};
    }
    llvm::ArrayRef<int32_t> group = schedule.reductions[action.other].ranks;
    const int32_t *absent = llvm::find_if(group, isElsewhere);
    return {self.position, absent == group.end() ? rank : *absent, std::nullopt};
  }

  void summarize() {
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      for (auto [action, time] : llvm::zip_equal(schedule.programs[rank], result.times[rank]))
        if (isCompute(action.kind))
          result.end[rank] = time.end;
    setSpans(result);
  }

  const Schedule &schedule;
  const Costs &costs;
  const bool meets, hasMessages;
  Operands operands;
  /// Fact -> when it was made, NaN before.
  std::vector<double> made;
  Waiters waiters;
  /// Stage -> when its last gradients so far were made.
  std::vector<double> gradients;
  std::vector<Rank> ranks;
  /// Reduction -> how many ranks stand there.
  std::vector<size_t> arrived;
  /// Stages that the table updates; of two ways, which ranks have sent their sums of a stage home.
  llvm::BitVector updated;
  std::set<std::pair<int32_t, int32_t>> sent;
  std::vector<int32_t> queue;
  Simulation result;
};

} // namespace

/// Leaves the times of what is no message.
static void dropMessages(const Schedule &schedule, Simulation &simulation) {
  for (auto [program, times] : llvm::zip_equal(schedule.programs, simulation.times)) {
    size_t kept = 0;
    for (auto [action, time] : llvm::zip_equal(program, times))
      if (!isMessage(action.kind))
        times[kept++] = time;
    times.resize(kept);
  }
}

llvm::Expected<Simulation> cleave::schedule::simulate(const Schedule &schedule, const Costs &costs, MessageMode mode) {
  assert(costs.forward.size() == size_t(schedule.numStages) && "one entry per stage");
  if (mode == MessageMode::Async || !schedule.isComputeOnly())
    return Simulator(schedule, costs, mode).run();
  Schedule withMessages = schedule;
  if (llvm::Error error = addMessages(withMessages))
    return std::move(error);
  llvm::Expected<Simulation> simulation = Simulator(withMessages, costs, mode).run();
  if (simulation)
    dropMessages(withMessages, *simulation);
  return simulation;
}
