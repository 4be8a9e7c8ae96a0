//===- Strategies.cpp - an op under one choice per atom -------------------===//
//
// First the choices are dealt out: which atoms split each factor, which operands and results are partial. Then every dim
// becomes the atoms of its factors, major to minor, if that is possible.
//
//===----------------------------------------------------------------------===//
#include "Strategies.h"
#include "cleave/Sharding/PartMoves.h"
#include "cleave/Sharding/RuleMatch.h"
#include "cleave/Sharding/WindowMoves.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace cleave::spmd;
using namespace llvm;

SignatureId Strategies::internSignature(uint32_t rule, const Signature &signature) {
  SmallVector<uint64_t, 8> key{uint64_t(rule) << 1 | signature.isOp, signature.annotated, signature.operands.size()};
  key.append(signature.operands.begin(), signature.operands.end());
  key.append(signature.results.begin(), signature.results.end());
  auto [id, isNew] = signatureKeys.intern(key);
  if (isNew)
    signatures.push_back(signature);
  return id;
}

/// Four choices of 16 bits to a word: keys are compared and hashed far more often than strategies are made.
StrategyId Strategies::strategy(SignatureId signature, ArrayRef<ChoiceId> choices) {
  SmallVector<uint64_t, 8> key{signature};
  for (auto [place, choice] : enumerate(choices)) {
    if (place % 4 == 0)
      key.push_back(0);
    key.back() |= uint64_t(choice) << (place % 4 * 16);
  }
  auto [id, isNew] = strategyKeys.intern(key);
  if (isNew) {
    choicePool.insert(choicePool.end(), choices.begin(), choices.end());
    firstStates.push_back(statePool.size());
    Strategy strategy;
    strategy.signature = signature;
    evaluate(strategy, choices);
    strategies.push_back(strategy);
  }
  return id;
}

//===----------------------------------------------------------------------===//
// Dealing out
//===----------------------------------------------------------------------===//

Strategies::Draft Strategies::draft(const ShardingRule &rule, ArrayRef<ChoiceId> choices) const {
  Draft draft;
  draft.splits.resize(rule.factorSizes.size());
  draft.partialOperands.resize(rule.operands.size());
  for (AtomId atom : order) {
    const Choice &choice = rule.choices[choices[atom]];
    for (FactorId factor : choice.factors)
      draft.splits[factor].push_back(atom);
    for (int32_t operand : choice.partialOperands)
      draft.partialOperands[operand].push_back(atom);
    if (!choice.partial)
      continue;
    draft.isMixed |= draft.kind && draft.kind != choice.partial;
    draft.kind = choice.partial;
    draft.partialResults.push_back(atom);
  }
  return draft;
}

/// Whether the last pieces are padded.
bool Strategies::isUneven(const ShardingRule &rule, FactorId factor, const Splits &splits) const {
  return rule.factorSizes[factor] % mesh.product(splits[factor]) != 0;
}

/// Every split factor divides, together with what is asked for its dim; or at least by the atoms that have to divide.
bool Strategies::divide(const ShardingRule &rule, const Signature &signature, const Splits &splits) const {
  unsigned regrouped = 0;
  for (const Regroup &regroup : rule.regroups)
    regrouped += isUneven(rule, regroup.factor, splits);
  if (regrouped > 1)
    return false;
  for (auto [factor, atoms] : enumerate(splits)) {
    if (atoms.empty())
      continue;
    AtomList all = atoms;
    if (signature.annotated != kNone)
      append_range(all, states[signature.annotated].dims[signature.info->places[factor].front().dim]);
    if (signature.info->allowsUneven[factor])
      erase_if(all, [&](AtomId atom) { return is_contained(uneven, atom); });
    if (rule.factorSizes[factor] % mesh.product(all) != 0)
      return false;
    // Where a minor factor could be split instead, that is another choice, and the same state.
    auto sizes = map_to_vector(atoms, [&](AtomId atom) { return int64_t(mesh.size(atom)); });
    if (isUneven(rule, factor, splits) && rule.findRegroup(factor) &&
        !Regroup::isNeeded(rule.factorSizes[factor], sizes))
      return false;
  }
  return true;
}

