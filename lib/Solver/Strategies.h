//===- Strategies.h - an op under one choice per atom -----------*- C++ -*-===//
//
// A *signature* is what ops have in common that are alike: the rule, the shapes, and for an annotated value the annotation. A
// *strategy* is a signature under one choice vector (a choice per atom): the states of operands and results, what is sent
// inside, how much is computed. Both are interned, so a model of a thousand equal layers has the strategies of one.
//
//   einsum ik,kj->ij, choices (x: cut k)      operands [-|x] [x|-], result [-|-] partial over x
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_STRATEGIES_H
#define CLEAVE_LIB_SOLVER_STRATEGIES_H

#include "Interner.h"
#include "SearchGraph.h"
#include "cleave/Sharding/ReshardPlanner.h"
#include "cleave/Sharding/WindowMoves.h"
#include <cassert>

namespace cleave::spmd {

using SignatureId = uint32_t;
using StrategyId = uint32_t;
/// Index into a rule's choices.
using ChoiceId = uint16_t;

struct Signature {
  const RuleInfo *info = nullptr;
  bool isOp = false;
  llvm::SmallVector<ShapeId, 3> operands;
  llvm::SmallVector<ShapeId, 1> results;
  /// For an annotated value what is annotated, to which choices append; else `kNone`.
  StateId annotated = kNone;
};

struct Strategy {
  SignatureId signature;
  /// False if a minor factor is split under a major that is not full, a size does not divide, two kinds of partial
  /// results mix, or the op cannot do inside what it would have to.
  bool isValid = false;
  bool keepsPartial = false;
  /// What is sent inside the op, by the cost model; and its bytes, each message rounded up.
  int64_t innerUnits = 0, innerBytes = 0;
  /// Of one rank.
  double flops = 0;
};

class Strategies {
public:
  /// `order`: all atoms, as they follow each other in a dim that several of them split. `uneven`: those that may split what
  /// they do not divide.
  Strategies(const AtomMesh &mesh, const CostModel &costs, StateTable &states, llvm::ArrayRef<AtomId> order,
             llvm::ArrayRef<AtomId> uneven = {})
      : mesh(mesh), costs(costs), states(states), order(order.begin(), order.end()),
        uneven(uneven.begin(), uneven.end()) {}

  /// `rule` is any number that stands for the signature's rule.
  SignatureId internSignature(uint32_t rule, const Signature &signature);
  const Signature &signature(SignatureId id) const { return signatures[id]; }
  const Signature &signatureOf(StrategyId id) const { return signatures[strategies[id].signature]; }

  /// The strategy of `signature` under a choice per atom.
  StrategyId strategy(SignatureId signature, llvm::ArrayRef<ChoiceId> choices);
  const Strategy &operator[](StrategyId id) const { return strategies[id]; }
  llvm::ArrayRef<ChoiceId> choices(StrategyId id) const {
    return llvm::ArrayRef<ChoiceId>(choicePool).slice(size_t(id) * mesh.numAtoms(), mesh.numAtoms());
  }
  /// Preconditions of both: the strategy is valid.
  StateId operandState(StrategyId id, unsigned operand) const {
    assert(strategies[id].isValid && "an invalid strategy has no states");
    return statePool[firstStates[id] + operand];
  }
  StateId resultState(StrategyId id, unsigned result) const {
    assert(strategies[id].isValid && "an invalid strategy has no states");
    return statePool[firstStates[id] + signatureOf(id).info->rule->operands.size() + result];
  }
  size_t size() const { return strategies.size(); }

private:
  /// Atoms that split each factor.
  using Splits = llvm::SmallVector<AtomList, 8>;
  /// What the choices say, before it is known to be possible.
  struct Draft {
    Splits splits;
    llvm::SmallVector<AtomList, 4> partialOperands;
    AtomList partialResults;
    std::optional<ReductionKind> kind;
    bool isMixed = false;
  };

  void evaluate(Strategy &strategy, llvm::ArrayRef<ChoiceId> choices);
  Draft draft(const ShardingRule &rule, llvm::ArrayRef<ChoiceId> choices) const;
  bool divide(const ShardingRule &rule, const Signature &signature, const Splits &splits) const;
  bool addState(const ShardingRule &rule, const TensorFactors &factors, const Draft &draft, const AtomList &partial,
                StateId annotated);
  bool isUneven(const ShardingRule &rule, FactorId factor, const Splits &splits) const;
  void addRegroups(Strategy &strategy, const ShardingRule &rule, const Splits &splits) const;
  bool addInner(Strategy &strategy, const ShardingRule &rule, const Splits &splits) const;
  /// What the busiest rank sends, and to or from how many others.
  struct Sent {
    int64_t positions, peers;
  };
  std::optional<Sent> countSent(const ShardingRule &rule, const InnerCost &cost, const Splits &splits) const;
  std::optional<Sent> countJoined(const ShardingRule &rule, const InnerCost &cost, const Splits &splits) const;
  int64_t maskUnits(const ShardingRule &rule, const Draft &draft) const;
  double localFlops(const ShardingRule &rule, const Splits &splits) const;
  __int128 countLocal(const ShardingRule &rule, llvm::ArrayRef<FactorId> factors, const Splits &splits) const;

  const AtomMesh &mesh;
  const CostModel &costs;
  StateTable &states;
  llvm::SmallVector<AtomId, 8> order, uneven;
  Interner signatureKeys, strategyKeys;
  std::deque<Signature> signatures;
  std::vector<Strategy> strategies;
  std::vector<ChoiceId> choicePool;
  std::vector<StateId> statePool;
  std::vector<uint32_t> firstStates;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_STRATEGIES_H
