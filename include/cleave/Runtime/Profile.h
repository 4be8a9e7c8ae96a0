//===- Profile.h - where the time of a run went -----------------*- C++ -*-===//
//
// From the events of an executor that keeps times (`ExecutorOptions::keepsTimes`).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_PROFILE_H
#define CLEAVE_RUNTIME_PROFILE_H

#include "cleave/Program/UnitTimes.h"
#include "cleave/Runtime/Executor.h"

#include <optional>

namespace cleave::runtime {

/// What one kind of command, or one node of the model, took: seconds of all ranks of this process together.
struct ProfileRow {
  std::string name;
  uint64_t commands = 0;
  double seconds = 0;
};

/// What a role's ranks did, of those in this process: seconds of a rank on average. With a pipeline a role is its stages.
struct RoleTime {
  std::string name;
  uint32_t ranks = 0;
  double busy = 0;    ///< in commands of the rank alone
  double meeting = 0; ///< in those with others, waiting for them included
  /// Of that, waiting where nothing else could be done: for what was started before, on a device for another stream.
  double waiting = 0;

  /// What communication adds to the time of the rank's own commands, as a share of it.
  double getExposed() const { return busy > 0 ? meeting / busy : 0; }
};

/// Of a pipeline: by its ranks, when they worked on microbatches, in seconds from the first of any of them on. Of several devices that do the
/// same, the first counts.
struct PipelineTimes {
  std::vector<double> busy, start, end;
  program::PipelineSpans spans;
};

struct Profile {
  /// Longest first. A node that is not told is called "".
  std::vector<ProfileRow> kinds, nodes;
  /// In the program's order, those with ranks here.
  std::vector<RoleTime> roles;
  std::optional<PipelineTimes> pipeline;
  /// Of all ranks together, and how many there are: what is not in rows is inputs, outputs, and waiting for each other.
  double seconds = 0;
  uint32_t ranks = 0;
};

/// Of the last run.
Profile makeProfile(const Executor &executor);
/// Its roles alone.
std::vector<RoleTime> getRoleTimes(const Executor &executor);
/// Of the last run; nothing where no command is a part of a schedule's action.
std::optional<PipelineTimes> getPipelineTimes(const Executor &executor);
/// As an object of JSON (docs/report.md).
std::string formatPipelineTimes(const PipelineTimes &times);

/// As an array of JSON (docs/report.md).
std::string formatRoleTimes(const std::vector<RoleTime> &roles);
/// As a table, with at most `most` nodes.
std::string formatProfile(const Profile &profile, size_t most = 20);

/// As JSON (docs/runtime.md), which Perfetto opens: a rank's kinds of command as bars one behind the other, its nodes under them.
std::string formatProfileJson(const Executor &executor);

/// The last run in Chrome's trace format, which Perfetto (ui.perfetto.dev) opens: a process per rank, a thread per stream, an arrow per
/// message, and how far the clocks of processes are apart.
std::string formatTrace(const Executor &executor);

/// A text as JSON has it, in quotes.
std::string quoteJson(std::string_view text);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_PROFILE_H
