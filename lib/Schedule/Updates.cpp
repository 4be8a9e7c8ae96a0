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
#include <set>
#include <tuple>

using namespace cleave::schedule;

std::vector<int32_t> cleave::schedule::listUpdated(const Schedule &schedule) {
  std::vector<int32_t> stages;
  for (llvm::ArrayRef<Action> program : schedule.programs)
    for (const Action &action : program)
      if (action.kind == ActionKind::Update)
        stages.push_back(action.stage);
  return stages;
}

std::vector<int32_t> cleave::schedule::findGuests(const Schedule &schedule, int32_t stage) {
  std::set<int32_t> guests;
  for (const Replica &way : llvm::drop_begin(schedule.replicas))
    guests.insert(way.placement[stage]);
  guests.erase(schedule.replicas.front().placement[stage]);
  return {guests.begin(), guests.end()};
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

/// Fills the waits of one table.
class UpdatePlacer {
public:
  UpdatePlacer(Schedule &schedule, const Costs &costs, const Simulation &simulation)
      : schedule(schedule), costs(costs), simulation(simulation) {}

  llvm::Expected<int64_t> run(const llvm::BitVector &mayBeEarly);

private:
  /// What is put in front of an action of the rows as they were, those of one place in the order in which they are chosen.
  using Placed = std::vector<std::multimap<size_t, Action>>;

  std::vector<Ready> findReady(int32_t rank, const llvm::BitVector &mayBeEarly) const;
  std::optional<std::pair<size_t, double>> findSent(int32_t guest, const Ready &ready, size_t position,
                                                    double start) const;
  bool place(int32_t rank, const Ready &ready, std::vector<Wait> &waits);
  Schedule fill(const Placed &placed) const;

  Schedule &schedule;
  const Costs &costs;
  const Simulation &simulation;
  Placed placed;
};
} // namespace

static double getCost(const std::vector<double> &costs, int32_t stage) { return costs.empty() ? 0 : costs[stage]; }

/// Behind the last W of a stage in a row; 0: there is none.
static size_t findEnd(llvm::ArrayRef<Action> program, int32_t stage) {
  for (size_t i = program.size(); i-- > 0;)
    if ((program[i].kind == ActionKind::W || program[i].kind == ActionKind::B) && program[i].stage == stage)
      return i + 1;
  return 0;
}

/// Of stages whose home the rank is, ascending in time: the first stage to be ready is the first to be updated.
std::vector<Ready> UpdatePlacer::findReady(int32_t rank, const llvm::BitVector &mayBeEarly) const {
  std::vector<Ready> ready;
  for (int32_t stage = 0; stage < schedule.numStages; ++stage)
    if (schedule.replicas.front().placement[stage] == rank && mayBeEarly.test(stage))
      if (size_t end = findEnd(schedule.programs[rank], stage))
        ready.push_back({simulation.times[rank][end - 1].end + getCost(costs.reduction, stage), end - 1, stage});
  llvm::sort(ready, [](const Ready &a, const Ready &b) {
    return std::tie(a.time, a.position) < std::tie(b.time, b.position);
  });
  return ready;
}

