//===- MaxFlow.h - the cheapest way to part two nodes -----------*- C++ -*-===//
//
// A network of edges with capacities, a source and a sink. The least capacity of edges that, taken away, leave no way from the source to
// the sink is the most that can flow between them (Ford and Fulkerson 1956):
//
//   source ──3──▶ a ──1──▶ sink         flow 1 + 2 = 3: cut a ─▶ sink and source ─▶ b
//   source ──2──▶ b ──5──▶ sink
//
// Found by shortest augmenting paths, all of one length at a time (Dinic 1970). (Boost has such algorithms; it is a dependency of 150 MB for
// these lines.)
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_MAXFLOW_H
#define CLEAVE_SOLVER_MAXFLOW_H

#include "llvm/ADT/BitVector.h"
#include <cstdint>
#include <vector>

namespace cleave {

class MaxFlow {
public:
  using Node = uint32_t;
  /// Of an edge that no cut may have. Precondition: all finite capacities together are less.
  static constexpr int64_t kInfinite = int64_t(1) << 60;
  static constexpr Node kSource = 0, kSink = 1;

  MaxFlow() : first(2, kNone) {}

  Node addNode();
  /// Precondition: capacity >= 0.
  void addEdge(Node from, Node to, int64_t capacity);

  /// The capacity of a least cut; kInfinite or more if each has an infinite edge. Call it once.
  int64_t solve();
  /// Of least cuts the one nearest to the sink: the nodes on the sink's side, which are as few as in any. Precondition: solved.
  llvm::BitVector getSinkSide() const;

private:
  static constexpr uint32_t kNone = ~uint32_t(0);

  /// What can still flow. Edge e ^ 1 is the other way.
  struct Edge {
    Node to;
    uint32_t next; ///< of the same node
    int64_t left;
  };

  bool findLevels();
  int64_t augment();

  std::vector<Edge> edges;
  std::vector<uint32_t> first;
  /// While a round lasts: how far from the source a node is, and which of its edges is next.
  std::vector<uint32_t> levels, at;
};

} // namespace cleave

#endif // CLEAVE_SOLVER_MAXFLOW_H
