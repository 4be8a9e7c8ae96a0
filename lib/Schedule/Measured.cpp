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

static llvm::Expected<std::map<Key, Work>> gather(const llvm::json::Array &events, const Schedule &schedule) {
  std::map<Key, Work> found;
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
      return makeError("'{0}' is no action of {1} stages and {2} microbatches: the trace is of another program",
                       *action, schedule.numStages, schedule.numMicrobatches);
    int64_t device = event->getInteger("pid").value_or(0);
    int32_t rank = schedule.getRank(std::get<1>(*key), std::get<2>(*key));
    if (deviceOf.try_emplace(rank, device).first->second != device)
      continue;
    auto [it, isNew] = found.try_emplace(*key, Work{{*begin, *begin + *length}, 0});
    Work &work = it->second;
    work.time.start = std::min(work.time.start, *begin);
    work.time.end = std::max(work.time.end, *begin + *length);
    work.busy += isWork(event->getString("name").value_or("")) ? *length : 0;
  }
  if (found.empty())
    return makeError("no command says which action it is a part of: a trace of a pipeline's program is expected "
                     "('cleave-run --trace')");
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
  llvm::Expected<std::map<Key, Work>> work = gather(*events, schedule);
  if (!work)
    return work.takeError();
  double first = llvm::min_element(*work, [](auto &a, auto &b) {
                   return a.second.time.start < b.second.time.start;
                 })->second.time.start;
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
        auto it = work->find(part);
        if (it == work->end())
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
