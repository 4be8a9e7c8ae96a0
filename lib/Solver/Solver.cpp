//===- Solver.cpp - deciding every sharding -------------------------------===//
//
//   per priority, ascending:
//     annotations flow; nodes get their profiles
//     rounds without fallbacks; what is split stays
//   rounds with fallbacks
//   on small graphs: pass pairs of axes, and marked axes in two parts; by time, the same once more from what bytes alone decide
//
//   rounds = up to 4, until nothing improves: for each whole axis, then each atom of marked axes: pass
//
// The stages without fallbacks find what the user wrote; starting with fallbacks at once would leave full gathers where a
// pass had to freeze a hub. A fallback of an early priority would take the axis that a later annotation is about to bring: it
// is an idea of ours, and has to wait for all annotations.
//
//===----------------------------------------------------------------------===//
#include "Search.h"
#include "Trace.h"
#include "cleave/Solver/SearchMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"
#include <cassert>

using namespace cleave::spmd;
using namespace llvm;

#define DEBUG_TYPE "spmd-propagate"

ALWAYS_ENABLED_STATISTIC(numPasses, "passes of coordinate descent, over one axis or two");
ALWAYS_ENABLED_STATISTIC(numBetter, "passes that found a better decision");

//===----------------------------------------------------------------------===//
// The order of atoms in a dim
//===----------------------------------------------------------------------===//