/// Where the guest sends its sums, for an update in front of `position` of the home's row which may start at `start`, and when they are there and
/// reduced. Between two ranks messages have one order (P8): as many as the home has received before, the guest has to have sent before. Where ranks
/// meet, the guest waits for the home: so it goes on until about the time when the home is there.
std::optional<std::pair<size_t, double>> UpdatePlacer::findSent(int32_t guest, const Ready &ready, size_t position,
                                                                double start) const {
  int32_t home = schedule.replicas.front().placement[ready.stage];
  auto isBetween = [&](const Action &action, int32_t peer) {
    return isMessage(action.kind) && schedule.getRank(action.other, action.microbatch) == peer;
  };
  size_t received = 0, sent = 0;
  for (const Action &action : llvm::ArrayRef(schedule.programs[home]).take_front(position))
    received += isRecv(action.kind) && isBetween(action, guest);
  llvm::ArrayRef<Action> program = schedule.programs[guest];
  size_t place = 0, end = findEnd(program, ready.stage);
  while (place < end || sent < received) {
    if (place == program.size())
      return std::nullopt;
    sent += isSend(program[place].kind) && isBetween(program[place], home);
    ++place;
  }
  if (sent > received || place == 0)
    return std::nullopt;
  llvm::ArrayRef<Interval> times = simulation.times[guest];
  double reduction = getCost(costs.reduction, ready.stage);
  // Not behind a RECV, where it would wait for a message, nor between two that run as one.
  for (size_t i = place; i < program.size(); ++i) {
    if (isRecv(program[i].kind) || program[i].isJoined)
      continue;
    bool isInTime = isSend(program[i].kind) ? times[i].end <= times[place - 1].end : times[i].end + reduction <= start;
    if (isBetween(program[i], home) || !isInTime)
      break;
    place = i + 1;
  }
  return std::pair(place, times[place - 1].end + reduction);
}

/// The rows with what is placed in them.
Schedule UpdatePlacer::fill(const Placed &all) const {
  Schedule filled = schedule;
  for (auto [program, added] : llvm::zip_equal(filled.programs, all)) {
    std::vector<Action> row;
    for (size_t i = 0; i <= program.size(); ++i) {
      auto [first, end] = added.equal_range(i);
      for (auto it = first; it != end; ++it)
        row.push_back(it->second);
      if (i < program.size())
        row.push_back(program[i]);
    }
    program = std::move(row);
  }
  return filled;
}

/// Into the wait that has most room. False: none has enough. A guest that waits for the home may not keep what others wait for (P9): that is
/// tried, since it depends on all rows.
bool UpdatePlacer::place(int32_t rank, const Ready &ready, std::vector<Wait> &waits) {
  std::vector<int32_t> guests = findGuests(schedule, ready.stage);
  if (guests.size() > 1)
    return false;
  double ns = getCost(costs.update, ready.stage), room = 0;
  Wait *best = nullptr;
  double start = 0;
  size_t sends = 0;
  for (Wait &wait : waits) {
    if (wait.position <= ready.position)
      continue;
    double from = std::max(wait.start, ready.time);
    std::optional<std::pair<size_t, double>> sent;
    if (!guests.empty()) {
      sent = findSent(guests.front(), ready, wait.position, from);
      if (!sent)
        continue;
      from = std::max(from, sent->second);
    }
    if (wait.end - from < ns || (best && wait.end - from <= room))
      continue;
    best = &wait;
    room = wait.end - from;
    start = from;
    sends = sent ? sent->first : 0;
  }
  if (!best)
    return false;
  Placed with = placed;
  with[rank].insert({best->position, {ActionKind::Update, false, ready.stage, -1, -1}});
  if (!guests.empty()) {
    with[guests.front()].insert({sends, {ActionKind::ReduceGrad, false, ready.stage, -1, -1}});
    llvm::Expected<Simulation> meets = simulate(fill(with), costs, MessageMode::Rendezvous);
    if (!meets) {
      llvm::consumeError(meets.takeError());
      return false;
    }
  }
  placed = std::move(with);
  best->start = start + ns;
  return true;
}

llvm::Expected<int64_t> UpdatePlacer::run(const llvm::BitVector &mayBeEarly) {
  placed.resize(schedule.programs.size());
  int64_t count = 0;
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    std::vector<Wait> waits = findWaits(schedule.programs[rank], simulation.times[rank]);
    for (const Ready &ready : findReady(rank, mayBeEarly))
      count += place(rank, ready, waits);
  }
  schedule = fill(placed);
  return count;
}

llvm::Expected<int64_t> cleave::schedule::placeUpdates(Schedule &schedule, const Costs &costs,
                                                       const llvm::BitVector &mayBeEarly) {
  llvm::Expected<Simulation> simulation = simulate(schedule, costs);
  if (!simulation)
    return simulation.takeError();
  return UpdatePlacer(schedule, costs, *simulation).run(mayBeEarly);
}
