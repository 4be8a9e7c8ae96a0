//===- Generate.h - schedules by name ---------------------------*- C++ -*-===//
//
// Compute-only tables of the schedules that the literature names; messages are placed afterwards (Messages.h). One file
// per family under lib/Schedule/Generators, each a row of one table.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_GENERATE_H
#define CLEAVE_SCHEDULE_GENERATE_H

#include "cleave/Schedule/Schedule.h"
#include "llvm/Support/Error.h"

namespace cleave::schedule {

struct Shape {
  /// Microbatches of one step of the optimizer.
  int32_t ranks = 1, microbatches = 1;
  /// Stages per rank; 0: the schedule's own, 1 or, where it is about several, 2.
  int32_t chunks = 0;
  /// Batches, one after the other; the schedule then has `steps * microbatches` microbatches.
  int32_t steps = 1;
};

/// What is known of a named schedule.
struct GeneratorInfo {
  /// `1f1b`.
  llvm::StringRef name;
  bool isForwardOnly;
  /// Of its stages (of one of two replicas).
  Placement placement;
  /// Where somebody wants that, its stages stand on any ranks (Place.h).
  bool isAnywhere = false;
};

/// All of them, in the order of docs/pipelines.md.
llvm::ArrayRef<GeneratorInfo> getGenerators();

/// The table of `name`. Error: no such schedule (names all there are), or a shape that it does not allow (what is legal).
llvm::Expected<Schedule> generate(llvm::StringRef name, Shape shape);

/// False for what goes on from step to step without waiting for the end of one (PipeDream), so that microbatches that are under way meanwhile
/// read older weights: its table is of all steps. True for all other names.
bool hasFlush(llvm::StringRef name);
/// Of such a schedule: all microbatches of a step read the weights of the step before (2BW), not the newest that their rank has.
bool isStepBehind(llvm::StringRef name);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_GENERATE_H
