//===- SearchList.h - schedules made in the order of time -------*- C++ -*-===//
//
// A rank that is free takes the F or I that it prefers among those that are there and fit into memory. A W is taken when
// nothing else comes soon, when memory keeps an F from starting, or when too many are due:
//
//   prefers     the order of {I, F} x {stages of the first half of the chunks, of the second}
//   patience    it waits for what comes within this share of the W's time
//   caps        F under way in each half
//   bank        W that may be due
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_SEARCHLIST_H
#define CLEAVE_LIB_SCHEDULE_SEARCHLIST_H

#include "SearchProblem.h"

namespace cleave::schedule {

/// What a rank prefers.
struct Preference {
  double patience = 0;
  /// Of F in the first and second half, of I in the first and second half: smaller first.
  std::array<uint8_t, 4> order = {3, 2, 1, 0};
  /// F under way in the first half, in the second.
  std::array<int32_t, 2> caps = {1 << 20, 1 << 20};
  int32_t bank = 1 << 20;
};
using Preferences = std::vector<Preference>;

class ListScheduler {
public:
  explicit ListScheduler(const SearchProblem &problem);

  /// False if nothing can go on before all is done.
  bool run(llvm::ArrayRef<Preference> preferences, Orders &orders);
  /// The F and I of `fixed` in their order, W where `preferences` put them.
  bool refit(const Orders &fixed, llvm::ArrayRef<Preference> preferences, Orders &orders);

private:
  struct Rank {
    Ticks freeAt = 0, wakeAt = 0;
    double held = 0;
    /// I whose W is due: [dueFrom, due.size()).
    std::vector<Step> due;
    size_t dueFrom = 0, done = 0;
    /// Position in the fixed order.
    size_t next = 0;
  };
  /// What a rank can do: now, and soon.
  struct Choice {
    Step step{};
    int32_t priority = 1 << 20;
    bool isNow = false, isBlocked = false;
    Ticks soon;
  };

  bool runAll(Orders &orders);
  void offer(Choice &choice, const Step &step, int32_t priority, int32_t rank) const;
  Choice choose(int32_t rank) const;
  Choice chooseFixed(int32_t rank) const;
  void act(int32_t rank, Orders &orders);
  void take(int32_t rank, const Step &step, Orders &orders);
  void wake(int32_t rank, Ticks time);

  const SearchProblem &problem;
  /// Stage -> 1 for the second half of its rank's stages.
  std::vector<uint8_t> half;
  llvm::ArrayRef<Preference> preferences;
  const Orders *fixed = nullptr;
  Ticks now = 0;
  std::vector<Rank> states;
  std::vector<Ticks> wakeAt;
  std::vector<int32_t> numForward, numGrad;
  std::vector<Ticks> forwardEnds, gradEnds;
};

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_SEARCHLIST_H
