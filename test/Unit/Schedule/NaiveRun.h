//===- NaiveRun.h - a schedule, run without thought -------------*- C++ -*-===//
//
// The oracle of the checker: shares no code with lib/Schedule but the table itself.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SCHEDULE_NAIVERUN_H
#define CLEAVE_TEST_UNIT_SCHEDULE_NAIVERUN_H

#include "cleave/Schedule/Schedule.h"

namespace cleave::schedule {

/// Runs all ranks until nothing moves. Ranks have stores of values; a SEND hands whatever it names to whatever RECV the
/// other rank stands at, without tags, and what is not what the receiver believes makes the run wrong. True: all ranks
/// came to their ends, and each stage did all of its work on each microbatch once and on its rank.
bool runsRight(const Schedule &schedule);

} // namespace cleave::schedule

#endif // CLEAVE_TEST_UNIT_SCHEDULE_NAIVERUN_H
