//===- Tables.h - schedules written down for tests --------------*- C++ -*-===//
//
// From their definitions, each in a few lines, and none with the help of lib/Schedule/Generators, which they check.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SCHEDULE_TABLES_H
#define CLEAVE_TEST_UNIT_SCHEDULE_TABLES_H

#include "cleave/Schedule/Schedule.h"

namespace cleave::schedule {

inline Action makeAction(ActionKind kind, int32_t stage, int32_t microbatch) {
  Action action;
  action.kind = kind;
  action.stage = stage;
  action.microbatch = microbatch;
  return action;
}

/// All F, then all B.
Schedule makeGpipe(int32_t ranks, int32_t microbatches);
/// `warmup(r)` F, then F and B by turns, then the rest of B: 1F1B for p-1-r, eager 1F1B for 2(p-1-r).
Schedule makeOneFOneB(int32_t ranks, int32_t microbatches, bool isEager = false);
/// 1F1B with I for B; after the r-th I one W per I; then the rest.
Schedule makeZeroBubbleH1(int32_t ranks, int32_t microbatches);
/// `chunks` stages per rank, s mod p: for each chunk all F, then for the chunks in reverse all B.
Schedule makeBreadthFirst(int32_t ranks, int32_t microbatches, int32_t chunks);
/// All F, and no backward pass.
Schedule makeForward(int32_t ranks, int32_t microbatches);

} // namespace cleave::schedule

#endif // CLEAVE_TEST_UNIT_SCHEDULE_TABLES_H
