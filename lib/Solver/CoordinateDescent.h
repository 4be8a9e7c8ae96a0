//===- CoordinateDescent.h - one axis at a time, exactly --------*- C++ -*-===//
//
// Every node has a present strategy. A pass gives each node a *domain*: its present strategy, and those that differ in what the
// atoms of one axis do; then the best combination of the whole graph is found by elimination, and becomes the present
// if it is better. All costs are taken relative to the present, so a sum below 0 is an improvement.
//
// Domains and the tables of edges between two domains are interned: equal layers share them, and a pass is a few look-ups
// per node.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_COORDINATEDESCENT_H
#define CLEAVE_LIB_SOLVER_COORDINATEDESCENT_H

#include "Launches.h"
#include "Objective.h"
#include "llvm/Support/Allocator.h"

namespace cleave::spmd {

/// What is decided together: the atoms of an axis, of two axes, or some of one.
struct DescentUnit {
  /// One group per axis; atoms of one group prefer to do the same.
  llvm::SmallVector<AtomList, 2> groups;
  /// Offer fallbacks too.
  bool withFallbacks = false;
};

using DomainId = uint32_t;
struct Domain {
  /// The present strategy first.
  llvm::SmallVector<StrategyId, 8> strategies;
  llvm::SmallVector<NodeCost, 8> nodeCosts;
  /// Costs above that of the present strategy.
  llvm::SmallVector<int64_t, 8> costs;
};

/// A list of choice vectors, one behind the other.
class ChoiceVectors {
public:
  explicit ChoiceVectors(llvm::ArrayRef<ChoiceId> first) : length(first.size()), pool(first) {}

  /// Adds a copy of `vector`, as long as the first, and gives it to be changed. Valid until the next one is added; `vector` must be
  /// none of these.
  llvm::MutableArrayRef<ChoiceId> add(llvm::ArrayRef<ChoiceId> vector) {
    pool.append(vector.begin(), vector.end());
    return llvm::MutableArrayRef<ChoiceId>(pool).take_back(length);
  }
  llvm::ArrayRef<ChoiceId> operator[](size_t index) const {
    return llvm::ArrayRef<ChoiceId>(pool).slice(index * length, length);
  }
  size_t size() const { return length == 0 ? 1 : pool.size() / length; }

private:
  size_t length;
  llvm::SmallVector<ChoiceId, 64> pool;
};

/// A strategy that a node could have instead, and what that costs more than the present.
struct Alternative {
  int64_t cost = 0;
  StrategyId strategy = 0;
};

/// A strategy of a domain, and what it costs: computing and the like, what is sent inside, and the reshards around it.
struct CostedStrategy {
  StrategyId strategy;
  int64_t op, inside, reshards;
  int64_t total() const { return reshards >= kForbidden ? kForbidden : op + inside + reshards; }
};

inline EdgeTraits traitsOf(EdgeId edge, const SearchGraph &graph, const Candidates &candidates,
                           const Launches &launches) {
  return {candidates.movesParameter(edge), launches.splitsKernel(edge), launches.movesFirst(edge),
          launches.joinsFirst(edge),       launches.sharesKernel(edge), launches.isKept(graph.edge(edge).producer)};
}

class CoordinateDescent {
public:
  /// `profiles` and `present`, per node, and all else must outlive this. Domains are remembered, so a new sweeper is due
  /// when profiles change.
  CoordinateDescent(const SearchGraph &graph, const Candidates &candidates, const Launches &launches,
                    Strategies &strategies, Objective &objective, llvm::ArrayRef<ProfileId> profiles,
                    std::vector<StrategyId> &present)
      : graph(graph), candidates(candidates), launches(launches), strategies(strategies), objective(objective),
        profiles(profiles), present(present) {}

