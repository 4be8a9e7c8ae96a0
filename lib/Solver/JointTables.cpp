//===- JointTables.cpp - all that could be decided, as tables -------------===//
//
// Domains are made per profile: choices are enumerated atom by atom, what is not valid is left out, and of strategies with the same states
// the first of the least expensive stays. States become rows and columns in the order in which options have them. Tables are
// made per pair of domains and place, and priced by the function that passes ask.
//
//   profile ─▶ combinations of choices ─▶ strategies ─▶ options, by distinct states     (a domain)
//   domain, result ─▶ rows      domain, operand ─▶ columns     ─▶ a table, whose cells are bounds until they matter
//
// All of these are interned: of a model of equal layers there are those of one layer, those of its ends, and an index for each node and edge.
//
//===----------------------------------------------------------------------===//
#include "JointBuilder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

static_assert(kForbiddenCell == kForbidden, "cells that passes forbid");

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Per atom what it may do: what passes offer it, alone, with others of its axis, or spread over a dim of several factors.
std::vector<SmallVector<ChoiceId, 8>> JointTables::Builder::listChoices(const Profile &profile) const {
  const RuleInfo &info = *search.strategies.signature(profile.signature).info;
  SmallVector<char, 16> isSpread(info.rule->choices.size(), false);
  if (info.hasDimOfSeveral && profile.isOp)
    for (auto [factor, places] : llvm::enumerate(info.places))
      for (const FactorPlace &place : places) {
        const auto &tensors = place.isResult ? info.rule->results : info.rule->operands;
        if (tensors[place.tensor][place.dim].size() > 1 && info.singleSplit[factor] >= 0)
          isSpread[info.singleSplit[factor]] = true;
      }
  std::vector<SmallVector<ChoiceId, 8>> choices(problem.getMesh().numAtoms());
  for (auto [atom, list] : llvm::enumerate(choices))
    for (auto [choice, allowed] : llvm::enumerate(profile.allowed))
      if ((allowed.first | allowed.second) & maskOf(atom) || (isSpread[choice] && !(profile.held & maskOf(atom))))
        list.push_back(choice);
  return choices;
}

/// Of a rank, padding included.
int64_t JointTables::Builder::storedBytes(NodeId node, StrategyId strategy) const {
  ValueId value = search.graph.valueOf(node);
  return localBytes(problem.getMesh(), problem.shape(value), problem.elementBytes(value),
                    search.decision.states[search.strategies.resultState(strategy, 0)]);
}

/// All combinations of what atoms may do, in order, the last atom fastest. The order of options is that in which their states first come, so
/// that it is the same wherever tables are made.
void JointTables::Builder::enumerate(ProfileId id, ArrayRef<SmallVector<ChoiceId, 8>> choices, JointOptions &made) {
  Interner states;
  std::vector<uint16_t> digits(choices.size(), 0);
  SmallVector<ChoiceId, 8> vector(choices.size());
  auto next = [&] {
    for (size_t place = digits.size(); place-- > 0;) {
      if (++digits[place] < choices[place].size())
        return true;
      digits[place] = 0;
    }
    return false;
  };
  do {
    for (auto [atom, digit] : llvm::enumerate(digits))
      vector[atom] = choices[atom][digit];
    StrategyId strategy = search.strategies.strategy(search.objective.profile(id).signature, vector);
    if (!search.strategies[strategy].isValid)
      continue;
    const ShardingRule &rule = *search.strategies.signatureOf(strategy).info->rule;
    SmallVector<uint64_t, 8> key;
    for (size_t operand = 0; operand < rule.operands.size(); ++operand)
      key.push_back(search.strategies.operandState(strategy, operand));
    for (size_t result = 0; result < rule.results.size(); ++result)
      key.push_back(search.strategies.resultState(strategy, result));
    auto [option, isNew] = states.intern(key);
    int64_t cost = search.objective.costOfNode(id, strategy).cost;
    made.optionOf[strategy] = option;
    if (isNew) {
      made.strategies.push_back(strategy);
      made.domain.costs.push_back(cost);
    } else if (cost < made.domain.costs[option]) {
      made.strategies[option] = strategy;
      made.domain.costs[option] = cost;
    }
  } while (next());
}

/// The one option is that all atoms do nothing; it stands for all, at no more than any costs.
void JointTables::Builder::relax(ProfileId id, JointOptions &made) {
  SmallVector<ChoiceId, 8> none(problem.getMesh().numAtoms(), 0);
  made.isRelaxed = true;
  made.strategies = {search.strategies.strategy(search.objective.profile(id).signature, none)};
  made.domain.costs = {search.objective.leastCostOfNode(id)};
}

