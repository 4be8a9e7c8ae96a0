//===- Objective.h - what a decision costs ----------------------*- C++ -*-===//
//
// Integers, in units of a CostModel, which is handed in. Its default in bytes (the unit is 1/1024 of one);
// `--optimize=bytes` drops the surcharges, and compute only breaks ties:
//
//   bytes on the wire, between and inside ops           1
//   compute of one rank, per flop                       1/128    the balance of a large GPU; above 1/64 it changes minima
//   flops beyond 1.25 x flops / split                   + 1/64   what propagation splits stays split
//   bytes written beyond total / wide                   1/256    no reward for splitting pointwise work further
//   each reshard                                        1/2      all_reduce rather than scatter and gather
//   a whole operand made partial                        1/8      no select on every rank for nothing
//   an op that keeps a partial                          - 1/32   reduce late
//   reshard next to a fallback                           x 1.1    a fallback must save something
//   reshard next to an axis split in two although it fits x 1.25
//   reshard of a parameter that the user split, to an
//     op where nothing else brings its axis             x 64     Megatron stays Megatron at any batch
//   contraction moved off its uncontested factor        1/3 of its activation bytes
//
// On a known machine flops are counted by its rates, and bytes by the links that they go over (Cluster.h). `--optimize=time`
// counts nothing but time: of an op the longer of its flops and its bytes of memory, of what is sent latencies too, and of kernels
// what they take to start: those of products, and those that there are more because something is sent. What is made and read in one
// kernel goes through no memory, unless it is sent or split (Launches.h). Where it is decided how inputs are stored, a price on what a rank
// stores of them holds memory against time.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_OBJECTIVE_H
#define CLEAVE_LIB_SOLVER_OBJECTIVE_H

#include "Candidates.h"
#include "Strategies.h"
#include "cleave/Solver/Elimination.h"
#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

using ProfileId = uint32_t;
/// A signature, and all that candidates say of the node: nodes of one profile have the same options at the same costs.
struct Profile {
  SignatureId signature = 0;
  bool isOp = false;
  /// Moves elements in a kernel of its own (Launches.h).
  bool isAlone = false;
  /// Per choice the atoms that may take it, without and with fallbacks.
  llvm::SmallVector<std::pair<AtomMask, AtomMask>, 8> allowed;
  /// Atoms that may take some choice only as a fallback.
  AtomMask fallbacks = 0;
  int64_t split = 1, wide = 1;
  AtomMask calm = 0;
  /// Atoms whose choice stays, decided at an earlier priority.
  AtomMask stays = 0;
  /// Atoms that split the held factor or nothing (`Problem::hold`).
  AtomMask held = 0;
  /// Bit by bit, operands that are parameters, and those that are made in the kernel that reads them.
  uint64_t parameters = 0, inside = 0;
  /// What it makes is read in the kernel that made it, by nobody else (Launches.h).
  bool isKept = false;
  /// Costs what a rank stores of it (`SolverOptions::perStoredByte`).
  bool isStored = false;
};

/// What a node in some strategy adds to the objective, and the surcharge on the reshards next to it.
struct NodeCost {
  int64_t cost = 0;
  Surcharge surcharge = 0;
};

/// What is true of an edge, whatever the strategies at its ends.
struct EdgeTraits {
  /// A reshard moves a parameter that the user split (`Candidates::movesParameter`).
  bool movesParameter = false;
  /// A change makes two kernels of one, or one more of what is moved before it is sent, or put together before it is split (Launches.h).
  bool splitsKernel = false, movesFirst = false, joinsFirst = false;
  /// Unchanged, it is read in the kernel that made it, and not stored for anybody else.
  bool sharesKernel = false, isKept = false;

  static constexpr unsigned kBits = 6;
  /// All of them as a number of so many bits.
  uint64_t getBits() const {
    return uint64_t(sharesKernel) << 5 | uint64_t(isKept) << 4 | uint64_t(movesParameter) << 3 |
           uint64_t(splitsKernel) << 2 | uint64_t(movesFirst) << 1 | uint64_t(joinsFirst);
  }
};

class Objective {
public:
  /// `costs` has to cost reshards by `model` too.
  Objective(const AtomMesh &mesh, const CostModel &model, double perStoredByte, double perValueByte, StateTable &states,
            ReshardCosts &costs, const Strategies &strategies)
      : mesh(mesh), model(model), perStoredByte(perStoredByte), perValueByte(perValueByte), states(states),
        costs(costs), strategies(strategies) {}

  ProfileId internProfile(const Profile &profile);
  const Profile &profile(ProfileId id) const { return profiles[id]; }

  /// Precondition: the strategy is valid.
  NodeCost costOfNode(ProfileId profile, StrategyId strategy) const;
  /// No strategy of the node costs less: all of its work shared out to all ranks, and nothing sent. Precondition: a model of time.
  int64_t leastCostOfNode(ProfileId profile) const;
  /// What it costs that a value of `shape` is made in state `from` and wanted in state `to`, by nodes with surcharges
  /// `lhs` and `rhs`; at most `kForbidden`.
  int64_t costOfEdge(ShapeId shape, StateId from, StateId to, Surcharge lhs, Surcharge rhs, EdgeTraits traits) const;

  /// No more than that, without surcharges and without planning anything.
  int64_t leastCostOfEdge(ShapeId shape, StateId from, StateId to, EdgeTraits traits) const;

private:
  int64_t costOfReshard(ShapeId shape, StateId from, StateId to, int64_t cost, Surcharge surcharge,
                        EdgeTraits traits) const;
  int64_t leastReshard(ShapeId shape, StateId from, StateId to) const;
  double computeUnits(const Profile &profile, StrategyId strategy) const;
  double movedOffUnits(const Profile &profile, StrategyId strategy) const;
  double memoryUnits(const Profile &profile, StrategyId strategy) const;
  double valueBytes(const Profile &profile, StrategyId strategy) const;
  double localBytesOf(ShapeId shape, StateId state) const;
  double totalBytesOf(ShapeId shape) const;
  bool isTorn(const Profile &profile, StrategyId strategy, unsigned axis) const;
  Surcharge surchargeOf(const Profile &profile, StrategyId strategy) const;
  int64_t countNotHeld(const Profile &profile, StrategyId strategy) const;

  const AtomMesh &mesh;
  const CostModel &model;
  double perStoredByte, perValueByte;
  StateTable &states;
  ReshardCosts &costs;
  const Strategies &strategies;
  Interner profileKeys;
  std::deque<Profile> profiles;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_OBJECTIVE_H
