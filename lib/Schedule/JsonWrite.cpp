//===- JsonWrite.cpp - the report of a schedule ---------------------------===//
//
// Written as it goes, without a document in memory: programs may have millions of actions. Times are there as they came
// out of the simulation, in as many digits as tell them apart.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Text.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave;
using namespace cleave::schedule;
using llvm::json::OStream;

namespace {

class Writer {
public:
  Writer(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation,
         const ReportExtras &extras)
      : json(os, 1), schedule(schedule), costs(costs), simulation(simulation), extras(extras) {}

  void write() {
    json.object([&] {
      writeHead();
      json.attributeArray("channels",
                          [&] { llvm::for_each(schedule.channels, [&](auto &channel) { write(channel); }); });
      json.attributeObject("costs", [&] { writeCosts(); });
      json.attributeObject("memory", [&] { writeMemory(); });
      if (!schedule.reductions.empty())
        json.attributeArray("reductions", [&] { writeReductions(); });
      json.attributeArray("programs", [&] {
        for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
          json.array([&] { writeProgram(rank); });
      });
      writeTimes();
      writeBound();
      if (extras.measured)
        json.attributeObject("measured", [&] { writeMeasured(*extras.measured); });
    });
  }

private:
  template <typename T> void list(llvm::StringRef name, const std::vector<T> &values) {
    json.attributeArray(name, [&] { llvm::for_each(values, [&](const T &value) { json.value(value); }); });
  }

  /// What identifies the schedule, and where its stages are.
  void writeHead() {
    json.attribute("version", 1);
    json.attribute("kind", "schedule");
    json.attribute("schedule", schedule.name);
    json.attribute("ranks", schedule.numRanks);
    json.attribute("stages", schedule.numStages);
    json.attribute("microbatches", schedule.numMicrobatches);
    json.attribute("forward_only", schedule.isForwardOnly);
    json.attributeArray("replicas", [&] {
      for (const Replica &replica : schedule.replicas)
        json.object([&] {
          list("placement", replica.placement);
          list("microbatches", replica.microbatches);
        });
    });
  }

  void write(const Channel &channel) {
    json.object([&] {
      json.attribute("from", channel.from);
      json.attribute("to", channel.to);
      json.attribute("latency", channel.latency);
      json.attribute("bytes", channel.bytes);
      list("values", channel.values);
    });
  }

  /// Per stage; `comm` is what a hop of each default channel takes, all in all.
  void writeCosts() {
    json.attribute("unit", costs.unit);
    list("F", costs.forward);
    list("I", costs.inputGrad);
    list("W", costs.weightGrad);
    for (auto [name, values] : {std::pair("update", &costs.update), std::pair("reduction", &costs.reduction)})
      if (!values->empty())
        list(name, *values);
    json.attributeArray("comm", [&] {
      for (const Channel &channel : schedule.channels)
        if (channel.to == channel.from + 1)
          json.value(costs.getHop(channel));
    });
    if (costs.bandwidth > 0)
      json.attribute("bandwidth", costs.bandwidth);
    if (costs.overlap >= 0)
      json.attribute("overlap", costs.overlap);
  }

  /// Per stage, the limit per rank.
  void writeMemory() {
    list("F", costs.memoryForward);
    list("I", costs.memoryInputGrad);
    list("W", costs.memoryWeightGrad);
    if (costs.memoryByte != 0)
      json.attribute("byte", costs.memoryByte);
    if (costs.memoryLimit.empty())
      json.attribute("limit", nullptr);
    else
      list("limit", costs.memoryLimit);
  }

  void writeReductions() {
    for (const Reduction &reduction : schedule.reductions)
      json.object([&] {
        json.attribute("name", reduction.name);
        list("ranks", reduction.ranks);
      });
  }

  /// Joined actions are one entry with two parts: they have one time.
  void writeProgram(int32_t rank) {
    const std::vector<Action> &program = schedule.programs[rank];
    for (size_t i = 0; i < program.size(); ++i)
      json.object([&] {
        size_t first = i;
        if (program[i].isJoined && i + 1 < program.size()) {
          json.attribute("do", "OVERLAP_F_B");
          json.attributeArray("parts", [&] {
            for (const Action &part : {program[i], program[i + 1]})
              json.object([&] { writeAction(part); });
          });
          ++i;
        } else {
          writeAction(program[i]);
        }
        const Interval &time = simulation.times[rank][first];
        // Messages that do not block take no time.
        if (!isMessage(program[first].kind) || time.end > time.start) {
          json.attribute("start", time.start);
          json.attribute("end", time.end);
        }
      });
  }

