//===- Updates.h - updates that fill the bubble -----------------*- C++ -*-===//
//
// An optimizer may update a stage when all of its gradients are there. Where the rank has other stages, which it still waits for, an UPDATE
// action in the table says that the update runs in such a wait, and not at the end of the row:
//
//   rank 0, stages 0 and 2    .. 2W3 ─── waits ─── 0RECV_B3 0I3 0W3 | update 2, update 0
//   becomes                   .. 2W3 2UPDATE ───── 0RECV_B3 0I3 0W3 | update 0
//
// Where microbatches go two ways a stage is on two ranks. One is its home, which has the states and updates them: that of the first way. The other
// one, its guest, sends its sums of gradients there, for which a REDUCE_GRAD stands in its row:
//
//   rank 1, home of stage 1    .. 1W1 ─────── waits ── 1UPDATE ── waits ── 0RECV_B3 0I3 0W3        by the other way it has stage 0
//   rank 0, guest of stage 1   .. 1W3 1REDUCE_GRAD ──── 0RECV_B1 ..
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SCHEDULE_UPDATES_H
#define CLEAVE_SCHEDULE_UPDATES_H

#include "cleave/Schedule/Simulate.h"
#include "llvm/ADT/BitVector.h"

#include <string>
#include <vector>

namespace cleave::schedule {

/// A stage of which all, or a part, is updated behind the rows, and why that is so, for people.
struct LateUpdate {
  int32_t stage;
  std::string why;
};

/// The stages of which the table says when they are updated, row by row, in the order of these.
std::vector<int32_t> listUpdated(const Schedule &schedule);

/// The ranks that have a stage by other ways than the first, and send their sums home; ascending.
std::vector<int32_t> findGuests(const Schedule &schedule, int32_t stage);

/// Puts an UPDATE of each stage of `mayBeEarly` into the longest wait of its home, by predicted times, that has room for all of it behind the
/// last W of the stage and the reduction of its gradients (`costs.update`, `costs.reduction`); of two ways behind that of its guest, too, whose
/// row gets a REDUCE_GRAD. So no other action is later than without it. Returns how many there are. What has no such wait is updated at the end
/// of the row, for which a table has no action.
/// Error: the table does not run to its end. Precondition: a table of one step, with its messages.
llvm::Expected<int64_t> placeUpdates(Schedule &schedule, const Costs &costs, const llvm::BitVector &mayBeEarly);

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_UPDATES_H
