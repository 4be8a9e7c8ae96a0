//===- Candidates.cpp - what an axis may do where -------------------------===//
//
// A queue of arrivals (node, factor, atom). Each goes on to the factors that are split together with it, and through
// every dim that has the factor to the node at the other end of the edge. An arrival at a minor factor whose majors
// cannot be full yet waits at its node until something else arrives there.
//
//===----------------------------------------------------------------------===//
#include "Candidates.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

static bool isValueNode(const SearchNode &node) { return node.kind != NodeKind::Op; }

Candidates::Candidates(const SearchGraph &graph, bool keepParameters, std::function<bool(OpId, FactorId)> maySplit)
    : graph(graph), mesh(graph.getProblem().getMesh()), keepParameters(keepParameters), maySplit(std::move(maySplit)),
      numAtoms(mesh.numAtoms()), baseMasks(graph.numFactors(), 0), allMasks(graph.numFactors(), 0),
      causes(graph.numFactors() * numAtoms, kNone), isLate(graph.numNodes(), 0), partials(graph.numNodes()),
      splits(graph.numNodes(), 1), wides(graph.numNodes(), 1), calms(graph.numNodes(), 0),
      dropMasks(graph.numNodes(), 0), freeNodes(graph.numNodes(), false), parameterMoves(graph.numEdges(), false) {
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    AtomMask mask = 0;
    for (AtomId atom : mesh.atomsOf(axis))
      mask |= maskOf(atom);
    axisMasks.push_back(mask);
  }
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    if (const Annotation *annotation = graph.node(node).annotation)
      for (const AnnotationDim &dim : annotation->dims)
        if (!is_contained(priorities, dim.priority))
          priorities.push_back(dim.priority);
  if (priorities.empty())
    priorities.push_back(0);
  llvm::sort(priorities);
}

int64_t Candidates::product(AtomMask atoms) const {
  int64_t result = 1;
  forEachAtom(atoms, [&](AtomId atom) { result *= mesh.size(atom); });
  return result;
}

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

/// Dims of later priorities are as if nobody had asked for them yet.
State Candidates::annotatedState(NodeId node) const {
  State state = State::replicated(graph.getProblem().shape(graph.valueOf(node)).size());
  if (const Annotation *annotation = graph.node(node).annotation)
    for (auto [dim, annotated] : zip(state.dims, annotation->dims))
      if (annotated.priority <= level)
        dim = annotated.atoms;
  if (const Annotation *annotation = graph.node(node).annotation)
    for (AtomId atom : annotation->partial)
      state.addPartial(atom, annotation->partialKind);
  return state;
}

AtomMask Candidates::openAtoms(NodeId node, unsigned dim) const {
  const Annotation *annotation = graph.node(node).annotation;
  AtomMask mask = ~AtomMask(0);
  if (!annotation)
    return mask;
  const AnnotationDim &annotated = annotation->dims[dim];
  if (annotated.priority <= level && !annotated.isOpen)
    return 0;
  mask &= ~maskOf(annotation->replicated) & ~maskOf(annotation->partial);
  for (const AnnotationDim &other : annotation->dims)
    if (other.priority <= level)
      for (AtomId atom : other.atoms)
        mask &= ~maskOf(atom);
  return mask;
}

/// An annotation for a part of an axis is followed atom by atom.
void Candidates::markParts(ArrayRef<AtomId> atoms) {
  for (AtomId atom : atoms)
    if (AtomMask axis = axisMasks[mesh.axisOf(atom)]; axis & ~maskOf(atoms))
      marked |= axis;
}

/// Lets the dims of one priority flow from an annotated node.
void Candidates::seed(NodeId node, int64_t priority) {
  const SearchNode &info = graph.node(node);
  if (!info.annotation)
    return;
  for (auto [annotated, factors] : zip(info.annotation->dims, graph.ruleOf(node).rule->results.front()))
    if (annotated.priority == priority && !factors.empty()) {
      for (AtomId atom : annotated.atoms)
        put(node, factors.front(), atom, kNone);
      markParts(annotated.atoms);
    }
}

