//===- ReshardRoute.h - one way from state to state, written down -*- C++ -*-===//
//
// A route is built move by move. Moves of one kind that follow each other become one step, counted and checked for
// nesting as a whole when the next kind begins.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SHARDING_RESHARDROUTE_H
#define CLEAVE_LIB_SHARDING_RESHARDROUTE_H

#include "cleave/Sharding/ReshardPlanner.h"

namespace cleave::spmd {

/// What is to be planned.
struct ReshardProblem {
  ReshardProblem(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                 const State &to, const CostModel &costs, bool wantsSteps);

  const AtomMesh &mesh;
  llvm::ArrayRef<int64_t> shape;
  int64_t elementBytes;
  const State &from;
  const State &to;
  const CostModel &costs;
  /// Steps of the plan are asked for, not its cost alone.
  bool wantsSteps;
  /// Per atom the dim that it splits on either side; -1: none. All routes ask.
  llvm::SmallVector<int, 16> sourceDim, targetDim;

  /// True if the ranks of `atom` hold copies on the near side.
  bool beginsIdle(AtomId atom) const { return sourceDim[atom] < 0 && !from.isPartialOver(atom); }
  /// True if terms over `atom` stay terms. Those of one kind are no terms of another: they are reduced, and the whole
  /// value made partial again.
  bool keepsPartial(AtomId atom) const {
    return from.isPartialOver(atom) && to.isPartialOver(atom) && from.kind == to.kind;
  }
};

/// Where an atom goes that cannot take its place yet.
enum class EarlyPlace {
  Never,    ///< it waits
  OwnDim,   ///< the dim where it belongs, behind what is there: an exchange brings it in order
  OtherDim, ///< another dim, so that an all_to_all can bring it in order
};

/// How a route begins: what is split before the reductions, and how those are done.
struct RouteStart {
  EarlyPlace early = EarlyPlace::Never;
  /// Reduce by reduce_scatter, and gather in the end, where an all_reduce would do.
  bool scatterAll = false;
  /// Split over atoms that hold copies on both sides, and gather them in the end.
  bool splitIdle = false;
  /// One all_reduce of everything, slices after it, where what the target splits could be scattered beforehand.
  bool reduceJointly = false;
};

/// What an all_to_all takes along on the way to a target.
enum class UseAllToAll {
  No,     ///< there is none
  ForOwn, ///< atoms of other dims' targets; what the target does not split by is gathered before or after
  ForMore, ///< that too, where it stands at the minor end of a dim beside such atoms: it is gathered afterwards, in smaller pieces
};

/// What routes are compared by: least cost, then none that exchanges (many small messages where one collective would do), then fewest
/// collectives, then fewest steps.
struct RouteRank {
  int64_t cost = 0;
  bool exchanges = false;
  unsigned numCollectives = 0, numSteps = 0;

  bool operator<(const RouteRank &other) const {
    return std::tie(cost, exchanges, numCollectives, numSteps) <
           std::tie(other.cost, other.exchanges, other.numCollectives, other.numSteps);
  }
};

class Route {
public:
  explicit Route(const ReshardProblem &problem) : problem(problem), now(problem.from) {}

  /// Slices and reductions. Returns true if an atom had to wait, or was put in a place that is not its own.
  bool start(const RouteStart &how);
  /// Goes on to the target by all_to_all (as far as that is wanted), all_gather and slices. Works from any state that `start`
  /// leaves.
  void finishByGather(UseAllToAll use);
  /// Goes on to the target by an exchange. Works from any state that `start` leaves.
  void finishByExchange();
  /// A route that costs more is of no use: it is left as it is, and not legal.
  void giveUpAbove(int64_t cost) { mostCost = cost; }
  /// Nor is one that is never cheaper than one of these, at any size. They are not copied.
  void giveUpBeside(llvm::ArrayRef<SizedCost> others) { known = others; }

  bool isLegal() const { return legal; }
  /// True if dims are split as they shall be: however it goes on, what is left is the same.
  bool isInPlace() const { return now.dims == problem.to.dims; }
  /// True if some atom splits another dim than the one where it belongs: else an all_to_all has nothing to do.
  bool hasStrays() const;
  const RouteRank &getRank() const { return rank; }
  /// By size, of tensors of which all shards divide.
  const SizedCost &getSizedCost() const { return sized; }
  /// Steps are empty where none are asked for.
  const ReshardPlan &getPlan() const { return plan; }

private:
  // Bookkeeping of steps.
  void beginStep(ReshardStepKind kind);
  void endStep();
  bool isOfNoUse(const SizedCost &more) const;

  // Questions about the present state.
  unsigned ownRun(unsigned dim, llvm::ArrayRef<AtomId> list, llvm::ArrayRef<AtomId> available) const;
  std::optional<unsigned> earlyPlace(AtomId atom, EarlyPlace early) const;
  unsigned missingAtoms(unsigned dim) const;
  unsigned keptPrefix(unsigned dim) const;
  bool divides(unsigned dim, AtomId atom) const;

  // Moves.
  void append(ReshardStepKind kind, unsigned dim, AtomId atom);
  bool appendOwn(ReshardStepKind kind, AtomList &atoms);
  void sliceInPlace();
  void sliceAll(const RouteStart &how);
  bool scatterOne(const RouteStart &how);
  void reduceRest();
  bool allToAll(UseAllToAll use);
  void placeBehindGained(llvm::MutableArrayRef<AtomList> dims, AtomList &atoms) const;
  void placeOwn(unsigned dim, AtomList &list, AtomList &atoms) const;
  void gatherForeign();
  void makePartial();

  const ReshardProblem &problem;
  State now;
  /// Atoms still to be sliced, and still to be reduced.
  AtomList toSlice, toReduce;
  ReshardPlan plan;
  RouteRank rank;
  SizedCost sized;
  int64_t mostCost = std::numeric_limits<int64_t>::max();
  llvm::ArrayRef<SizedCost> known;
  std::optional<ReshardStepKind> open;
  State before;
  bool waited = false, legal = true;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SHARDING_RESHARDROUTE_H
