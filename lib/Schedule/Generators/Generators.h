//===- Generators.h - what the families of schedules share ------*- C++ -*-===//
//
// A generator writes the programs of a schedule whose stages are placed already. Most are said in words such as "seven F
// of the first stage, then F and I in turn": each rank has *lanes*, its stages (of each replica), and the next
// microbatch of a lane is counted, not named. What is not there yet, or any more, is left out, so that the same words
// serve shapes with few microbatches.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_GENERATORS_GENERATORS_H
#define CLEAVE_LIB_SCHEDULE_GENERATORS_GENERATORS_H

#include "cleave/Schedule/Generate.h"
#include <deque>

namespace cleave::schedule {

/// The program of a rank while it is written.
class RankWriter {
public:
  /// Lanes by replica, then by stage.
  RankWriter(Schedule &schedule, int32_t rank);

  /// Appends the next action of this kind on a lane, up to `times`; none whose operand on this rank is not there.
  /// A W is that of the lane's oldest I. Returns how many.
  int32_t add(ActionKind kind, int32_t lane, int32_t times = 1);
  /// The W of the rank's oldest I; false if none is due.
  bool addOldestWeightGrad();
  /// Appends both as one (OVERLAP_F_B); whichever is there, if only one is.
  void addJoined(int32_t forwardLane, int32_t backwardLane);
  /// How many F of the lane are left.
  int32_t getNumForwardLeft(int32_t lane) const;

private:
  struct Lane {
    int32_t stage;
    llvm::ArrayRef<int32_t> microbatches;
    int32_t numForward = 0, numBackward = 0;
  };
  struct Pending {
    int32_t lane, microbatch;
  };
  bool addOne(ActionKind kind, int32_t lane);
  bool addWeightGrad(std::deque<Pending>::iterator pending);

  std::vector<Action> &program;
  std::vector<Lane> lanes;
  std::deque<Pending> pending;
};

/// Microbatches in rounds of about `ranks`, none smaller unless all are fewer; the larger first.
std::vector<int32_t> getRounds(int32_t ranks, int32_t microbatches);

/// Stages per rank.
int32_t getNumChunks(const Schedule &schedule);

// GPipe.cpp
void writeGPipe(Schedule &schedule);
// OneFOneB.cpp
void writeOneFOneB(Schedule &schedule);
void writeEagerOneFOneB(Schedule &schedule);
// Interleaved.cpp
void writeInterleaved(Schedule &schedule);
void writeBreadthFirst(Schedule &schedule);
// ZeroBubble.cpp
void writeZeroBubbleH1(Schedule &schedule);
void writeZeroBubbleH2(Schedule &schedule);
// VShape.cpp
void writeZeroBubbleV(Schedule &schedule);
void writeVHalf(Schedule &schedule);
void writeVMin(Schedule &schedule);
// DualPipe.cpp
void writeDualPipe(Schedule &schedule);
void writeDualPipeV(Schedule &schedule);
// Bidirectional.cpp
void writeChimera(Schedule &schedule);
// Wave.cpp
void writeHanayo(Schedule &schedule);
// Forward.cpp
void writeForward(Schedule &schedule);
void writeCircular(Schedule &schedule);
/// For any placement.
void writeInTime(Schedule &schedule);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_GENERATORS_GENERATORS_H
