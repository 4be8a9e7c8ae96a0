//===- UnitTimes.cpp - when ranks of a pipeline worked --------------------===//
//
// A command may run far behind all others of its action, such as one that adds a loss to those of other microbatches: of the stretches that an
// action's commands stand in without another's between them, the one with most work is its time. All of its work is busy.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/UnitTimes.h"

#include <algorithm>
#include <tuple>

using namespace cleave::program;

std::map<std::string, UnitTime> cleave::program::gatherUnits(std::vector<UnitCommand> commands) {
  // Commands of one beginning: by name, so that what is found is one whatever the order in which they come.
  std::sort(commands.begin(), commands.end(), [](const UnitCommand &a, const UnitCommand &b) {
    return std::tie(a.begin, a.unit) < std::tie(b.begin, b.unit);
  });
  std::map<std::string, UnitTime> found;
  std::map<std::string, double> most;
  for (size_t first = 0, next = 0; first < commands.size(); first = next) {
    const std::string &unit = commands[first].unit;
    UnitTime stretch{commands[first].begin, 0, 0};
    for (; next < commands.size() && commands[next].unit == unit; ++next) {
      stretch.end = std::max(stretch.end, commands[next].begin + commands[next].length);
      stretch.busy += commands[next].isWork ? commands[next].length : 0;
    }
    UnitTime &time = found[unit];
    time.busy += stretch.busy;
    if (auto [it, isNew] = most.try_emplace(unit, stretch.busy); isNew || stretch.busy > it->second) {
      it->second = stretch.busy;
      time.start = stretch.start;
      time.end = stretch.end;
    }
  }
  return found;
}

PipelineSpans cleave::program::computeSpans(const std::vector<double> &busy, const std::vector<double> &start,
                                            const std::vector<double> &end) {
  PipelineSpans spans;
  double sum = 0;
  for (size_t rank = 0; rank < busy.size(); ++rank) {
    spans.makespan = std::max(spans.makespan, end[rank]);
    spans.span = std::max(spans.span, end[rank] - start[rank]);
    sum += busy[rank];
  }
  auto getBubble = [&](double time) { return time > 0 ? 1 - sum / (static_cast<double>(busy.size()) * time) : 0; };
  spans.bubbleMakespan = getBubble(spans.makespan);
  spans.bubbleSpan = getBubble(spans.span);
  return spans;
}
