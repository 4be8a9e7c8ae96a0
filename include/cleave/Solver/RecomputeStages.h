//===- RecomputeStages.h - what each stage makes again ----------*- C++ -*-===//
//
// Of a step in stages, each rank has its own room: of 1f1b the first keeps what p microbatches leave, and the last what one does. All stages
// begin with the fastest choice (Recompute.h), and those whose rank takes too much go on to the next one, until all fit:
//
//   stage        0   1   2          of a choice a stage takes the ops that are its own: what they read and is not made again, is kept
//   choice       3   1   0
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_RECOMPUTESTAGES_H
#define CLEAVE_SOLVER_RECOMPUTESTAGES_H

#include "cleave/Solver/Recompute.h"
#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <map>
#include <optional>

namespace cleave {

/// Takes out of `repeated` what another stage reads of the forward: that is handed to it, and kept. Made again, it would be so by that stage, with
/// all that it is made of; so no block reaches over a boundary. \param stageOf by op, its stage; -1 of what is in none.
void keepHandedOn(const RecomputeProblem &problem, llvm::ArrayRef<int64_t> stageOf, RepeatedOps &repeated);

/// Which choice each stage takes, and what that comes to, by rank.
class StageChooser {
public:
  using Measure = std::function<llvm::SmallVector<int64_t>(const RepeatedOps &repeated)>;

  /// \param stageOf by op, its stage; -1 of what is in none. \param rankOf by stage. \param measure what a program takes in which these ops run
  /// again, by rank, or for all ranks; not empty. All live as long as this.
  StageChooser(const RecomputeProblem &problem, llvm::ArrayRef<int64_t> stageOf, llvm::ArrayRef<int64_t> rankOf,
               Measure measure)
      : problem(problem), stageOf(stageOf), rankOf(rankOf), choices(findChoices(problem)), measure(std::move(measure)) {
  }

  using Chosen = std::vector<size_t>;
  /// A stage's next choice keeps less; a rank whose stages are through with all of them has no room: then nothing is found.
  std::optional<Chosen> find(int64_t limit);
  /// A limit below which nothing is found any more, of those that were tried. Precondition: `find` has found nothing.
  int64_t findLeast();

  RepeatedOps getRepeated(const Chosen &chosen) const;
  int64_t getMost(const Chosen &chosen) { return *llvm::max_element(getBytes(chosen)); }
  int64_t getGivenBytes() const { return choices.front().costs.givenBytes; }
  /// Those that were looked at, in this order.
  llvm::ArrayRef<Chosen> getTried() const { return tried; }

private:
  const llvm::SmallVector<int64_t> &getBytes(const Chosen &chosen);

  const RecomputeProblem &problem;
  llvm::ArrayRef<int64_t> stageOf, rankOf;
  std::vector<RecomputeChoice> choices;
  Measure measure;
  std::map<Chosen, llvm::SmallVector<int64_t>> known;
  std::vector<Chosen> tried;
};

} // namespace cleave

#endif // CLEAVE_SOLVER_RECOMPUTESTAGES_H
