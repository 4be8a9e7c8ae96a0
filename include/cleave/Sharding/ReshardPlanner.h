//===- ReshardPlanner.h - the cheapest way between two states ---*- C++ -*-===//
//
// Plans how a tensor gets from one state to another, in closed form: a fixed handful of routes is written down, counted
// and compared; nothing is searched at run time. Every step is one collective whose meaning is "state before -> state
// after":
//
//   slice           appends atoms to dims; each rank keeps its piece of what it has (free)
//   make_partial    the value stays on coordinate 0 of the atoms, the others hold the identity (free)
//   all_reduce      partial atoms leave
//   reduce_scatter  partial atoms leave and are appended to dims
//   all_to_all      atoms leave the minor end of some dims and are appended to other dims: gather, then slice
//   all_gather      atoms leave the minor end of dims
//   exchange        any dims to any others, point to point: a rank gets each piece that it lacks from the holder that
//                   shares its other coordinates. Partial atoms stay: what moves are the terms of a rank's own group,
//                   so the op is the same as if they were not partial
//
// Where sizes do not divide, atoms may only be appended to (or leave) a dim where the shards before and after nest:
// either no atom splits the dim on the wide side, or ceil(n/s) = t * ceil(n/(s*t)). Else the exchange does it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_RESHARDPLANNER_H
#define CLEAVE_SHARDING_RESHARDPLANNER_H

#include "cleave/Sharding/CostModel.h"
#include "cleave/Sharding/State.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::spmd {

/// What a rank does by itself on the way, and collectives, by the names that they have everywhere (Program/Collective.h).
enum class ReshardStepKind : uint8_t {
  Slice,
  MakePartial,
#define CLEAVE_NAME(name, ...) name,
  CLEAVE_COLLECTIVES(CLEAVE_NAME) Exchange
#undef CLEAVE_NAME
};
/// `slice`, `make_partial`, `all_reduce`, ...
llvm::StringRef toString(ReshardStepKind kind);

/// One collective (or a free local step).
struct ReshardStep {
  ReshardStepKind kind = ReshardStepKind::Slice;
  /// The atoms that move, ascending; for an exchange those that occur in a dim that changes.
  AtomList atoms;
  State after;
  /// Bytes sent by the busiest rank, rounded up: (n-1)/n of the result of an all_gather, (n-1)/n of the operand of a
  /// reduce_scatter or all_to_all, 2(n-1)/n of that of an all_reduce, padding included; of an exchange the largest sender.
  int64_t bytes = 0;
  /// What that costs by the cost model.
  int64_t cost = 0;
};

struct ReshardPlan {
  /// Sums over the steps.
  int64_t bytes = 0, cost = 0;
  /// In order; empty if the states are equal.
  llvm::SmallVector<ReshardStep, 4> steps;

  /// Steps that communicate.
  unsigned numCollectives() const;
};

/// Prints `slice [{"x"}, {}], all_gather [{}, {}]`: per step its kind and the state after it.
void printPlan(llvm::raw_ostream &os, const AtomMesh &mesh, llvm::ArrayRef<std::string> axisNames,
               const ReshardPlan &plan);

struct ReshardPlannerOptions {
  /// Lets atoms that hold copies on both sides help a reduction: slice over them first, gather over them last. Fewer
  /// bytes where groups of three or more reduce, but two launches more and traffic on axes that the user left alone; so
  /// off by default. Either way no sequence of collectives sends fewer bytes on the meshes of the unit test.
  bool useIdleAtoms = false;
  /// Costs of sending. Where beginning a collective costs something, routes are tried that send more in fewer.
  CostModel costs = {};
};

/// What a route costs tensors of one kind: `varying` for each time that the tensor is as large, and `fixed` whatever its size.
struct SizedCost {
  int64_t varying = 0, fixed = 0;

  /// True if the other route is never cheaper.
  bool isAtMost(const SizedCost &other) const { return varying <= other.varying && fixed <= other.fixed; }
};

/// Plans reshards on one mesh. Pure: no memory of earlier calls.
class ReshardPlanner {
public:
  explicit ReshardPlanner(const AtomMesh &mesh, ReshardPlannerOptions options = {}) : mesh(mesh), options(options) {}

  /// The cheapest route from `from` to `to` for a tensor of `shape`; among equally cheap ones one without an exchange,
  /// then that with the fewest collectives. Terms of one kind that are wanted as terms of another are reduced and made
  /// partial again. Nothing if no route is legal, which no pair of states is known for. Preconditions: both have one
  /// entry per dim of `shape`, all extents >= 0.
  /// \param wantsSteps where only bytes and cost are asked for, steps are left out
  std::optional<ReshardPlan> plan(llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                                  const State &to, bool wantsSteps = true) const;
  /// What the routes cost of which no other one is as cheap at any size of the tensor: the least of them is what `plan` finds for
  /// the same tensor, and, where each extent is so many times as large, or an element has so many times the bytes, for that one.
  /// Nothing if a route is beyond counting. Preconditions: those of `plan`; shards of both states divide; an element has a multiple of as
  /// many bytes as ranks differ in all atoms that either has.
  std::optional<llvm::SmallVector<SizedCost, 2>> listCosts(llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                                                           const State &from, const State &to) const;

  const AtomMesh &getMesh() const { return mesh; }
  const CostModel &getCosts() const { return options.costs; }

private:
  template <typename Comparison> void tryRoutes(const struct ReshardProblem &problem, Comparison &comparison) const;

