//===- Check.h - whether a schedule is right --------------------*- C++ -*-===//
//
// Independent of how a table was made; nothing is written or lowered that has not passed. The constraints:
//
//   P6   complete: one F, and in training one B or one I and one W, per stage and microbatch, on the stage's rank
//   P7   acyclic: some order of all actions respects programs and operands
//   P8   first in, first out: on each channel, messages are received in the order in which they are sent
//   P9   no deadlock under rendezvous, where SEND and RECV wait for each other
//   P10  reductions stand in equal order on all ranks of a group
//   P11  memory stays under the limit
//   P12  each SEND has one RECV, on the rank of the other end
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_CHECK_H
#define CLEAVE_SCHEDULE_CHECK_H

#include "cleave/Schedule/Simulate.h"

namespace cleave::schedule {

/// What is wrong: `P9`, lower case text that names rank, position and both ends.
struct Violation {
  std::string constraint, message;
};

/// The checks that were made, in the words of reports: complete, acyclic, fifo, rendezvous, reductions, memory.
struct CheckResult {
  std::vector<std::string> checks;
  /// Empty: the schedule is right. At most a dozen; what one mistake brings about is said once.
  std::vector<Violation> violations;
};

/// O(actions). Without messages in the programs, those that `addMessages` would place are checked.
CheckResult check(const Schedule &schedule, const Costs &costs);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_CHECK_H
