//===- Explanation.cpp - why values are sharded as they are ---------------===//
//
// spmd-propagate leaves how it decided. Each axis of each dim has a chain of causes there, from the op that took it over
// back to the annotation that it started from (the plan's line); here it is put into the words of the model. Names and places
// are taken right after the decision, so that the module may go on while it is asked.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Explanation.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Packed.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
/// What a value is called.
struct ValueNames {
  ValueNames(Value value);

  std::string shown, type, node, holds;
  std::vector<std::string> names;
  /// The module that it is made in, or that reads it where it is a parameter, and those that it goes to.
  std::vector<std::string> modules, readers;
  bool isPart = false; ///< one of the parts that a parameter is loaded in
};

struct OpNames {
  std::string name, node;
};
} // namespace

/// Parts of a fused weight have one name and are told apart by where they begin.
static std::string getShownName(Value value, ArrayRef<StringRef> names) {
  if (auto load = value.getDefiningOp<nn::LoadOp>(); load && load.isPart())
    return llvm::formatv("{0} at [{1:$[, ]}]", names.front(),
                         llvm::make_range(load.getStarts()->begin(), load.getStarts()->end()));
  if (!names.empty())
    return names.front().str();
  if (Operation *op = value.getDefiningOp()) {
    std::string node = nn::describeNode(op);
    return "a value inside " + (node.empty() ? op->getName().getStringRef().str() : node);
  }
  return "argument " + std::to_string(cast<BlockArgument>(value).getArgNumber());
}

/// Strings of our own: the module goes on, and the ops that names belong to go.
ValueNames::ValueNames(Value value) : type(formatType(cast<RankedTensorType>(value.getType()))) {
  SmallVector<StringRef, 1> found = nn::getTensorNames(value);
  shown = getShownName(value, found);
  if (RankedTensorType held = nn::getHeldType(value))
    holds = formatType(held);
  names.assign(found.begin(), found.end());
  if (Operation *op = value.getDefiningOp())
    node = nn::describeNode(op);
  auto load = value.getDefiningOp<nn::LoadOp>();
  isPart = load && load.isPart();
  // An op of no node is in no module, and so counts as outside of each.
  auto list = [](Operation *op, std::vector<std::string> &paths) {
    SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(op);
    if (infos.empty())
      paths.emplace_back();
    for (const nn::NodeInfo &info : infos)
      paths.push_back(info.getModule());
  };
  for (Operation *user : value.getUsers())
    list(user, readers);
  if (load)
    modules = std::exchange(readers, {});
  else if (Operation *op = value.getDefiningOp())
    list(op, modules);
}

/// A module is in all whose names its own begins with: `a.b.c` is in `a.b` and `a`.
/// True if one of `paths` is a module that matches, or in one; `all` if each is.
static bool isInModule(ArrayRef<std::string> paths, const NamePattern &pattern, bool all = false) {
  auto isIn = [&](StringRef path) {
    for (; !path.empty(); path = path.contains('.') ? path.rsplit('.').first : StringRef())
      if (pattern.matches(path))
        return true;
    return false;
  };
  return all ? llvm::all_of(paths, isIn) : llvm::any_of(paths, isIn);
}

/// The end of a chain: the place of what was asked for; of what Cleave added itself, its reason, which is all of that location. A rule that
/// nobody wrote has no line: it was found, or follows from a style.
static CauseStep describeEnd(Location loc) {
  if (auto reason = dyn_cast<NameLoc>(loc))
    return {CauseStep::Kind::Chosen, reason.getName().str(), "", ""};
  auto file = loc->findInstanceOf<FileLineColLoc>();
  std::string place = "the program";
  if (file && file.getLine() == 0)
    place = "a rule that was made for this model";
  else if (file)
    place = llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(), file.getLine(), file.getColumn());
  return {CauseStep::Kind::Annotation, std::move(place), "", ""};
}

//===----------------------------------------------------------------------===//
// Causes
//===----------------------------------------------------------------------===//

struct Explainer::State {
  State(Compilation &compilation, Decisions decisions, const FunctionProblem &source);

  ValueExplanation explain(ValueId value) const;
  /// The values with names that match, or else the first result of each node whose name does.
  std::vector<ValueExplanation> explain(llvm::function_ref<bool(StringRef)> matches) const;
  /// Of modules that match: the parameters that they read, and what they make that others read.
  std::vector<ValueExplanation> explainModules(const NamePattern &pattern) const;
  bool isReplicated(ValueId value) const { return getState(value).isReplicated(); }
  ShardedValue describe(ValueId value) const;

