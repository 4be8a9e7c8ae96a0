//===- Updates.cpp - updates that fill the bubble -------------------------===//
//
// A wait ends where an action starts later than what stands before it has ended. Times are a model's: an update goes into the longest wait, which
// is there even where the model is off by some. It goes in front of the RECV that the rank would wait in, but behind what it sends: nobody
// waits longer for a message.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Updates.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

using namespace cleave::schedule;

bool cleave::schedule::hasUpdates(const Schedule &schedule) {
  return llvm::any_of(schedule.programs, [](const std::vector<Action> &program) {
    return llvm::any_of(program, [](const Action &action) { return action.kind == ActionKind::Update; });
  });
}

namespace {
/// Between two actions of a rank, at the position in front of which there is room.
struct Wait {
  size_t position;
  double start, end;
};
} // namespace

/// In the order of time. RECVs take no time of their own: whoever computes behind them is said to wait.
static std::vector<Wait> findWaits(llvm::ArrayRef<Action> program, llvm::ArrayRef<Interval> times) {
  std::vector<Wait> waits;
  double free = 0;
  size_t position = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    if (isRecv(program[i].kind))
      continue;
    if (isCompute(program[i].kind) && times[i].start > free)
      waits.push_back({position, free, times[i].start});
    free = std::max(free, times[i].end);
    position = i + 1;
  }
  return waits;
}

namespace {
/// When the gradients of a stage are all there, and where in the row: a W may take no time.
struct Ready {
  double time;
  size_t position;
  int32_t stage;
};
} // namespace

/// Ascending in time: the first stage to be ready is the first to be updated.
static std::vector<Ready> findReady(llvm::ArrayRef<Action> program, llvm::ArrayRef<Interval> times, const Costs &costs,
                                    const llvm::BitVector &mayBeEarly) {
  std::map<int32_t, size_t> last;
  for (auto [position, action] : llvm::enumerate(program))
    if ((action.kind == ActionKind::W || action.kind == ActionKind::B) && mayBeEarly.test(action.stage))
      last[action.stage] = position;
  std::vector<Ready> ready;
  for (auto [stage, position] : last) {
    double reduction = costs.reduction.empty() ? 0 : costs.reduction[stage];
    ready.push_back({times[position].end + reduction, position, stage});
  }
  llvm::sort(ready, [](const Ready &a, const Ready &b) {
    return std::tie(a.time, a.position) < std::tie(b.time, b.position);
  });
  return ready;
}

llvm::Expected<int64_t> cleave::schedule::placeUpdates(Schedule &schedule, const Costs &costs,
                                                       const llvm::BitVector &mayBeEarly) {
  assert(schedule.replicas.size() == 1 && "gradients of several ways meet after the table");
  llvm::Expected<Simulation> simulation = simulate(schedule, costs);
  if (!simulation)
    return simulation.takeError();
  int64_t count = 0;
  for (auto [program, times] : llvm::zip_equal(schedule.programs, simulation->times)) {
    std::vector<Wait> waits = findWaits(program, times);
    // By position in the row as it was; those of one wait stand in the order in which they are chosen.
    std::multimap<size_t, Action> placed;
    for (const Ready &ready : findReady(program, times, costs, mayBeEarly)) {
      double ns = costs.update.empty() ? 0 : costs.update[ready.stage];
      auto getRoom = [&](const Wait &wait) {
        return wait.position > ready.position ? wait.end - std::max(wait.start, ready.time) : -1;
      };
      auto wait = llvm::max_element(waits, [&](const Wait &a, const Wait &b) { return getRoom(a) < getRoom(b); });
      if (wait == waits.end() || getRoom(*wait) < ns)
        continue;
      wait->start = std::max(wait->start, ready.time) + ns;
      placed.insert({wait->position, {ActionKind::Update, false, ready.stage, -1, -1}});
      ++count;
    }
    std::vector<Action> filled;
    for (size_t i = 0; i < program.size(); ++i) {
      auto [first, end] = placed.equal_range(i);
      for (auto it = first; it != end; ++it)
        filled.push_back(it->second);
      filled.push_back(program[i]);
    }
    program = std::move(filled);
  }
  return count;
}
