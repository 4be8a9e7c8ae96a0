//===- SearchMemory.h - what searches know of each other --------*- C++ -*-===//
//
// Who looks for a plan decides on one model again and again: on many meshes, at many prices of memory, and once more each time the program
// of a plan is predicted, or made. Much of that is the same work:
//
//   equal problem, equal options    the decision is looked up
//   equal but for prices            where a search by time begins once more, which bytes alone decide, is looked up
//   equal mesh, equal costs         what reshards cost is looked up, whatever else differs
//
// Decisions are the same with a memory and without one.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_SEARCHMEMORY_H
#define CLEAVE_SOLVER_SEARCHMEMORY_H

#include "cleave/Sharding/ReshardPlanner.h"
#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

/// Of one thread.
class SearchMemory {
public:
  /// What was decided of an equal problem with equal options; null: nothing is known. Valid until something is kept.
  const Decision *find(const Problem &problem, const SolverOptions &options) const;
  /// Of what only some factors may be split, or is traced, nothing is kept. The oldest decisions go first.
  void keep(const Problem &problem, const SolverOptions &options, const Decision &decision);
  /// What a search found, as the choice of each atom at each node, one after the other: at its end, and by annotations alone.
  struct Found {
    std::vector<uint16_t> present, annotated;
  };
  /// Of a search from whose end another one begins, by equal options (Solver::Search::searchFromBytes); null and kept as above.
  const Found *findBeginning(const Problem &problem, const SolverOptions &options) const;
  void keepBeginning(const Problem &problem, const SolverOptions &options, Found found);
  /// What reshards cost on this mesh, for all who plan there by these costs.
  std::shared_ptr<PlannedCosts> costsOn(const AtomMesh &mesh, const CostModel &costs);

private:
  struct Solved {
    Problem problem;
    SolverOptions options;
    Decision decision;
  };
  struct Begun {
    Problem problem;
    SolverOptions options;
    Found found;
  };
  std::deque<Solved> solved;
  std::deque<Begun> begun;
  std::deque<std::shared_ptr<PlannedCosts>> planned;
};

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_SEARCHMEMORY_H
