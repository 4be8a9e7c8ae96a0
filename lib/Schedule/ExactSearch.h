//===- ExactSearch.h - the best schedule of few ranks, proved ---*- C++ -*-===//
#ifndef CLEAVE_LIB_SCHEDULE_EXACTSEARCH_H
#define CLEAVE_LIB_SCHEDULE_EXACTSEARCH_H

#include "SearchProblem.h"

namespace cleave::schedule {

struct ExactAnswer {
  /// All orders were looked at, or known to be no better.
  bool isComplete = false;
  /// The best ones below the given span; empty if there are none, or none was found.
  Orders orders;
};

/// Whether branch and bound can look at the problem: at most 4 ranks and 4 microbatches, a chain of at most 16 stages,
/// training, where only F takes memory.
bool isSmall(const SearchProblem &problem);

/// Orders with the least span below `below`. Gives up after `maxStates` states. Precondition: isSmall(problem).
ExactAnswer searchExactly(const SearchProblem &problem, Ticks below, int64_t maxStates);

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_EXACTSEARCH_H
