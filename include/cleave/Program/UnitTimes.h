//===- UnitTimes.h - when ranks of a pipeline worked ------------*- C++ -*-===//
//
// Commands of a pipeline's program say which action of its schedule they are a part of (`Command::unit`, such as `1F3`). Of when they ran
// follows when each action did, and what of the time ranks had nothing to do, which is the bubble:
//
//   rank 0  launch matmul_3 (0F0)  launch matmul_4 (0F0)  send   launch matmul_3 (0F1)  ..
//           [        0F0                               ]         [    0F1
//
// Source of both bubbles: 1 - busy / (p * makespan), and 1 - busy / (p * span) with span = max over ranks of the time from a rank's first start
// to its last end (Qi et al., Zero Bubble Pipeline Parallelism, 2024). In any unit of time.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_UNITTIMES_H
#define CLEAVE_PROGRAM_UNITTIMES_H

#include <map>
#include <string>
#include <vector>

namespace cleave::program {

/// A command that is a part of an action.
struct UnitCommand {
  std::string unit;
  double begin = 0, length = 0;
  /// False for what waits for other devices, which is no work of this one.
  bool isWork = true;
};

/// Of one action on one rank: from its first command to its last one, and of that, the time of commands that work.
struct UnitTime {
  double start = 0, end = 0, busy = 0;
};

/// By action, of the commands of one rank.
std::map<std::string, UnitTime> gatherUnits(std::vector<UnitCommand> commands);

/// What all ranks take, and the shares of it in which they have nothing to do; 0 where nothing takes time.
struct PipelineSpans {
  double makespan = 0, span = 0, bubbleMakespan = 0, bubbleSpan = 0;
};

/// By rank: time in computation, first start, last end. Times begin with 0. Precondition: one of each for each rank.
PipelineSpans computeSpans(const std::vector<double> &busy, const std::vector<double> &start,
                           const std::vector<double> &end);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_UNITTIMES_H
