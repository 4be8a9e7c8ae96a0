//===- PartialCandidates.cpp - where values may be partial ----------------===//
//
// An annotation for a partial value has no factor to flow along. It goes
//
//   backward   through ops that are linear in an operand, to those that reduce: their reduced factors take its atoms
//   forward    through linear ops, where the operands next to it had better be partial too (a fallback)
//
// Both remember per node and kind what has come, so that many annotations together walk the graph once.
//
//===----------------------------------------------------------------------===//
#include "Candidates.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Lets an annotation for a partial value reach the factors whose split makes it partial.
void Candidates::seedPartial(NodeId node) {
  const Annotation *annotation = graph.node(node).annotation;
  if (!annotation || !annotation->isPartial())
    return;
  markParts(annotation->partial);
  for (const SearchEdge &edge : graph.inEdges(node))
    wantPartial(edge.producer, node);
}

/// The result of `producer` had better be partial as `annotated` is: backward through linear ops.
void Candidates::wantPartial(NodeId producer, NodeId annotated) {
  const Annotation &annotation = *graph.node(annotated).annotation;
  std::vector<AtomMask> &known = wantedPartials[static_cast<unsigned>(annotation.partialKind)];
  known.resize(graph.numNodes(), 0);
  SmallVector<std::pair<NodeId, AtomMask>> pending;
  auto reach = [&](NodeId node, AtomMask atoms) {
    atoms &= ~known[node];
    known[node] |= atoms;
    NodeKind kind = graph.node(node).kind;
    if (atoms && (kind == NodeKind::Op || kind == NodeKind::Hub))
      pending.push_back({node, atoms});
  };
  reach(producer, maskOf(annotation.partial));
  while (!pending.empty()) {
    NodeId node = pending.back().first;
    AtomMask atoms = pending.pop_back_val().second;
    for (const Choice &choice : graph.ruleOf(node).rule->choices) {
      if (choice.partial != annotation.partialKind)
        continue;
      for (FactorId factor : choice.factors)
        forEachAtom(atoms, [&](AtomId atom) { put(node, factor, atom, causeOfPartial(annotated)); });
      for (int32_t operand : choice.partialOperands)
        if (choice.factors.empty() && static_cast<size_t>(operand) < graph.inEdges(node).size())
          reach(graph.inEdges(node)[operand].producer, atoms);
    }
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// True if `node` can leave its result partial of `kind` because operand number `operand` is; `callback` then gets all
/// operands that are partial together with it, for each way to do so.
template <typename Callback>
static bool carriesPartial(const ShardingRule &rule, unsigned operand, ReductionKind kind, Callback callback) {
  bool carries = false;
  for (const Choice &choice : rule.choices)
    if (choice.partial == kind && is_contained(choice.partialOperands, operand)) {
      carries = true;
      for (int32_t other : choice.partialOperands)
        callback(other);
    }
  return carries;
}

/// A value with a partial annotation may be scattered over any dim, or stay so through linear ops: then the operands next to it
/// had better be partial too.
void Candidates::offerWaysOn(NodeId annotated) {
  const Annotation *annotation = graph.node(annotated).annotation;
  if (!annotation || !annotation->isPartial())
    return;
  for (FactorId factor = 0; factor < static_cast<FactorId>(graph.ruleOf(annotated).numFactors()); ++factor)
    for (AtomId atom : annotation->partial)
      put(annotated, factor, atom, causeOfPartial(annotated));
  std::vector<AtomMask> &known = carriedPartials[static_cast<unsigned>(annotation->partialKind)];
  known.resize(graph.numNodes(), 0);
  AtomMask atoms = maskOf(annotation->partial);
  SmallVector<NodeId> pending{annotated};
  while (!pending.empty())
    for (EdgeId id : graph.outEdges(pending.pop_back_val())) {
      const SearchEdge &edge = graph.edge(id);
      NodeKind kind = graph.node(edge.consumer).kind;
      if ((kind != NodeKind::Op && kind != NodeKind::Hub) || !(atoms & ~known[edge.consumer]))
        continue;
      ArrayRef<SearchEdge> edges = graph.inEdges(edge.consumer);
      auto want = [&](size_t operand) {
        if (operand < edges.size())
          wantPartial(edges[operand].producer, annotated);
      };
      if (!carriesPartial(*graph.ruleOf(edge.consumer).rule, edge.operand, annotation->partialKind, want))
        continue;
      known[edge.consumer] |= atoms;
      pending.push_back(edge.consumer);
    }
  flow();
}

//===----------------------------------------------------------------------===//
// Where partial values arrive
//===----------------------------------------------------------------------===//

/// Atoms over which at least one of the operands that a choice keeps partial may be partial. Making them all partial
/// would be possible too, but never saves anything.
Candidates::PartialAtoms Candidates::arrivingPartials(NodeId node, const Choice &choice) const {
  PartialAtoms arriving;
  ArrayRef<SearchEdge> edges = graph.inEdges(node);
  for (int32_t operand : choice.partialOperands) {
    if (static_cast<size_t>(operand) >= edges.size())
      continue;
    const PartialAtoms &there = partials[edges[operand].producer][static_cast<unsigned>(*choice.partial)];
    arriving.base |= there.base;
    arriving.all |= there.all;
  }
  return arriving;
}

/// One pass forward: edges go from lower to higher nodes.
void Candidates::findPartials() {
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    partials[node] = {};
    NodeKind kind = graph.node(node).kind;
    if (const Annotation *annotation = graph.node(node).annotation) {
      PartialAtoms &mine = partials[node][static_cast<unsigned>(annotation->partialKind)];
      mine.base = mine.all = maskOf(annotation->partial);
    }
    if (kind != NodeKind::Op && kind != NodeKind::Hub)
      continue;
    for (auto [index, choice] : enumerate(graph.ruleOf(node).rule->choices)) {
      if (!choice.partial)
        continue;
      auto [inBase, inAll] = allowed(node, index);
      PartialAtoms &mine = partials[node][static_cast<unsigned>(*choice.partial)];
      mine.base |= inBase;
      mine.all |= inAll;
    }
  }
}