  /// Makes one pass. Returns by how much the objective fell, in units; 0 if nothing is better than the present.
  int64_t descend(const DescentUnit &unit);
  /// The best strategy of `node` that is not the `same`, if all others follow suit, and how much the objective then rises;
  /// nothing if it has none.
  std::optional<Alternative> costOfChange(const DescentUnit &unit, NodeId node,
                                          llvm::function_ref<bool(StrategyId)> same);
  /// The same if only `node` changes, to a valid strategy.
  int64_t costAlone(NodeId node, StrategyId strategy) const;
  /// The domain that the last pass gave to `node`, counted beside what its neighbors have at present; the least first.
  std::vector<CostedStrategy> listCandidates(NodeId node) const;
  StrategyId getPresent(NodeId node) const { return present[node]; }
  /// The objective at present, at most `kForbidden`.
  int64_t total() const;

private:
  /// (profile, present strategy) -> domain.
  using DomainIndex = llvm::DenseMap<uint64_t, DomainId>;
  /// What passes of the same atoms remember.
  struct UnitDomains {
    llvm::SmallVector<AtomList, 2> groups;
    AtomMask atoms = 0;
    DomainIndex plain, withFallbacks;
    /// The domains of all nodes of which nothing was better than the present.
    std::vector<DomainId> settled;
    /// Those of which something was, and what that is: a search that begins twice may come by one place twice.
    struct Step {
      std::vector<DomainId> from;
      std::vector<StrategyId> to;
      int64_t saved;
    };
    std::vector<Step> steps;
  };

  UnitDomains &domainsFor(const DescentUnit &unit);
  void chooseDomains(const DescentUnit &unit, UnitDomains &ofUnit);
  void prepare();
  Minimum minimizeUnit(const DescentUnit &unit);
  void addTie(NodeId input, NodeId output);
  DomainId domainOf(NodeId node, const DescentUnit &unit, UnitDomains &ofUnit);
  Domain makeDomain(ProfileId profile, StrategyId current, const DescentUnit &unit);
  void addVectors(const Profile &profile, llvm::ArrayRef<ChoiceId> current, llvm::ArrayRef<AtomId> group,
                  bool withFallbacks, ChoiceVectors &vectors) const;
  void addSpreads(const Profile &profile, llvm::ArrayRef<ChoiceId> current, llvm::ArrayRef<AtomId> group,
                  ChoiceVectors &vectors) const;
  int64_t costOfEdge(const SearchEdge &edge, StrategyId from, StrategyId to, Surcharge lhs, Surcharge rhs,
                     EdgeTraits traits) const;
  int64_t costOfEdge(EdgeId edge, StrategyId from, StrategyId to) const;
  bool isServedByTwin(const SearchEdge &edge, StrategyId to) const;
  struct EdgeEnds;
  const int64_t *edgeTable(EdgeId edge);
  EdgeTraits traitsOf(EdgeId edge) const { return spmd::traitsOf(edge, graph, candidates, launches); }

  const SearchGraph &graph;
  const Candidates &candidates;
  const Launches &launches;
  Strategies &strategies;
  Objective &objective;
  llvm::ArrayRef<ProfileId> profiles;
  std::vector<StrategyId> &present;

  std::deque<Domain> domains;
  std::deque<UnitDomains> units;
  /// (domain, domain), (result, operand, traits) -> table.
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, const int64_t *> tables;
  /// (domain of an input, domain of an output) -> table.
  llvm::DenseMap<std::pair<DomainId, DomainId>, const int64_t *> tieTables;
  llvm::BumpPtrAllocator arena;

  // The pass being prepared: per node its domain and variable, and the problem handed to elimination.
  std::vector<DomainId> domainIds;
  std::vector<uint32_t> variables;
  std::vector<NodeId> nodesOfVariables;
  std::vector<uint16_t> domainSizes;
  std::vector<CostTerm> terms;
  /// Passes differ in tables, and mostly not in which nodes share some.
  KnownOrders orders;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_COORDINATEDESCENT_H