  /// What an action is; a message also says who is at the other end.
  void writeAction(const Action &action) {
    json.attribute("do", getWord(action.kind));
    json.attribute("stage", action.stage);
    if (action.microbatch >= 0)
      json.attribute("microbatch", action.microbatch);
    if (isMessage(action.kind)) {
      json.attribute("peer", schedule.getRank(action.other, action.microbatch));
      json.attribute("other", action.other);
    } else if (action.kind == ActionKind::ReduceGrad && action.other >= 0) {
      json.attribute("group", schedule.reductions[action.other].name);
      list("ranks", schedule.reductions[action.other].ranks);
    }
  }

  /// How long all takes, and each rank, as predicted or as measured.
  void writeSpans(const Simulation &of) {
    json.attribute("makespan", of.makespan);
    json.attribute("span", of.span);
    list("busy", of.busy);
    list("start", of.start);
    list("end", of.end);
    json.attributeObject("bubble", [&] {
      json.attribute("makespan", of.bubbleMakespan);
      json.attribute("span", of.bubbleSpan);
    });
  }

  /// Sums and worst cases, in the words of Simulate.h.
  void writeTimes() {
    writeSpans(simulation);
    json.attributeObject("peak", [&] {
      list("live", simulation.peak.live);
      list("held", simulation.peak.held);
      list("memory", simulation.peak.memory);
      if (!extras.planned.empty())
        writePlanned();
    });
    json.attribute("messages", simulation.messages);
    list("weight_versions",
         schedule.weightVersions.empty() ? std::vector<int32_t>(schedule.numRanks, 1) : schedule.weightVersions);
    if (!extras.late.empty())
      json.attributeArray("updated_late", [&] {
        for (const LateUpdate &late : extras.late)
          json.object([&] {
            json.attribute("stage", late.stage);
            json.attribute("why", late.why);
          });
      });
  }

  /// An object for each rank: the bytes of its buffers, and what they are for.
  void writePlanned() {
    json.attributeArray("planned", [&] {
      for (const PlannedPeak &peak : extras.planned)
        json.object([&] {
          json.attribute("bytes", peak.bytes);
          for (const auto &[role, bytes] : peak.byRole)
            json.attribute(role, bytes);
        });
    });
  }

  /// How far from the best the schedule may be at most, and who says so.
  void writeBound() {
    if (extras.bound) {
      json.attributeObject("lower_bound", [&] {
        json.attribute("makespan", extras.bound->makespan);
        json.attribute("span", extras.bound->span);
        json.attribute("why", extras.bound->why);
      });
      double bound = extras.bound->makespan;
      json.attribute("gap", bound > 0 ? simulation.makespan / bound - 1 : 0);
    }
    if (!extras.search.empty())
      json.attribute("search", llvm::json::Value(llvm::json::Object(extras.search)));
    list("checks", extras.checks);
  }

  /// In the words of the predicted times. `programs` as in `times`: an interval per action.
  void writeMeasured(const Simulation &measured) {
    writeSpans(measured);
    json.attributeArray("programs", [&] {
      for (auto [program, times] : llvm::zip_equal(schedule.programs, measured.times))
        json.array([&, &program = program, &times = times] {
          for (auto [action, time] : llvm::zip_equal(program, times))
            if (isCompute(action.kind) || action.kind == ActionKind::Update)
              json.object([&, &action = action, &time = time] {
                writeAction(action);
                json.attribute("start", time.start);
                json.attribute("end", time.end);
              });
        });
    });
  }

  OStream json;
  const Schedule &schedule;
  const Costs &costs;
  const Simulation &simulation;
  const ReportExtras &extras;
};

} // namespace

void cleave::schedule::writeJson(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs,
                                 const Simulation &simulation, const ReportExtras &extras) {
  Writer(os, schedule, costs, simulation, extras).write();
  os << '\n';
}