static bool saysNothing(const Annotation *annotation, int64_t level) {
  auto isSilent = [&](const AnnotationDim &dim) { return dim.priority > level || (dim.isOpen && dim.atoms.empty()); };
  return !annotation || (!annotation->isPartial() && all_of(annotation->dims, isSilent));
}

//===----------------------------------------------------------------------===//
// Arriving
//===----------------------------------------------------------------------===//

/// Only ops offer fallbacks; a node is looked at once for each atom, whatever brings it how often.
void Candidates::noteLate(NodeId node, AtomId atom) {
  if (isValueNode(graph.node(node)) || (isLate[node] & maskOf(atom)))
    return;
  isLate[node] |= maskOf(atom);
  late.push_back({node, atom});
}

void Candidates::retryBlocked(NodeId node) {
  auto waiting = blocked.find(node);
  if (waiting == blocked.end())
    return;
  queue.insert(queue.end(), waiting->second.begin(), waiting->second.end());
  blocked.erase(waiting);
}

/// The first to arrive is the cause: the queue is first in, first out, so its chain is a shortest one.
void Candidates::put(NodeId node, FactorId factor, AtomId atom, uint32_t from) {
  uint32_t number = graph.node(node).firstFactor + factor;
  if (allMasks[number] & maskOf(atom))
    return;
  bool isAnnotated = from == kNone;
  bool mayBeUneven = graph.ruleOf(node).allowsUneven[factor] && graph.getProblem().mayBeUneven(atom);
  if (!isAnnotated && !mayBeUneven && graph.ruleOf(node).rule->factorSizes[factor] % mesh.size(atom)) {
    if (mesh.numAtoms(mesh.axisOf(atom)) > 1)
      marked |= axisMasks[mesh.axisOf(atom)];
    if (!isFallback && !isOffering && graph.node(node).kind == NodeKind::Op)
      refused.push_back({node, factor, atom});
    return;
  }
  // Nor does the whole axis fit: what is left of it may do something else.
  if (unsigned axis = mesh.axisOf(atom);
      !mayBeUneven && graph.ruleOf(node).rule->factorSizes[factor] % mesh.axisSize(axis) != 0)
    marked |= axisMasks[axis];
  allMasks[number] |= maskOf(atom);
  if (!isFallback)
    baseMasks[number] |= maskOf(atom);
  causes[number * numAtoms + atom] = from;
  queue.push_back({node, factor, atom});
  if (!blocked.empty())
    retryBlocked(node);
}

/// Where `wanted` lands when `atoms` fill a dim's factors, major first; -1: nowhere. `isSpread` is set if they do not
/// all land on one factor.
FactorId Candidates::placeInDim(const RuleInfo &info, const DimFactors &factors, ArrayRef<AtomId> atoms, AtomId wanted,
                                bool &isSpread) const {
  FactorId found = -1;
  size_t place = 0, firstPlace = factors.size();
  int64_t room = info.rule->factorSizes[factors[0]];
  for (AtomId atom : atoms) {
    while (place < factors.size() && room % mesh.size(atom) != 0) {
      ++place;
      room = place < factors.size() ? info.rule->factorSizes[factors[place]] : 1;
    }
    if (atom == atoms.front())
      firstPlace = place;
    isSpread |= place != firstPlace;
    if (place == factors.size())
      continue;
    room /= mesh.size(atom);
    if (atom == wanted)
      found = factors[place];
  }
  return found;
}

/// A whole axis that comes along a dim of several factors fills them major first, as its atoms would in the end.
void Candidates::putInDim(NodeId node, const DimFactors &factors, AtomId atom, uint32_t from) {
  if (factors.empty())
    return;
  if (factors.size() == 1)
    return put(node, factors.front(), atom, from);
  unsigned axis = mesh.axisOf(atom);
  bool isSpread = false;
  FactorId landing = placeInDim(graph.ruleOf(node), factors, mesh.atomsOf(axis), atom, isSpread);
  if (isSpread)
    marked |= axisMasks[axis];
  if (landing >= 0)
    put(node, landing, atom, from);
  // Another axis may fill the major factor, which leaves room below it.
  if (allMasks[graph.node(node).firstFactor + factors.front()] & ~axisMasks[axis])
    for (FactorId minor : ArrayRef<FactorId>(factors).drop_front())
      put(node, minor, atom, from);
}

