//===- Operands.h - what an action waits for --------------------*- C++ -*-===//
//
// A *fact* is what an action makes true: F of a stage and microbatch is done, or its gradient of inputs (B or I) is.
// Facts are numbered densely, so that who walks through programs keeps arrays of them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_OPERANDS_H
#define CLEAVE_LIB_SCHEDULE_OPERANDS_H

#include "cleave/Schedule/Simulate.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::schedule {

using Fact = int64_t;

/// Channels of each stage, and facts by number.
class Operands {
public:
  explicit Operands(const Schedule &schedule);

  Fact getForward(int32_t stage, int32_t microbatch) const { return int64_t(stage) * microbatches + microbatch; }
  Fact getGradient(int32_t stage, int32_t microbatch) const { return count + getForward(stage, microbatch); }
  Fact getNumFacts() const { return 2 * count; }
  /// What `action` makes true; -1 for W, messages and the rest.
  Fact getResult(const Action &action) const;
  /// The action of `schedule` that makes it true, for messages to people: O(actions of a rank). B where there is neither
  /// B nor I.
  Action findAction(const Schedule &schedule, Fact fact) const;

  /// Memory of the messages that an F uses up, or of a RECV_F's; 0 for the rest.
  double getWaiting(const Schedule &schedule, const Costs &costs, const Action &action) const;
  /// The channel that a message goes through in its direction, as a position in `Schedule::channels`; -1 if there is none.
  int32_t findChannel(const Action &message) const;

  /// Calls `visit(fact, channel)` for each fact that a compute action needs; `channel` is -1 for those of its own stage.
  template <typename Visit> void visit(const Action &action, Visit visit) const {
    if (action.kind == ActionKind::F) {
      for (int32_t channel : incoming[action.stage])
        visit(getForward(channels[channel].from, action.microbatch), channel);
    } else if (action.kind == ActionKind::W) {
      visit(getGradient(action.stage, action.microbatch), -1);
    } else {
      visit(getForward(action.stage, action.microbatch), -1);
      for (int32_t channel : outgoing[action.stage])
        visit(getGradient(channels[channel].to, action.microbatch), channel);
    }
  }

  /// Calls `visit(send, recv)` for the messages that carry what `action` made to other ranks, by consumer.
  void visitMessages(const Schedule &schedule, const Action &action,
                     llvm::function_ref<void(const Action &send, const Action &recv)> visit) const;

private:
  int64_t microbatches, count;
  llvm::ArrayRef<Channel> channels;
  /// Stage -> positions of channels, ascending.
  std::vector<std::vector<int32_t>> incoming, outgoing;
};

/// Ranks that wait for facts: lists within arrays, as a rank waits for one fact at a time.
class Waiters {
public:
  Waiters(Fact numFacts, int32_t numRanks) : first(numFacts, -1), next(numRanks, -1) {}

  void add(Fact fact, int32_t rank) {
    next[rank] = first[fact];
    first[fact] = rank;
  }
  /// Calls `wake(rank)` for each that waits, and forgets them.
  template <typename Wake> void take(Fact fact, Wake wake) {
    int32_t rank = first[fact];
    first[fact] = -1;
    for (; rank >= 0; rank = next[rank])
      wake(rank);
  }

private:
  std::vector<int32_t> first, next;
};

/// Where a rank stands when nothing moves any more.
struct Blocked {
  /// In its program.
  size_t position = 0;
  /// The rank that it waits for.
  int32_t rank = 0;
  /// The action that it waits for; none for what meets at its own position.
  std::optional<Action> missing;
};

/// The text of a deadlock: each rank of the cycle that leads from the first rank that has not ended, or the rank at
/// whose end an action is missing. `describe(rank)` is asked of ranks for which `isBlocked(rank)`; one must be.
std::string describeDeadlock(const Schedule &schedule, llvm::function_ref<bool(int32_t)> isBlocked,
                             llvm::function_ref<Blocked(int32_t)> describe);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_OPERANDS_H
