//===- Trace.cpp - what ranks did, and when -------------------------------===//
//
// Events as bars, and an arrow for each message of an exchange. Who sends and who receives are commands of different lists, whose ranks meet
// in one order: the n-th exchange of the same pieces on one rank is the n-th on the other.
//
//   rank 0   | launch | exchange |            launch          |
//                       ╲
//   rank 1   | exchange |  launch  |  finish exchange | launch |
//                                                  ▲
//
//===----------------------------------------------------------------------===//
#include "TraceWriter.h"
#include "cleave/Program/Error.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Profile.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;

//===----------------------------------------------------------------------===//
// The format
//===----------------------------------------------------------------------===//

/// Names that chrome://tracing knows, in the order of `Action`; collectives have one for each kind.
const char *cleave::runtime::getColor(const program::Action &action) {
  static constexpr const char *kColors[] = {
      "thread_state_running",   "rail_response", "vsync_highlight_color", "rail_animation", "grey", "",
      "background_memory_dump", "white",         "thread_state_sleeping", "olive",          "black"};
  static_assert(std::size(kColors) == std::variant_size_v<program::Action>, "a kind of command without a color");
  // Of kinds of collectives, in their order; more of them than there are would share.
  static constexpr const char *kCollectives[] = {"terrible", "bad", "detailed_memory_dump",
                                                 "thread_state_uninterruptible", "generic_work"};
  if (const auto *collective = std::get_if<program::Collective>(&action))
    return kCollectives[size_t(collective->kind) % std::size(kCollectives)];
  return kColors[action.index()];
}

static int64_t toNanoseconds(double seconds) { return std::llround(seconds * 1e9); }

/// Microseconds, as traces count.
static std::string formatTime(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%s%" PRId64 ".%03" PRId64, nanoseconds < 0 ? "-" : "",
                std::abs(nanoseconds) / 1000, std::abs(nanoseconds) % 1000);
  return text;
}

static std::string formatMicroseconds(double seconds) { return formatTime(toNanoseconds(seconds)); }

void TraceWriter::add(const std::string &event) { events += (events.empty() ? "\n{" : ",\n{") + event + "}"; }

void TraceWriter::nameRank(const program::Program &program, uint32_t rank) {
  std::string name = concat("rank ", rank);
  if (program.roles.size() > 1)
    name += ", " + program.roles[program::getRoles(program)[rank]].name;
  add(concat("\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", rank, ", \"args\": {\"name\": ", quoteJson(name),
             "}"));
}

std::string TraceWriter::formatPlace(uint32_t rank, uint32_t stream) const {
  // One number for each stream of each rank, none of them a rank's.
  return concat("\"pid\": ", rank, ", \"tid\": ", uint64_t(ranks) * (uint64_t(stream) + 1) + rank);
}

void TraceWriter::nameStream(uint32_t rank, uint32_t stream, const std::string &name) {
  add(concat("\"ph\": \"M\", \"name\": \"thread_name\", ", formatPlace(rank, stream),
             ", \"args\": {\"name\": ", quoteJson(name), "}"));
}

void TraceWriter::addBar(const TraceBar &bar, const std::string &args) {
  // Both ends are rounded, and their distance is not: Perfetto drops a bar that ends a nanosecond behind the next one's, or its caller's.
  const int64_t begin = toNanoseconds(bar.begin), end = toNanoseconds(bar.end);
  add(concat("\"ph\": \"X\", \"name\": ", quoteJson(bar.name), ", \"cat\": ", quoteJson(bar.category),
             ", \"cname\": ", quoteJson(bar.color), ", ", formatPlace(bar.rank, bar.stream),
             ", \"ts\": ", formatTime(begin), ", \"dur\": ", formatTime(end - begin), ", \"args\": {", args, "}"));
}

void TraceWriter::addArrow(const TraceBar &from, const TraceBar &to, uint64_t bytes) {
  // An arrow binds to the bar that holds its time, and the very end of a bar belongs to the next one: the last nanosecond before it. A part of
  // the bar would be too much: who waits long may have what is sent right before the end.
  const int64_t begin = toNanoseconds(to.begin), end = std::max(begin, toNanoseconds(to.end) - 1);
  auto addEnd = [&](const char *phase, const TraceBar &bar, int64_t time, const char *more) {
    add(concat("\"ph\": \"", phase, "\", \"name\": \"message\", \"cat\": \"message\", \"id\": ", arrows, more, ", ",
               formatPlace(bar.rank, bar.stream), ", \"ts\": ", formatTime(time), ", \"args\": {\"bytes\": ", bytes,
               "}"));
  };
  addEnd("s", from, toNanoseconds(from.begin), "");
  addEnd("f", to, end, ", \"bp\": \"e\"");
  ++arrows;
}

std::string TraceWriter::format() const { return "\"displayTimeUnit\": \"ms\", \"traceEvents\": [" + events + "\n]"; }

//===----------------------------------------------------------------------===//
// Bars
//===----------------------------------------------------------------------===//

/// By its kind, which has one color; a meeting is there when it starts, while it moves on between other commands, and when it is waited for.
static TraceBar makeBar(const Executor &executor, const Event &event) {
  const program::Command &command = getCommand(executor, event);
  std::string kind = program::getWord(command.action);
  TraceBar bar = {event.rank, event.stream, kind, kind, getColor(command.action), event.begin, event.end};
  if (event.part == Part::Whole)
    return bar;
  bool isWaiting = event.part == Part::Finish;
  bar.name = (isWaiting ? "finish " : "advance ") + kind;
  bar.category = kind + (isWaiting ? ",finish" : ",advance");
  bar.color = isWaiting ? "yellow" : "startup";
  return bar;
}

