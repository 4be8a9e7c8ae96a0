//===- Ranks.h - what a call of a pipeline takes ----------------*- C++ -*-===//
//
// Programs of ranks run against each other in time. A message takes place when both ends have come to it, and both are busy for as long as
// it takes, as in the executor:
//
//   rank 0   compute, send ──┐ compute ...
//   rank 1   compute ......  └ receive, compute ...
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COST_RANKS_H
#define CLEAVE_COST_RANKS_H

#include "cleave/Cost/Program.h"

namespace cleave::cost {

/// What a rank does: it works for some time, or meets a peer, in the order of its program.
struct RankStep {
  /// Of the work, or of the message; that of a receive is its sender's.
  double ns = 0;
  /// -1: it meets nobody.
  int64_t peer = -1;
  bool sends = false;
};

/// Runs them all. The n-th receive of a rank from a peer is the peer's n-th send to it. Nothing if they wait for each other for ever.
std::optional<RanksTime> simulateRanks(llvm::ArrayRef<std::vector<RankStep>> ranks);

/// The steps of one rank: what stands between messages is one. Preconditions: those of `countProgram`.
std::vector<RankStep> listSteps(mlir::func::FuncOp func, const mlir::SymbolTable &symbols, const OpTimes &times);

} // namespace cleave::cost

#endif // CLEAVE_COST_RANKS_H
