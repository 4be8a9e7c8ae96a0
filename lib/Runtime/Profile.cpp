//===- Profile.cpp - where the time of a run went -------------------------===//
//
// Sums over events, as a table and as JSON; events themselves are in Trace.cpp.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Profile.h"
#include "TraceWriter.h"
#include "cleave/Program/Error.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <tuple>

using namespace cleave::runtime;
namespace program = cleave::program;

const program::Command &cleave::runtime::getCommand(const Executor &executor, const Event &event) {
  return executor.getList(executor.getVariant(), event.rank).commands[event.command];
}

std::string cleave::runtime::getNode(const Executor &executor, const program::Command &command) {
  return command.node < 0 ? "" : executor.getProgram().nodes[command.node];
}

//===----------------------------------------------------------------------===//
// Profile
//===----------------------------------------------------------------------===//

/// By time; what takes equally long by name, so that a table is one whatever the timing.
static std::vector<ProfileRow> sortRows(const std::map<std::string, ProfileRow> &rows) {
  std::vector<ProfileRow> sorted;
  for (const auto &[name, row] : rows) {
    sorted.push_back(row);
    sorted.back().name = name;
  }
  std::sort(sorted.begin(), sorted.end(), [](const ProfileRow &a, const ProfileRow &b) {
    return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name);
  });
  return sorted;
}

/// Markers of events take no time of their own, on the host; on a device they tell when a stream waits.
static bool isAlone(const program::Action &action) {
  return !std::holds_alternative<program::Collective>(action) && !std::holds_alternative<program::Exchange>(action) &&
         !std::holds_alternative<program::Record>(action) && !std::holds_alternative<program::Wait>(action) &&
         !std::holds_alternative<program::Loop>(action) && !std::holds_alternative<program::EndLoop>(action);
}

std::vector<RoleTime> cleave::runtime::getRoleTimes(const Executor &executor) {
  const program::Program &program = executor.getProgram();
  const std::vector<uint32_t> roleOf = program::getRoles(program);
  std::vector<bool> isHere(program.ranks);
  std::vector<RoleTime> all(program.roles.size()), roles;
  for (const Event &event : executor.getEvents()) {
    RoleTime &time = all[roleOf[event.rank]];
    time.ranks += isHere[event.rank] ? 0 : 1;
    isHere[event.rank] = true;
    const program::Action &action = getCommand(executor, event).action;
    (isAlone(action) ? time.busy : time.meeting) += event.getSeconds();
    if (event.part == Part::Finish || std::holds_alternative<program::Wait>(action))
      time.waiting += event.getSeconds();
  }
  for (uint32_t role = 0; role < all.size(); ++role)
    if (RoleTime &time = all[role]; time.ranks)
      roles.push_back({program.roles[role].name, time.ranks, time.busy / time.ranks, time.meeting / time.ranks,
                       time.waiting / time.ranks});
  return roles;
}

/// A role of a pipeline's program is what its ranks of one place do. What waits for others is no work.
std::optional<PipelineTimes> cleave::runtime::getPipelineTimes(const Executor &executor) {
  const program::Program &program = executor.getProgram();
  const std::vector<uint32_t> roleOf = program::getRoles(program);
  std::map<uint32_t, std::vector<program::UnitCommand>> commands;
  std::map<uint32_t, uint32_t> deviceOf;
  double first = std::numeric_limits<double>::infinity();
  for (const Event &event : executor.getEvents()) {
    const program::Command &command = getCommand(executor, event);
    uint32_t role = roleOf[event.rank];
    if (command.unit < 0 || deviceOf.try_emplace(role, event.rank).first->second != event.rank)
      continue;
    bool isWork = event.part == Part::Whole && !std::holds_alternative<program::Wait>(command.action);
    commands[role].push_back({program.units[command.unit], event.begin, event.end - event.begin, isWork});
    first = std::min(first, event.begin);
  }
  if (commands.empty())
    return std::nullopt;
  PipelineTimes times;
  // By role, which are numbered as the ranks of the pipeline are. Each begins when its first action does, however late that is: what a rank
  // waits before its first microbatch is bubble of the makespan, and none of the span.
  for (auto &[role, own] : commands) {
    double busy = 0, start = std::numeric_limits<double>::infinity(), end = 0;
    for (const auto &[unit, time] : program::gatherUnits(std::move(own))) {
      busy += time.busy;
      start = std::min(start, time.start - first);
      end = std::max(end, time.end - first);
    }
    times.busy.push_back(busy);
    times.start.push_back(start);
    times.end.push_back(end);
  }
  times.spans = program::computeSpans(times.busy, times.start, times.end);
  return times;
}

