//===- CoordinateDescent.cpp - one axis at a time, exactly ----------------===//
//
// A domain has at most 8 strategies per axis, in this order of importance: the present one, what propagation reaches, "none",
// partial results, fallbacks, and the atoms of the axis spread over a dim of several factors.
//
//===----------------------------------------------------------------------===//
#include "CoordinateDescent.h"
#include "Domination.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
/// Strategies per axis, and for two axes together.
constexpr size_t kMaxDomain = 8, kMaxPairDomain = 24;
/// Four neighbors of so many strategies, of which one in ten is dominated.
constexpr size_t kMostCellsOfPair = size_t(1) << 18;
} // namespace

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// The choices that all atoms of `group` may take, ascending, at most `kMaxDomain` of them.
static SmallVector<ChoiceId, 8> commonChoices(const Profile &profile, const ShardingRule &rule, AtomMask group,
                                              bool withFallbacks, bool isFree) {
  auto isOffered = [&](size_t index) {
    auto [inBase, inAll] = profile.allowed[index];
    return ((withFallbacks ? inBase | inAll : inBase) & group) == group;
  };
  SmallVector<ChoiceId, 8> common;
  for (size_t index = 0; index < rule.choices.size(); ++index)
    if (isOffered(index))
      common.push_back(index);
  if (common.size() <= kMaxDomain)
    return common;
  // Base splits (of free axes all may be), none, partial, fallbacks.
  auto rank = [&](ChoiceId index) {
    const Choice &choice = rule.choices[index];
    bool isBase = (profile.allowed[index].first & group) == group;
    return choice.isNone() ? (isFree ? 0 : 1) : !isBase ? 3 : choice.factors.empty() ? 2 : 0;
  };
  llvm::sort(common, [&](ChoiceId lhs, ChoiceId rhs) { return std::pair(rank(lhs), lhs) < std::pair(rank(rhs), rhs); });
  common.truncate(kMaxDomain);
  llvm::sort(common);
  return common;
}

/// The atoms of `group` laid over the factors of each dim that has several, major first, as far as the other atoms
/// leave room.
void CoordinateDescent::addSpreads(const Profile &profile, ArrayRef<ChoiceId> current, ArrayRef<AtomId> group,
                                   ChoiceVectors &vectors) const {
  const RuleInfo &info = *strategies.signature(profile.signature).info;
  if (!info.hasDimOfSeveral || profile.held & maskOf(group))
    return;
  const ShardingRule &rule = *info.rule;
  const AtomMesh &mesh = graph.getProblem().getMesh();
  // What atoms outside the group leave of a factor.
  auto roomOf = [&](FactorId factor) {
    int64_t room = rule.factorSizes[factor];
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      if (!is_contained(group, atom) && is_contained(rule.choices[current[atom]].factors, factor))
        room /= mesh.size(atom);
    return room;
  };
  auto addDim = [&](const DimFactors &factors) {
    if (factors.size() < 2)
      return;
    MutableArrayRef<ChoiceId> vector = vectors.add(current);
    size_t place = 0;
    int64_t room = roomOf(factors[0]);
    for (AtomId atom : group) {
      while (place < factors.size() && room == 1)
        room = ++place < factors.size() ? roomOf(factors[place]) : 1;
      vector[atom] = 0;
      if (place == factors.size() || room % mesh.size(atom) != 0 || info.singleSplit[factors[place]] < 0)
        continue;
      vector[atom] = info.singleSplit[factors[place]];
      room /= mesh.size(atom);
    }
  };
  for (const TensorFactors &dims : rule.operands)
    for_each(dims, addDim);
  for (const TensorFactors &dims : rule.results)
    for_each(dims, addDim);
}

/// Adds the choice vectors offered for one group, the present one not among them.
void CoordinateDescent::addVectors(const Profile &profile, ArrayRef<ChoiceId> current, ArrayRef<AtomId> group,
                                   bool withFallbacks, ChoiceVectors &vectors) const {
  AtomList movable;
  for (AtomId atom : group)
    if (!(profile.stays & maskOf(atom)))
      movable.push_back(atom);
  if (movable.empty())
    return;
  const ShardingRule &rule = *strategies.signature(profile.signature).info->rule;
  bool isFree = !graph.getProblem().getFreeAtoms().empty();
  for (ChoiceId choice : commonChoices(profile, rule, maskOf(movable), withFallbacks, isFree)) {
    MutableArrayRef<ChoiceId> vector = vectors.add(current);
    for (AtomId atom : movable)
      vector[atom] = choice;
  }
  if (movable.size() > 1 && profile.isOp)
    addSpreads(profile, current, movable, vectors);
}

