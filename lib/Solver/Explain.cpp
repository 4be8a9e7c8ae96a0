//===- Explain.cpp - why, and at what cost --------------------------------===//
//
// Causes are factors of the search graph: a chain from one to the next ends where an annotation says it. Hubs are passed over,
// except where the chain begins.
//
//===----------------------------------------------------------------------===//
#include "Search.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

std::vector<CauseLink> Solver::Search::explain(NodeId node, FactorId factor, AtomId atom) const {
  std::vector<CauseLink> chain;
  if (!(candidates.all(node, factor) & maskOf(atom)))
    return chain;
  while (true) {
    const SearchNode &info = graph.node(node);
    uint32_t from = candidates.cause(node, factor, atom);
    bool isLast = from >= graph.numFactors(); // An annotation, here or for a partial value.
    NodeId next = isLast ? kNone : graph.nodeOfFactor(from);
    CauseLink link;
    link.id = info.id;
    link.factor = factor;
    link.isFallback = (next == node || (isLast && from != kNone)) && !(candidates.base(node, factor) & maskOf(atom));
    link.kind = info.kind == NodeKind::Op       ? CauseLink::Kind::Op
                : info.kind == NodeKind::Output ? CauseLink::Kind::Output
                                                : CauseLink::Kind::Value;
    if (info.kind != NodeKind::Op)
      link.factor = graph.dimOfFactor(node, factor);
    if (info.kind != NodeKind::Hub || chain.empty())
      chain.push_back(link);
    if (from == candidates.causeOfFree()) {
      chain.push_back({CauseLink::Kind::Free, kNone, 0, false});
      return chain;
    }
    if (isLast) {
      const Annotation *annotation = from == kNone ? info.annotation : graph.node(from - graph.numFactors()).annotation;
      chain.push_back({CauseLink::Kind::Annotation, annotation ? annotation->cause : kNone, 0, false});
      return chain;
    }
    factor = from - graph.node(next).firstFactor;
    node = next;
  }
}

std::optional<NextBest> Solver::Search::findNextBest(ValueId value, AtomId atom) {
  const AtomMesh &mesh = problem.getMesh();
  DescentUnit unit{{mesh.atomsOf(mesh.axisOf(atom))}, /*withFallbacks=*/true};
  std::optional<NextBest> best;
  auto consider = [&](NodeId node, function_ref<bool(StrategyId)> isSame, function_ref<StateId(StrategyId)> stateOf) {
    std::optional<Alternative> change = descent->costOfChange(unit, node, isSame);
    int64_t bytes = change ? options.costs.toBytes(std::max<int64_t>(0, change->cost)) : 0;
    if (change && (!best || bytes < best->bytes))
      best = NextBest{bytes, decision.states[stateOf(change->strategy)]};
  };
  OpId op = problem.producer(value);
  if (op != kNone && !problem.isConstraint(op)) {
    NodeId node = graph.nodeOfOp(op);
    StrategyId now = descent->getPresent(node);
    consider(
        node, [&](StrategyId strategy) { return strategy == now; },
        [&](StrategyId strategy) { return strategies.resultState(strategy, problem.resultIndex(value)); });
  }
  // A free input is stored as its users take it; that of no user has no node.
  NodeId input = graph.inputNode(value);
  if (input != kNone && !problem.annotation(value))
    for (EdgeId id : graph.outEdges(input)) {
      const SearchEdge &edge = graph.edge(id);
      auto taken = [&](StrategyId strategy) { return strategies.operandState(strategy, edge.operand); };
      StateId now = taken(descent->getPresent(edge.consumer));
      consider(edge.consumer, [&](StrategyId strategy) { return taken(strategy) == now; }, taken);
    }
  return best;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

AtomList Solver::getReached(OpId op, FactorId factor) const {
  AtomList atoms;
  const Search &search = getSearch();
  forEachAtom(search.candidates.base(search.graph.nodeOfOp(op), factor), [&](AtomId atom) { atoms.push_back(atom); });
  return atoms;
}

std::vector<CauseLink> Solver::explain(OpId op, FactorId factor, AtomId atom) const {
  return getSearch().explain(getSearch().graph.nodeOfOp(op), factor, atom);
}

std::vector<CauseLink> Solver::explainValue(ValueId value, unsigned dim, AtomId atom) const {
  const Search &search = getSearch();
  auto [node, result] = search.graph.portOf(value);
  if (node == kNone)
    return {};
  for (FactorId factor : search.graph.ruleOf(node).rule->results[result][dim])
    if (std::vector<CauseLink> chain = search.explain(node, factor, atom); !chain.empty())
      return chain;
  return {};
}

std::optional<NextBest> Solver::findNextBest(ValueId value, AtomId atom) const {
  return getSearch().findNextBest(value, atom);
}