/// Mesh order, unless most annotations that name two atoms in one dim say otherwise: then no op needs a permute.
static SmallVector<AtomId, 8> orderOfAtoms(const SearchGraph &graph) {
  unsigned numAtoms = graph.getProblem().getMesh().numAtoms();
  std::vector<int> votes(size_t(numAtoms) * numAtoms, 0); // For row before column.
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    if (const Annotation *annotation = graph.node(node).annotation)
      for (const AnnotationDim &dim : annotation->dims)
        for (size_t i = 0; i < dim.atoms.size(); ++i)
          for (size_t j = i + 1; j < dim.atoms.size(); ++j) {
            ++votes[dim.atoms[i] * numAtoms + dim.atoms[j]];
            --votes[dim.atoms[j] * numAtoms + dim.atoms[i]];
          }
  SmallVector<AtomId, 8> left, order;
  for (AtomId atom = 0; atom < numAtoms; ++atom)
    left.push_back(atom);
  while (!left.empty()) {
    auto *next = find_if(left, [&](AtomId atom) {
      return none_of(left, [&](AtomId other) { return votes[other * numAtoms + atom] > 0; });
    });
    if (next == left.end()) // The annotations go round in a circle.
      next = left.begin();
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

/// Not forbidden: where an op can do nothing with a parameter as it lies, it still has to move.
static SolverOptions withKeptParameters(SolverOptions options) {
  if (options.keepParameters)
    options.costs.parameterSurcharge = 1'000'000;
  return options;
}

Solver::Search::Search(const Problem &problem, SolverOptions options)
    : problem(problem), options(withKeptParameters(std::move(options))), graph(problem),
      candidates(graph, this->options.keepParameters, this->options.maySplit), launches(graph, this->options.costs),
      planner(problem.getMesh(), {/*useIdleAtoms=*/false, this->options.costs}),
      costs(planner, decision.states,
            this->options.memory ? this->options.memory->costsOn(problem.getMesh(), this->options.costs) : nullptr),
      strategies(problem.getMesh(), this->options.costs, decision.states, orderOfAtoms(graph),
                 problem.getUnevenAtoms()),
      objective(problem.getMesh(), this->options.costs, this->options.perStoredByte, this->options.perValueByte,
                decision.states, costs, strategies) {}

//===----------------------------------------------------------------------===//
// Annotations that cannot be
//===----------------------------------------------------------------------===//

void Solver::Search::checkAnnotation(ValueId value, const Annotation &annotation) {
  const AtomMesh &mesh = problem.getMesh();
  ArrayRef<int64_t> shape = problem.shape(value);
  auto fail = [&](const Twine &message) {
    errors.push_back({SolverError::Kind::Illegal, value, annotation.cause, kNone, message.str()});
  };
  if (annotation.dims.size() != shape.size())
    return fail("the annotation has " + Twine(annotation.dims.size()) + " dims but the value has " +
                Twine(shape.size()));
  AtomMask used = 0;
  for (AtomId atom : annotation.replicated)
    used |= maskOf(atom);
  for (AtomId atom : annotation.partial) {
    if (used & maskOf(atom))
      return fail("an axis is used twice: the value cannot be partial over it");
    used |= maskOf(atom);
  }
  for (auto [index, dim, extent] : enumerate(annotation.dims, shape)) {
    for (AtomId atom : dim.atoms) {
      if (used & maskOf(atom))
        return fail("an axis is used twice, the second time in dim " + Twine(index));
      used |= maskOf(atom);
    }
    int64_t shards = mesh.product(dim.atoms);
    if (extent % shards != 0 && !annotation.isUneven)
      return fail("dim " + Twine(index) + " has size " + Twine(extent) + ", which " + Twine(shards) +
                  " shards do not divide");
  }
}

void Solver::Search::checkAnnotations() {
  for (const AnnotationConflict &conflict : problem.getConflicts())
    errors.push_back({SolverError::Kind::Conflict, conflict.value, conflict.first, conflict.second,
                      "one value is asked for in two ways"});
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (const Annotation *annotation = problem.annotation(value))
      checkAnnotation(value, *annotation);
  for (OutputId output = 0; output < problem.numOutputs(); ++output)
    if (const Annotation *annotation = problem.outputAnnotation(output))
      checkAnnotation(problem.outputValue(output), *annotation);
}

//===----------------------------------------------------------------------===//
// Classes of nodes
//===----------------------------------------------------------------------===//

Signature Solver::Search::makeSignature(NodeId node) {
  const SearchNode &info = graph.node(node);
  Signature signature;
  signature.info = &graph.ruleOf(node);
  signature.isOp = info.kind == NodeKind::Op;
  if (signature.isOp) {
    for (ValueId operand : problem.operands(info.id))
      signature.operands.push_back(shapeIds[operand]);
    for (ValueId result : problem.results(info.id))
      signature.results.push_back(shapeIds[result]);
    return signature;
  }
  signature.operands.push_back(shapeIds[graph.valueOf(node)]);
  signature.results.push_back(shapeIds[graph.valueOf(node)]);
  if (info.annotation || info.kind == NodeKind::Input)
    signature.annotated = decision.states.intern(candidates.annotatedState(node));
  return signature;
}

/// Inputs are as annotated, unless it is decided how they are stored. Annotated values inside append to open dims what propagation brings,
/// outputs that nobody names take what it brings, or are split by that along another dim. Both are partial over what is annotated, and nothing
/// else.
void Solver::Search::allowChoices(NodeId node, Profile &profile) const {
  const SearchNode &info = graph.node(node);
  const ShardingRule &rule = *graph.ruleOf(node).rule;
  bool isSearched = info.kind == NodeKind::Op || info.kind == NodeKind::Hub || isStorageDecided(node);
  for (auto [index, choice] : enumerate(rule.choices)) {
    auto [inBase, inAll] = candidates.allowed(node, index);
    if (!isSearched && !choice.isNone()) {
      bool isOpen = info.kind != NodeKind::Input && !choice.factors.empty();
      inBase &= isOpen ? candidates.openAtoms(node, graph.dimOfFactor(node, choice.factors.front())) : 0;
      AtomMask elsewhere = isOpen && info.kind == NodeKind::Output ? candidates.freeAtOutput(node) : 0;
      inAll = inBase | (inAll & elsewhere);
    }
    profile.allowed.push_back({inBase, inAll});
    profile.fallbacks |= inAll & ~inBase;
  }
}

Profile Solver::Search::makeProfile(NodeId node) {
  Profile profile;
  profile.signature = signatures[node];
  profile.isOp = graph.node(node).kind == NodeKind::Op;
  profile.stays = stays[node];
  allowChoices(node, profile);
  profile.isStored = isStorageDecided(node) && options.perStoredByte > 0;
  if (!profile.isOp)
    return profile;
  profile.isAlone = launches.isAlone(node);
  profile.held = candidates.held(node);
  profile.split = candidates.split(node);
  profile.wide = candidates.wide(node);
  profile.calm = candidates.calm(node);
  for (auto [index, operand] : enumerate(problem.operands(graph.node(node).id)))
    if (index < 63 && problem.isParameter(operand))
      profile.parameters |= uint64_t(1) << index;
  if (graph.ruleOf(node).rule->isMovement)
    return profile;
  profile.isKept = launches.isKept(node);
  for (auto [index, edge] : enumerate(graph.inEdges(node)))
    if (launches.sharesKernel(graph.node(node).firstIn + index))
      profile.inside |= uint64_t(1) << edge.operand;
  return profile;
}

/// The strategy found at earlier levels, without what an annotation of this level forbids.
StrategyId Solver::Search::adaptPresent(NodeId node, const Profile &profile) {
  SmallVector<ChoiceId, 8> choices(problem.getMesh().numAtoms(), 0);
  if (present[node] != kNone) {
    choices.assign(strategies.choices(present[node]).begin(), strategies.choices(present[node]).end());
    for (auto [atom, choice] : enumerate(choices))
      if (graph.node(node).annotation && !(profile.allowed[choice].second & maskOf(atom)))
        choice = 0;
  }
  StrategyId strategy = strategies.strategy(profile.signature, choices);
  if (strategies[strategy].isValid)
    return strategy;
  return strategies.strategy(profile.signature, SmallVector<ChoiceId, 8>(choices.size(), 0));
}

void Solver::Search::classifyAll() {
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    signatures[node] = strategies.internSignature(graph.node(node).rule, makeSignature(node));
    Profile profile = makeProfile(node);
    profiles[node] = objective.internProfile(profile);
    present[node] = adaptPresent(node, profile);
  }
  descent = std::make_unique<CoordinateDescent>(graph, candidates, launches, strategies, objective, profiles, present);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// True if atoms of the axis are decided by themselves, too: it is marked, or splitting an axis in two costs nothing.
static bool isDecidedInParts(unsigned axis, const AtomMesh &mesh, const Candidates &candidates,
                             const CostModel &costs) {
  return mesh.numAtoms(axis) > 1 && (candidates.isMarked(axis) || costs.tornSurcharge == 0);
}

/// Whole axes in mesh order, then the atoms of those that are decided in parts.
static std::vector<DescentUnit> listUnits(const AtomMesh &mesh, const Candidates &candidates, const CostModel &costs,
                                          bool withFallbacks) {
  std::vector<DescentUnit> units;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (mesh.numAtoms(axis) > 0)
      units.push_back({{mesh.atomsOf(axis)}, withFallbacks});
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (isDecidedInParts(axis, mesh, candidates, costs))
      for (unsigned place = mesh.numAtoms(axis); place-- > 0;)
        units.push_back({{AtomList{static_cast<AtomId>(mesh.firstAtom(axis) + place)}}, withFallbacks});
  return units;
}

/// True if the present changed, to something better.
bool Solver::Search::descend(const DescentUnit &unit) {
  int64_t saved = descent->descend(unit);
  ++numPasses;
  numBetter += saved > 0;
  LDBG() << "a pass saves " << saved << " of what is now " << descent->total();
  if (options.trace.os)
    traceDescent(options, graph, decision.states, strategies, *descent, unit, saved);
  return saved > 0;
}

void Solver::Search::runRounds(bool withFallbacks) {
  std::vector<DescentUnit> units = listUnits(problem.getMesh(), candidates, options.costs, withFallbacks);
  // A pass that follows no change since the same one before would find nothing.
  unsigned version = 1;
  std::vector<unsigned> decidedAt(units.size(), 0);
  for (unsigned round = 0; round < options.maxRounds; ++round) {
    unsigned before = version;
    for (auto [unit, decided] : zip(units, decidedAt)) {
      if (decided == version)
        continue;
      version += descend(unit);
      decided = version;
    }
    if (version == before)
      return;
  }
}

void Solver::Search::descendPairs() {
  const AtomMesh &mesh = problem.getMesh();
  for (unsigned first = 0; first < mesh.numAxes(); ++first)
    for (unsigned second = first + 1; second < mesh.numAxes(); ++second)
      if (mesh.numAtoms(first) > 0 && mesh.numAtoms(second) > 0)
        descend({{mesh.atomsOf(first), mesh.atomsOf(second)}, /*withFallbacks=*/true});
}

/// Major atoms of an axis do one thing and minor ones another: of 12 heads on 8 ranks 4 parts, and 2 of the tokens. Where each atom by
/// itself would only send more, as collectives take time to begin, no other pass comes from the one to the other.
void Solver::Search::descendHalves() {
  const AtomMesh &mesh = problem.getMesh();
  bool isBetter = false;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    AtomList atoms = mesh.atomsOf(axis);
    if (isDecidedInParts(axis, mesh, candidates, options.costs))
      for (size_t major = 1; major < atoms.size(); ++major)
        isBetter |= descend({{AtomList(ArrayRef(atoms).take_front(major)), AtomList(ArrayRef(atoms).drop_front(major))},
                             /*withFallbacks=*/true});
  }
  if (isBetter)
    runRounds(/*withFallbacks=*/true);
}

void Solver::Search::keepWhatIsSplit() {
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    NodeKind kind = graph.node(node).kind;
    if (present[node] == kNone || (kind != NodeKind::Op && kind != NodeKind::Hub))
      continue;
    for (auto [atom, choice] : enumerate(strategies.choices(present[node])))
      if (choice != 0)
        stays[node] |= maskOf(atom);
  }
}

