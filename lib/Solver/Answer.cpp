//===- Answer.cpp - strategies become a decision --------------------------===//
//
// What ops want and make is read off their strategies. How an input is stored is decided here: its annotation, and in open dims
// what all its users want in common, so that nobody pays for it. Then the bytes are counted, as the program will send
// them.
//
//===----------------------------------------------------------------------===//
#include "Search.h"
#include "cleave/Sharding/ServeWants.h"
#include "llvm/ADT/STLExtras.h"

using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// A constraint splits what its annotation says.
void Solver::Search::answerConstraint(OpId op) {
  const RuleInfo rule(problem.rule(problem.ruleOf(op)));
  StrategyId strategy = present[graph.nodeOfOp(op)];
  const State &state = decision.states[strategies.resultState(strategy, 0)];
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.numFactors()); ++factor)
    for (AtomId atom : state.dims[rule.places[factor].front().dim])
      decision.choices[size_t(op) * problem.getMesh().numAtoms() + atom] = rule.singleSplit[factor];
}

void Solver::Search::answerOps() {
  size_t numAtoms = problem.getMesh().numAtoms();
  decision.choices.assign(problem.numOps() * numAtoms, 0);
  decision.operandStates.resize(problem.numOperands());
  decision.resultStates.resize(problem.numResults());
  decision.innerBytes.assign(problem.numOps(), 0);
  decision.wireBytes = 0;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    StrategyId strategy = present[graph.nodeOfOp(op)];
    for (size_t index = 0; index < problem.operands(op).size(); ++index)
      decision.operandStates[problem.firstOperand(op) + index] = strategies.operandState(strategy, index);
    for (size_t index = 0; index < problem.results(op).size(); ++index)
      decision.resultStates[problem.firstResult(op) + index] = strategies.resultState(strategy, index);
    if (problem.isConstraint(op)) {
      answerConstraint(op);
      continue;
    }
    llvm::copy(strategies.choices(strategy), decision.choices.begin() + op * numAtoms);
    decision.innerBytes[op] = strategies[strategy].innerBytes;
    decision.wireBytes += strategies[strategy].innerBytes;
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Splits `list` to the atoms that it has in common with the front of `other`.
static void keepCommonPrefix(AtomList &list, ArrayRef<AtomId> other) {
  size_t length = 0;
  while (length < list.size() && length < other.size() && list[length] == other[length])
    ++length;
  list.truncate(length);
}

/// The annotated state of an input, with its open dims split further where all users want that.
State Solver::Search::storedState(ValueId value, ArrayRef<StateId> wants) {
  NodeId node = graph.inputNode(value);
  if (node == kNone || wants.empty()) {
    State state = State::replicated(problem.shape(value).size());
    if (const Annotation *annotation = problem.annotation(value))
      for (auto [dim, annotated] : zip(state.dims, annotation->dims))
        dim = annotated.atoms;
    if (const Annotation *annotation = problem.annotation(value))
      for (AtomId atom : annotation->partial)
        state.addPartial(atom, annotation->partialKind);
    return state;
  }
  if (problem.isStorageDecided(value))
    return decision.states[strategies.resultState(present[node], 0)];
  State annotated = candidates.annotatedState(node), stored = annotated;
  for (auto [index, dim] : enumerate(stored.dims)) {
    AtomList common = decision.states[wants.front()].dims[index];
    for (StateId want : wants)
      keepCommonPrefix(common, decision.states[want].dims[index]);
    AtomMask open = candidates.openAtoms(node, index);
    size_t keptAtoms = dim.size();
    if (common.size() <= keptAtoms || !std::equal(dim.begin(), dim.end(), common.begin()))
      continue;
    for (AtomId atom : ArrayRef<AtomId>(common).drop_front(keptAtoms)) {
      if (!(open & maskOf(atom)))
        break;
      dim.push_back(atom);
    }
    // What it is split further by each user slices off by itself.
    bool isKeptEven = static_cast<int32_t>(index) == problem.evenDimOfInput(value);
    while (isKeptEven && dim.size() > keptAtoms && problem.shape(value)[index] % problem.getMesh().product(dim) != 0)
      dim.pop_back();
  }
  // Shards that do not nest could make it more expensive after all.
  StateId plain = decision.states.intern(annotated), split = decision.states.intern(stored);
  bool isNoDearer = all_of(wants, [&](StateId want) {
    return costs.cost(shapeIds[value], split, want) <= costs.cost(shapeIds[value], plain, want);
  });
  return isNoDearer ? stored : annotated;
}

/// Bytes of one reshard, each collective rounded up as in the program.
int64_t Solver::Search::reshardBytes(ShapeId shape, StateId from, StateId to) {
  if (costs.cost(shape, from, to) == 0)
    return 0;
  auto [entry, isNew] = knownBytes.try_emplace({shape, uint64_t(from) << 32 | to}, 0);
  if (isNew)
    if (std::optional<ReshardPlan> plan = costs.plan(shape, from, to))
      for (const ReshardStep &step : plan->steps)
        entry->second += step.bytes;
  return entry->second;
}

/// By the function that reshards are inserted by: the program must send what is counted here.
int64_t Solver::Search::serveBytes(ValueId value, ArrayRef<StateId> wants) {
  StateId have = decision.valueStates[value];
  SmallVector<StateId, 4> distinct, copies{have};
  for (StateId want : wants)
    if (want != have && !is_contained(distinct, want))
      distinct.push_back(want);
  if (distinct.empty())
    return 0;
  int64_t bytes = 0;
  StateId replicated = decision.states.intern(State::replicated(problem.shape(value).size()));
  for (const ServedWant &served : serveWants(costs, shapeIds[value], have, distinct, replicated)) {
    StateId copy = served.want < distinct.size() ? distinct[served.want] : replicated;
    bytes += reshardBytes(shapeIds[value], copies[served.source], copy);
    copies.push_back(copy);
  }
  return bytes;
}

void Solver::Search::answerValues() {
  // Who wants each value how: per value its uses, one after the other.
  std::vector<uint32_t> first(problem.numValues() + 1, 0);
  auto forEachUse = [&](auto callback) {
    for (OpId op = 0; op < problem.numOps(); ++op)
      for (auto [index, operand] : enumerate(problem.operands(op)))
        callback(operand, decision.operandStates[problem.firstOperand(op) + index]);
    for (OutputId output = 0; output < problem.numOutputs(); ++output)
      if (NodeId node = graph.nodeOfOutput(output); node != kNone)
        callback(problem.outputValue(output), strategies.operandState(present[node], 0));
  };
  forEachUse([&](ValueId value, StateId) { ++first[value + 1]; });
  for (ValueId value = 0; value < problem.numValues(); ++value)
    first[value + 1] += first[value];
  std::vector<StateId> wants(first.back());
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  forEachUse([&](ValueId value, StateId state) { wants[next[value]++] = state; });

  decision.valueStates.resize(problem.numValues());
  valueBytes.assign(problem.numValues(), 0);
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    ArrayRef<StateId> mine = ArrayRef<StateId>(wants).slice(first[value], first[value + 1] - first[value]);
    if (OpId producer = problem.producer(value); producer == kNone) {
      decision.valueStates[value] = decision.states.intern(storedState(value, mine));
    } else {
      auto [node, result] = graph.sharedAt(value);
      StateId made = decision.resultStates[problem.firstResult(producer) + problem.resultIndex(value)];
      decision.valueStates[value] = strategies.resultState(present[node], result);
      valueBytes[value] += reshardBytes(shapeIds[value], made, decision.valueStates[value]);
    }
    valueBytes[value] += serveBytes(value, mine);
    decision.wireBytes += valueBytes[value];
  }
  decision.outputStates.clear();
  for (OutputId output = 0; output < problem.numOutputs(); ++output) {
    NodeId node = graph.nodeOfOutput(output);
    decision.outputStates.push_back(node == kNone ? decision.valueStates[problem.outputValue(output)]
                                                  : strategies.operandState(present[node], 0));
  }
}