std::string cleave::runtime::formatPipelineTimes(const PipelineTimes &times) {
  auto list = [](const std::vector<double> &seconds) {
    std::string text;
    for (double each : seconds) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%.9f", text.empty() ? "" : ", ", each);
      text += number;
    }
    return "[" + text + "]";
  };
  char spans[192];
  std::snprintf(spans, sizeof(spans),
                "\"makespan_seconds\": %.9f, \"span_seconds\": %.9f, \"bubble\": {\"makespan\": %.6f, \"span\": %.6f}",
                times.spans.makespan, times.spans.span, times.spans.bubbleMakespan, times.spans.bubbleSpan);
  return program::concat("{", spans, ", \"busy_seconds\": ", list(times.busy),
                         ", \"start_seconds\": ", list(times.start), ", \"end_seconds\": ", list(times.end), "}");
}

std::string cleave::runtime::formatRoleTimes(const std::vector<RoleTime> &roles) {
  std::string text;
  for (const RoleTime &role : roles) {
    char times[160];
    std::snprintf(times, sizeof(times), "\"busy_seconds\": %.9f, \"meeting_seconds\": %.9f, \"waiting_seconds\": %.9f",
                  role.busy, role.meeting, role.waiting);
    text += program::concat(text.empty() ? "" : ", ", "{\"name\": ", quoteJson(role.name), ", \"ranks\": ", role.ranks,
                            ", ", times, "}");
  }
  return "[" + text + "]";
}

/// Each event counts twice: once under its kind, once under its node.
Profile cleave::runtime::makeProfile(const Executor &executor) {
  std::map<std::string, ProfileRow> kinds, nodes;
  std::vector<bool> ranks(executor.getProgram().ranks);
  for (const Event &event : executor.getEvents()) {
    const program::Command &command = getCommand(executor, event);
    for (ProfileRow *row : {&kinds[program::getWord(command.action)], &nodes[getNode(executor, command)]}) {
      row->commands += event.part == Part::Whole ? 1 + event.laterRuns : 0;
      row->seconds += event.getSeconds();
    }
    ranks[event.rank] = true;
  }
  Profile profile;
  profile.kinds = sortRows(kinds);
  profile.nodes = sortRows(nodes);
  profile.ranks = uint32_t(std::count(ranks.begin(), ranks.end(), true));
  profile.seconds = executor.getRunSeconds() * profile.ranks;
  profile.roles = getRoleTimes(executor);
  profile.pipeline = getPipelineTimes(executor);
  return profile;
}

/// One part of the table, with its head.
static void appendRows(std::string &text, const char *title, const std::vector<ProfileRow> &rows,
                       const Profile &profile, size_t most) {
  char line[160];
  std::snprintf(line, sizeof(line), "%12s %7s %9s  %s\n", "milliseconds", "share", "commands", title);
  text += line;
  for (size_t i = 0; i < rows.size() && i < most; ++i) {
    std::snprintf(line, sizeof(line), "%12.4f %6.1f%% %9llu  ", rows[i].seconds * 1e3,
                  profile.seconds > 0 ? 100 * rows[i].seconds / profile.seconds : 0,
                  static_cast<unsigned long long>(rows[i].commands));
    text += line + (rows[i].name.empty() ? "(none)" : program::printable(rows[i].name)) + "\n";
  }
  if (rows.size() > most)
    text += program::concat("             and ", rows.size() - most, " more\n");
}

/// Only where roles differ: with one there is nothing to compare.
static void appendRoles(std::string &text, const std::vector<RoleTime> &roles) {
  if (roles.size() < 2)
    return;
  char line[120];
  std::snprintf(line, sizeof(line), "%12s %12s %7s  %s\n", "milliseconds", "with others", "ranks",
                "role, a rank of it");
  text += line;
  for (const RoleTime &role : roles) {
    std::snprintf(line, sizeof(line), "%12.4f %12.4f %7u  ", role.busy * 1e3, role.meeting * 1e3, role.ranks);
    text += line + program::printable(role.name) + "\n";
  }
}

/// What communication costs a rank on average, where there is any.
static void appendExposed(std::string &text, const std::vector<RoleTime> &roles) {
  RoleTime all;
  for (const RoleTime &role : roles) {
    all.ranks += role.ranks;
    all.busy += role.busy * role.ranks;
    all.meeting += role.meeting * role.ranks;
    all.waiting += role.waiting * role.ranks;
  }
  if (all.meeting <= 0)
    return;
  char line[160];
  std::snprintf(line, sizeof(line),
                "%12.4f milliseconds of a rank with others, %.4f of them waiting: %.1f%% of its own commands\n",
                all.meeting / all.ranks * 1e3, all.waiting / all.ranks * 1e3, 100 * all.getExposed());
  text += line;
}