/// The present strategy comes first: an option of 0 changes nothing, which elimination and freezing rely on.
Domain CoordinateDescent::makeDomain(ProfileId profileId, StrategyId current, const DescentUnit &unit) {
  const Profile &profile = objective.profile(profileId);
  size_t limit = unit.groups.size() > 1 ? kMaxPairDomain : kMaxDomain + 4;
  ChoiceVectors vectors(strategies.choices(current));
  for (const AtomList &group : unit.groups)
    for (size_t start = 0, count = vectors.size(); start < count; ++start)
      addVectors(profile, SmallVector<ChoiceId, 16>(vectors[start]), group, unit.withFallbacks, vectors);
  Domain domain;
  for (size_t index = 0; index < vectors.size() && domain.strategies.size() < limit; ++index) {
    StrategyId strategy = index == 0 ? current : strategies.strategy(profile.signature, vectors[index]);
    if (!strategies[strategy].isValid || is_contained(domain.strategies, strategy))
      continue;
    domain.strategies.push_back(strategy);
    domain.nodeCosts.push_back(objective.costOfNode(profileId, strategy));
    domain.costs.push_back(domain.nodeCosts.back().cost - domain.nodeCosts.front().cost);
  }
  return domain;
}

/// Nodes of one profile and strategy have one domain: a deep model has few, so the cost is that of one layer. Where no atom of the unit has
/// a fallback, it is that of the passes without.
DomainId CoordinateDescent::domainOf(NodeId node, const DescentUnit &unit, UnitDomains &ofUnit) {
  bool withFallbacks = unit.withFallbacks && objective.profile(profiles[node]).fallbacks & ofUnit.atoms;
  DomainIndex &known = withFallbacks ? ofUnit.withFallbacks : ofUnit.plain;
  auto [entry, isNew] = known.try_emplace(uint64_t(profiles[node]) << 32 | present[node], domains.size());
  if (isNew)
    domains.push_back(makeDomain(profiles[node], present[node], unit));
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// The same value in the same state is another operand: it is brought there once.
bool CoordinateDescent::isServedByTwin(const SearchEdge &edge, StrategyId to) const {
  return edge.twin != edge.operand &&
         strategies.operandState(to, edge.twin) == strategies.operandState(to, edge.operand);
}

int64_t CoordinateDescent::costOfEdge(const SearchEdge &edge, StrategyId from, StrategyId to, Surcharge lhs,
                                      Surcharge rhs, EdgeTraits traits) const {
  if (isServedByTwin(edge, to))
    return 0;
  ShapeId shape = strategies.signatureOf(to).operands[edge.operand];
  return objective.costOfEdge(shape, strategies.resultState(from, edge.result),
                              strategies.operandState(to, edge.operand), lhs, rhs, traits);
}

int64_t CoordinateDescent::costOfEdge(EdgeId id, StrategyId from, StrategyId to) const {
  const SearchEdge &edge = graph.edge(id);
  Surcharge lhs = objective.costOfNode(profiles[edge.producer], from).surcharge;
  Surcharge rhs = objective.costOfNode(profiles[edge.consumer], to).surcharge;
  return costOfEdge(edge, from, to, lhs, rhs, traitsOf(id));
}

/// What strategies mean at both ends of an edge. Those of a domain differ in what else they do, and few in that.
struct CoordinateDescent::EdgeEnds {
  struct End {
    StateId state;
    Surcharge surcharge;
    bool isTwin;
    bool operator==(const End &other) const {
      return state == other.state && surcharge == other.surcharge && isTwin == other.isTwin;
    }
  };

  struct Side {
    void add(End end) {
      auto *known = find(distinct, end);
      of.push_back(known - distinct.begin());
      if (known == distinct.end())
        distinct.push_back(end);
    }

    SmallVector<End, 24> distinct;
    /// By strategy of the domain, which of these.
    SmallVector<unsigned, 24> of;
  };

  Side made, wanted;
  ShapeId shape = 0;
  EdgeTraits traits;
};

CoordinateDescent::EdgeEnds CoordinateDescent::endsOf(EdgeId id) const {
  const SearchEdge &edge = graph.edge(id);
  const Domain &producer = domains[domainIds[edge.producer]], &consumer = domains[domainIds[edge.consumer]];
  EdgeEnds ends;
  for (auto [strategy, nodeCost] : zip(producer.strategies, producer.nodeCosts))
    ends.made.add({strategies.resultState(strategy, edge.result), nodeCost.surcharge, false});
  for (auto [strategy, nodeCost] : zip(consumer.strategies, consumer.nodeCosts))
    ends.wanted.add(
        {strategies.operandState(strategy, edge.operand), nodeCost.surcharge, isServedByTwin(edge, strategy)});
  ends.shape = strategies.signatureOf(consumer.strategies.front()).operands[edge.operand];
  ends.traits = traitsOf(id);
  return ends;
}

/// At most `kForbidden`.
int64_t CoordinateDescent::costBetween(const EdgeEnds &ends, unsigned made, unsigned wanted) {
  const EdgeEnds::End &lhs = ends.made.distinct[made], &rhs = ends.wanted.distinct[wanted];
  return rhs.isTwin ? 0
                    : objective.costOfEdge(ends.shape, lhs.state, rhs.state, lhs.surcharge, rhs.surcharge, ends.traits);
}

/// All that a table of an edge follows from: the domains at its ends, which result and operand it is, and what is true of it.
std::pair<uint64_t, uint64_t> CoordinateDescent::keyOf(EdgeId id) const {
  const SearchEdge &edge = graph.edge(id);
  uint64_t ends = uint64_t(domainIds[edge.producer]) << 32 | domainIds[edge.consumer];
  uint64_t place = uint64_t(edge.result) << 48 | uint64_t(edge.operand) << 32 |
                   uint64_t(edge.twin) << EdgeTraits::kBits | traitsOf(id).getBits();
  return {ends, place};
}

/// What it costs above the present, of which nothing is taken off where that is forbidden.
static int64_t aboveNow(int64_t cost, int64_t now) {
  return cost == kForbidden ? kForbidden : now == kForbidden ? cost : cost - now;
}

/// The costs of an edge for all strategies in the domains at its ends, less what it costs at present.
const int64_t *CoordinateDescent::edgeTable(EdgeId id) {
  auto [entry, isNew] = tables.try_emplace(keyOf(id), nullptr);
  if (!isNew)
    return entry->second;
  EdgeEnds ends = endsOf(id);
  size_t numColumns = ends.wanted.distinct.size();
  SmallVector<int64_t, 64> costs;
  for (unsigned made = 0; made < ends.made.distinct.size(); ++made)
    for (unsigned wanted = 0; wanted < numColumns; ++wanted)
      costs.push_back(costBetween(ends, made, wanted));
  int64_t now = costs[0];
  for (int64_t &cost : costs)
    cost = aboveNow(cost, now);
  int64_t *cells = arena.Allocate<int64_t>(ends.made.of.size() * ends.wanted.of.size()), *cell = cells;
  for (unsigned row : ends.made.of)
    for (unsigned column : ends.wanted.of)
      *cell++ = costs[row * numColumns + column];
  return entry->second = cells;
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// A tied input is what its output is as well, so that it is up to more than its neighbor.
void CoordinateDescent::findLeaves() {
  leafEdges.assign(graph.numNodes(), kNone);
  std::vector<unsigned> counts(graph.numNodes(), 0);
  for (EdgeId id = 0; id < graph.numEdges(); ++id)
    for (NodeId node : {graph.edge(id).producer, graph.edge(id).consumer})
      leafEdges[node] = ++counts[node] == 1 ? id : EdgeId(kNone);
  for (auto [input, output] : graph.getProblem().getTies())
    for (NodeId node : {graph.inputNode(input), graph.nodeOfOutput(output)})
      if (node != kNone)
        leafEdges[node] = kNone;
}

/// True if it is not a variable of its own, but a part of what its neighbor costs. Of two leaves one is. Precondition: domains are chosen.
bool CoordinateDescent::isFolded(NodeId node, NodeId kept) const {
  if (node == kept || leafEdges[node] == kNone || domains[domainIds[node]].strategies.size() < 2)
    return false;
  const SearchEdge &edge = graph.edge(leafEdges[node]);
  NodeId other = edge.producer == node ? edge.consumer : edge.producer;
  return domains[domainIds[other]].strategies.size() > 1 &&
         (other == kept || leafEdges[other] == kNone || edge.producer == node);
}

/// Most of what a weight could be is far from what its only reader asks for: what that costs is planned only where it may be the least. Of equal
/// ones the first option counts, as in elimination.
CoordinateDescent::Fold CoordinateDescent::foldLeaf(EdgeId id, bool isProducer) {
  auto [entry, isNew] = (isProducer ? producerFolds : consumerFolds).try_emplace(keyOf(id));
  Fold &fold = entry->second;
  if (!isNew)
    return fold;
  const SearchEdge &edge = graph.edge(id);
  const Domain &own = domains[domainIds[isProducer ? edge.producer : edge.consumer]];
  EdgeEnds ends = endsOf(id);
  const EdgeEnds::Side &mine = isProducer ? ends.made : ends.wanted, &others = isProducer ? ends.wanted : ends.made;
  // Of the options that mean one thing at the edge, the first of those that cost least.
  SmallVector<uint16_t, 24> cheapest(mine.distinct.size(), own.strategies.size());
  for (auto [option, end] : enumerate(mine.of))
    if (uint16_t &known = cheapest[end]; known == own.strategies.size() || own.costs[option] < own.costs[known])
      known = option;
  // What is beyond the present's own cost counts, as in tables.
  int64_t now = costBetween(ends, 0, 0);
  SmallVector<std::pair<int64_t, uint16_t>, 24> least, bounds;
  for (unsigned other = 0; other < others.distinct.size(); ++other) {
    bounds.clear();
    for (auto [end, option] : enumerate(cheapest)) {
      unsigned made = isProducer ? end : other, wanted = isProducer ? other : end;
      const EdgeEnds::End &lhs = ends.made.distinct[made], &rhs = ends.wanted.distinct[wanted];
      int64_t bound = rhs.isTwin ? 0 : objective.leastCostOfEdge(ends.shape, lhs.state, rhs.state, ends.traits);
      bounds.push_back({own.costs[option] + aboveNow(bound, now), end});
    }
    // In order of what they cost at least: those behind the first that is above the best so far are not asked for.
    llvm::sort(bounds);
    std::pair<int64_t, uint16_t> best = {kForbidden, 0};
    for (auto [bound, end] : bounds) {
      if (bound > best.first)
        break;
      int64_t cost = aboveNow(isProducer ? costBetween(ends, end, other) : costBetween(ends, other, end), now);
      if (cost < kForbidden)
        best = std::min(best, {std::min(own.costs[cheapest[end]] + cost, kForbidden), cheapest[end]});
    }
    least.push_back(best);
  }
  fold.cells = arena.Allocate<int64_t>(others.of.size());
  fold.best = arena.Allocate<uint16_t>(others.of.size());
  for (auto [option, end] : enumerate(others.of))
    std::tie(fold.cells[option], fold.best[option]) = least[end];
  return fold;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

CoordinateDescent::UnitDomains &CoordinateDescent::domainsFor(const DescentUnit &unit) {
  for (UnitDomains &known : units)
    if (known.groups == unit.groups)
      return known;
  UnitDomains &made = units.emplace_back();
  made.groups = unit.groups;
  for (const AtomList &group : unit.groups)
    made.atoms |= maskOf(group);
  return made;
}

void CoordinateDescent::chooseDomains(const DescentUnit &unit, UnitDomains &ofUnit) {
  domainIds.resize(graph.numNodes());
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    domainIds[node] = domainOf(node, unit, ofUnit);
}

/// Writes down the problem of one pass: a variable per node with two strategies or more, but for leaves other than `kept`.
void CoordinateDescent::prepare(NodeId kept) {
  variables.assign(graph.numNodes(), kNoVariable);
  nodesOfVariables.clear();
  domainSizes.clear();
  terms.clear();
  folded.clear();
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    const Domain &domain = domains[domainIds[node]];
    if (domain.strategies.size() < 2 || isFolded(node, kept))
      continue;
    variables[node] = domainSizes.size();
    terms.push_back({variables[node], kNoVariable, domain.costs.data()});
    nodesOfVariables.push_back(node);
    domainSizes.push_back(domain.strategies.size());
  }
  for (EdgeId id = 0; id < graph.numEdges(); ++id) {
    auto [producer, consumer] = std::pair(graph.edge(id).producer, graph.edge(id).consumer);
    uint32_t from = variables[producer], to = variables[consumer];
    if (from == kNoVariable && to == kNoVariable)
      continue;
    bool isProducer = leafEdges[producer] == id && isFolded(producer, kept);
    if (isProducer || (leafEdges[consumer] == id && isFolded(consumer, kept))) {
      Fold fold = foldLeaf(id, isProducer);
      folded.push_back({isProducer ? producer : consumer, fold});
      terms.push_back({isProducer ? to : from, kNoVariable, fold.cells});
      continue;
    }
    // Where one end is fixed, the table is a row of the other's strategies either way.
    if (from == kNoVariable || to == kNoVariable)
      terms.push_back({from == kNoVariable ? to : from, kNoVariable, edgeTable(id)});
    else
      terms.push_back({from, to, edgeTable(id)});
  }
  for (auto [input, output] : graph.getProblem().getTies())
    addTie(graph.inputNode(input), graph.nodeOfOutput(output));
}

/// What the next call finds as an input is in the state in which this one returns it.
void CoordinateDescent::addTie(NodeId input, NodeId output) {
  if (input == kNone || output == kNone)
    return;
  uint32_t from = variables[input], to = variables[output];
  if (from == kNoVariable && to == kNoVariable)
    return;
  const Domain &stored = domains[domainIds[input]], &returned = domains[domainIds[output]];
  auto [entry, isNew] = tieTables.try_emplace({domainIds[input], domainIds[output]}, nullptr);
  if (isNew) {
    int64_t *cell = arena.Allocate<int64_t>(stored.strategies.size() * returned.strategies.size());
    entry->second = cell;
    for (StrategyId strategy : stored.strategies)
      for (StrategyId other : returned.strategies)
        *cell++ = strategies.resultState(strategy, 0) == strategies.operandState(other, 0) ? 0 : kForbidden;
  }
  assert(entry->second[0] == 0 && "a search begins with ties that hold, and keeps them");
  if (from == kNoVariable || to == kNoVariable)
    terms.push_back({from == kNoVariable ? to : from, kNoVariable, entry->second});
  else
    terms.push_back({from, to, entry->second});
}

/// Of two axes there are many options, of which many are dominated, and mostly nothing is better: that is shown first. Where it cannot be, as
/// in steps of training, one try has to do.
Minimum CoordinateDescent::minimizeUnit(const DescentUnit &unit) {
  std::optional<Minimum> exact;
  if (unit.groups.size() > 1)
    exact = minimizeUndominated(domainSizes, terms, kMostCellsOfPair);
  if (exact && exact->total >= 0)
    return *exact;
  Minimum minimum = minimize(domainSizes, terms);
  if (minimum.frozen.empty())
    return minimum;
  if (unit.groups.size() > 1)
    return exact ? *exact : minimum;
  return improve(domainSizes, terms, std::move(minimum));
}

int64_t CoordinateDescent::descend(const DescentUnit &unit) {
  UnitDomains &ofUnit = domainsFor(unit);
  chooseDomains(unit, ofUnit);
  if (domainIds == ofUnit.settled)
    return 0;
  // Another way down may come by here again.
  for (const UnitDomains::Step &step : ofUnit.steps)
    if (domainIds == step.from) {
      present = step.to;
      return step.saved;
    }
  prepare();
  if (domainSizes.empty())
    return 0;
  Minimum minimum = minimizeUnit(unit);
  // All options 0 cost 0, so that a negative minimum is an improvement and nothing else is.
  if (minimum.total >= 0) {
    ofUnit.settled = domainIds;
    return 0;
  }
  for (auto [node, option] : zip(nodesOfVariables, minimum.options))
    present[node] = domains[domainIds[node]].strategies[option];
  // Leaves follow: each does what is the least beside what its neighbor now does.
  for (auto [leaf, fold] : folded) {
    const SearchEdge &edge = graph.edge(leafEdges[leaf]);
    uint16_t option = minimum.options[variables[edge.producer == leaf ? edge.consumer : edge.producer]];
    present[leaf] = domains[domainIds[leaf]].strategies[fold.best[option]];
  }
  ofUnit.steps.push_back({domainIds, present, -minimum.total});
  return -minimum.total;
}

/// For the trace: each strategy of the domain with all neighbors as they are.
std::vector<CostedStrategy> CoordinateDescent::listCandidates(NodeId node) const {
  const Domain &domain = domains[domainIds[node]];
  std::vector<CostedStrategy> candidates;
  for (auto [strategy, nodeCost] : zip(domain.strategies, domain.nodeCosts)) {
    int64_t reshards = 0, inside = strategies[strategy].innerUnits;
    auto add = [&](int64_t cost) { reshards = std::min(reshards + cost, kForbidden); };
    for (auto [index, edge] : enumerate(graph.inEdges(node)))
      add(costOfEdge(graph.node(node).firstIn + index, present[edge.producer], strategy));
    for (EdgeId id : graph.outEdges(node))
      add(costOfEdge(id, strategy, present[graph.edge(id).consumer]));
    candidates.push_back({strategy, nodeCost.cost - inside, inside, reshards});
  }
  // Of equal ones the present strategy comes first.
  auto key = [&](const CostedStrategy &candidate) {
    return std::tuple(candidate.total(), candidate.strategy != present[node], candidate.strategy);
  };
  llvm::sort(candidates, [&](const CostedStrategy &lhs, const CostedStrategy &rhs) { return key(lhs) < key(rhs); });
  return candidates;
}

std::optional<Alternative> CoordinateDescent::costOfChange(const DescentUnit &unit, NodeId node,
                                                           llvm::function_ref<bool(StrategyId)> same) {
  chooseDomains(unit, domainsFor(unit));
  prepare(/*kept=*/node);
  if (variables[node] == kNoVariable)
    return std::nullopt;
  std::vector<int64_t> notNow;
  for (StrategyId strategy : domains[domainIds[node]].strategies)
    notNow.push_back(same(strategy) ? kForbidden : 0);
  terms.push_back({variables[node], kNoVariable, notNow.data()});
  Minimum minimum = minimize(domainSizes, terms);
  // A sum that ends at forbidden may have been lowered by what came after.
  if (minimum.total >= kForbidden / 2)
    return std::nullopt;
  return Alternative{minimum.total, domains[domainIds[node]].strategies[minimum.options[variables[node]]]};
}

int64_t CoordinateDescent::costAlone(NodeId node, StrategyId strategy) const {
  StrategyId now = present[node];
  int64_t nodeCost =
      objective.costOfNode(profiles[node], strategy).cost - objective.costOfNode(profiles[node], now).cost;
  auto addEdge = [&](EdgeId id, bool isProducer) {
    StrategyId other = present[isProducer ? graph.edge(id).consumer : graph.edge(id).producer];
    int64_t more = isProducer ? costOfEdge(id, strategy, other) - costOfEdge(id, now, other)
                              : costOfEdge(id, other, strategy) - costOfEdge(id, other, now);
    nodeCost = std::clamp(nodeCost + more, -kForbidden, kForbidden);
  };
  for (size_t index = 0; index < graph.inEdges(node).size(); ++index)
    addEdge(graph.node(node).firstIn + index, /*isProducer=*/false);
  for (EdgeId id : graph.outEdges(node))
    addEdge(id, /*isProducer=*/true);
  return nodeCost;
}

int64_t CoordinateDescent::total() const {
  llvm::DenseMap<uint64_t, NodeCost> known;
  std::vector<NodeCost> nodeCosts(graph.numNodes());
  int64_t sum = 0;
  auto add = [&](int64_t cost) { sum = std::min(sum + cost, kForbidden); };
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    auto [entry, isNew] = known.try_emplace(uint64_t(profiles[node]) << 32 | present[node]);
    if (isNew)
      entry->second = objective.costOfNode(profiles[node], present[node]);
    nodeCosts[node] = entry->second;
    add(nodeCosts[node].cost);
  }
  for (EdgeId id = 0; id < graph.numEdges(); ++id) {
    const SearchEdge &edge = graph.edge(id);
    add(costOfEdge(edge, present[edge.producer], present[edge.consumer], nodeCosts[edge.producer].surcharge,
                   nodeCosts[edge.consumer].surcharge, traitsOf(id)));
  }
  return sum;
}