  Compilation &compilation;
  std::vector<ValueNames> values;
  const Problem &problem;

private:
  const spmd::State &getState(ValueId value) const { return decision.states[decision.valueStates[value]]; }
  std::string format(const spmd::State &state) const {
    return spmd::toString(atoms.getAtoms(), atoms.getAxisNames(), state);
  }
  unsigned axisOf(AtomId atom) const { return atoms.getAtoms().axisOf(atom); }
  std::string getAxisName(AtomId atom) const { return atoms.getAxisNames()[axisOf(atom)]; }
  std::string describeFactor(OpId op, FactorId factor) const;
  CauseStep describe(const CauseLink &link) const;
  std::vector<CauseStep> describe(ArrayRef<CauseLink> chain) const;
  std::vector<CauseStep> explainPartial(ValueId value, AtomId atom) const;
  void explainDim(ValueId value, unsigned dim, std::vector<AxisExplanation> &axes) const;
  void explainReplicated(ValueId value, ValueExplanation &explanation) const;
  std::optional<Alternative> findNextBest(ValueId value, AtomId atom) const;

  Decisions decisions;
  const MeshAtoms &atoms;
  const Solver &solver;
  const Decision &decision;
  std::vector<OpNames> ops;
  std::vector<std::string> outputs;
  std::map<CauseId, CauseStep> annotations; ///< their places, or reasons
};

Explainer::State::State(Compilation &compilation, Decisions given, const FunctionProblem &source)
    : compilation(compilation), problem(source.getProblem()), decisions(std::move(given)), atoms(*decisions.atoms),
      solver(source.getSolver()), decision(source.getDecision()) {
  for (auto [id, value] : llvm::enumerate(source.getValues())) {
    values.emplace_back(value);
    if (const spmd::Annotation *annotation = problem.annotation(id))
      annotations[annotation->cause] = describeEnd(source.getAnnotationLoc(annotation->cause));
  }
  for (Operation *op : source.getOps())
    ops.push_back({op->getName().getStringRef().str(), nn::describeNode(op)});
  // What a model gives is called as its callers call it, too: of a step that is `next(w)`, which no node makes under that name.
  for (OutputId output = 0; output < problem.numOutputs(); ++output) {
    outputs.push_back(nn::getResultName(source.getFunction(), output).str());
    ValueNames &given = values[problem.outputValue(output)];
    if (given.names.empty())
      given.shown = outputs.back();
    if (!llvm::is_contained(given.names, outputs.back()))
      given.names.push_back(outputs.back());
  }
}

bool CauseStep::operator==(const CauseStep &other) const {
  return std::tie(kind, name, node, dim, avoidsConflict) ==
         std::tie(other.kind, other.name, other.node, other.dim, other.avoidsConflict);
}

/// `dim 1 of the result` or `dim 0 of operand 1`: where a factor stands first.
std::string Explainer::State::describeFactor(OpId op, FactorId factor) const {
  const ShardingRule &rule = problem.rule(problem.ruleOf(op));
  auto find = [&](const TensorFactors &dims) {
    return llvm::find_if(dims, [&](const DimFactors &factors) { return llvm::is_contained(factors, factor); }) -
           dims.begin();
  };
  for (const TensorFactors &dims : rule.results)
    if (size_t dim = find(dims); dim < dims.size())
      return llvm::formatv("dim {0} of the result", dim);
  for (auto [index, dims] : llvm::enumerate(rule.operands))
    if (size_t dim = find(dims); dim < dims.size())
      return llvm::formatv("dim {0} of operand {1}", dim, index);
  return "a dim of size " + std::to_string(rule.factorSizes[factor]);
}

CauseStep Explainer::State::describe(const CauseLink &link) const {
  std::string dim = "dim " + std::to_string(link.factor);
  switch (link.kind) {
  case CauseLink::Kind::Op:
    return {CauseStep::Kind::Op, ops[link.id].name, ops[link.id].node, describeFactor(link.id, link.factor),
            link.isFallback};
  case CauseLink::Kind::Value:
    return {CauseStep::Kind::Value, values[link.id].shown, "", dim};
  case CauseLink::Kind::Output:
    return {CauseStep::Kind::Output, std::to_string(link.id), "", dim};
  case CauseLink::Kind::Annotation:
    return annotations.at(link.id);
  case CauseLink::Kind::Free:
    return {CauseStep::Kind::Free, "", "", ""};
  }
  return {};
}

std::vector<CauseStep> Explainer::State::describe(ArrayRef<CauseLink> chain) const {
  std::vector<CauseStep> steps;
  for (const CauseLink &link : chain)
    if (CauseStep step = describe(link); steps.empty() || !(steps.back() == step))
      steps.push_back(std::move(step));
  return steps;
}

