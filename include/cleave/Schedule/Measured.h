//===- Measured.h - when a run did what a schedule says ---------*- C++ -*-===//
//
// `cleave-run --trace` names the action of a schedule that each command is a part of. Of these the times of the table's actions follow, which
// are laid beside the simulated ones:
//
//   rank 0  launch matmul_3 (0F0)  launch matmul_4 (0F0)  send   launch matmul_3 (0F1)  ..
//           [        0F0                               ]         [    0F1
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_MEASURED_H
#define CLEAVE_SCHEDULE_MEASURED_H

#include "cleave/Schedule/Simulate.h"

namespace cleave::schedule {

/// Reads a trace of one call (JSON, microseconds) as the times of `schedule`, whose unit is `unit`: "ns", else microseconds. Times begin with the
/// first action; what a call does before and behind its microbatches is not in them. An action lasts from its first command to its last one;
/// `busy` is the time of commands alone, so that waiting within an action, for other devices of its stage, is idle. Of several devices
/// with one row the first counts. One that no command is left of takes no time. `peak` stays empty.
/// Error: the trace has no actions, or some that the schedule does not have.
llvm::Expected<Simulation> readMeasured(llvm::StringRef text, const Schedule &schedule, llvm::StringRef unit);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_MEASURED_H
