//===- Measured.cpp - when a run did what a schedule says -----------------===//
//
// Events of a trace are gathered by the action that they name (Program/UnitTimes.h), a joined B as the I and W that it runs as, and then read
// off in the order of the table.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Measured.h"

#include "Spans.h"
#include "cleave/Program/UnitTimes.h"
#include "cleave/Support/JsonText.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <limits>
#include <map>

using namespace cleave;
using namespace cleave::schedule;

/// The rank on which an action of the schedule runs: `1F3`, `1UPDATE`. Nothing for what is none that takes time.
static std::optional<int32_t> findRank(llvm::StringRef text, const Schedule &schedule) {
  int32_t stage = 0, microbatch = 0;
  llvm::StringRef number = text.take_while(llvm::isDigit), rest = text.drop_front(number.size());
  if (number.getAsInteger(10, stage) || stage >= schedule.numStages)
    return std::nullopt;
  if (rest == getWord(ActionKind::Update))
    return schedule.replicas.front().placement[stage];
  std::optional<ActionKind> kind = parseActionKind(rest.take_front(1));
  if (!kind || *kind == ActionKind::B || rest.drop_front(1).getAsInteger(10, microbatch) ||
      microbatch >= schedule.numMicrobatches)
    return std::nullopt;
  return schedule.getRank(stage, microbatch);
}

/// What waits for other devices is no work of this one.
static bool isWork(llvm::StringRef name) {
  return !name.starts_with("finish ") && !name.starts_with("advance ") && !name.starts_with("wait");
}

/// By rank of the pipeline.
static llvm::Expected<std::map<int32_t, std::vector<program::UnitCommand>>>
readCommands(const llvm::json::Array &events, const Schedule &schedule) {
  std::map<int32_t, std::vector<program::UnitCommand>> found;
  std::map<int32_t, int64_t> deviceOf;
  for (const llvm::json::Value &value : events) {
    const llvm::json::Object *event = value.getAsObject(), *args = event ? event->getObject("args") : nullptr;
    std::optional<llvm::StringRef> action = args ? args->getString("action") : std::nullopt;
    std::optional<double> begin = event ? event->getNumber("ts") : std::nullopt,
                          length = event ? event->getNumber("dur") : std::nullopt;
    if (!action || !begin || !length)
      continue;
    std::optional<int32_t> rank = findRank(*action, schedule);
    if (!rank)
      return makeError("'{0}' is not an action of {1} stages and {2} microbatches: the trace is of another program",
                       *action, schedule.numStages, schedule.numMicrobatches);
    int64_t device = event->getInteger("pid").value_or(0);
    if (deviceOf.try_emplace(*rank, device).first->second == device)
      found[*rank].push_back({action->str(), *begin, *length, isWork(event->getString("name").value_or(""))});
  }
  if (found.empty())
    return makeError("no command says which action it is a part of: a trace of a pipeline's program is expected "
                     "('cleave-run --trace')");
  return found;
}

/// The parts that an action of a table runs as, as commands name them; none of a message.
static llvm::SmallVector<std::string, 2> getParts(Action action) {
  if (action.kind != ActionKind::B)
    return isCompute(action.kind) || action.kind == ActionKind::Update
               ? llvm::SmallVector<std::string, 2>{getText(action)}
               : llvm::SmallVector<std::string, 2>();
  llvm::SmallVector<std::string, 2> parts;
  for (ActionKind kind : {ActionKind::I, ActionKind::W}) {
    action.kind = kind;
    parts.push_back(getText(action));
  }
  return parts;
}

llvm::Expected<Simulation> cleave::schedule::readMeasured(llvm::StringRef text, const Schedule &schedule,
                                                          llvm::StringRef unit) {
  llvm::Expected<llvm::json::Value> trace = parseJson(text);
  if (!trace)
    return trace.takeError();
  const llvm::json::Object *object = trace->getAsObject();
  const llvm::json::Array *events = object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return makeError("has no 'traceEvents': a trace is expected ('cleave-run --trace')");
  auto commands = readCommands(*events, schedule);
  if (!commands)
    return commands.takeError();
  double first = std::numeric_limits<double>::infinity();
  std::map<std::string, program::UnitTime> work;
  for (auto &[rank, own] : *commands) {
    for (const program::UnitCommand &command : own)
      first = std::min(first, command.begin);
    work.merge(program::gatherUnits(std::move(own)));
  }
  const double scale = unit == "ns" ? 1e3 : 1;
  Simulation measured;
  measured.times.resize(schedule.numRanks);
  for (std::vector<double> *each : {&measured.busy, &measured.start, &measured.end})
    each->resize(schedule.numRanks);
  for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
    std::optional<double> start;
    double now = 0;
    std::vector<Interval> &times = measured.times[rank];
    for (const Action &action : schedule.programs[rank]) {
      // A kernel that was formed of two actions is a part of the first: bars of a row do not overlap. Where nothing is in the trace, of a
      // message or an I that is empty, only the place in the row is known.
      std::optional<Interval> time;
      for (const std::string &part : getParts(action)) {
        auto it = work.find(part);
        if (it == work.end())
          continue;
        double begin = std::max(now, (it->second.start - first) * scale), end = (it->second.end - first) * scale;
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
  }
  setSpans(measured);
  return measured;
}
