//===- Messages.h - sends and receives of a schedule ------------*- C++ -*-===//
//
// "Receive before use, send after produce" deadlocks under rendezvous for every schedule but GPipe, and may misorder
// messages on channels without tags. So messages are placed in one global order: ranks are walked in turn, and when an
// action is placed, its SEND is appended to its own rank and the RECV to the consumer's at the same moment. Whatever
// the order of the walk, the pairs then stand in one order for all ranks, and rendezvous cannot lock.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_MESSAGES_H
#define CLEAVE_SCHEDULE_MESSAGES_H

#include "cleave/Schedule/Schedule.h"
#include "llvm/Support/Error.h"

namespace cleave::schedule {

/// Places the messages of all hops between ranks. Precondition: `schedule.isComputeOnly()`.
/// Error: the programs have a cycle; the blocked action of each rank in it.
llvm::Error addMessages(Schedule &schedule);

/// Leaves computation, UNSHARD, RESHARD and REDUCE_GRAD.
void removeMessages(Schedule &schedule);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_MESSAGES_H