/// Of a pipeline, what its schedule leaves ranks without work, as `cleave schedule` predicts it.
static void appendPipeline(std::string &text, const std::optional<PipelineTimes> &times) {
  if (!times)
    return;
  char line[160];
  std::snprintf(
      line, sizeof(line),
      "%12.4f milliseconds of microbatches, of which ranks have nothing to do %.1f%% (%.1f%% of the span %.4f)\n",
      times->spans.makespan * 1e3, times->spans.bubbleMakespan * 100, times->spans.bubbleSpan * 100,
      times->spans.span * 1e3);
  text += line;
}

std::string cleave::runtime::formatProfile(const Profile &profile, size_t most) {
  std::string text;
  appendRows(text, "kind of command", profile.kinds, profile, most);
  appendRows(text, "node", profile.nodes, profile, most);
  appendRoles(text, profile.roles);
  appendExposed(text, profile.roles);
  appendPipeline(text, profile.pipeline);
  char line[120];
  std::snprintf(line, sizeof(line), "%12.4f milliseconds in all, of %u rank%s together\n", profile.seconds * 1e3,
                profile.ranks, profile.ranks == 1 ? "" : "s");
  return text + line;
}

/// `"kinds": [{"name": "launch", "commands": 3, "seconds": 0.000001}, ..]`
static std::string formatRows(const char *title, const std::vector<ProfileRow> &rows) {
  std::string text;
  for (const ProfileRow &row : rows) {
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.9f", row.seconds);
    text += program::concat(text.empty() ? "" : ",\n  ", "{\"name\": ", quoteJson(row.name),
                            ", \"commands\": ", row.commands, ", \"seconds\": ", seconds, "}");
  }
  return program::concat("\"", title, "\": [", text, "]");
}

/// A rank's time is laid out as a flame: its kinds one behind the other, longest first, and under each the nodes that it is for.
std::string cleave::runtime::formatProfileJson(const Executor &executor) {
  Profile profile = makeProfile(executor);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.9f", profile.seconds);
  std::map<uint32_t, std::map<std::string, std::map<std::string, ProfileRow>>> ranks;
  std::map<std::string, std::string> colors;
  for (const Event &event : executor.getEvents()) {
    const program::Command &command = getCommand(executor, event);
    std::string kind = program::getWord(command.action);
    colors[kind] = getColor(command.action);
    ProfileRow &row = ranks[event.rank][kind][getNode(executor, command)];
    row.commands += event.part == Part::Whole ? 1 + event.laterRuns : 0;
    row.seconds += event.getSeconds();
  }
  TraceWriter writer(executor.getProgram().ranks);
  for (const auto &[number, kinds] : ranks) {
    const uint32_t rank = number;
    writer.nameRank(executor.getProgram(), rank);
    writer.nameStream(rank, 0, "time by kind");
    std::map<std::string, ProfileRow> sums;
    for (const auto &[kind, nodes] : kinds)
      for (const auto &[node, row] : nodes) {
        sums[kind].commands += row.commands;
        sums[kind].seconds += row.seconds;
      }
    double at = 0;
    auto write = [&](const ProfileRow &row, const std::string &kind, double begin, double end) {
      writer.addBar({rank, 0, row.name, kind, colors[kind], begin, end},
                    program::concat("\"commands\": ", row.commands));
    };
    for (const ProfileRow &kind : sortRows(sums)) {
      // Sums in two orders differ in their last digits, and what is within ends no later.
      const double end = at + kind.seconds;
      write(kind, kind.name, at, end);
      double inner = at;
      for (const ProfileRow &node : sortRows(kinds.at(kind.name))) {
        const double begin = inner;
        inner = std::min(end, inner + node.seconds);
        if (!node.name.empty())
          write(node, kind.name, begin, inner);
      }
      at = end;
    }
  }
  return program::concat("{\"version\": 1, \"ranks\": ", profile.ranks, ", \"seconds\": ", seconds, ",\n ",
                         formatRows("kinds", profile.kinds), ",\n ", formatRows("nodes", profile.nodes),
                         ",\n \"roles\": ", formatRoleTimes(profile.roles), ",\n ", writer.format(), "}\n");
}

std::string cleave::runtime::quoteJson(std::string_view text) {
  std::string quoted = "\"";
  for (unsigned char byte : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped),
                  byte == '"' || byte == '\\' ? "\\%c"
                  : byte < 0x20               ? "\\u%04x"
                                              : "%c",
                  byte);
    quoted += escaped;
  }
  return quoted + "\"";
}
