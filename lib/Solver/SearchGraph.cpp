//===- SearchGraph.cpp - the graph that is searched -----------------------===//
//
// Inputs come first, then each op with the hubs of its results, then outputs, so that edges go forward, but for those from
// the end of a loop's body back to the loop. A value's
// *port* is the node and result that its users see: a hub where there is one, else the node that makes it.
//
//===----------------------------------------------------------------------===//
#include "SearchGraph.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// The other way round of what a rule says: for each factor the dims that it stands in.
static void notePlaces(RuleInfo &info, bool isResult, ArrayRef<TensorFactors> tensors) {
  for (auto [tensor, dims] : enumerate(tensors))
    for (auto [dim, factors] : enumerate(dims))
      for (auto [position, factor] : enumerate(factors)) {
        info.hasDimOfSeveral |= position > 0;
        info.places[factor].push_back(
            {isResult, static_cast<uint16_t>(dim), static_cast<uint16_t>(position), static_cast<uint32_t>(tensor)});
      }
}

RuleInfo::RuleInfo(const ShardingRule &rule, const Problem *problem, int32_t evenDim)
    : rule(&rule), places(rule.factorSizes.size()), sharedSplits(rule.factorSizes.size()),
      allowsUneven(rule.factorSizes.size(), true) {
  notePlaces(*this, /*isResult=*/false, rule.operands);
  notePlaces(*this, /*isResult=*/true, rule.results);
  for (auto [number, choice] : enumerate(rule.choices))
    for (FactorId factor : choice.factors)
      if (choice.factors.size() > 1)
        sharedSplits[factor].push_back(number);
  // As `ShardingRule::allowsUneven`, for all factors at once.
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const TensorFactors &dims : *tensors)
      for (const DimFactors &factors : dims)
        for (FactorId factor : factors)
          allowsUneven[factor] = allowsUneven[factor] && factors.size() == 1;
  for (const Regroup &regroup : rule.regroups)
    allowsUneven[regroup.factor] = true;
  for (FactorId factor = 0; factor < static_cast<FactorId>(numFactors()); ++factor) {
    bool pays = is_contained(rule.orderedFactors, factor) ||
                any_of(rule.inner, [&](const InnerCost &cost) { return is_contained(cost.factors, factor); });
    isParallel.push_back(rule.isParallel(factor));
    isCostly.push_back(isParallel.back() && pays);
    singleSplit.push_back(rule.findSingleSplit(factor));
    bool isKeptEven = (problem && problem->isKeptEven(rule.factorSizes[factor])) ||
                      (evenDim >= 0 && any_of(places[factor], [&](const auto &place) { return place.dim == evenDim; }));
    allowsUneven[factor] = allowsUneven[factor] && !isKeptEven;
  }
}

/// The rule of a value's own node: every dim may be split, and the value may be partial with any kind.
uint32_t SearchGraph::identityRule(ArrayRef<int64_t> shape, int32_t evenDim) {
  auto [entry, isNew] = identityIds.try_emplace({shape.vec(), evenDim}, rules.size());
  if (isNew) {
    RuleBuilder builder(1, 1);
    for (int64_t extent : shape) {
      std::optional<FactorId> factor = builder.addParallel(extent);
      builder.operandDim(0, factor).resultDim(0, factor);
    }
    for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min})
      builder.addLinear({0}, kind);
    identities.push_back(std::move(builder.rule));
    rules.emplace_back(identities.back(), &problem, evenDim);
  }
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Nodes and edges
//===----------------------------------------------------------------------===//

NodeId SearchGraph::addNode(NodeKind kind, uint32_t id, uint32_t rule, const Annotation *annotation) {
  nodes.push_back({kind, id, rule, factorCount, static_cast<EdgeId>(edges.size()), annotation});
  factorCount += rules[rule].numFactors();
  return nodes.size() - 1;
}

NodeId SearchGraph::addValueNode(NodeKind kind, ValueId value, const Annotation *annotation) {
  return addNode(kind, value, identityRule(problem.shape(value)), annotation);
}

/// To the node that was made last: edges into a node lie side by side.
void SearchGraph::addEdge(ValueId value, unsigned operand) {
  auto [producer, result] = ports[value];
  // A concat may have thousands of operands.
  constexpr size_t kMostLooked = 16;
  ArrayRef<SearchEdge> before = inEdges(nodes.size() - 1).take_front(kMostLooked);
  const auto *first = find_if(before, [&](const SearchEdge &edge) { return edge.value == value; });
  unsigned twin = first == before.end() ? operand : first->operand;
  edges.push_back({producer, static_cast<NodeId>(nodes.size() - 1), value, static_cast<uint32_t>(result),
                   static_cast<uint32_t>(operand), static_cast<uint32_t>(twin)});
}

void SearchGraph::countUses() {
  useCounts.assign(problem.numValues(), 0);
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (ValueId operand : problem.operands(op))
      ++useCounts[operand];
  for (OutputId output = 0; output < problem.numOutputs(); ++output)
    ++useCounts[problem.outputValue(output)];
}

/// Any user of an input without an annotation splits it for nothing, so its users do not share anything; unless it is decided how it is
/// stored.
void SearchGraph::addInput(ValueId value) {
  const Annotation *annotation = problem.annotation(value);
  NodeId node =
      addNode(NodeKind::Input, value, identityRule(problem.shape(value), problem.evenDimOfInput(value)), annotation);
  inputNodes[value] = node;
  ports[value] = {node, 0};
  if (annotation || problem.isStorageDecided(value))
    addHubBehind(value);
}