/// A partial value starts where an op sums over a dim that is split, or where an annotation says so; other ops pass it on.
std::vector<CauseStep> Explainer::State::explainPartial(ValueId value, AtomId atom) const {
  if (const spmd::Annotation *annotation = problem.annotation(value))
    return {annotations.at(annotation->cause)};
  OpId op = problem.producer(value);
  if (op == kNone || problem.isConstraint(op))
    return {};
  for (auto [index, operand] : llvm::enumerate(problem.operands(op))) {
    const spmd::State &state = decision.states[decision.operandStates[problem.firstOperand(op) + index]];
    if (state.isPartialOver(atom))
      return {{CauseStep::Kind::PassedOn, values[operand].shown, "", ""}};
    for (auto [dim, list] : llvm::enumerate(state.dims))
      if (llvm::is_contained(list, atom))
        for (FactorId factor : problem.rule(problem.ruleOf(op)).operands[index][dim])
          if (auto chain = solver.explain(op, factor, atom); !chain.empty())
            return describe(chain);
  }
  return {};
}

/// Of what an op makes: how an argument is stored is no choice among several.
std::optional<Alternative> Explainer::State::findNextBest(ValueId value, AtomId atom) const {
  std::optional<NextBest> next = solver.findNextBest(value, atom);
  if (!next)
    return std::nullopt;
  CostModel costs = compilation.getOptions().sharding.getDecidingCosts();
  bool isOfCluster = compilation.getPlan() && compilation.getPlan()->cluster && costs.perNs > 0;
  double ns = isOfCluster ? static_cast<double>(next->bytes * costs.unitsPerToldByte()) / costs.perNs : 0;
  return Alternative{next->bytes, format(next->result), ns};
}

/// One chain per axis: the atoms of an axis that came the same way, side by side, count as one.
void Explainer::State::explainDim(ValueId value, unsigned dim, std::vector<AxisExplanation> &axes) const {
  ArrayRef<AtomId> left = getState(value).dims[dim];
  while (!left.empty()) {
    auto chainOf = [&](AtomId atom) { return describe(solver.explainValue(value, dim, atom)); };
    std::vector<CauseStep> chain = chainOf(left.front());
    size_t count = 1;
    while (count < left.size() && axisOf(left[count]) == axisOf(left.front()) && chainOf(left[count]) == chain)
      ++count;
    axes.push_back(
        {dim, formatAxes(atoms.toAxes(left.take_front(count))), std::move(chain), findNextBest(value, left.front())});
    left = left.drop_front(count);
  }
}

void Explainer::State::explainReplicated(ValueId value, ValueExplanation &explanation) const {
  llvm::SmallSetVector<unsigned, 4> reached;
  for (AtomId atom = 0; atom < static_cast<AtomId>(atoms.getAtoms().numAtoms()); ++atom) {
    bool isReached = false;
    for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim)
      isReached |= !solver.explainValue(value, dim, atom).empty();
    if (!isReached || !reached.insert(axisOf(atom)))
      continue;
    explanation.isReached = true;
    if (std::optional<Alternative> next = findNextBest(value, atom))
      explanation.alternatives.push_back(std::move(*next));
  }
}

ShardedValue Explainer::State::describe(ValueId value) const {
  return {values[value].shown, values[value].type, format(getState(value)), values[value].holds};
}

ValueExplanation Explainer::State::explain(ValueId value) const {
  ValueExplanation explanation;
  static_cast<ShardedValue &>(explanation) = describe(value);
  for (OutputId output = 0; output < problem.numOutputs(); ++output)
    if (const spmd::State &state = decision.states[decision.outputStates[output]];
        problem.outputValue(output) == value && !(state == getState(value)))
      explanation.returned.push_back({outputs[output], explanation.type, format(state)});
  for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim)
    explainDim(value, dim, explanation.axes);
  for (AtomId atom : getState(value).partial)
    explanation.axes.push_back({std::nullopt, getAxisName(atom), explainPartial(value, atom), std::nullopt});
  explanation.isReplicated = isReplicated(value);
  if (explanation.isReplicated)
    explainReplicated(value, explanation);
  for (const ForcedReplication &forced : decision.forced)
    if (forced.op == problem.producer(value))
      explanation.unfollowed.push_back(getAxisName(forced.atom));
  return explanation;
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