void Solver::Search::runLastStage() {
  runRounds(/*withFallbacks=*/true);
  if (!isSmall())
    return;
  descendPairs();
  descendHalves();
}

void Solver::Search::prepare() {
  for (ValueId value = 0; value < problem.numValues(); ++value)
    shapeIds.push_back(costs.internShape(problem.shape(value), problem.elementBytes(value)));
  signatures.resize(graph.numNodes());
  profiles.resize(graph.numNodes());
  present.assign(graph.numNodes(), kNone);
  stays.assign(graph.numNodes(), 0);
}

bool Solver::Search::classify() {
  checkAnnotations();
  if (!errors.empty())
    return false;
  prepare();
  for (int64_t priority : candidates.getPriorities())
    candidates.activate(priority);
  classifyAll();
  return true;
}

/// Levels, and the last stage; returns what annotations alone come to.
std::vector<StrategyId> Solver::Search::search() {
  prepare();
  for (int64_t priority : candidates.getPriorities()) {
    candidates.activate(priority);
    keepWhatIsSplit();
    classifyAll();
    runRounds(/*withFallbacks=*/false);
  }
  std::vector<StrategyId> annotated = present;
  runLastStage();
  return annotated;
}

/// For another search of the same problem, by bytes alone.
SolverOptions Solver::Search::optionsByBytes() const {
  SolverOptions byBytes = options;
  byBytes.costs = CostModel::create(Optimize::Bytes);
  byBytes.perStoredByte = byBytes.perValueByte = 0;
  byBytes.trace = {};
  return byBytes;
}

