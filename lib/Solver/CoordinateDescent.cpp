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

/// What a strategy means at one end of an edge. Strategies of a domain differ in what else they do, and few in that.
struct CoordinateDescent::EdgeEnds {
  struct End {
    StateId state;
    Surcharge surcharge;
    bool isTwin;
    bool operator==(const End &other) const {
      return state == other.state && surcharge == other.surcharge && isTwin == other.isTwin;
    }
  };

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

/// The costs of an edge for all strategies in the domains at its ends, less what it costs at present.
const int64_t *CoordinateDescent::edgeTable(EdgeId id) {
  const SearchEdge &edge = graph.edge(id);
  DomainId from = domainIds[edge.producer], to = domainIds[edge.consumer];
  EdgeTraits traits = traitsOf(id);
  uint64_t ends = uint64_t(from) << 32 | to;
  uint64_t place = uint64_t(edge.result) << 48 | uint64_t(edge.operand) << 32 |
                   uint64_t(edge.twin) << EdgeTraits::kBits | traits.getBits();
  auto [entry, isNew] = tables.try_emplace({ends, place}, nullptr);
  if (!isNew)
    return entry->second;
  const Domain &producer = domains[from], &consumer = domains[to];
  EdgeEnds made, wanted;
  for (auto [strategy, nodeCost] : zip(producer.strategies, producer.nodeCosts))
    made.add({strategies.resultState(strategy, edge.result), nodeCost.surcharge, false});
  for (auto [strategy, nodeCost] : zip(consumer.strategies, consumer.nodeCosts))
    wanted.add({strategies.operandState(strategy, edge.operand), nodeCost.surcharge, isServedByTwin(edge, strategy)});
  ShapeId shape = strategies.signatureOf(consumer.strategies.front()).operands[edge.operand];
  SmallVector<int64_t, 64> costs;
  for (const EdgeEnds::End &lhs : made.distinct)
    for (const EdgeEnds::End &rhs : wanted.distinct)
      costs.push_back(
          rhs.isTwin ? 0 : objective.costOfEdge(shape, lhs.state, rhs.state, lhs.surcharge, rhs.surcharge, traits));
  int64_t now = costs[0] == kForbidden ? 0 : costs[0];
  for (int64_t &cost : costs)
    cost = cost == kForbidden ? kForbidden : cost - now;
  int64_t *cells = arena.Allocate<int64_t>(producer.strategies.size() * consumer.strategies.size()), *cell = cells;
  for (unsigned row : made.of)
    for (unsigned column : wanted.of)
      *cell++ = costs[row * wanted.distinct.size() + column];
  return entry->second = cells;
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

/// Writes down the problem of one pass: a variable per node with two strategies or more.
void CoordinateDescent::prepare() {
  variables.assign(graph.numNodes(), kNoVariable);
  nodesOfVariables.clear();
  domainSizes.clear();
  terms.clear();
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    const Domain &domain = domains[domainIds[node]];
    if (domain.strategies.size() < 2)
      continue;
    variables[node] = domainSizes.size();
    terms.push_back({variables[node], kNoVariable, domain.costs.data()});
    nodesOfVariables.push_back(node);
    domainSizes.push_back(domain.strategies.size());
  }
  for (EdgeId id = 0; id < graph.numEdges(); ++id) {
    uint32_t from = variables[graph.edge(id).producer], to = variables[graph.edge(id).consumer];
    if (from == kNoVariable && to == kNoVariable)
      continue;
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
    exact = minimizeUndominated(domainSizes, terms, kMostCellsOfPair, &orders);
  if (exact && exact->total >= 0)
    return *exact;
  Minimum minimum = minimize(domainSizes, terms, kMostCells, {}, /*mayFreeze=*/true, &orders);
  if (minimum.frozen.empty())
    return minimum;
  if (unit.groups.size() > 1)
    return exact ? *exact : minimum;
  return improve(domainSizes, terms, std::move(minimum), kMostCells, &orders);
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
  prepare();
  if (variables[node] == kNoVariable)
    return std::nullopt;
  std::vector<int64_t> notNow;
  for (StrategyId strategy : domains[domainIds[node]].strategies)
    notNow.push_back(same(strategy) ? kForbidden : 0);
  terms.push_back({variables[node], kNoVariable, notNow.data()});
  Minimum minimum = minimize(domainSizes, terms, kMostCells, {}, /*mayFreeze=*/true, &orders);
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