/// What a relaxed input stores is its share of what all ranks must hold together.
JointOptions JointTables::Builder::makeOptions(ProfileId id, NodeId node) {
  JointOptions made;
  std::vector<SmallVector<ChoiceId, 8>> choices = listChoices(search.objective.profile(id));
  size_t count = 1;
  for (ArrayRef<ChoiceId> list : choices)
    count = std::min(count * list.size(), limits.mostStrategies + 1);
  bool isStored = search.isStorageDecided(node);
  if (count > limits.mostStrategies) {
    relax(id, made);
    ValueId value = search.graph.valueOf(node);
    if (isStored)
      made.domain.storedBytes = {static_cast<int64_t>(problem.totalBytes(value)) / problem.getMesh().numRanks()};
    return made;
  }
  enumerate(id, choices, made);
  for (StrategyId strategy : made.strategies) {
    append_range(made.domain.choices, search.strategies.choices(strategy));
    if (isStored)
      made.domain.storedBytes.push_back(storedBytes(node, strategy));
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// An operand that is a twin of an earlier one costs nothing where both want the same, which is part of its label.
const Labels &JointTables::Builder::labelsOf(NodeId node, bool isResult, unsigned place, unsigned twin) {
  const JointOptions &options = optionsOf(node);
  auto [entry, isNew] = labels.try_emplace({&options, isResult, place, twin});
  if (!isNew)
    return entry->second;
  Interner states;
  Labels &made = entry->second;
  for (auto [option, strategy] : llvm::enumerate(options.strategies)) {
    StateId state =
        isResult ? search.strategies.resultState(strategy, place) : search.strategies.operandState(strategy, place);
    bool isServed = !isResult && twin != place && search.strategies.operandState(strategy, twin) == state;
    auto [label, isFirst] = states.intern({uint64_t(state) << 1 | isServed});
    made.ofOptions.push_back(label);
    if (isFirst)
      made.examples.push_back(option);
  }
  return made;
}

/// As `CoordinateDescent::costOfEdge`.
int64_t JointTables::Builder::costOfEdge(const SearchEdge &edge, StrategyId from, StrategyId to, EdgeTraits traits,
                                         bool isExact) {
  StateId wanted = search.strategies.operandState(to, edge.operand);
  if (edge.twin != edge.operand && search.strategies.operandState(to, edge.twin) == wanted)
    return 0;
  ShapeId shape = search.strategies.signatureOf(to).operands[edge.operand];
  StateId made = search.strategies.resultState(from, edge.result);
  return isExact ? search.objective.costOfEdge(shape, made, wanted, 0, 0, traits)
                 : search.objective.leastCostOfEdge(shape, made, wanted, traits);
}

int64_t JointTable::refine(size_t cell) {
  if (!isExact(cell)) {
    int64_t cost = costOf(cell / columns, cell % columns);
    assert(cost >= cells[cell] && "a cell costs less than it was said to");
    cells[cell] = cost;
    exact[cell] = true;
  }
  return cells[cell];
}

/// Known tables are looked up by the labels at their ends, which say of which domains they are, and by what else edges are priced by.
void JointTables::Builder::addTable(NodeId from, NodeId to, std::array<uint64_t, 4> key, const Labels &rows,
                                    const Labels &columns, EdgeCost costOf) {
  auto [entry, isNew] = knownTables.try_emplace({{&rows, &columns}, key});
  if (isNew) {
    size_t count = rows.examples.size() * columns.examples.size();
    if (count <= limits.mostCells && numCells + count <= limits.mostCellsInAll) {
      numCells += count;
      entry->second = std::make_unique<JointTable>();
      JointTable &table = *entry->second;
      table.rows = rows.examples.size();
      table.columns = columns.examples.size();
      for (uint16_t row : rows.examples)
        for (uint16_t column : columns.examples)
          table.cells.push_back(costOf(optionsOf(from).strategies[row], optionsOf(to).strategies[column], false));
      table.exact.assign(table.cells.size(), false);
      table.costOf = [costOf = std::move(costOf), &rows, &columns, &makers = optionsOf(from),
                      &users = optionsOf(to)](uint32_t row, uint32_t column) {
        return costOf(makers.strategies[rows.examples[row]], users.strategies[columns.examples[column]], true);
      };
    }
  }
  if (!entry->second) {
    ++tables.numDropped;
    return;
  }
  tables.graph.edges.push_back({from, to, entry->second.get(), &rows.ofOptions, &columns.ofOptions});
}

/// Where one end has a single option for all, nothing is known of what it makes or takes: the edge costs nothing.
void JointTables::Builder::addEdge(EdgeId id) {
  const SearchEdge &edge = search.graph.edge(id);
  if (optionsOf(edge.producer).isRelaxed || optionsOf(edge.consumer).isRelaxed)
    return;
  EdgeTraits traits = traitsOf(id, search.graph, search.candidates, search.launches);
  const Labels &rows = labelsOf(edge.producer, /*isResult=*/true, edge.result, edge.result);
  const Labels &columns = labelsOf(edge.consumer, /*isResult=*/false, edge.operand, edge.twin);
  addTable(edge.producer, edge.consumer, {traits.getBits(), edge.result, edge.operand, edge.twin}, rows, columns,
           [this, &edge, traits](StrategyId from, StrategyId to, bool isExact) {
             return costOfEdge(edge, from, to, traits, isExact);
           });
}

/// What the next call finds as an input is in the state in which this one returns it.
void JointTables::Builder::addTie(NodeId input, NodeId output) {
  if (input == kNone || output == kNone || optionsOf(input).isRelaxed || optionsOf(output).isRelaxed)
    return;
  const Labels &rows = labelsOf(input, /*isResult=*/true, 0, 0);
  const Labels &columns = labelsOf(output, /*isResult=*/false, 0, 0);
  constexpr uint64_t kTie = ~uint64_t(0);
  addTable(input, output, {kTie, 0, 0, 0}, rows, columns, [this](StrategyId from, StrategyId to, bool) {
    return search.strategies.resultState(from, 0) == search.strategies.operandState(to, 0) ? 0 : kForbidden;
  });
}

/// The labels of a list of edges, at one end, as labels of one.
static Labels combine(ArrayRef<JointEdge> edges, const std::vector<uint16_t> *JointEdge::*end) {
  Labels made;
  Interner keys;
  for (size_t option = 0; option < (edges.front().*end)->size(); ++option) {
    SmallVector<uint64_t, 4> key;
    for (const JointEdge &edge : edges)
      key.push_back((*(edge.*end))[option]);
    auto [label, isNew] = keys.intern(key);
    made.ofOptions.push_back(label);
    if (isNew)
      made.examples.push_back(option);
  }
  return made;
}

/// Null where that would have too many cells.
const JointEdge *JointTables::Builder::merge(ArrayRef<JointEdge> edges) {
  std::vector<const void *> key;
  for (const JointEdge &edge : edges)
    key.insert(key.end(), {edge.table, edge.rows, edge.columns});
  auto [entry, isNew] = merged.try_emplace(std::move(key));
  if (!isNew)
    return entry->second->edge ? &*entry->second->edge : nullptr;
  entry->second = std::make_unique<Merged>();
  Merged &made = *entry->second;
  made.rows = combine(edges, &JointEdge::rows);
  made.columns = combine(edges, &JointEdge::columns);
  size_t count = made.rows.examples.size() * made.columns.examples.size();
  if (count > limits.mostCells || numCells + count > limits.mostCellsInAll)
    return nullptr;
  numCells += count;
  made.table.rows = made.rows.examples.size();
  made.table.columns = made.columns.examples.size();
  for (uint16_t row : made.rows.examples)
    for (uint16_t column : made.columns.examples) {
      int64_t sum = 0;
      for (const JointEdge &edge : edges)
        sum = std::min(sum + edge.getCell(row, column), kForbidden);
      made.table.cells.push_back(sum);
    }
  made.table.exact.assign(made.table.cells.size(), false);
  made.table.costOf = [&made, parts = SmallVector<JointEdge, 2>(edges)](uint32_t row, uint32_t column) {
    int64_t sum = 0;
    for (const JointEdge &edge : parts)
      sum = std::min(sum + edge.table->refine(edge.findCell(made.rows.examples[row], made.columns.examples[column])),
                     kForbidden);
    return sum;
  };
  made.edge = {0, 0, &made.table, &made.rows.ofOptions, &made.columns.ofOptions};
  return &*made.edge;
}

/// Where an op reads a value twice, what is best for one of its operands may not be for the other: two tables prove less than their sum.
void JointTables::Builder::mergeParallel() {
  MapVector<std::pair<uint32_t, uint32_t>, SmallVector<JointEdge, 1>> between;
  for (const JointEdge &edge : tables.graph.edges)
    between[{edge.from, edge.to}].push_back(edge);
  std::vector<JointEdge> left;
  for (auto &[ends, edges] : between) {
    const JointEdge *one = edges.size() > 1 ? merge(edges) : nullptr;
    if (one)
      left.push_back({ends.first, ends.second, one->table, one->rows, one->columns});
    else
      append_range(left, edges);
  }
  tables.graph.edges = std::move(left);
}

//===----------------------------------------------------------------------===//
// What there is in any case
//===----------------------------------------------------------------------===//

/// Products count their launches themselves (`Objective::costOfNode`), kernels that are more because something is sent the edges.
int64_t JointTables::Builder::countConstant() const {
  DenseMap<NodeId, bool> hasProduct; // By the first op of a kernel.
  int64_t kernels = 0;
  for (NodeId node = 0; node < search.graph.numNodes(); ++node) {
    kernels += search.launches.isAlone(node);
    if (NodeId kernel = search.launches.kernelOf(node); kernel != kNone)
      hasProduct[kernel] |= search.graph.ruleOf(node).rule->flops > 0;
  }
  kernels += count_if(hasProduct, [](const auto &kernel) { return !kernel.second; });
  return kernels * search.options.costs.perLaunch;
}

/// Of a parameter that an annotation closes what that says, of others what all ranks together must hold.
int64_t JointTables::Builder::countFixed() const {
  int64_t bytes = 0;
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    if (problem.producer(value) != kNone || problem.isStorageDecided(value) || !problem.isParameter(value))
      continue;
    const Annotation *annotation = problem.annotation(value);
    State state = State::replicated(problem.shape(value).size());
    bool isClosed = annotation && none_of(annotation->dims, [](const AnnotationDim &dim) { return dim.isOpen; });
    if (isClosed)
      for (auto [dim, asked] : zip(state.dims, annotation->dims))
        dim = asked.atoms;
    int64_t local = localBytes(problem.getMesh(), problem.shape(value), problem.elementBytes(value), state);
    bytes += isClosed ? local : local / problem.getMesh().numRanks();
  }
  return bytes;
}

/// Of ops alone: what costs of edges are may be between two stages.
int64_t JointTables::Builder::findLargest() const {
  int64_t largest = 0;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const JointDomain &domain = *tables.graph.variables[search.graph.nodeOfOp(op)];
    largest = std::max(largest, *min_element(domain.costs));
  }
  return largest;
}

