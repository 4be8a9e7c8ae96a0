//===- DrawTrace.cpp - a schedule as a trace ------------------------------===//
//
// The JSON that Perfetto and chrome://tracing read: complete events (X), a pair of flow events (s, f) for each message,
// which bind to the bars that they lie in, and counters (C). Events of one rank are one thread of one process.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Draw.h"

#include "Bars.h"
#include "Operands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace cleave::schedule;

/// A unit of time is a millisecond; traces count microseconds.
static constexpr double kMicroseconds = 1000;

namespace {

class Trace {
public:
  Trace(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation)
      : json(os), schedule(schedule), costs(costs), simulation(simulation), operands(schedule),
        made(operands.getNumFacts()) {}

  void write() {
    json.object([&] {
      json.attribute("displayTimeUnit", "ms");
      json.attributeArray("traceEvents", [&] {
        for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
          writeRank(rank);
        for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
          visitBars(schedule, simulation, rank, [&](const Bar &bar) {
            for (const Action &action : bar.actions)
              writeArrows(rank, action, bar.time);
          });
      });
    });
  }

private:
  /// What all events have in common: phase, thread and name.
  template <typename Fill> void event(llvm::StringRef phase, int32_t rank, const std::string &name, Fill fill) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("pid", 0);
      json.attribute("tid", rank);
      json.attribute("name", name);
      fill();
    });
  }

  /// Bars and memory of a rank; when facts were made is noted for the arrows, which need both ends.
  void writeRank(int32_t rank) {
    event("M", rank, "thread_name",
          [&] { json.attributeObject("args", [&] { json.attribute("name", "rank " + std::to_string(rank)); }); });
    visitBars(schedule, simulation, rank, [&](const Bar &bar) {
      event("X", rank, bar.getText(), [&] {
        json.attribute("ts", bar.time.start * kMicroseconds);
        json.attribute("dur", (bar.time.end - bar.time.start) * kMicroseconds);
      });
      for (const Action &action : bar.actions)
        if (Fact fact = operands.getResult(action); fact >= 0)
          made[fact] = bar.time;
    });
    for (auto [time, memory] : getMemoryCurve(schedule, costs, simulation, rank))
      event("C", rank, llvm::formatv("memory of rank {0}", rank), [&, time = time, memory = memory] {
        json.attribute("ts", time * kMicroseconds);
        json.attributeObject("args", [&] { json.attribute("held", memory); });
      });
  }

  /// From within what made a value, near its end, to the start of what needs it.
  void writeArrows(int32_t rank, const Action &action, const Interval &from) {
    operands.visitMessages(schedule, action, [&](const Action &send, const Action &recv) {
      Fact fact = send.kind == ActionKind::SendF ? operands.getForward(recv.stage, recv.microbatch)
                                                 : operands.getGradient(recv.stage, recv.microbatch);
      std::string name = getText(send);
      // An arrow binds to the bar that holds its time, and the very end belongs to the next one.
      double near = from.end - (from.end - from.start) / 1000;
      event("s", rank, name, [&] { bind(near, ""); });
      event("f", schedule.getRank(recv.stage, recv.microbatch), name, [&] { bind(made[fact].start, "e"); });
      ++arrows;
    });
  }

  void bind(double time, llvm::StringRef point) {
    json.attribute("cat", "message");
    json.attribute("id", arrows);
    json.attribute("ts", time * kMicroseconds);
    if (!point.empty())
      json.attribute("bp", point);
  }

  llvm::json::OStream json;
  const Schedule &schedule;
  const Costs &costs;
  const Simulation &simulation;
  Operands operands;
  /// When the action that made a fact ran.
  std::vector<Interval> made;
  int64_t arrows = 0;
};

} // namespace

void cleave::schedule::drawTrace(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs,
                                 const Simulation &simulation) {
  Trace(os, schedule, costs, simulation).write();
  os << '\n';
}