std::vector<ValueExplanation> Explainer::State::explain(llvm::function_ref<bool(StringRef)> matches) const {
  // An annotation for one of several equal values stands behind them, under the same name: the last one counts. A parameter
  // may be loaded in parts, which all count.
  llvm::MapVector<StringRef, SmallVector<ValueId, 1>> byTensor;
  std::map<StringRef, ValueId> byNode;
  for (auto [id, value] : llvm::enumerate(values)) {
    for (StringRef name : value.names) {
      if (!matches(name))
        continue;
      SmallVector<ValueId, 1> &same = byTensor[name];
      if (!value.isPart)
        same.clear();
      same.push_back(id);
    }
    if (!value.node.empty() && matches(value.node))
      byNode[value.node] = id;
  }
  std::set<ValueId> found; // one value may have several names
  for (const auto &[name, same] : byTensor)
    found.insert(same.begin(), same.end());
  for (const auto &[node, value] : byNode)
    if (byTensor.empty())
      found.insert(value);
  std::vector<ValueExplanation> explanations;
  for (ValueId value : found)
    explanations.push_back(explain(value));
  return explanations;
}

/// What nobody reads is what the model gives.
std::vector<ValueExplanation> Explainer::State::explainModules(const NamePattern &pattern) const {
  std::vector<ValueExplanation> explanations;
  for (auto [id, value] : llvm::enumerate(values))
    if (isInModule(value.modules, pattern) && !isInModule(value.readers, pattern, /*all=*/!value.readers.empty()))
      explanations.push_back(explain(id));
  return explanations;
}

std::unique_ptr<Explainer> Explainer::create(Compilation &compilation) {
  if (Phase phase = compilation.getPhase(); phase > Phase::Annotated) {
    compilation.fail(makeError("{0} is {1} already: explain decides anew, and needs a file from before that",
                               compilation.getOptions().model, toString(phase)));
    return nullptr;
  }
  Decisions decisions;
  compilation.keepDecisions(&decisions);
  func::FuncOp func = compilation.advance(Phase::Propagated) ? compilation.getEntry() : nullptr;
  compilation.keepDecisions(nullptr);
  if (!func)
    return nullptr;
  const FunctionProblem *source = decisions.find(func);
  return std::unique_ptr<Explainer>(new Explainer(std::make_unique<State>(compilation, std::move(decisions), *source)));
}

Explainer::Explainer(std::unique_ptr<State> state) : state(std::move(state)) {}
Explainer::~Explainer() = default;

std::vector<ShardedValue> Explainer::getSharded() const {
  std::vector<ShardedValue> sharded;
  for (ValueId value = 0; value < state->problem.numValues(); ++value)
    if (!state->isReplicated(value))
      sharded.push_back(state->describe(value));
  return sharded;
}

std::optional<std::vector<ValueExplanation>> Explainer::explain(StringRef text) const {
  bool isModule = text.consume_front("module:");
  llvm::Expected<NamePattern> pattern = NamePattern::create(text);
  if (!pattern) {
    state->compilation.fail(makeError("{0} is not a pattern: {1}", quote(text), llvm::toString(pattern.takeError())),
                            Blame::Options);
    return std::nullopt;
  }
  std::vector<ValueExplanation> found;
  if (!isModule)
    found = state->explain([&](StringRef name) { return pattern->matches(name); });
  if (found.empty())
    found = state->explainModules(*pattern);
  if (!found.empty())
    return found;
  llvm::StringSet<> modules;
  SmallVector<StringRef> names;
  for (const ValueNames &value : state->values) {
    if (!isModule)
      llvm::append_range(names, value.names);
    for (StringRef module : value.modules)
      if (!module.empty() && modules.insert(module).second)
        names.push_back(module);
  }
  StringRef what = isModule ? "module" : modules.empty() ? "tensor or node" : "tensor, node or module";
  state->compilation.fail(makeError("{0}: no {1} is called {2}{3}", state->compilation.getOptions().model, what,
                                    quote(text), suggestPatterns(text, names)),
                          Blame::Options);
  return std::nullopt;
}

std::vector<ValueExplanation> Explainer::explainName(StringRef name) const {
  return state->explain([&](StringRef other) { return other == name; });
}

std::optional<Alternative> Explainer::findNextBest(StringRef name) const {
  std::optional<Alternative> least;
  auto offer = [&](const Alternative &other) {
    if (!least || other.bytes < least->bytes)
      least = other;
  };
  for (const ValueExplanation &value : explainName(name)) {
    for (const AxisExplanation &axis : value.axes)
      if (axis.nextBest)
        offer(*axis.nextBest);
    llvm::for_each(value.alternatives, offer);
  }
  return least;
}
