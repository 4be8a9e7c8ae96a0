//===- Schedule.h - what each rank of a pipeline does, and when -*- C++ -*-===//
//
//   cleave::ScheduleOptions options;
//   options.name = "1f1b", options.ranks = 4, options.microbatches = 8;
//   if (std::optional<cleave::ScheduleResult> made = cleave::scheduleModel(compilation, options))
//     double ns = made->simulation.makespan;
//
// A schedule by itself, of given costs, needs no model: `makeSchedule`. Several schedules of one model share what is known of it: a
// StagedModel.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_SCHEDULE_H
#define CLEAVE_COMPILER_SCHEDULE_H

#include "cleave/Compiler/Compilation.h"
#include "cleave/Schedule/Place.h"
#include "cleave/Schedule/Search.h"
#include "cleave/Schedule/StageSplit.h"
#include "cleave/Schedule/Text.h"
#include <variant>

namespace cleave {

/// What stands behind names: `F=1,I=1`.
using NamedNumbers = std::map<std::string, double>;

/// Which schedule, of what. Of a model, a plan says what stands here not.
struct ScheduleOptions {
  /// A schedule by name, `auto`, or the path of a table; empty: the plan's, or `1f1b`.
  std::string name;
  /// 0: not given.
  uint64_t ranks = 0, microbatches = 0, chunks = 0, steps = 1;
  /// Times of a rank's whole share (F, I, W, overlap), and what F takes and I and W release of memory.
  NamedNumbers cost, memory;
  /// Factors of the times of stages; empty: none.
  std::vector<double> stageScale;
  /// Of a hop, and of each rank.
  std::optional<double> latency, memoryLimit;
  /// Files of costs by stage and channel, and of measured times of a model's nodes; may be empty.
  std::string costs, profile;
  /// Where `auto` may put stages; nothing: anywhere.
  std::optional<schedule::Placement> placement;
  /// Of `auto`; nothing: normal, or that of a run where the plan of a step says `auto`.
  std::optional<schedule::Effort> effort;
  schedule::MessageMode messages = schedule::MessageMode::Async;
  /// Of searches.
  uint64_t seed = 0;
};

/// A schedule that has passed all checks, with all that is known of it.
struct ScheduleResult {
  schedule::Schedule table; ///< with messages
  schedule::Costs costs;
  /// What a search says of itself, for the report; empty for other schedules.
  llvm::json::Object search;
  schedule::LowerBound bound;
  schedule::CheckResult checked;
  schedule::Simulation simulation;
  /// The stages of a model; nothing without one.
  std::optional<schedule::StageSplit> split;
  /// Of a step: what is updated behind the rows, and why.
  std::vector<schedule::LateUpdate> late;
  /// Of a step, by rank: what it takes in a run (`StagedModel::planMemory`). Empty where nobody has asked for it.
  std::vector<schedule::PlannedPeak> planned;
  /// What is to be known of the times and stages of a model, for people.
  std::vector<std::string> notes;
};

/// A result, or an error.
template <typename T> using OrDiagnostic = std::variant<T, Diagnostic>;

/// What a model's stages are split from, and what its plan says of them.
class StagedModel {
public:
  /// Loads the model, where it is not loaded yet, and fills in what options leave to the plan: ranks, microbatches, chunks, and the
  /// schedule, which is the one that runs where the plan names none. `others`: schedules that it will be split for besides that one. Null after
  /// an error, which is among the diagnostics.
  static std::unique_ptr<StagedModel> create(Compilation &compilation, ScheduleOptions &options,
                                             llvm::ArrayRef<std::string> others = {});
  ~StagedModel();

  /// Splits the model into the stages of `table`, which stand as planned, which then has the channels and costs of the model, in
  /// nanoseconds and bytes. What I and W take, and what is kept for them: StageGradients.h.
  llvm::Expected<schedule::StageSplit> splitStages(schedule::CostedSchedule &table) const;

  /// Of a step: adds to `table`, which has its messages, and to its costs what a run with the plan does early of updates, and returns what is
  /// late. Nothing of other models. \param split as `splitStages` has given it for that table.
  llvm::Expected<std::vector<schedule::LateUpdate>>
  placeUpdates(const schedule::StageSplit &split, schedule::Schedule &table, schedule::Costs &costs) const;

  /// Of a step: fills in what each rank of a run by `made` takes, as the program of that rank is planned for the target that options name, to
  /// the byte. Where no run has this table, a note says why there is nothing. Takes the program of the run through all later phases: nothing
  /// else may be asked afterwards.
  void planMemory(ScheduleResult &made);

  /// Which times were measured, for people; empty: none.
  const std::string &getProfile() const;
  /// How the stages of `table` and those of a run are related, for people.
  std::vector<std::string> getNotes(const schedule::Schedule &table) const;
  /// The plan says `auto`, which a run searches for stages whose ranks are settled: here, too.
  bool isSearchedAsRun() const;
  /// Where the plan wants stages to be; without it where the schedule has them, or `auto` finds best.
  const schedule::PlacementRequest &getPlacementRequest() const;

private:
  struct State;
  explicit StagedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// From a name, or a file, to times: checked whatever it comes from, and simulated. Shapes that a schedule does not have are errors of options;
/// tables that are wrong, and memory that does not suffice, of the input.
OrDiagnostic<ScheduleResult> makeSchedule(const ScheduleOptions &options, const StagedModel *model = nullptr);

/// What is wrong with the sizes of `options`, for any schedule by name; nothing: they may be right.
std::optional<Diagnostic> checkScheduleSizes(const ScheduleOptions &options);

/// The schedule of a model: both of the above. Nothing after an error, which is among the diagnostics.
std::optional<ScheduleResult> scheduleModel(Compilation &compilation, ScheduleOptions options);

/// A schedule as a page shows it (docs/page.md), next to what a run of it took, where that is known.
llvm::json::Object describeSchedule(const ScheduleResult &made, const schedule::Simulation *measured = nullptr);

} // namespace cleave

#endif // CLEAVE_COMPILER_SCHEDULE_H
