//===- Messages.cpp - sends and receives of a schedule --------------------===//
//
// Rounds: in each, every rank that can places its next action (a joined pair counts as one), ranks in ascending order.
// What an action made is sent when it is placed, so a rank that waits for it can place in the same round if it comes
// later. Two sets of ranks, those of this round and of the next, keep ranks that wait out of the walk.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Messages.h"

#include "Operands.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace cleave;
using namespace cleave::schedule;

namespace {

class Placer {
public:
  explicit Placer(Schedule &schedule)
      : schedule(schedule), operands(schedule), waiters(operands.getNumFacts(), schedule.numRanks),
        isMade(operands.getNumFacts()), positions(schedule.numRanks), awaited(schedule.numRanks, -1),
        current(schedule.numRanks), next(schedule.numRanks), placed(schedule.numRanks) {}

  llvm::Error run() {
    next.set();
    while (next.any()) {
      std::swap(current, next);
      next.reset();
      // Ranks that wake later in this round are found, too.
      for (int rank = current.find_first(); rank >= 0; rank = current.find_next(rank))
        step(rank);
    }
    auto isBlocked = [&](int32_t rank) { return positions[rank] < schedule.programs[rank].size(); };
    if (llvm::any_of(llvm::seq(schedule.numRanks), isBlocked))
      return makeError("{0}", describeDeadlock(schedule, isBlocked, [&](int32_t rank) { return describe(rank); }));
    schedule.programs = std::move(placed);
    return llvm::Error::success();
  }

private:
  /// The first fact that `action` needs and that nobody has made; -1 if it can run.
  Fact findMissing(const Action &action) const {
    Fact missing = -1;
    if (isCompute(action.kind))
      operands.visit(action, [&](Fact fact, int32_t) { missing = missing < 0 && !isMade[fact] ? fact : missing; });
    return missing;
  }

  /// Places the next action of `rank`, and both of a joined pair.
  void step(int32_t rank) {
    llvm::ArrayRef<Action> rest = llvm::ArrayRef(schedule.programs[rank]).drop_front(positions[rank]);
    if (rest.empty())
      return;
    llvm::ArrayRef<Action> unit = rest.take_front(rest.front().isJoined ? 2 : 1);
    for (const Action &action : unit)
      if (Fact missing = findMissing(action); missing >= 0) {
        awaited[rank] = missing;
        waiters.add(missing, rank);
        return;
      }
    llvm::append_range(placed[rank], unit);
    positions[rank] += unit.size();
    for (const Action &action : unit)
      announce(rank, action);
    next.set(rank);
  }

  void announce(int32_t rank, const Action &action) {
    Fact fact = operands.getResult(action);
    if (fact < 0)
      return;
    isMade[fact] = true;
    operands.visitMessages(schedule, action, [&](const Action &send, const Action &recv) {
      placed[rank].push_back(send);
      placed[schedule.getRank(recv.stage, recv.microbatch)].push_back(recv);
    });
    waiters.take(fact, [&](int32_t waiting) { (waiting > rank ? current : next).set(waiting); });
  }

  Blocked describe(int32_t rank) const {
    Action missing = operands.findAction(schedule, awaited[rank]);
    return {positions[rank], schedule.getRank(missing.stage, missing.microbatch), missing};
  }

  Schedule &schedule;
  Operands operands;
  Waiters waiters;
  std::vector<bool> isMade;
  std::vector<size_t> positions;
  /// Rank -> the fact that it waits for.
  std::vector<Fact> awaited;
  llvm::BitVector current, next;
  std::vector<std::vector<Action>> placed;
};

} // namespace

llvm::Error cleave::schedule::addMessages(Schedule &schedule) {
  assert(schedule.isComputeOnly() && "messages have been placed already");
  return Placer(schedule).run();
}

void cleave::schedule::removeMessages(Schedule &schedule) {
  for (std::vector<Action> &program : schedule.programs)
    llvm::erase_if(program, [](const Action &action) { return isMessage(action.kind); });
}