//===----------------------------------------------------------------------===//
// Flowing on
//===----------------------------------------------------------------------===//

const DimFactors &Candidates::factorsAt(NodeId node, const FactorPlace &place) const {
  const ShardingRule &rule = *graph.ruleOf(node).rule;
  return (place.isResult ? rule.results : ArrayRef<TensorFactors>(rule.operands))[place.tensor][place.dim];
}

/// A minor factor is split only under majors that are full; else an axis of the batch would leak into the sequence
/// through a reshape that merges them.
bool Candidates::majorsCanBeFull(NodeId node, const FactorPlace &place, AtomId atom) const {
  const ShardingRule &rule = *graph.ruleOf(node).rule;
  for (FactorId major : ArrayRef<FactorId>(factorsAt(node, place)).take_front(place.position))
    if (product(allMasks[graph.node(node).firstFactor + major] & ~maskOf(atom)) < rule.factorSizes[major])
      return false;
  return true;
}

/// To all that a choice splits together. Once is enough, as what is refused is refused again: of thousands of factors each arrives.
void Candidates::flowAlong(NodeId node, int32_t choice, AtomId atom, uint32_t number) {
  constexpr size_t kFew = 8;
  const SmallVector<FactorId, 2> &factors = graph.ruleOf(node).rule->choices[choice].factors;
  if (factors.size() > kFew) {
    AtomMask &done = flowedAlong[{node, choice}];
    if (done & maskOf(atom))
      return;
    done |= maskOf(atom);
  }
  for (FactorId factor : factors)
    put(node, factor, atom, number);
}

/// First within the op, to what is split together with the factor, then through every dim that has it, both ways.
void Candidates::flowFrom(const Arrival &arrival) {
  NodeId node = arrival.node;
  const RuleInfo &info = graph.ruleOf(node);
  uint32_t number = graph.node(node).firstFactor + arrival.factor;
  noteLate(node, arrival.atom);
  for (int32_t choice : info.sharedSplits[arrival.factor])
    flowAlong(node, choice, arrival.atom, number);
  ArrayRef<SearchEdge> inEdges = graph.inEdges(node);
  for (const FactorPlace &place : info.places[arrival.factor]) {
    bool hasEdges = place.isResult ? !graph.outEdges(node).empty() : place.tensor < inEdges.size();
    if (!hasEdges)
      continue;
    if (place.position > 0 && !majorsCanBeFull(node, place, arrival.atom)) {
      if (SmallVector<Arrival, 2> &waiting = blocked[node]; !is_contained(waiting, arrival))
        waiting.push_back(arrival);
      continue;
    }
    if (!place.isResult) {
      const SearchEdge &edge = inEdges[place.tensor];
      putInDim(edge.producer, graph.ruleOf(edge.producer).rule->results[edge.result][place.dim], arrival.atom, number);
      continue;
    }
    for (EdgeId id : graph.outEdges(node))
      if (const SearchEdge &edge = graph.edge(id); edge.result == place.tensor)
        putInDim(edge.consumer, graph.ruleOf(edge.consumer).rule->operands[edge.operand][place.dim], arrival.atom,
                 number);
  }
}

void Candidates::flow() {
  while (queueHead < queue.size())
    flowFrom(Arrival(queue[queueHead++])); // A copy: the queue may move.
  queue.clear();
  queueHead = 0;
}