/// `"action": "1F3", "stage": 1, "microbatch": 3`; what names no stage and microbatch is the action alone.
static std::string describeUnit(const std::string &unit) {
  std::string text = ", \"action\": " + quoteJson(unit);
  size_t kind = unit.find_first_not_of("0123456789");
  constexpr size_t mostDigits = 9; // what a file says may be anything, and must fit
  bool isOfTable = kind != std::string::npos && kind > 0 && kind <= mostDigits && kind + 1 < unit.size() &&
                   unit.size() - kind - 1 <= mostDigits &&
                   unit.find_first_not_of("0123456789", kind + 1) == std::string::npos;
  // As numbers: JSON has no leading zeros.
  if (isOfTable)
    text += concat(", \"stage\": ", std::stoul(unit), ", \"microbatch\": ", std::stoul(unit.substr(kind + 1)));
  return text;
}

static std::string describeCommand(const Executor &executor, const Event &event) {
  return concat("\"command\": ", event.command,
                ", \"node\": ", quoteJson(getNode(executor, getCommand(executor, event))));
}

static std::string describeEvent(const Executor &executor, const Event &event) {
  const program::Command &command = getCommand(executor, event);
  std::string text = describeCommand(executor, event);
  if (command.unit >= 0)
    text += describeUnit(executor.getProgram().units[command.unit]);
  if (event.laterRuns)
    text += concat(", \"later_runs\": ", event.laterRuns, ", \"later_us\": ", formatMicroseconds(event.laterSeconds));
  return text;
}

//===----------------------------------------------------------------------===//
// Arrows
//===----------------------------------------------------------------------===//

namespace {
/// The exchanges of one list of pieces on one rank, in order: what was sent at the beginning of its start has come at its end.
struct Exchanges {
  std::vector<TraceBar> starts, ends;
  std::vector<uint32_t> elementBytes; ///< by start: one list of pieces may serve several element types
};
} // namespace

/// Elements from each rank to each other one.
static std::map<std::pair<uint32_t, uint32_t>, uint64_t> countElements(const program::Pieces &pieces) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;
  for (size_t i = 0; i < pieces.ends.size(); ++i)
    if (pieces.ends[i].source != pieces.ends[i].target)
      counts[{pieces.ends[i].source, pieces.ends[i].target}] += pieces.countElements(i);
  return counts;
}

static void addArrows(const Executor &executor, const std::vector<Event> &events, TraceWriter &writer) {
  const program::Program &program = executor.getProgram();
  std::map<uint32_t, std::map<uint32_t, Exchanges>> all; // by pieces and rank
  for (const Event &event : events) {
    const auto *exchange = std::get_if<program::Exchange>(&getCommand(executor, event).action);
    if (!exchange || event.part == Part::Advance)
      continue;
    Exchanges &own = all[exchange->pieces][event.rank];
    if (event.part == Part::Finish) {
      own.ends.push_back(makeBar(executor, event));
      continue;
    }
    own.starts.push_back(makeBar(executor, event));
    const std::optional<program::View> &view = exchange->operand ? exchange->operand : exchange->result;
    own.elementBytes.push_back(view ? program::getElementBytes(program.types[view->type].element) : 0);
  }
  for (auto &[pieces, ranks] : all)
    for (auto [ends, count] : countElements(program.pieces[pieces])) {
      const Exchanges &source = ranks[ends.first], &target = ranks[ends.second];
      // A device's queue waits for what it starts, in one.
      const std::vector<TraceBar> &received = target.ends.empty() ? target.starts : target.ends;
      for (size_t i = 0; i < source.starts.size() && i < received.size(); ++i)
        writer.addArrow(source.starts[i], received[i], count * source.elementBytes[i]);
    }
}

//===----------------------------------------------------------------------===//
// The trace
//===----------------------------------------------------------------------===//

/// Clocks of processes as they were found to be, with what is not known of them; one clock needs no word.
static std::string formatClocks(const std::vector<RankClock> &clocks) {
  std::string text;
  for (const RankClock &clock : clocks)
    text += concat(text.empty() ? " \"clocks\": [" : ", ", "{\"rank\": ", clock.rank,
                   ", \"offset_us\": ", formatMicroseconds(clock.offset),
                   ", \"error_us\": ", formatMicroseconds(clock.error), "}");
  return text.empty() ? text : text + "],\n ";
}

std::string cleave::runtime::formatTrace(const Executor &executor) {
  TraceWriter writer(executor.getProgram().ranks);
  std::vector<Event> events = executor.getEvents();
  std::set<uint32_t> ranks;
  std::set<std::pair<uint32_t, uint32_t>> streams;
  // From the first event of any rank on: clocks put what a rank does first before rank 0's beginning, and Perfetto drops times below 0.
  double first = events.empty() ? 0 : events.front().begin;
  for (const Event &event : events)
    first = std::min(first, event.begin);
  for (Event &event : events) {
    event.begin -= first;
    event.end -= first;
    if (ranks.insert(event.rank).second)
      writer.nameRank(executor.getProgram(), event.rank);
    if (streams.emplace(event.rank, event.stream).second)
      writer.nameStream(event.rank, event.stream, concat("stream ", event.stream));
  }
  for (const Event &event : events) {
    TraceBar bar = makeBar(executor, event);
    writer.addBar(bar, describeEvent(executor, event));
    // The kernel is a bar within that of its kind, as one that is called is within its caller.
    if (const auto *launch = std::get_if<program::Launch>(&getCommand(executor, event).action)) {
      bar.name = executor.getProgram().kernels[launch->kernel].name;
      bar.category += ",kernel";
      writer.addBar(bar, describeCommand(executor, event));
    }
  }
  addArrows(executor, events, writer);
  return concat("{", formatClocks(executor.getClocks()), writer.format(), "}\n");
}
