//===- Objective.cpp - what a decision costs ------------------------------===//
//
// The terms of the table in the header, one function each.
//
// Compute is counted in doubles and rounded at the end of each term; all costs are then integers of the model's unit,
// so that sums do not depend on their order. What is beyond counting costs as much as what is impossible.
//
//===----------------------------------------------------------------------===//
#include "Objective.h"
#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>
#include <numeric>

using namespace cleave::spmd;
using namespace llvm;

/// More than any way to follow what is asked for costs, and of thousands of ops less than what is forbidden.
static constexpr int64_t kNotHeld = int64_t(1) << 46;

ProfileId Objective::internProfile(const Profile &profile) {
  SmallVector<uint64_t, 32> key{uint64_t(profile.signature) << 4 | uint64_t(profile.isStored) << 3 |
                                    uint64_t(profile.isKept) << 2 | uint64_t(profile.isAlone) << 1 | profile.isOp,
                                static_cast<uint64_t>(profile.split),
                                static_cast<uint64_t>(profile.wide),
                                profile.calm,
                                profile.stays,
                                profile.held,
                                profile.parameters,
                                profile.inside};
  for (auto [inBase, inAll] : profile.allowed) {
    key.push_back(inBase);
    key.push_back(inAll);
  }
  auto [id, isNew] = profileKeys.intern(key);
  if (isNew)
    profiles.push_back(profile);
  return id;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

double Objective::localBytesOf(ShapeId shape, StateId state) const {
  double bytes = costs.elementBytes(shape);
  for (auto [extent, atoms] : zip(costs.shape(shape), states[state].dims))
    bytes *= shardExtent(mesh, extent, atoms);
  return bytes;
}

double Objective::totalBytesOf(ShapeId shape) const {
  double bytes = costs.elementBytes(shape);
  for (int64_t extent : costs.shape(shape))
    bytes *= extent;
  return bytes;
}

/// What an op takes to read and write, but for what stays in its kernel. What only moves is part of what reads it, but of two ways to move
/// that cost the same the one that moves less is better, by a unit for each half: what is sent may part it from what reads it.
double Objective::memoryUnits(const Profile &profile, StrategyId id) const {
  const Signature &signature = strategies.signature(profile.signature);
  double written = 0, read = 0;
  for (auto [index, shape] : enumerate(signature.results))
    written += localBytesOf(shape, strategies.resultState(id, index));
  bool isMovement = signature.info->rule->isMovement;
  if (isMovement && !profile.isAlone)
    return std::log2(1 + written);
  for (auto [index, shape] : enumerate(signature.operands))
    if (!(profile.inside >> std::min<size_t>(index, 63) & 1))
      read += localBytesOf(shape, strategies.operandState(id, index));
  // Of what is moved no more is read than written.
  return model.memoryUnits((profile.isKept ? 0 : written) + (isMovement ? std::min(read, written) : read));
}

/// What is alive at an op for its sake: all that it reads and writes.
double Objective::valueBytes(const Profile &profile, StrategyId id) const {
  const Signature &signature = strategies.signature(profile.signature);
  double bytes = 0;
  for (auto [index, shape] : enumerate(signature.results))
    bytes += localBytesOf(shape, strategies.resultState(id, index));
  for (auto [index, shape] : enumerate(signature.operands))
    bytes += localBytesOf(shape, strategies.operandState(id, index));
  return bytes;
}

/// Flops, and bytes written; of a model of time, the longer of flops and memory, and the launch of a product, which has a kernel
/// of its own however it is split.
double Objective::computeUnits(const Profile &profile, StrategyId id) const {
  const Strategy &strategy = strategies[id];
  const Signature &signature = strategies.signature(profile.signature);
  double share = signature.operands.empty() ? 1 : model.getFlopShare(costs.elementBytes(signature.operands.front()));
  if (model.isTime())
    return std::max(share * model.perFlop * strategy.flops, memoryUnits(profile, id)) +
           (strategy.flops > 0 ? static_cast<double>(model.perLaunch) : 0);
  double fairShare = model.repetitionSlack * signature.info->rule->flops / profile.split;
  double units =
      share * (model.perFlop * strategy.flops + model.perRepeatedFlop * std::max(0.0, strategy.flops - fairShare));
  for (auto [index, shape] : enumerate(signature.results)) {
    double written = localBytesOf(shape, strategies.resultState(id, index)) - totalBytesOf(shape) / profile.wide;
    units += model.perExtraWrite * std::max(0.0, written);
  }
  return units;
}

/// Context parallelism stays what the user wrote: an atom that comes to a contraction without any conflict, but splits
/// something else there, pays for it.
double Objective::movedOffUnits(const Profile &profile, StrategyId id) const {
  const Signature &signature = strategies.signature(profile.signature);
  if (signature.info->rule->flops == 0 || model.perMovedByte == 0)
    return 0;
  double ranks = 1;
  forEachAtom(profile.calm, [&](AtomId atom) {
    ChoiceId choice = strategies.choices(id)[atom];
    bool splits = !signature.info->rule->choices[choice].factors.empty();
    if (splits && !(profile.allowed[choice].first & maskOf(atom)))
      ranks *= mesh.size(atom);
  });
  if (ranks == 1)
    return 0;
  SmallVector<double> activations;
  for (auto [index, shape] : enumerate(signature.results))
    activations.push_back(localBytesOf(shape, strategies.resultState(id, index)));
  for (auto [index, shape] : enumerate(signature.operands))
    if (!(profile.parameters >> std::min<size_t>(index, 63) & 1))
      activations.push_back(localBytesOf(shape, strategies.operandState(id, index)));
  // Scores of all tokens with all tokens grow with their square, what moves to get there does not: of a product of
  // activations alone the smallest stands for all.
  double bytes = profile.parameters == 0 ? activations.size() * *llvm::min_element(activations)
                                         : std::accumulate(activations.begin(), activations.end(), 0.0);
  return model.perMovedByte * (1 - 1 / ranks) * bytes;
}

/// True if the atoms of an axis do different things although each could be done by all of them.
bool Objective::isTorn(const Profile &profile, StrategyId id, unsigned axis) const {
  const ShardingRule &rule = *strategies.signature(profile.signature).info->rule;
  ArrayRef<ChoiceId> choices = strategies.choices(id).slice(mesh.firstAtom(axis), mesh.numAtoms(axis));
  if (all_equal(choices))
    return false;
  return all_of(choices, [&](ChoiceId choice) {
    return all_of(rule.choices[choice].factors,
                  [&](FactorId factor) { return rule.factorSizes[factor] % mesh.axisSize(axis) == 0; });
  });
}

Surcharge Objective::surchargeOf(const Profile &profile, StrategyId id) const {
  Surcharge surcharge = 0;
  for (auto [atom, choice] : enumerate(strategies.choices(id)))
    if (!(profile.allowed[choice].first & maskOf(atom)))
      surcharge = model.fallbackSurcharge;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (mesh.numAtoms(axis) > 1 && isTorn(profile, id, axis))
      surcharge = model.tornSurcharge;
  return surcharge;
}

NodeCost Objective::costOfNode(ProfileId profileId, StrategyId id) const {
  assert(strategies[id].isValid && "an invalid strategy has no price");
  const Profile &profile = profiles[profileId];
  NodeCost made;
  made.surcharge = surchargeOf(profile, id);
  if (profile.isStored) {
    double bytes = localBytesOf(strategies.signature(profile.signature).results.front(), strategies.resultState(id, 0));
    made.cost = static_cast<int64_t>(std::min(perStoredByte * bytes, static_cast<double>(kForbidden / 4)));
  }
  if (!profile.isOp)
    return made;
  double units = std::min(computeUnits(profile, id) + movedOffUnits(profile, id), static_cast<double>(kForbidden / 4));
  if (perValueByte > 0)
    units = std::min(units + perValueByte * valueBytes(profile, id), static_cast<double>(kForbidden / 4));
  made.cost = static_cast<int64_t>(units) + strategies[id].innerUnits +
              (strategies[id].keepsPartial ? model.perKeptPartial : 0) + kNotHeld * countNotHeld(profile, id);
  return made;
}

/// Atoms of a factor that is held which do something else: a search begins with a strategy that nobody has offered.
int64_t Objective::countNotHeld(const Profile &profile, StrategyId id) const {
  int64_t count = 0;
  for (auto [atom, choice] : enumerate(strategies.choices(id)))
    if (AtomMask mask = profile.held & maskOf(atom))
      count += !((profile.allowed[choice].first | profile.allowed[choice].second) & mask);
  return count;
}

/// Factors that are split together may count twice (`Strategies::localFlops`): where there are such, flops prove nothing.
int64_t Objective::leastCostOfNode(ProfileId id) const {
  assert(model.isTime() && "units that are no time");
  const Profile &profile = profiles[id];
  if (!profile.isOp)
    return 0;
  const Signature &signature = strategies.signature(profile.signature);
  const ShardingRule &rule = *signature.info->rule;
  double ranks = 1, bytes = 0, flops = rule.flops;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    ranks *= mesh.size(atom);
  if (any_of(rule.choices, [](const Choice &choice) { return choice.factors.size() > 1; }))
    flops = 0;
  if (!profile.isKept && (!rule.isMovement || profile.isAlone))
    for (ShapeId shape : signature.results)
      bytes += totalBytesOf(shape);
  double share = signature.operands.empty() ? 1 : model.getFlopShare(costs.elementBytes(signature.operands.front()));
  // More bytes, which no longer fit into the cache, never take less than so many at the better of both rates.
  double memory = std::min(model.memoryUnits(bytes / ranks), model.perMemoryByte * bytes / ranks);
  double units = std::max(share * model.perFlop * flops / ranks, memory);
  units = std::min(units, static_cast<double>(kForbidden / 4)) +
          (rule.flops > 0 ? static_cast<double>(model.perLaunch) : 0);
  // Sums of doubles are rounded otherwise than those of a strategy.
  return static_cast<int64_t>(units * (1 - 1e-12)) + std::min<int64_t>(model.perKeptPartial, 0);
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// Of a reshard that costs so much by itself.
int64_t Objective::costOfReshard(ShapeId shape, StateId from, StateId to, int64_t cost, Surcharge surcharge,
                                 EdgeTraits traits) const {
  bool makesPartial = any_of(states[to].partial, [&](AtomId atom) {
    return !states[from].isPartialOver(atom) || states[from].kind != states[to].kind;
  });
  double kernel = traits.splitsKernel ? model.perLaunch : 0;
  // What stayed in one kernel is written by one and read by another.
  if (traits.sharesKernel)
    kernel += model.memoryUnits(localBytesOf(shape, to) + (traits.isKept ? localBytesOf(shape, from) : 0));
  // What is moved by a kernel of its own is read by another one in any case.
  if (cost == 0 ? traits.joinsFirst : traits.movesFirst)
    kernel = model.perLaunch + model.memoryUnits(2 * localBytesOf(shape, from));
  __int128 total = makesPartial ? model.perMadePartial : 0;
  total += static_cast<__int128>(kernel);
  if (cost > 0) {
    if (traits.movesParameter)
      surcharge += model.parameterSurcharge;
    total += cost + __int128(cost) * surcharge / 100 + model.perReshard;
  }
  // Less than what is forbidden, also where a surcharge makes it more than can be counted: a present that was forbidden would have
  // nothing to be compared with.
  return std::min<__int128>(total, kForbidden / 8);
}

int64_t Objective::costOfEdge(ShapeId shape, StateId from, StateId to, Surcharge lhs, Surcharge rhs,
                              EdgeTraits traits) const {
  if (from == to)
    return 0;
  int64_t cost = costs.cost(shape, from, to);
  return cost >= kImpossibleCost ? kForbidden : costOfReshard(shape, from, to, cost, std::max(lhs, rhs), traits);
}

/// Where all divides, what is not only split further, or made partial, is sent: a collective begins, and over the fastest link goes what ranks
/// lack. To reduce the terms of g ranks each element is sent g - 1 times by some rank.
int64_t Objective::leastReshard(ShapeId shape, StateId fromId, StateId toId) const {
  const State &from = states[fromId], &to = states[toId];
  bool isFree = from.partial.empty() ||
                (from.kind == to.kind && all_of(from.partial, [&](AtomId atom) { return to.isPartialOver(atom); }));
  double localFrom = costs.elementBytes(shape), localTo = localFrom, all = localFrom, ranks = 1, terms = 1;
  for (auto [extent, before, after] : zip(costs.shape(shape), from.dims, to.dims)) {
    int64_t splitsBefore = mesh.product(before), splitsAfter = mesh.product(after);
    if (extent == 0 || extent % splitsBefore != 0 || extent % splitsAfter != 0)
      return 0;
    localFrom *= static_cast<double>(extent / splitsBefore);
    localTo *= static_cast<double>(extent / splitsAfter);
    all *= static_cast<double>(extent);
    isFree &= before.size() <= after.size() && std::equal(before.begin(), before.end(), after.begin());
  }
  if (isFree)
    return 0;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    ranks *= mesh.size(atom);
  for (AtomId atom : from.partial)
    if (!to.isPartialOver(atom) || from.kind != to.kind)
      terms *= mesh.size(atom);
  double lacks = std::max((terms - 1) * all / ranks, localTo - localFrom);
  double units = std::max(lacks, 0.0) * static_cast<double>(model.unitsPerToldByte()) * (1 - 1e-12);
  return static_cast<int64_t>(std::min(units, static_cast<double>(kMostCost / 2))) + model.perCollective + 1;
}

/// More for a reshard is never less in all (`costOfReshard`): what joins kernels moves what is sent, too.
int64_t Objective::leastCostOfEdge(ShapeId shape, StateId from, StateId to, EdgeTraits traits) const {
  return from == to ? 0 : costOfReshard(shape, from, to, leastReshard(shape, from, to), 0, traits);
}