//===----------------------------------------------------------------------===//
// What is not split
//===----------------------------------------------------------------------===//

/// Says why `atom`, which comes to the op, does nothing there.
void Solver::Search::listForcedAt(OpId op, AtomId atom) {
  NodeId node = graph.nodeOfOp(op);
  const RuleInfo &info = graph.ruleOf(node);
  FactorId reached = -1;
  for (FactorId factor = info.numFactors() - 1; factor >= 0; --factor)
    if (candidates.annotated(node, factor) & maskOf(atom))
      reached = factor;
  if (reached < 0)
    return;
  ForcedReplication forced{op, reached, atom, ForcedReplication::Reason::NoChoice, 0};
  std::optional<int64_t> cheapest;
  for (auto [index, choice] : enumerate(info.rule->choices)) {
    if (choice.factors.empty() || !(candidates.allowed(node, index).first & maskOf(atom)))
      continue;
    if (!cheapest && forced.reason == ForcedReplication::Reason::NoChoice) {
      forced.reason = ForcedReplication::Reason::AxisTaken;
      forced.factor = choice.factors.front();
    }
    SmallVector<ChoiceId, 8> choices(strategies.choices(present[node]));
    choices[atom] = index;
    StrategyId strategy = strategies.strategy(signatures[node], choices);
    if (!strategies[strategy].isValid)
      continue;
    int64_t cost = descent->costAlone(node, strategy);
    if (!cheapest || cost < *cheapest) {
      cheapest = cost;
      forced.factor = choice.factors.front();
    }
  }
  if (cheapest) {
    forced.reason = ForcedReplication::Reason::Dearer;
    forced.extraBytes = std::max<int64_t>(0, options.costs.toBytes(*cheapest));
  }
  decision.forced.push_back(forced);
}

