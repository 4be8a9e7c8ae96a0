//===- Searcher.h - the search within one placement -------------*- C++ -*-===//
//
// Keeps the best orders so far, and what the way to them cost. Each step of the search spends from a budget that counts
// placed actions, so that efforts mean the same for small and large pipelines.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SCHEDULE_SEARCHER_H
#define CLEAVE_LIB_SCHEDULE_SEARCHER_H

#include "SearchList.h"

namespace cleave::schedule {

class Searcher {
public:
  Searcher(const SearchCandidate &candidate, uint64_t seed);

  /// Named schedules, and one microbatch after the other.
  void tryNamed();
  /// List scheduling: random preferences, the best of which is climbed from.
  void climb(int64_t budget);
  /// Changes to the orders of the best.
  void improve(int64_t budget);
  /// Branch and bound for spans below this one; true if all that could be were looked at.
  bool prove(double below, int64_t maxStates);

  bool hasAnswer() const { return !best.empty(); }
  /// Nothing can be better than the bound.
  bool isDone() const { return hasAnswer() && getSpan() <= bound.span * (1 + 1e-12); }
  double getSpan() const { return problem.toUnits(bestEvaluation.span); }
  Schedule getSchedule() const { return problem.getSchedule(best); }
  /// Evaluates orders that run under memory; keeps them if they are the best.
  bool consider(const Orders &orders, Evaluation &evaluation);

  const SearchCandidate &candidate;
  const LowerBound bound;
  int64_t tables = 0, moves = 0;

private:
  void tryOrders(const Orders &orders);
  void tryOneAfterTheOther();
  void tryWarmUps(llvm::ArrayRef<int32_t> warmUps);
  void tryAllWarmUps();
  /// In a whole order of the rank: fixed orders may lack W.
  size_t getNumSteps(int32_t rank) const {
    return static_cast<size_t>(problem.numKinds) * problem.microbatches * problem.stagesOf[rank].size();
  }
  Preferences makeRandom();
  void mutate(Preferences &preferences);
  void mutateRank(Preference &preference, int32_t rank, int32_t what, const Preference &drawn, int32_t step);
  bool list(const Preferences &preferences, Evaluation &evaluation);
  int32_t move(Orders &orders, int32_t rank, const Evaluator &at, std::vector<Step> &before);
  int32_t hasten(Orders &orders, int32_t rank, int32_t position, const Evaluator &at, std::vector<Step> &before);
  int32_t drawGap(llvm::ArrayRef<Step> order, llvm::ArrayRef<Ticks> starts);
  int32_t findGapFiller(llvm::ArrayRef<Step> order, int32_t gap);

  SearchProblem problem;
  ListScheduler lister;
  Evaluator evaluator;
  /// One for preferences, one for changes: what one does, does not change what the other draws.
  Random random, changes;
  /// Per rank: F that fit into memory, W that may be due.
  std::vector<int32_t> numFit, numDue;
  Orders best, scratch;
  Evaluation bestEvaluation;
};

} // namespace cleave::schedule

#endif // CLEAVE_LIB_SCHEDULE_SEARCHER_H
