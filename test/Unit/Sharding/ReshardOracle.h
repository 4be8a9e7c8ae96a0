//===- ReshardOracle.h - what the planner is held against -------*- C++ -*-===//
//
// Two independent judges of reshard plans, sharing nothing with the planner but the `State` struct:
//
//   ExhaustiveSearch   every state of a small mesh is a node, every single collective an edge; Dijkstra gives the least
//                      number of bytes that any sequence of collectives needs. Sizes must divide.
//   Simulation         all ranks hold their elements, each step is carried out by its definition; in the end every rank
//                      must hold what the target says.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SHARDING_RESHARDORACLE_H
#define CLEAVE_TEST_UNIT_SHARDING_RESHARDORACLE_H

#include "cleave/Sharding/ReshardPlanner.h"
#include <map>
#include <string>
#include <vector>

namespace cleave::spmd::test {

/// All states of a tensor of `shape` whose shards divide, with at most the kind Sum; partial ones if asked for.
std::vector<State> allStates(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, bool withPartial);

class ExhaustiveSearch {
public:
  /// Builds the graph of all states of a tensor of `shape` (sum the only reduction kind).
  ExhaustiveSearch(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, int64_t elementBytes);

  const std::vector<State> &states() const { return nodes; }
  /// Least units from state number `source` to every state, by ways on which no dim is ever newly split over an atom of
  /// `forbidden` while that atom holds copies.
  std::vector<int64_t> distancesFrom(size_t source, llvm::ArrayRef<AtomId> forbidden = {}) const;

private:
  struct Edge {
    size_t target;
    int64_t cost;
    /// Bit per atom: it held copies before, and splits a dim after.
    uint32_t newlySplit;
  };
  void addEdge(size_t source, const State &target, int64_t cost);
  void addSlicesAndPartials(size_t source);
  void addReductions(size_t source);
  void addGathers(size_t source);
  void addAllToAlls(size_t source);
  void addExchanges(size_t source);
  int64_t units(const State &state) const;

  const AtomMesh &mesh;
  std::vector<int64_t> shape;
  int64_t elementBytes;
  std::vector<State> nodes;
  std::map<State, size_t> index;
  std::vector<std::vector<Edge>> edges;
};

/// Carries `plan` out on all ranks of the mesh. Returns an empty string if it ends in `to` with the right contents,
/// each step being what it says, and each exchange sending what it is said to cost; else what went wrong.
std::string simulate(const AtomMesh &mesh, llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const State &from,
                     const State &to, const ReshardPlan &plan);

} // namespace cleave::spmd::test

#endif // CLEAVE_TEST_UNIT_SHARDING_RESHARDORACLE_H
