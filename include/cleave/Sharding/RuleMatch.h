//===- RuleMatch.h - does an op agree with its shardings? -------*- C++ -*-===//
//
// After reshards are inserted, the states of an op's operands and results must be what one choice per atom gives. The
// choices are not written down anywhere: they are read off the states here, which proves that there are some, and gives
// the partitioner what it needs, the atoms that split each factor.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_RULEMATCH_H
#define CLEAVE_SHARDING_RULEMATCH_H

#include "cleave/Sharding/State.h"
#include <string>

namespace cleave::spmd {

struct RuleMatch {
  /// Per factor the atoms that split it, major to minor.
  llvm::SmallVector<AtomList, 6> splits;
  /// Per atom the index of its choice; 0 where it does nothing.
  llvm::SmallVector<unsigned, 8> choices;
};

/// Matches the states of all operands and results against `rule`. Nothing, and the reason in `error`, if they do not
/// agree: a dim is split that has no factor for it, two tensors split one factor differently, or no choice of the rule
/// does together what an atom does. Preconditions: one state per operand and result of the rule, with its rank.
std::optional<RuleMatch> matchRule(const AtomMesh &mesh, const ShardingRule &rule,
                                   llvm::ArrayRef<const State *> operands, llvm::ArrayRef<const State *> results,
                                   std::string &error);

/// True if ranks need nothing of each other for a dim that slides although its result is split: by other atoms than the input, which is a
/// choice of its own. \param input, result what splits the two.
bool areApart(const ShardingRule &rule, const SlidingDim &slide, const AtomList &input, const AtomList &result);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_RULEMATCH_H