/// A factor may be cut only if all more major ones of its dim are cut to the end; else shards would not be intervals.
bool Strategies::addState(const ShardingRule &rule, const TensorFactors &factors, const Draft &draft,
                          const AtomList &partial, StateId annotated) {
  State state = annotated == kNone ? State::replicated(factors.size()) : states[annotated];
  for (auto [dim, dimFactors] : zip(state.dims, factors)) {
    bool isFull = true;
    for (FactorId factor : dimFactors) {
      const AtomList &splits = draft.splits[factor];
      if (!splits.empty() && !isFull)
        return false;
      dim.append(splits.begin(), splits.end());
      isFull &= mesh.product(splits) == rule.factorSizes[factor];
    }
  }
  for (AtomId atom : partial)
    state.addPartial(atom, *draft.kind);
  statePool.push_back(states.intern(state));
  return true;
}

/// Positions that another rank has are masked: a kernel finds out which those are. A slice, which is a view otherwise, takes one more to
/// make what is summed.
int64_t Strategies::maskUnits(const ShardingRule &rule, const Draft &draft) const {
  auto isMasked = [&](AtomId atom) {
    return any_of(draft.splits, [&](const AtomList &atoms) { return is_contained(atoms, atom); });
  };
  if (!rule.isMovement || costs.perLaunch == 0 || none_of(draft.partialResults, isMasked))
    return 0;
  return rule.operands.size() == 1 ? 2 * costs.perLaunch : costs.perLaunch;
}

/// What fails on the way leaves a strategy that is not valid, and is offered to nobody.
void Strategies::evaluate(Strategy &strategy, ArrayRef<ChoiceId> choices) {
  const Signature &signature = signatures[strategy.signature];
  const ShardingRule &rule = *signature.info->rule;
  Draft draft = this->draft(rule, choices);
  if (draft.isMixed || !divide(rule, signature, draft.splits) || !addInner(strategy, rule, draft.splits))
    return;
  for (auto [factors, partial] : zip(rule.operands, draft.partialOperands))
    if (!addState(rule, factors, draft, partial, signature.annotated))
      return;
  for (const TensorFactors &factors : rule.results)
    if (!addState(rule, factors, draft, draft.partialResults, signature.annotated))
      return;
  strategy.keepsPartial = !draft.partialResults.empty();
  strategy.innerUnits += maskUnits(rule, draft);
  strategy.flops = localFlops(rule, draft.splits);
  strategy.isValid = true;
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }

/// Positions that the busiest rank sends in an exchange, and its peers; nothing if ranks would not need intervals at one distance.
std::optional<Strategies::Sent> Strategies::countSent(const ShardingRule &rule, const InnerCost &cost,
                                                      const Splits &splits) const {
  SmallVector<DimWindow, 2> dims;
  for (const SlidingDim &slide : cost.slides) {
    const AtomList &mine = splits[slide.input], &made = splits[slide.result];
    int64_t extent = rule.factorSizes[slide.input];
    // A split of the input alone is another choice, and so may be one of the result.
    if (made.empty() || areApart(rule, slide, mine, made)) {
      int64_t wanted = slide.picks ? rule.factorSizes[slide.result] : ceilDiv(extent, mesh.product(mine));
      dims.push_back(DimWindow::whole(wanted));
      continue;
    }
    std::optional<DimWindow> window = slide.getWindow(extent, rule.factorSizes[slide.result], mesh.product(made));
    if (mine != made || !window)
      return std::nullopt;
    dims.push_back(*window);
  }
  return Sent{countSentElements(dims), countPeers(dims)};
}

/// The same of parts put one behind the other, or taken apart.
std::optional<Strategies::Sent> Strategies::countJoined(const ShardingRule &rule, const InnerCost &cost,
                                                        const Splits &splits) const {
  bool isJoin = cost.kind == InnerCost::Kind::Join;
  const SlidingDim &first = cost.slides.front();
  const AtomList &together = splits[isJoin ? first.result : first.input];
  SmallVector<int64_t> parts;
  for (const SlidingDim &slide : cost.slides) {
    FactorId part = isJoin ? slide.input : slide.result;
    if (part >= 0 && splits[part] != together)
      return std::nullopt;
    parts.push_back(part >= 0 ? rule.factorSizes[part] : 1);
  }
  int64_t members = mesh.product(together);
  return Sent{(isJoin ? countSentOfParts : countSentOfSplit)(parts, members),
              (isJoin ? countPeersOfParts : countPeersOfSplit)(parts, members)};
}

/// Elements of one rank.
__int128 Strategies::countLocal(const ShardingRule &rule, ArrayRef<FactorId> factors, const Splits &splits) const {
  __int128 elements = 1;
  for (FactorId factor : factors)
    elements *= ceilDiv(rule.factorSizes[factor], mesh.product(splits[factor]));
  return elements;
}