/// Notes that `atom` comes along a factor that the op cannot split, and splits another one.
void Solver::Search::listMovedAt(OpId op, AtomId atom) {
  NodeId node = graph.nodeOfOp(op);
  const RuleInfo &info = graph.ruleOf(node);
  for (FactorId factor = 0; factor < static_cast<FactorId>(info.numFactors()); ++factor) {
    auto splitsFactor = [&](const Choice &choice) { return is_contained(choice.factors, factor); };
    if ((candidates.annotated(node, factor) & maskOf(atom)) && none_of(info.rule->choices, splitsFactor))
      return decision.forced.push_back({op, factor, atom, ForcedReplication::Reason::Moved, 0});
  }
}

/// What users are told (remarks, report): an atom that comes to an op by an annotation and splits nothing there, or something
/// else.
void Solver::Search::listForced() {
  size_t numAtoms = problem.getMesh().numAtoms();
  auto isIdle = [&](OpId op, AtomId atom) {
    return !problem.isConstraint(op) && decision.choices[op * numAtoms + atom] == 0;
  };
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (AtomId atom = 0; atom < numAtoms; ++atom)
      if (isIdle(op, atom))
        listForcedAt(op, atom);
      else if (!problem.isConstraint(op))
        listMovedAt(op, atom);
  for (const RefusedAtom &refused : candidates.getRefused())
    if (OpId op = graph.node(refused.node).id; isIdle(op, refused.atom))
      decision.forced.push_back({op, refused.factor, refused.atom, ForcedReplication::Reason::NotDividing, 0});
  // One reason per op and atom; that something else does not divide comes last.
  auto place = [](const ForcedReplication &forced) { return std::pair(forced.op, forced.atom); };
  auto key = [&](const ForcedReplication &forced) {
    return std::tuple(place(forced), forced.reason == ForcedReplication::Reason::NotDividing, forced.factor);
  };
  llvm::sort(decision.forced, [&](const auto &lhs, const auto &rhs) { return key(lhs) < key(rhs); });
  auto last = std::unique(decision.forced.begin(), decision.forced.end(),
                          [&](const auto &lhs, const auto &rhs) { return place(lhs) == place(rhs); });
  decision.forced.erase(last, decision.forced.end());
}

void Solver::Search::answer() {
  answerOps();
  answerValues();
  listForced();
}
