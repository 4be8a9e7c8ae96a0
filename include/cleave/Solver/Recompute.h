//===- Recompute.h - what a step keeps, and what it makes again -*- C++ -*-===//
//
// A step of training runs forward, to its loss, and then reads in reverse what it made on the way. A value that is read behind the loss is kept
// until then, or made again there, of others that are:
//
//   forward      x ──▶ a ──▶ b ──▶ c ──▶ loss
//   behind it    a is read, and b:   keep both, or keep a and make b of it again, or make both of x
//
// For a price of a nanosecond in bytes the least sum of bytes kept and time taken is a minimum cut. Each op has a node, and each of its results,
// which is on the sink's side where it is there behind the loss; so is the op where it runs again:
//
//   source ──price x ns──▶ op ──bytes──▶ result ──infinite──▶ sink, if something behind the loss reads it
//                           ▲                └──infinite──▶ each op that reads it: it cannot run again without
//
// What is there all along (arguments, weights) is in no network. What all of this takes, of memory and of time, is counted of the order of ops
// that comes of it (`listSteps`): each runs again in front of its first reader. So not all of the forward is there again at once, where values
// between blocks are kept (`findBlockEnds`): then one block is, at a time.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_RECOMPUTE_H
#define CLEAVE_SOLVER_RECOMPUTE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace cleave {

/// A step of training: ops in their order on values, both by number.
struct RecomputeProblem {
  struct Op {
    double ns = 0;
    llvm::SmallVector<unsigned, 3> operands;
    llvm::SmallVector<unsigned, 1> results;
    /// Not behind the loss. Precondition: such ops come first.
    bool isForward = false;
    /// Of an op of the forward: it may run again; or it has to, wherever something is read of it.
    bool mayRepeat = false, mustRepeat = false;
  };
  struct Value {
    /// Of its own: 0 of one that shows the bytes of another.
    int64_t bytes = 0;
    /// Whose bytes it shows; its own number, if nobody's.
    unsigned root = 0;
    /// It is there all along, whoever reads it.
    bool isGiven = false;
    /// It is kept where something behind the loss needs it.
    bool mustKeep = false;
    /// Somebody has it when the step is done.
    bool isResult = false;
  };
  std::vector<Op> ops;
  std::vector<Value> values;

  unsigned addValue(int64_t bytes);
};

/// Ops that run again, by number.
using RepeatedOps = llvm::BitVector;

/// A least cut.
struct RecomputeOptimum {
  RepeatedOps repeated;
  /// Bytes kept and time taken, that in bytes: no other choice has less.
  double least = 0;
};

/// What to make again where a nanosecond counts `price` bytes, and `kept` values (by number) are kept in any case, at no cost.
RecomputeOptimum findOptimum(const RecomputeProblem &problem, double price, const llvm::BitVector &kept = {});

/// Values between blocks of the forward, of which each has about `budget` bytes that are read behind the loss: where that many have been
/// made, the place among those of the last half where least would be kept (after Chen et al. 2016, algorithm 3).
llvm::BitVector findBlockEnds(const RecomputeProblem &problem, int64_t budget);

/// A run of an op.
struct RecomputeStep {
  unsigned op;
  bool isAgain;
};

/// The ops in order, with those that run again where they do.
std::vector<RecomputeStep> listSteps(const RecomputeProblem &problem, const RepeatedOps &repeated);

/// What a choice comes to.
struct RecomputeCosts {
  double ns = 0; ///< of all that runs again
  int64_t peakBytes = 0;
  /// Of values that are there all along, and of those that are kept from the forward.
  int64_t givenBytes = 0, keptBytes = 0;
};
RecomputeCosts countCosts(const RecomputeProblem &problem, const RepeatedOps &repeated);

/// A choice among others.
struct RecomputeChoice {
  RepeatedOps repeated;
  RecomputeCosts costs;
  /// No choice that keeps as few bytes takes less time behind the loss.
  double leastNs = 0;
};

/// Of cuts of all prices, and of blocks of all sizes, those of which no other one takes less memory in no more time, by their time.
std::vector<RecomputeChoice> findChoices(const RecomputeProblem &problem);
/// Of blocks of all sizes, of which each is made again as a whole, those that take least memory.
RecomputeChoice findBlocks(const RecomputeProblem &problem);

} // namespace cleave

#endif // CLEAVE_SOLVER_RECOMPUTE_H
