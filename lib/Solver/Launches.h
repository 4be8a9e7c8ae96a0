//===- Launches.h - which ops share a kernel --------------------*- C++ -*-===//
//
// However an op is split, each rank launches it once; what changes with a decision is which ops may share a kernel, for what
// has been sent is read by another kernel than the one that made it:
//
//   product ─▶ add ─▶ product              2 kernels: the sum is made on the product's tiles
//   product ─▶ all_reduce ─▶ add ─▶ ..     3, a launch more
//   product ─▶ add ─▶ norm                 2: a norm walks whole rows, which tiles are not
//   product ─▶ all_reduce ─▶ add ─▶ norm   2: now the sum is made with the norm
//   norm ─▶ transpose ─▶ product           2: the product reads through the transpose
//   norm ─▶ transpose ─▶ all_gather ─▶ ..  3: somebody has to make it
//
// What one kernel makes and reads is neither written to memory nor read from it, unless somebody else reads it too: then it is written.
//
// Which ops may share one says the table that fusion asks too (Sharding/Fusion.h). What is not foreseen: values that each reader computes
// again, and what does not pay.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_LAUNCHES_H
#define CLEAVE_LIB_SOLVER_LAUNCHES_H

#include "SearchGraph.h"
#include "cleave/Sharding/CostModel.h"

namespace cleave::spmd {

class Launches {
public:
  /// Nothing is true of any edge where launches and memory have no cost.
  Launches(const SearchGraph &graph, const CostModel &costs);

  /// True if ranks launch a kernel more where something is sent, or split, along this edge.
  bool splitsKernel(EdgeId edge) const { return splits[edge]; }

  /// True if what is sent along this edge has to be moved first, by a kernel that is not there where nothing is sent.
  bool movesFirst(EdgeId edge) const { return moves[edge]; }
  /// True if that is so for what is split along this edge, too. Implies `movesFirst`.
  bool joinsFirst(EdgeId edge) const { return joins[edge]; }
  /// True if the op moves elements in a kernel of its own, whatever is sent.
  bool isAlone(NodeId node) const { return alone[node]; }

  /// True if what is neither sent nor split along this edge is read in the kernel that made it, and not from memory. Only of the first 63
  /// operands.
  bool sharesKernel(EdgeId edge) const { return shares[edge]; }
  /// True if that is so for all who read the node's result, and it is not returned: it is not stored.
  bool isKept(NodeId node) const { return kept[node]; }
  /// The op that its kernel begins with, where nothing is sent; `kNone` for movement and all else that computes nothing.
  NodeId kernelOf(NodeId node) const { return kernels.empty() ? kNone : kernels[node]; }

private:
  std::vector<char> splits, moves, joins, alone, shares, kept;
  std::vector<NodeId> kernels;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_LAUNCHES_H