/// What another search understands, whatever it calls strategies.
std::vector<ChoiceId> Solver::Search::listChoices(ArrayRef<StrategyId> of) const {
  std::vector<ChoiceId> listed;
  for (StrategyId strategy : of)
    append_range(listed, strategies.choices(strategy));
  return listed;
}

/// Our names of strategies that another search has listed; nodes for which there is none here keep the present one.
std::vector<StrategyId> Solver::Search::takeChoices(ArrayRef<ChoiceId> listed) {
  std::vector<StrategyId> ours = present;
  size_t numAtoms = problem.getMesh().numAtoms();
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    if (StrategyId same = strategies.strategy(signatures[node], listed.slice(node * numAtoms, numAtoms));
        strategies[same].isValid)
      ours[node] = same;
  return ours;
}

/// By time a decision may be the best along each axis and not of all: latencies and launches come whole. Bytes alone have a smoother
/// way down, to somewhere else; from there it may go on to less. If it does, `annotated` becomes what annotations alone come to on that way.
/// Bytes are the same at all prices of memory, so of a limit that is searched for they are decided once.
void Solver::Search::searchFromBytes(std::vector<StrategyId> &annotated) {
  SolverOptions byBytes = optionsByBytes();
  SearchMemory::Found begin;
  if (const SearchMemory::Found *known = options.memory ? options.memory->findBeginning(problem, byBytes) : nullptr) {
    begin = *known;
  } else {
    Search other(problem, byBytes);
    begin.annotated = other.listChoices(other.search());
    begin.present = other.listChoices(other.present);
    if (options.memory)
      options.memory->keepBeginning(problem, byBytes, begin);
  }
  std::vector<StrategyId> found = present;
  int64_t least = descent->total();
  present = takeChoices(begin.present);
  runLastStage();
  if (descent->total() < least)
    annotated = takeChoices(begin.annotated);
  else
    present = std::move(found);
}

bool Solver::Search::run() {
  checkAnnotations();
  if (!errors.empty())
    return false;
  std::vector<StrategyId> annotated = search();
  // Where an earlier level has decided, it stays so.
  if (options.costs.isTime() && isSmall() && candidates.getPriorities().size() < 2)
    searchFromBytes(annotated);
  decision.objective = descent->total();
  std::optional<Account> asAnnotated;
  if (present != annotated)
    asAnnotated = accountFor(std::move(annotated));
  answer();
  // Where axes are free no annotation asks for anything along them.
  if (problem.getFreeAtoms().empty())
    listDetours(asAnnotated ? &*asAnnotated : nullptr);
  return true;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

Solver::Solver(const Problem &problem, SolverOptions options) : problem(problem), options(std::move(options)) {}
Solver::~Solver() = default;

bool Solver::solve() {
  if (const Decision *before = options.memory ? options.memory->find(problem, options) : nullptr) {
    known = *before;
    return true;
  }
  search = std::make_unique<Search>(problem, options);
  if (!search->run())
    return false;
  if (options.memory)
    options.memory->keep(problem, options, search->decision);
  return true;
}

Solver::Search &Solver::getSearch() const {
  if (!search) {
    search = std::make_unique<Search>(problem, options);
    search->run();
  }
  return *search;
}

ArrayRef<SolverError> Solver::getErrors() const {
  return search ? ArrayRef<SolverError>(search->errors) : ArrayRef<SolverError>();
}
const Decision &Solver::getDecision() const {
  assert((known || search) && "not solved yet");
  return known ? *known : search->decision;
}