  AtomMesh mesh;
  ReshardPlannerOptions options;
};

/// Bytes that the busiest rank sends when `from` becomes `to` by an exchange. Enumerates only coordinates of atoms in
/// dims that differ.
int64_t exchangeBytes(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                      const State &to);
/// Other ranks that one sends to then, or gets from, at most. As fast.
int64_t exchangePeers(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, const State &from, const State &to);

/// The atoms that a step of this kind moves, ascending: those that change their place, and of an exchange all that split a dim which
/// changes.
AtomList movedAtoms(const AtomMesh &mesh, ReshardStepKind kind, const State &before, const State &after);

/// Number of an interned (shape, element size).
using ShapeId = uint32_t;

class PlannedCosts;

/// Remembers the cost of every reshard asked for: one hash lookup on the hot path of the solver.
///
/// Tensors of other sizes share it where all dims divide: which moves a route is made of then depends only on what divides an extent,
/// what each of them sends grows with the tensor, and latencies do not. So a shape is a *core*, in which every extent has what it
/// shares with the number of ranks, times so many elements; routes are counted for the core, and a tensor takes the cheapest of its size.
class ReshardCosts {
public:
  /// `states` must outlive this. What is asked for first is asked of `planned`, where that is not null: it is of the same mesh and costs.
  ReshardCosts(const ReshardPlanner &planner, const StateTable &states, std::shared_ptr<PlannedCosts> planned = nullptr)
      : planner(planner), states(states), planned(std::move(planned)) {}

  ShapeId internShape(llvm::ArrayRef<int64_t> shape, int64_t elementBytes);
  /// Cost of the cheapest plan, at most `kMostCost`; `kImpossibleCost` if there is none. 0 for equal states.
  int64_t cost(ShapeId shape, StateId from, StateId to);
  /// The plan itself, computed anew.
  std::optional<ReshardPlan> plan(ShapeId shape, StateId from, StateId to, bool wantsSteps = true) const;

  llvm::ArrayRef<int64_t> shape(ShapeId id) const { return shapes[id].extents; }
  int64_t elementBytes(ShapeId id) const { return shapes[id].elementBytes; }
  /// Number of distinct reshards planned so far.
  size_t size() const { return numPlanned; }

private:
  static constexpr ShapeId kNoCore = ~ShapeId(0);
  struct Shape {
    llvm::SmallVector<int64_t, 4> extents;
    int64_t elementBytes;
    /// The core, whose elements count one byte for each rank, so that every piece of it is whole; and the bytes of this tensor for each
    /// element of the core. What a route costs of the core by its size it costs here times `scale`, over the number of ranks.
    ShapeId core = kNoCore;
    int64_t scale = 0;
  };
  /// (shape, from << 32 | to) -> cost.
  using KnownCosts = llvm::DenseMap<std::pair<uint32_t, uint64_t>, int64_t>;

  /// What `planned` calls a shape and a state.
  struct SharedNumbers {
    std::vector<uint32_t> shapes, states;
  };

  /// Of a core and two states: places in `routes`, and the times that the core is as large as what these are of. None where shards do not
  /// divide, or a route is beyond counting.
  struct CoreRoutes {
    uint32_t first = 0, count = 0;
    int64_t times = 1;
  };

  ShapeId addShape(llvm::ArrayRef<int64_t> shape, int64_t elementBytes);
  int64_t costOfPlanned(ShapeId shape, StateId from, StateId to);
  void findCore(ShapeId id);
  CoreRoutes routesOf(ShapeId core, StateId from, StateId to);

  const ReshardPlanner &planner;
  const StateTable &states;
  std::shared_ptr<PlannedCosts> planned;
  SharedNumbers shared;
  std::deque<Shape> shapes;
  HashIndex shapeIndex;
  KnownCosts ofShapes;
  llvm::DenseMap<std::pair<uint32_t, uint64_t>, CoreRoutes> ofCores;
  /// By all that a route goes by, whatever atoms are called.
  llvm::StringMap<CoreRoutes> ofReduced;
  std::vector<SizedCost> routes;
  /// By atom, which are over equal links; empty until somebody asks.
  llvm::SmallVector<uint8_t, 16> links;
  size_t numPlanned = 0;
};

/// What reshards on one mesh cost, for all who plan there by the same costs, each with numbers of its own for states and shapes.
class PlannedCosts {
public:
  PlannedCosts(const AtomMesh &mesh, const CostModel &model) : planner(mesh, {false, model}), costs(planner, states) {}

  ShapeId internShape(llvm::ArrayRef<int64_t> shape, int64_t elementBytes) {
    return costs.internShape(shape, elementBytes);
  }
  StateId internState(const State &state) { return states.intern(state); }
  /// As `ReshardCosts::cost`, by the numbers that these two give.
  int64_t cost(ShapeId shape, StateId from, StateId to) { return costs.cost(shape, from, to); }
  bool isOf(const AtomMesh &mesh, const CostModel &model) const;
  /// Number of distinct reshards planned so far.
  size_t size() const { return costs.size(); }

private:
  ReshardPlanner planner;
  StateTable states;
  ReshardCosts costs;
};

/// True if all costs are equal.
bool areSame(const CostModel &lhs, const CostModel &rhs);
/// True if axes have the same sizes, and the same atoms.
bool areSame(const AtomMesh &lhs, const AtomMesh &rhs);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_RESHARDPLANNER_H
