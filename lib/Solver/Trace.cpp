//===- Trace.cpp - what was chosen among what, and why --------------------===//
//
//   pass of "x", annotations only: saves 544.5 bytes
//     nn.einsum /mlp/MatMul ([i,j],[j,k])->([i,k]) {i=8,j=16,k=32}
//       > x: cut j    32.0 bytes: op 32.0, inside 0.0, reshards 0.0    [{}, {"x"}], [{"x"}, {}] -> [{}, {}] partial ..
//         x: none    576.5 bytes: op 64.0, inside 0.0, reshards 512.5    [{}, {}], [{}, {}] -> [{}, {}]
//
// The candidate that was chosen is marked; the next is the runner-up. Costs are those of the node alone, with all its
// neighbors as this pass left them: with these, what was chosen costs least.
//
//===----------------------------------------------------------------------===//
#include "Trace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Format.h"

using namespace cleave::spmd;
using namespace llvm;

namespace {
class DescentTrace {
public:
  DescentTrace(const SolverOptions &options, const SearchGraph &graph, const StateTable &states,
               const Strategies &strategies)
      : trace(options.trace), costs(options.costs), os(*trace.os), graph(graph), mesh(graph.getProblem().getMesh()),
        states(states), strategies(strategies) {}

  void printHead(const DescentUnit &unit, int64_t saved);
  void printNode(NodeId node);
  void printCandidate(const DescentUnit &unit, const CostedStrategy &candidate, bool isChosen);

private:
  void printBytes(int64_t units);
  void printAtoms(ArrayRef<AtomId> atoms);
  void printChoices(ArrayRef<AtomId> group, StrategyId strategy);
  void printStates(StrategyId strategy);

  const SolverTrace &trace;
  const CostModel &costs;
  raw_ostream &os;
  const SearchGraph &graph;
  const AtomMesh &mesh;
  const StateTable &states;
  const Strategies &strategies;
};
} // namespace

/// As bytes over the fastest link, with a digit more than reports have: ties are broken by fractions of one.
void DescentTrace::printBytes(int64_t units) {
  if (units >= kForbidden)
    os << "impossible";
  else
    os << format("%.1f", static_cast<double>(units) / costs.unitsPerToldByte());
}

void DescentTrace::printAtoms(ArrayRef<AtomId> atoms) {
  interleave(
      mesh.subAxesOf(atoms), os,
      [&](const SubAxis &subAxis) {
        os << trace.axisNames[subAxis.axis];
        if (subAxis.size != mesh.axisSize(subAxis.axis))
          os << ":(" << subAxis.preSize << ')' << subAxis.size;
      },
      "+");
}

void DescentTrace::printHead(const DescentUnit &unit, int64_t saved) {
  os << "pass of ";
  interleave(unit.groups, os, [&](const AtomList &group) { printAtoms(group); }, " and ");
  os << (unit.withFallbacks ? ", ways round conflicts too" : ", annotations only");
  if (saved == 0) {
    os << ": nothing is better\n";
    return;
  }
  os << ": saves ";
  printBytes(saved);
  os << " bytes\n";
}

void DescentTrace::printNode(NodeId id) {
  const SearchNode &node = graph.node(id);
  switch (node.kind) {
  case NodeKind::Op:
    os << "  " << trace.opName(node.id);
    break;
  case NodeKind::Input:
    os << "  how input " << trace.valueName(node.id) << " is stored";
    break;
  case NodeKind::Hub:
    os << "  how the users of " << trace.valueName(node.id) << " share it";
    break;
  case NodeKind::Pinned:
    os << "  annotated value " << trace.valueName(node.id);
    break;
  case NodeKind::Output:
    os << "  output " << trace.valueName(graph.valueOf(id));
    break;
  }
  os << ' ' << *graph.ruleOf(id).rule << '\n';
}

/// In words for which the rule, printed in the line above, has the letters.
static void printChoice(raw_ostream &os, const Choice &choice) {
  if (choice.isNone())
    os << "none";
  else if (!choice.factors.empty())
    interleave(choice.factors, os << "cut ", [&](FactorId factor) { os << nameOfFactor(factor); }, "+");
  else
    interleave(choice.partialOperands, os << "partial operand ", [&](int32_t operand) { os << operand; }, "+");
}

/// What the atoms of one axis do: all the same, or each by itself.
void DescentTrace::printChoices(ArrayRef<AtomId> group, StrategyId strategy) {
  const ShardingRule &rule = *strategies.signatureOf(strategy).info->rule;
  auto choiceOf = [&](AtomId atom) { return strategies.choices(strategy)[atom]; };
  if (all_equal(map_range(group, choiceOf))) {
    printAtoms(group);
    printChoice(os << ": ", rule.choices[choiceOf(group.front())]);
    return;
  }
  interleaveComma(group, os, [&](AtomId atom) {
    printAtoms(atom);
    printChoice(os << ": ", rule.choices[choiceOf(atom)]);
  });
}

void DescentTrace::printStates(StrategyId strategy) {
  const ShardingRule &rule = *strategies.signatureOf(strategy).info->rule;
  auto print = [&](StateId state) { printState(os, mesh, trace.axisNames, states[state]); };
  interleaveComma(seq<unsigned>(0, rule.operands.size()), os,
                  [&](unsigned index) { print(strategies.operandState(strategy, index)); });
  os << " -> ";
  interleaveComma(seq<unsigned>(0, rule.results.size()), os,
                  [&](unsigned index) { print(strategies.resultState(strategy, index)); });
}

void DescentTrace::printCandidate(const DescentUnit &unit, const CostedStrategy &candidate, bool isChosen) {
  os << (isChosen ? "    > " : "      ");
  interleaveComma(unit.groups, os, [&](const AtomList &group) { printChoices(group, candidate.strategy); });
  os << "    ";
  printBytes(candidate.total());
  os << " bytes: op ";
  printBytes(candidate.op);
  os << ", inside ";
  printBytes(candidate.inside);
  os << ", reshards ";
  printBytes(candidate.reshards);
  os << "    ";
  printStates(candidate.strategy);
  os << '\n';
}

void cleave::spmd::traceDescent(const SolverOptions &options, const SearchGraph &graph, const StateTable &states,
                                const Strategies &strategies, const CoordinateDescent &descent, const DescentUnit &unit,
                                int64_t saved) {
  DescentTrace trace(options, graph, states, strategies);
  trace.printHead(unit, saved);
  // A node with one candidate had nothing to decide, and is most of them.
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    std::vector<CostedStrategy> candidates = descent.listCandidates(node);
    if (candidates.size() < 2)
      continue;
    trace.printNode(node);
    for (const CostedStrategy &candidate : candidates)
      trace.printCandidate(unit, candidate, candidate.strategy == descent.getPresent(node));
  }
}