/// There is nothing to flow behind it: what could take them has them all.
void Candidates::offerFree() {
  const Problem &problem = graph.getProblem();
  if (problem.getFreeAtoms().empty())
    return;
  annotatedMasks = baseMasks;
  isOffering = true;
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    int32_t kept = graph.node(node).kind == NodeKind::Input ? problem.keptDimOfInput(graph.valueOf(node)) : -1;
    bool isAsked = maySplit && graph.node(node).kind == NodeKind::Op;
    auto isOffered = [&](FactorId factor) {
      return isAsked ? maySplit(graph.node(node).id, factor)
                     : kept < 0 || graph.dimOfFactor(node, factor) != static_cast<unsigned>(kept);
    };
    for (const Choice &choice : graph.ruleOf(node).rule->choices)
      for (FactorId factor : choice.factors)
        if (isOffered(factor))
          for (AtomId atom : problem.getFreeAtoms())
            put(node, factor, atom, causeOfFree());
  }
  isOffering = false;
  queue.clear();
  queueHead = 0;
}

//===----------------------------------------------------------------------===//
// Fallbacks
//===----------------------------------------------------------------------===//

Candidates::LiveFactors Candidates::countLive(NodeId node, AtomId atom, bool withFallbacks) const {
  LiveFactors live;
  const RuleInfo &info = graph.ruleOf(node);
  const std::vector<AtomMask> &masks = withFallbacks ? allMasks : baseMasks;
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor) {
    if (!(masks[graph.node(node).firstFactor + factor] & maskOf(atom)))
      continue;
    live.first = live.numLive++ ? live.first : factor;
    live.pays |= info.isCostly[factor];
    live.numFree += info.isParallel[factor] && !info.isCostly[factor];
  }
  return live;
}

/// Does the atom cost something at this op: two parallel factors want it, or one that pays inside the op; with fallbacks,
/// also a factor that is not parallel.
bool Candidates::meets(NodeId node, AtomId atom, bool withFallbacks) const {
  LiveFactors live = countLive(node, atom, withFallbacks);
  return live.numFree > 1 || live.pays || (withFallbacks && live.numFree < live.numLive);
}

/// Where an atom cannot go on, since the majors of its dim are not full: any other dim may take it.
void Candidates::offerWaysAround(NodeId node) {
  auto waiting = blockedInBase.find(node);
  if (waiting == blockedInBase.end() || isValueNode(graph.node(node)))
    return;
  for (const Arrival &arrival : waiting->second)
    offerParallel(node, arrival.atom, graph.node(node).firstFactor + arrival.factor);
  flow();
}

/// Lets an atom that came along factor number `from` take every parallel factor of an op instead.
void Candidates::offerParallel(NodeId node, AtomId atom, uint32_t from) {
  const RuleInfo &info = graph.ruleOf(node);
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor)
    if (info.isParallel[factor])
      put(node, factor, atom, from);
}

/// Ways round a conflict: where an atom costs something, every parallel factor of the op may take it instead. What
/// arrives by a fallback may meet others, hence a list that grows while it is read.
void Candidates::flowFallbacks() {
  isFallback = true;
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    offerWaysOn(node);
    offerWaysAround(node);
  }
  for (size_t head = 0; head < late.size(); ++head) {
    auto [node, atom] = late[head];
    isLate[node] &= ~maskOf(atom);
    if (!meets(node, atom, /*withFallbacks=*/true))
      continue;
    offerParallel(node, atom, graph.node(node).firstFactor + countLive(node, atom, true).first);
    flow();
  }
  late.clear();
  isFallback = false;
}

/// Fallbacks start anew at every level, from all that has arrived.
void Candidates::restart() {
  allMasks = baseMasks;
  blocked = blockedInBase;
  wantedPartials = carriedPartials = {};
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    for (FactorId factor = 0; factor < static_cast<FactorId>(graph.ruleOf(node).numFactors()); ++factor)
      forEachAtom(base(node, factor), [&](AtomId atom) { noteLate(node, atom); });
}