/// Lets several users of a value whose state is annotated, or decided before theirs, share what they make of it. A replicated annotation is
/// split for nothing.
void SearchGraph::addHubBehind(ValueId value) {
  const Annotation *annotation = problem.annotation(value);
  bool isSplit = !annotation || any_of(annotation->dims, [](const AnnotationDim &dim) { return !dim.atoms.empty(); });
  if (useCounts[value] < 2 || (!isSplit && !annotation->isPartial()))
    return;
  NodeId hub = addValueNode(NodeKind::Hub, value);
  addEdge(value, 0);
  ports[value] = {hub, 0};
}

/// Makes a result of `producer` known to its users.
void SearchGraph::publish(ValueId value, NodeId producer, unsigned result) {
  ports[value] = {producer, result};
  const Annotation *annotation = problem.annotation(value);
  if (!annotation && useCounts[value] < 2)
    return;
  NodeId node = addValueNode(annotation ? NodeKind::Pinned : NodeKind::Hub, value, annotation);
  addEdge(value, 0);
  ports[value] = {node, 0};
  if (annotation)
    addHubBehind(value);
}

void SearchGraph::addOp(OpId op) {
  if (problem.isConstraint(op)) {
    ValueId operand = problem.operands(op).front(), result = problem.results(op).front();
    opNodes[op] = addValueNode(NodeKind::Pinned, result, problem.annotation(result));
    addEdge(operand, 0);
    ports[result] = {opNodes[op], 0};
    addHubBehind(result);
    return;
  }
  NodeId node = opNodes[op] = addNode(NodeKind::Op, op, problem.ruleOf(op));
  for (auto [index, operand] : enumerate(problem.operands(op)))
    addEdge(operand, index);
  for (auto [index, result] : enumerate(problem.results(op)))
    publish(result, node, index);
}

/// By counting, in two passes: edges out of a node lie side by side in a list of numbers.
void SearchGraph::indexOutgoing() {
  firstOut.assign(nodes.size() + 1, 0);
  for (const SearchEdge &edge : edges)
    ++firstOut[edge.producer + 1];
  for (size_t node = 0; node < nodes.size(); ++node)
    firstOut[node + 1] += firstOut[node];
  outgoing.resize(edges.size());
  std::vector<uint32_t> next(firstOut.begin(), firstOut.end() - 1);
  for (EdgeId edge = 0; edge < edges.size(); ++edge)
    outgoing[next[edges[edge].producer]++] = edge;
}

SearchGraph::SearchGraph(const Problem &problem)
    : problem(problem), opNodes(problem.numOps(), kNone), outputNodes(problem.numOutputs(), kNone),
      inputNodes(problem.numValues(), kNone), ports(problem.numValues(), {kNone, 0}) {
  for (RuleId rule = 0; rule < problem.numRules(); ++rule)
    rules.emplace_back(problem.rule(rule), &problem);
  nodes.reserve(problem.numOps() + problem.numValues());
  edges.reserve(problem.numOperands() + problem.numValues());
  countUses();
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (problem.producer(value) == kNone && useCounts[value] > 0)
      addInput(value);
  for (OpId op = 0; op < problem.numOps(); ++op)
    addOp(op);
  // What an op takes that is made behind it, as a loop does from the end of its body: its node is known by now. Elimination asks
  // for no order of nodes; passes that go forward see nothing yet at the other end, and a loop has no choice that depends on it.
  for (SearchEdge &edge : edges)
    if (edge.producer == kNone) {
      auto [producer, result] = ports[edge.value];
      edge.producer = producer;
      edge.result = static_cast<uint32_t>(result);
    }
  for (OutputId output = 0; output < problem.numOutputs(); ++output) {
    ValueId value = problem.outputValue(output);
    const Annotation *annotation = problem.outputAnnotation(output);
    if (!annotation && problem.annotation(value)) // Returned as asked for the value itself: nothing to decide.
      continue;
    uint32_t rule = identityRule(problem.shape(value), problem.evenDimOfOutput(output));
    outputNodes[output] = addNode(NodeKind::Output, output, rule, annotation);
    addEdge(value, 0);
  }
  indexOutgoing();
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// Factors are numbered node by node, so that the node is found by bisection.
NodeId SearchGraph::nodeOfFactor(uint32_t factor) const {
  auto *it = upper_bound(nodes, factor, [](uint32_t number, const SearchNode &node) {
               return number < node.firstFactor;
             }).base();
  return static_cast<NodeId>(it - nodes.data()) - 1;
}

ValueId SearchGraph::valueOf(NodeId id) const {
  const SearchNode &node = nodes[id];
  return node.kind == NodeKind::Output ? problem.outputValue(node.id) : node.id;
}

std::pair<NodeId, unsigned> SearchGraph::sharedAt(ValueId value) const {
  auto [port, result] = ports[value];
  if (nodes[port].kind == NodeKind::Hub)
    if (const SearchEdge &edge = inEdges(port).front(); nodes[edge.producer].kind == NodeKind::Pinned)
      return {edge.producer, edge.result};
  return {port, result};
}

unsigned SearchGraph::dimOfFactor(NodeId id, FactorId factor) const { return ruleOf(id).places[factor].front().dim; }
