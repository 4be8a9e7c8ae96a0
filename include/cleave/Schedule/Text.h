//===- Text.h - schedules in files ------------------------------*- C++ -*-===//
//
// CSV is the table of torch.distributed.pipelining: a row per rank, an action per cell.
//
//   0F0,0SEND_F0,(0F1;0B0)OVERLAP_F_B        stage, kind, microbatch; of a RECV the receiver's stage, of a SEND the sender's
//
// JSON is the report of docs/pipelines.md, written and read back; it also has what CSV has no words for: channels that
// skip stages, groups of reductions, costs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_TEXT_H
#define CLEAVE_SCHEDULE_TEXT_H

#include "cleave/Schedule/Bounds.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Updates.h"
#include "llvm/Support/JSON.h"

namespace cleave::schedule {

/// Reads a table. Strict: every cell is one action, each stage does F on each microbatch; empty cells are idle steps,
/// allowed where there are no messages. torch's WAIT_SEND_F, WAIT_SEND_B and WAIT_REDUCE_GRAD are dropped: nothing waits
/// for a send here. Placement follows from where F stand, one replica for each way of microbatches. Errors say row and
/// column, from 1. What it says may still be wrong: Check.h.
llvm::Expected<Schedule> readCsv(llvm::StringRef text, llvm::StringRef name);

/// Error: a channel that skips stages, or a group of reductions, for which the table has no words.
llvm::Error writeCsv(llvm::raw_ostream &os, const Schedule &schedule);

/// A schedule and what its file says of costs: uniform ones where it says nothing.
struct CostedSchedule {
  Schedule schedule;
  Costs costs;
};

/// Reads a report: `programs` and `replicas` must be there; `channels`, `costs`, `memory`, `reductions` and
/// `weight_versions` may. Errors say where: `programs[3][17]: ...`.
llvm::Expected<CostedSchedule> readJson(llvm::StringRef text, llvm::StringRef name);

/// Costs by stage and channel for a schedule that is there: an object with any of `costs`, `channels`, `memory`.
llvm::Error readCosts(llvm::StringRef text, Schedule &schedule, Costs &costs);

/// What a rank takes where it takes most, as its memory is planned.
struct PlannedPeak {
  int64_t bytes = 0;
  /// What these bytes are for, in the words of `memory_by_role` of docs/report.md; they add up to `bytes`.
  std::vector<std::pair<std::string, int64_t>> byRole;
};

/// What a report says beside the schedule, its costs and times.
struct ReportExtras {
  std::vector<std::string> checks;
  /// No schedule of these costs is faster; none if it is not known.
  std::optional<LowerBound> bound;
  /// Of a search, empty for other schedules.
  llvm::json::Object search;
  /// What a run took (Measured.h); null: there was none.
  const Simulation *measured = nullptr;
  /// Of a step: what is updated behind the rows.
  std::vector<LateUpdate> late;
  /// Of a step, by rank; empty where no memory is planned.
  std::vector<PlannedPeak> planned;
};

void writeJson(llvm::raw_ostream &os, const Schedule &schedule, const Costs &costs, const Simulation &simulation,
               const ReportExtras &extras);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_TEXT_H