/// One priority after the other: annotations flow, then fallbacks from all there is, then what ops are measured by.
void Candidates::activate(int64_t priority) {
  level = priority;
  if (priority != priorities.front())
    restart();
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    seed(node, priority);
    if (priority == priorities.front())
      seedPartial(node);
    freeNodes[node] = graph.node(node).kind == NodeKind::Input && saysNothing(graph.node(node).annotation, level);
  }
  flow();
  if (priority == priorities.back())
    offerFree();
  blockedInBase = blocked;
  flowFallbacks();
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    measure(node);
    dropMasks[node] = findDropped(node);
  }
  findPartials();
  findParameterMoves();
}

//===----------------------------------------------------------------------===//
// Figures of ops
//===----------------------------------------------------------------------===//

/// True if every operand that has the factor brings the atom on it, so that a split needs no slicing.
bool Candidates::isBrought(NodeId node, FactorId factor, AtomId atom) const {
  const ShardingRule &rule = *graph.ruleOf(node).rule;
  bool isAny = false;
  for (const SearchEdge &edge : graph.inEdges(node)) {
    const TensorFactors &here = rule.operands[edge.operand];
    if (none_of(here, [&](const DimFactors &dim) { return is_contained(dim, factor); }))
      continue;
    isAny = true;
    if (isFree(edge.producer))
      continue;
    bool brings = false;
    for (auto [mine, theirs] : zip(here, graph.ruleOf(edge.producer).rule->results[edge.result]))
      if (is_contained(mine, factor))
        brings |= any_of(theirs, [&](FactorId other) { return base(edge.producer, other) & maskOf(atom); });
    if (!brings || (graph.node(edge.producer).annotation && !annotatedState(edge.producer).splits(atom)))
      return false;
  }
  return isAny;
}

/// By how much propagation splits the op: the objective holds further splits against that, so that what is split for free is
/// no reward.
void Candidates::measure(NodeId node) {
  if (isValueNode(graph.node(node)))
    return;
  const RuleInfo &info = graph.ruleOf(node);
  AtomMask parallel = 0, splitting = 0;
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor) {
    if (info.isParallel[factor])
      parallel |= base(node, factor);
    else if (info.rule->flops > 0)
      forEachAtom(base(node, factor) & ~splitting, [&](AtomId atom) {
        if (isBrought(node, factor, atom))
          splitting |= maskOf(atom);
      });
  }
  wides[node] = product(parallel);
  splits[node] = info.rule->flops > 0 ? product(parallel | splitting) : 1;
  calms[node] = 0;
  forEachAtom(parallel, [&](AtomId atom) {
    if (!meets(node, atom, /*withFallbacks=*/false))
      calms[node] |= maskOf(atom);
  });
}

/// Calls `callback` with the atoms of each factor, and whether results have it.
template <typename Callback> void Candidates::forEachFactor(NodeId node, Callback callback) const {
  const RuleInfo &info = graph.ruleOf(node);
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor)
    callback(factor, base(node, factor),
             any_of(info.places[factor], [](const FactorPlace &place) { return place.isResult; }));
}

/// Atoms that split what comes in, or what that is made of.
AtomMask Candidates::arrivingAt(NodeId node) const {
  AtomMask atoms = 0;
  for (const SearchEdge &edge : graph.inEdges(node)) {
    atoms |= dropMasks[edge.producer];
    forEachFactor(edge.producer, [&](FactorId, AtomMask mask, bool isResult) { atoms |= isResult ? mask : 0; });
  }
  return atoms;
}

/// A sum over ranks is no drop, whether it leaves the op as terms or is made inside: whoever returns one without a word gets the
/// whole, not a part of it.
AtomMask Candidates::findDropped(NodeId node) const {
  const ShardingRule &rule = *graph.ruleOf(node).rule;
  AtomMask here = arrivingAt(node), goesOn = 0;
  forEachFactor(node, [&](FactorId factor, AtomMask mask, bool isResult) {
    here |= mask;
    bool isSum = rule.isReduction(factor) || any_of(rule.inner, [&](const InnerCost &cost) {
                   return cost.kind == InnerCost::Kind::AllReduce && is_contained(cost.factors, factor);
                 });
    if (isResult ? rule.factorSizes[factor] % product(mask) == 0 : isSum)
      goesOn |= mask;
  });
  return here & ~goesOn;
}

