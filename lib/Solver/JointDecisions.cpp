//===- JointDecisions.cpp - decisions in joint tables ---------------------===//
//
// Ops and decided inputs have the options that a decision says; hubs and outputs, which are between them, are as is least expensive.
//
//===----------------------------------------------------------------------===//
#include "JointBuilder.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// What is not placed has one value, which one node makes: it is a forest, and its minimum exact. Costs of children are added to those
/// of their makers, from the last node to the first, and options are read forwards.
void JointTables::Builder::complete(std::vector<uint16_t> &options, ArrayRef<char> isPlaced) const {
  std::vector<std::vector<int64_t>> costs(options.size());
  std::vector<const JointEdge *> maker(options.size(), nullptr);
  for (size_t variable = 0; variable < options.size(); ++variable)
    if (!isPlaced[variable])
      costs[variable] = tables.graph.variables[variable]->costs;
  for (const JointEdge &edge : tables.graph.edges) {
    if (!isPlaced[edge.to] && isPlaced[edge.from])
      for (auto [option, cost] : llvm::enumerate(costs[edge.to]))
        cost = std::min(cost + edge.getCell(options[edge.from], option), kForbidden);
    else if (!isPlaced[edge.to])
      maker[edge.to] = &edge;
    else if (!isPlaced[edge.from])
      for (auto [option, cost] : llvm::enumerate(costs[edge.from]))
        cost = std::min(cost + edge.getCell(option, options[edge.to]), kForbidden);
  }
  auto best = [&](const JointEdge &edge, uint16_t from) {
    std::pair<int64_t, uint16_t> least{kForbidden, 0};
    for (auto [option, cost] : llvm::enumerate(costs[edge.to]))
      least = std::min(least, {std::min(cost + edge.getCell(from, option), kForbidden), static_cast<uint16_t>(option)});
    return least;
  };
  for (size_t variable = options.size(); variable-- > 0;)
    if (const JointEdge *edge = maker[variable])
      for (auto [option, cost] : llvm::enumerate(costs[edge->from]))
        cost = std::min(cost + best(*edge, option).first, kForbidden);
  for (size_t variable = 0; variable < options.size(); ++variable)
    if (!isPlaced[variable])
      options[variable] =
          maker[variable] ? best(*maker[variable], options[maker[variable]->from]).second
                          : std::min_element(costs[variable].begin(), costs[variable].end()) - costs[variable].begin();
}

/// Ops are found by what their atoms do, inputs by the state that they are stored in. The decision may be of a problem with other annotations,
/// whose graph is another one: ops and values have the same numbers.
std::optional<std::vector<uint16_t>> JointTables::Builder::place(const Decision &decision) {
  size_t numAtoms = problem.getMesh().numAtoms();
  std::vector<uint16_t> options(tables.graph.variables.size(), 0);
  std::vector<char> isPlaced(tables.graph.variables.size(), false);
  for (NodeId node = 0; node < search.graph.numNodes(); ++node) {
    const SearchNode &info = search.graph.node(node);
    const JointOptions &of = optionsOf(node);
    isPlaced[node] = of.isRelaxed || of.domain.size() == 1;
    if (isPlaced[node])
      continue;
    if (info.kind == NodeKind::Op) {
      ArrayRef<ChoiceId> choices = ArrayRef(decision.choices).slice(info.id * numAtoms, numAtoms);
      auto found = of.optionOf.find(search.strategies.strategy(search.signatures[node], choices));
      if (found == of.optionOf.end())
        return std::nullopt;
      options[node] = found->second;
      isPlaced[node] = true;
    } else if (info.kind == NodeKind::Input) {
      StateId state = search.decision.states.intern(decision.states[decision.valueStates[info.id]]);
      auto found =
          find_if(of.strategies, [&](StrategyId one) { return search.strategies.resultState(one, 0) == state; });
      if (found == of.strategies.end())
        return std::nullopt;
      options[node] = found - of.strategies.begin();
      isPlaced[node] = true;
    }
  }
  // What costs nothing at least may cost something: once all that is taken is exact, nothing else is less.
  size_t numRefined = 0;
  do {
    complete(options, isPlaced);
    numRefined = 0;
    for (const JointEdge &edge : tables.graph.edges)
      if (size_t cell = edge.findCell(options[edge.from], options[edge.to]); !edge.table->isExact(cell)) {
        edge.table->refine(cell);
        ++numRefined;
      }
  } while (numRefined > 0);
  return options;
}

/// What a decision leaves to tables of relaxed ops is the one option that these have.
std::optional<std::vector<uint16_t>> JointTables::place(const Decision &decision) const {
  return builder->place(decision);
}

/// In 128 bits, so that what is forbidden does not overflow.
std::optional<int64_t> JointTables::costOf(ArrayRef<uint16_t> options) const {
  if (options.size() != graph.variables.size())
    return std::nullopt;
  __int128 sum = constant;
  for (auto [domain, option] : zip(graph.variables, options)) {
    if (option >= domain->size())
      return std::nullopt;
    sum += domain->costs[option];
  }
  for (const JointEdge &edge : graph.edges) {
    int64_t cell = edge.table->refine(edge.findCell(options[edge.from], options[edge.to]));
    if (cell >= kForbidden)
      return std::nullopt;
    sum += cell;
  }
  return sum < kForbidden ? std::optional(static_cast<int64_t>(sum)) : std::nullopt;
}

/// By the states of inputs, as a limit of memory counts them.
int64_t JointTables::countStored(ArrayRef<uint16_t> options) const {
  int64_t bytes = fixedBytes;
  for (auto [domain, option] : zip(graph.variables, options))
    if (!domain->storedBytes.empty())
      bytes += domain->storedBytes[option];
  return bytes;
}