bool JointTables::Builder::run() {
  if (!search.classify())
    return false;
  for (NodeId node = 0; node < search.graph.numNodes(); ++node) {
    auto [entry, isNew] = known.try_emplace({search.profiles[node], search.isStorageDecided(node)});
    if (isNew)
      entry->second = &all.emplace_back(makeOptions(search.profiles[node], node));
    ofNodes.push_back(entry->second);
    tables.graph.variables.push_back(&entry->second->domain);
    tables.numRelaxed += entry->second->isRelaxed;
  }
  for (EdgeId edge = 0; edge < search.graph.numEdges(); ++edge)
    addEdge(edge);
  for (auto [input, output] : problem.getTies())
    addTie(search.graph.inputNode(input), search.graph.nodeOfOutput(output));
  mergeParallel();
  tables.constant = countConstant();
  tables.largest = findLargest();
  tables.fixedBytes = countFixed();
  tables.digest = tables.computeDigest();
  return true;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

JointTables::JointTables() = default;
JointTables::~JointTables() = default;

std::unique_ptr<JointTables> JointTables::create(const Problem &problem, SolverOptions options, JointLimits limits) {
  assert(options.costs.isTime() && options.costs.fallbackSurcharge == 0 && options.costs.tornSurcharge == 0 &&
         "surcharges depend on more than an edge");
  options.perStoredByte = 0;
  std::unique_ptr<JointTables> tables(new JointTables);
  tables->builder = std::make_unique<Builder>(*tables, problem, options, limits);
  return tables->builder->run() ? std::move(tables) : nullptr;
}

uint64_t JointTables::computeDigest() const {
  DenseMap<const void *, uint64_t> of;
  auto digest = [&](const auto &list) {
    auto [entry, isNew] = of.try_emplace(&list, 0);
    if (isNew)
      entry->second = hashWords(ArrayRef(list));
    return entry->second;
  };
  std::vector<uint64_t> words{static_cast<uint64_t>(constant), static_cast<uint64_t>(fixedBytes)};
  for (const JointDomain *domain : graph.variables) {
    words.push_back(digest(domain->costs));
    words.push_back(digest(domain->storedBytes));
  }
  for (const JointEdge &edge : graph.edges) {
    words.insert(words.end(),
                 {edge.from, edge.to, digest(edge.table->cells), digest(*edge.rows), digest(*edge.columns)});
  }
  return hashWords(ArrayRef<uint64_t>(words));
}