/// Nobody asked for the replicated result, nor for this or that dim of it: what its atoms split is open.
AtomMask Candidates::freeAtOutput(NodeId output) const {
  return graph.node(output).annotation ? 0 : arrivingAt(output);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

AtomMask Candidates::held(NodeId node) const {
  const SearchNode &info = graph.node(node);
  FactorId factor = info.kind == NodeKind::Op ? graph.getProblem().heldFactor(info.id) : -1;
  return factor < 0 ? 0 : annotated(node, factor);
}

std::pair<AtomMask, AtomMask> Candidates::allowed(NodeId node, unsigned choiceNumber) const {
  const Choice &choice = graph.ruleOf(node).rule->choices[choiceNumber];
  AtomMask everything = numAtoms == 64 ? ~AtomMask(0) : (AtomMask(1) << numAtoms) - 1;
  AtomMask inBase = everything, inAll = everything;
  for (FactorId factor : choice.factors) {
    inBase &= base(node, factor);
    inAll &= all(node, factor);
  }
  if (choice.factors.empty() && choice.partial) {
    PartialAtoms arriving = arrivingPartials(node, choice);
    inBase &= arriving.base;
    inAll &= arriving.all;
  }
  // A plan may have all of an attention on each rank. Products that are held with it are split: to have all of them would be a way out.
  bool isOut = choice.isNone() && graph.ruleOf(node).rule->form == Form::Attention;
  if (AtomMask atoms = held(node); atoms && !isOut) {
    bool isHeld = is_contained(choice.factors, graph.getProblem().heldFactor(graph.node(node).id));
    inBase &= isHeld ? everything : ~atoms;
    inAll &= isHeld ? everything : ~atoms;
  }
  return {inBase, inAll};
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// What is made of parameters alone (a cast, a transpose) is a parameter too, split over the atoms of all of them.
void Candidates::findParameterMoves() {
  const Problem &problem = graph.getProblem();
  std::vector<AtomMask> owned(graph.numNodes(), 0);
  auto isFreeParameter = [&](NodeId node) { return isFree(node) && problem.isParameter(graph.valueOf(node)); };
  for (NodeId node = 0; node < graph.numNodes(); ++node) {
    ArrayRef<SearchEdge> edges = graph.inEdges(node);
    if (graph.node(node).kind == NodeKind::Input && problem.isParameter(graph.valueOf(node)))
      for (const AtomList &dim : annotatedState(node).dims)
        for (AtomId atom : dim)
          owned[node] |= maskOf(atom);
    if (all_of(edges, [&](const SearchEdge &e) { return owned[e.producer] || isFreeParameter(e.producer); }))
      for (const SearchEdge &edge : edges)
        owned[node] |= owned[edge.producer];
    for (auto [index, edge] : enumerate(edges))
      parameterMoves[graph.node(node).firstIn + index] =
          owned[edge.producer] && !owned[node] && graph.node(node).kind == NodeKind::Op &&
          (keepParameters || !othersBring(node, edge.operand, owned[edge.producer]));
  }
  // What several users share moves for all of them: dear if it is for each.
  for (NodeId node = 0; node < graph.numNodes(); ++node)
    if (ArrayRef<EdgeId> uses = graph.outEdges(node); graph.node(node).kind == NodeKind::Hub && owned[node])
      parameterMoves[graph.node(node).firstIn] = all_of(uses, [&](EdgeId use) { return parameterMoves[use]; });
}

/// True if any of `atoms` comes to a factor of the op that the operand does not have.
bool Candidates::othersBring(NodeId node, unsigned operand, AtomMask atoms) const {
  const RuleInfo &info = graph.ruleOf(node);
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor) {
    bool isMine = any_of(info.places[factor],
                         [&](const FactorPlace &place) { return !place.isResult && place.tensor == operand; });
    if (!isMine && (base(node, factor) & atoms))
      return true;
  }
  return false;
}
