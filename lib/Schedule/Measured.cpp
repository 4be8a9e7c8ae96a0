//===- Measured.cpp - when a run did what a schedule says -----------------===//
//
// Events of a trace are gathered by the action that they name, a joined B as the I and W that it runs as, and then read off in the order of
// the table.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Measured.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <map>
#include <tuple>

using namespace cleave;
using namespace cleave::schedule;

namespace {
/// Of one action on one device.
struct Work {
  Interval time;
  double busy = 0;
};

/// F, I or W of a stage and microbatch.
using Key = std::tuple<ActionKind, int32_t, int32_t>;
} // namespace

/// `1F3`. Nothing for what is no computation of the schedule.
static std::optional<Key> parse(llvm::StringRef text, const Schedule &schedule) {
  int32_t stage = 0, microbatch = 0;
  llvm::StringRef number = text.take_while(llvm::isDigit), rest = text.drop_front(number.size());
  std::optional<ActionKind> kind = parseActionKind(rest.take_front(1));
  if (number.getAsInteger(10, stage) || !kind || *kind == ActionKind::B ||
      rest.drop_front(1).getAsInteger(10, microbatch) || stage >= schedule.numStages ||
      microbatch >= schedule.numMicrobatches)
    return std::nullopt;
  return Key(*kind, stage, microbatch);
}

/// What waits for other devices is no work of this one.
static bool isWork(llvm::StringRef name) {
  return !name.starts_with("finish ") && !name.starts_with("advance ") && !name.starts_with("wait");
}

namespace {
/// A command that is a part of an action.
struct Command {
  double begin, length;
  Key key;
  bool isWork;
};
} // namespace

/// By rank of the pipeline, in the order of time.
static llvm::Expected<std::map<int32_t, std::vector<Command>>> readCommands(const llvm::json::Array &events,
                                                                            const Schedule &schedule) {
  std::map<int32_t, std::vector<Command>> found;
  std::map<int32_t, int64_t> deviceOf;
  for (const llvm::json::Value &value : events) {
    const llvm::json::Object *event = value.getAsObject(), *args = event ? event->getObject("args") : nullptr;
    std::optional<llvm::StringRef> action = args ? args->getString("action") : std::nullopt;
    std::optional<double> begin = event ? event->getNumber("ts") : std::nullopt,
                          length = event ? event->getNumber("dur") : std::nullopt;
    if (!action || !begin || !length)
      continue;
    std::optional<Key> key = parse(*action, schedule);
    if (!key)
      return makeError("'{0}' is not an action of {1} stages and {2} microbatches: the trace is of another program",
                       *action, schedule.numStages, schedule.numMicrobatches);
    int64_t device = event->getInteger("pid").value_or(0);
    int32_t rank = schedule.getRank(std::get<1>(*key), std::get<2>(*key));
    if (deviceOf.try_emplace(rank, device).first->second == device)
      found[rank].push_back({*begin, *length, *key, isWork(event->getString("name").value_or(""))});
  }
  if (found.empty())
    return makeError("no command says which action it is a part of: a trace of a pipeline's program is expected "
                     "('cleave-run --trace')");
  for (auto &[rank, commands] : found)
    llvm::sort(commands, [](const Command &a, const Command &b) { return a.begin < b.begin; });
  return found;
}

/// A command may run far behind all others of its action, such as one that adds a loss to those of other microbatches: of the stretches
/// that an action's commands stand in without another's between them, the one with most work is its time. All of its work is busy.
static std::map<Key, Work> gather(llvm::ArrayRef<Command> commands) {
  std::map<Key, Work> found;
  std::map<Key, double> most;
  for (size_t first = 0, next = 0; first < commands.size(); first = next) {
    Work stretch{{commands[first].begin, 0}, 0};
    const Key &key = commands[first].key;
    for (; next < commands.size() && commands[next].key == key; ++next) {
      stretch.time.end = std::max(stretch.time.end, commands[next].begin + commands[next].length);
      stretch.busy += commands[next].isWork ? commands[next].length : 0;
    }
    Work &work = found[key];
    work.busy += stretch.busy;
    if (auto [it, isNew] = most.try_emplace(key, stretch.busy); isNew || stretch.busy > it->second) {
      it->second = stretch.busy;
      work.time = stretch.time;
    }
  }
  return found;
}

/// The parts that an action of a table runs as.
static llvm::SmallVector<Key, 2> getParts(const Action &action) {
  if (action.kind != ActionKind::B)
    return {Key(action.kind, action.stage, action.microbatch)};
  return {Key(ActionKind::I, action.stage, action.microbatch), Key(ActionKind::W, action.stage, action.microbatch)};
}

llvm::Expected<Simulation> cleave::schedule::readMeasured(llvm::StringRef text, const Schedule &schedule,
                                                          llvm::StringRef unit) {
  llvm::Expected<llvm::json::Value> trace = llvm::json::parse(text);
  if (!trace)
    return trace.takeError();
  const llvm::json::Object *object = trace->getAsObject();
  const llvm::json::Array *events = object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return makeError("has no 'traceEvents': a trace is expected ('cleave-run --trace')");
  llvm::Expected<std::map<int32_t, std::vector<Command>>> commands = readCommands(*events, schedule);
  if (!commands)
    return commands.takeError();
  double first = std::numeric_limits<double>::infinity();
  std::map<Key, Work> work;
  for (const auto &[rank, own] : *commands) {
    work.merge(gather(own));
    first = std::min(first, own.front().begin);
  }
  const double scale = unit == "ns" ? 1e3 : 1;
  Simulation measured;
  measured.times.resize(schedule.numRanks);
  for (std::vector<double> *each : {&measured.busy, &measured.start, &measured.end})
    each->resize(schedule.numRanks);
  double busy = 0;
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    std::optional<double> start;
    double now = 0;
    std::vector<Interval> &times = measured.times[rank];
    for (const Action &action : schedule.programs[rank]) {
      // A kernel that was formed of two actions is a part of the first: bars of a row do not overlap. Where nothing is in the trace, of a
      // message or an I that is empty, only the place in the row is known.
      std::optional<Interval> time;
      for (const Key &part : isCompute(action.kind) ? getParts(action) : llvm::SmallVector<Key, 2>()) {
        auto it = work.find(part);
        if (it == work.end())
          continue;
        double begin = std::max(now, (it->second.time.start - first) * scale),
               end = (it->second.time.end - first) * scale;
        time = time ? Interval{std::min(time->start, begin), std::max(time->end, end)}
                    : Interval{begin, std::max(begin, end)};
        measured.busy[rank] += it->second.busy * scale;
      }
      times.push_back(time.value_or(Interval{now, now}));
      if (!time)
        continue;
      // The parts of a joined pair run as one.
      if (times.size() > 1 && schedule.programs[rank][times.size() - 2].isJoined)
        times[times.size() - 2].end = std::max(times[times.size() - 2].end, time->end);
      start = std::min(start.value_or(time->start), time->start);
      now = measured.end[rank] = std::max(now, time->end);
    }
    measured.start[rank] = start.value_or(0);
    busy += measured.busy[rank];
    measured.makespan = std::max(measured.makespan, measured.end[rank]);
    measured.span = std::max(measured.span, measured.end[rank] - measured.start[rank]);
  }
  auto getBubble = [&](double time) { return time > 0 ? 1 - busy / (schedule.numRanks * time) : 0; };
  measured.bubbleMakespan = getBubble(measured.makespan);
  measured.bubbleSpan = getBubble(measured.span);
  return measured;
}