/// What neighbors send each other where the pieces of a reshape do not line up.
void Strategies::addRegroups(Strategy &strategy, const ShardingRule &rule, const Splits &splits) const {
  for (const Regroup &regroup : rule.regroups) {
    const AtomList &atoms = splits[regroup.factor];
    if (!isUneven(rule, regroup.factor, splits))
      continue;
    __int128 bytes = countLocal(rule, regroup.elementFactors, splits) * regroup.elementBytes;
    DimWindow window = regroup.getWindow(rule.factorSizes[regroup.factor], mesh.product(atoms));
    bytes *= countSentElements(window);
    GroupCost direct = directCost(mesh, costs, atoms, countPeers(window));
    strategy.innerBytes = clampCost(strategy.innerBytes + bytes);
    if (bytes > 0)
      strategy.innerUnits =
          clampCost(strategy.innerUnits + bytes * direct.perPiece + direct.fixed + costs.perCollective);
  }
}

/// A norm or softmax goes over its rows again with what was reduced of them; a search has what it wants.
static bool isReadAgain(const ShardingRule &rule, const InnerCost &cost) {
  return any_of(rule.results.front(), [&](const DimFactors &dim) {
    return any_of(dim, [&](FactorId factor) { return is_contained(cost.factors, factor); });
  });
}

/// Sources of the formulas: InnerCost in ShardingRule.h.
bool Strategies::addInner(Strategy &strategy, const ShardingRule &rule, const Splits &splits) const {
  addRegroups(strategy, rule, splits);
  for (const InnerCost &cost : rule.inner) {
    AtomList group;
    for (FactorId factor : cost.factors)
      for (AtomId atom : splits[factor])
        if (!is_contained(group, atom))
          group.push_back(atom);
    int64_t ranks = mesh.product(group);
    if (ranks == 1 || (cost.unless >= 0 && splits[cost.unless] == group))
      continue;
    __int128 bytes = countLocal(rule, cost.elementFactors, splits) * cost.elementScale * cost.elementBytes;
    if (!cost.slides.empty()) {
      bool isExchange = cost.kind == InnerCost::Kind::Exchange;
      std::optional<Sent> sent = isExchange ? countSent(rule, cost, splits) : countJoined(rule, cost, splits);
      if (!sent)
        return false;
      GroupCost direct = directCost(mesh, costs, group, sent->peers);
      strategy.innerBytes = clampCost(strategy.innerBytes + sent->positions * bytes);
      if (sent->positions == 0)
        continue;
      // Parts are put side by side before they are sent.
      int64_t packing = cost.kind == InnerCost::Kind::Join ? costs.perLaunch : 0;
      strategy.innerUnits = clampCost(strategy.innerUnits + sent->positions * bytes * direct.perPiece + direct.fixed +
                                      costs.perCollective + packing);
      continue;
    }
    // An all_reduce is two rings over pieces of what is reduced, a gather one over all of it.
    bool isGather = cost.kind == InnerCost::Kind::AllGather;
    int64_t rings = isGather ? 1 : 2, share = isGather ? 1 : ranks;
    GroupCost ring = ringCost(mesh, costs, group);
    __int128 units = rings * bytes * ring.perPiece / share + rings * __int128(ring.fixed) + costs.perCollective;
    // What is before it and what is behind are kernels, and would be one. Steps of a recurrent net are kernels anyway.
    if (!isGather || rule.flops == 0)
      units += costs.perLaunch;
    if (!isGather && isReadAgain(rule, cost)) {
      double read = cost.elementBytes; // The operand's, or those of f32 where it is reduced in that.
      for (const DimFactors &dim : rule.operands.front())
        read *= static_cast<double>(countLocal(rule, dim, splits));
      units += static_cast<__int128>(costs.memoryUnits(read));
    }
    strategy.innerUnits = clampCost(strategy.innerUnits + cost.times * units);
    strategy.innerBytes =
        clampCost(strategy.innerBytes + cost.times * ((rings * bytes * (ranks - 1) + share - 1) / share));
  }
  return strategy.innerUnits < kImpossibleCost;
}

/// Factors that are split together shrink the work once.
double Strategies::localFlops(const ShardingRule &rule, const Splits &splits) const {
  double flops = rule.flops;
  for (auto [factor, atoms] : enumerate(splits)) {
    bool shrinks = rule.flopFactors.empty() || is_contained(rule.flopFactors, factor);
    bool isTogether = is_contained(ArrayRef(splits).take_front(factor), atoms);
    if (shrinks && !atoms.empty() && !isTogether)
      flops *= static_cast<double>(ceilDiv(rule.factorSizes[factor], mesh.product(atoms))) / rule.factorSizes[factor];
  }
  return flops;
}
