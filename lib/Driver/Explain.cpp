//===- Explain.cpp - why is it sharded so? --------------------------------===//
//
// What spmd-propagate decided is kept, and asked: each axis of each dim has a chain of causes, from the op
// that took it over back to the wish that it started from (the plan's line). Without a value: one line per sharded
// value, then what each collective of the partitioned program is for, by number; `#3` asks for one of them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"
#include "cleave/Driver/ReportFile.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Pipelines/Report.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/Status.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;
using namespace cleave::spmd;

namespace {

/// Prints what was decided about values of one function.
class Explainer {
public:
  Explainer(const FunctionProblem &source, MeshAtoms &atoms, llvm::raw_ostream &os)
      : source(source), problem(source.getProblem()), decision(source.getDecision()), atoms(atoms), os(os) {}

  /// One line: its name and sharding.
  void printLine(ValueId value) const;
  /// The line (and before it that of the result, if the function returns it otherwise), the chain of causes of each
  /// axis, and what the next best choice would cost.
  void printChains(ValueId value) const;
  /// The values with ONNX names that match, or else the first result of each node whose name does.
  SmallVector<ValueId, 1> find(const NamePattern &pattern) const;
  /// `; did you mean ..?`, or nothing.
  std::string suggest(StringRef name) const;
  bool isSharded(ValueId value) const { return !atoms.toSharding(getState(value)).isReplicated(); }

private:
  const State &getState(ValueId value) const { return decision.states[decision.valueStates[value]]; }
  std::string getName(ValueId value) const;
  std::string format(const State &state) const;
  std::string formatAxes(ArrayRef<AtomId> list) const { return spmd::formatAxes(atoms.toAxes(list)); }
  std::string describe(const CauseLink &link) const;
  std::string describeFactor(OpId op, FactorId factor) const;
  std::string describePlace(Location loc) const;
  /// One line per link; equal ones once.
  std::vector<std::string> describe(ArrayRef<CauseLink> chain) const;
  void printChain(ArrayRef<std::string> lines) const;
  void printOutputs(ValueId value) const;
  void printDim(ValueId value, unsigned dim) const;
  void printPartial(ValueId value, AtomId atom) const;
  void printWhole(ValueId value) const;
  void printPrice(ValueId value, AtomId atom) const;

  const FunctionProblem &source;
  const Problem &problem;
  const Decision &decision;
  MeshAtoms &atoms;
  llvm::raw_ostream &os;
};

std::string Explainer::getName(ValueId id) const {
  Value value = source.getValues()[id];
  auto names = nn::getTensorNames(value);
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

std::string Explainer::format(const State &state) const { return formatSharding(atoms.toSharding(state)); }

void Explainer::printLine(ValueId id) const {
  os << getName(id) << ": " << formatType(cast<RankedTensorType>(source.getValues()[id].getType())) << ' '
     << format(getState(id)) << '\n';
}

/// `dim 1 of the result` or `dim 0 of operand 1`: where a factor stands first.
std::string Explainer::describeFactor(OpId op, FactorId factor) const {
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

std::string Explainer::describePlace(Location loc) const {
  std::string text;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text = llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(), file.getLine(), file.getColumn());
    return WalkResult::interrupt();
  });
  return text.empty() ? "the program" : text;
}

std::string Explainer::describe(const CauseLink &link) const {
  switch (link.kind) {
  case CauseLink::Kind::Op: {
    Operation *op = source.getOps()[link.id];
    std::string node = nn::describeNode(op);
    return (op->getName().getStringRef() + (node.empty() ? "" : " " + node) + ", " +
            describeFactor(link.id, link.factor) + (link.isEscape ? ", to avoid a conflict" : ""))
        .str();
  }
  case CauseLink::Kind::Value:
    return "dim " + std::to_string(link.factor) + " of " + getName(link.id);
  case CauseLink::Kind::Output:
    return "dim " + std::to_string(link.factor) + " of output " + std::to_string(link.id);
  case CauseLink::Kind::Wish:
    return "asked for in " + describePlace(source.getWishLoc(link.id));
  }
  return "";
}

std::vector<std::string> Explainer::describe(ArrayRef<CauseLink> chain) const {
  std::vector<std::string> lines;
  for (const CauseLink &link : chain)
    if (std::string line = describe(link); lines.empty() || lines.back() != line)
      lines.push_back(std::move(line));
  return lines;
}

void Explainer::printChain(ArrayRef<std::string> lines) const {
  for (auto [index, line] : llvm::enumerate(lines))
    os << (index ? "    from " : "    ") << line << '\n';
  if (lines.empty())
    os << "    chosen because it costs less, without a wish\n";
}

/// A partial value starts where an op sums over a dim that is cut, or where a wish says so; other ops pass it on.
void Explainer::printPartial(ValueId value, AtomId atom) const {
  os << "  partial over " << atoms.getAxisNames()[atoms.getAtoms().axisOf(atom)] << ":\n";
  if (const spmd::Wish *wish = problem.wish(value)) {
    os << "    asked for in " << describePlace(source.getWishLoc(wish->cause)) << '\n';
    return;
  }
  OpId op = problem.producer(value);
  if (op == kNone || problem.isConstraint(op))
    return;
  for (auto [index, operand] : llvm::enumerate(problem.operands(op))) {
    const State &state = decision.states[decision.operandStates[problem.firstOperand(op) + index]];
    if (state.isPartialOver(atom)) {
      os << "    passed on from " << getName(operand) << '\n';
      return;
    }
    for (auto [dim, list] : llvm::enumerate(state.dims))
      if (llvm::is_contained(list, atom))
        for (FactorId factor : problem.rule(problem.ruleOf(op)).operands[index][dim])
          if (auto chain = source.getSolver().explain(op, factor, atom); !chain.empty())
            return printChain(describe(chain));
  }
}

void Explainer::printPrice(ValueId value, AtomId atom) const {
  OpId producer = problem.producer(value);
  if (producer == kNone || problem.isConstraint(producer))
    return;
  if (std::optional<NextBest> next = source.getSolver().findNextBest(producer, problem.resultIndex(value), atom))
    os << "    the next best choice here costs " << next->bytes
       << " bytes more, surcharges of the objective included: " << format(next->result) << '\n';
}

/// One chain per axis: the atoms of an axis that came the same way, side by side, count as one.
void Explainer::printDim(ValueId value, unsigned dim) const {
  ArrayRef<AtomId> left = getState(value).dims[dim];
  while (!left.empty()) {
    auto chainOf = [&](AtomId atom) { return describe(source.getSolver().explainValue(value, dim, atom)); };
    auto axisOf = [&](AtomId atom) { return atoms.getAtoms().axisOf(atom); };
    std::vector<std::string> chain = chainOf(left.front());
    size_t count = 1;
    while (count < left.size() && axisOf(left[count]) == axisOf(left.front()) && chainOf(left[count]) == chain)
      ++count;
    os << "  dim " << dim << " over " << formatAxes(left.take_front(count)) << ":\n";
    printChain(chain);
    printPrice(value, left.front());
    left = left.drop_front(count);
  }
}

/// What the function returns, where that is sharded otherwise than the value is inside.
void Explainer::printOutputs(ValueId value) const {
  for (OutputId output = 0; output < problem.numOutputs(); ++output) {
    const State &state = decision.states[decision.outputStates[output]];
    if (problem.outputValue(output) != value || state == getState(value))
      continue;
    os << nn::getResultName(source.getFunction(), output) << ": "
       << formatType(cast<RankedTensorType>(source.getValues()[value].getType())) << ' ' << format(state)
       << ", as it is returned; inside:\n";
  }
}

void Explainer::printWhole(ValueId value) const {
  SmallVector<AtomId> reached; // one per axis
  for (AtomId atom = 0; atom < static_cast<AtomId>(atoms.getAtoms().numAtoms()); ++atom) {
    bool isReached = false;
    for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim)
      isReached |= !source.getSolver().explainValue(value, dim, atom).empty();
    auto isSameAxis = [&](AtomId other) { return atoms.getAtoms().axisOf(other) == atoms.getAtoms().axisOf(atom); };
    if (isReached && llvm::none_of(reached, isSameAxis))
      reached.push_back(atom);
  }
  os << "  whole on every rank: " << (reached.empty() ? "no wish reaches it" : "that costs least") << '\n';
  for (AtomId atom : reached)
    printPrice(value, atom);
}

void Explainer::printChains(ValueId value) const {
  printOutputs(value);
  printLine(value);
  for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim)
    printDim(value, dim);
  for (AtomId atom : getState(value).partial)
    printPartial(value, atom);
  if (!isSharded(value))
    printWhole(value);
  for (const ForcedReplication &forced : decision.forced)
    if (forced.op == problem.producer(value))
      os << "  the wish for " << atoms.getAxisNames()[atoms.getAtoms().axisOf(forced.atom)]
         << " is not followed here (see --remarks)\n";
}

SmallVector<ValueId, 1> Explainer::find(const NamePattern &pattern) const {
  // A wish for one of several equal values stands behind them, under the same name: the last one counts. A parameter
  // may be loaded in parts, which all count.
  llvm::MapVector<StringRef, SmallVector<ValueId, 1>> byTensor;
  std::map<std::string, ValueId> byNode;
  for (auto [id, value] : llvm::enumerate(source.getValues())) {
    Operation *op = Value(value).getDefiningOp();
    auto load = dyn_cast_if_present<nn::LoadOp>(op);
    for (StringRef name : nn::getTensorNames(value)) {
      if (!pattern.matches(name))
        continue;
      SmallVector<ValueId, 1> &values = byTensor[name];
      if (!load || !load.isPart())
        values.clear();
      values.push_back(id);
    }
    if (std::string node = op ? nn::describeNode(op) : ""; !node.empty() && pattern.matches(node))
      byNode[node] = id;
  }
  llvm::SmallSetVector<ValueId, 1> found; // one value may have several names
  for (auto &[name, values] : byTensor)
    found.insert_range(values);
  for (auto &[node, value] : byNode)
    if (byTensor.empty())
      found.insert(value);
  SmallVector<ValueId, 1> values(found.takeVector());
  llvm::sort(values);
  return values;
}

std::string Explainer::suggest(StringRef name) const {
  SmallVector<StringRef> names;
  for (Value value : source.getValues())
    llvm::append_range(names, nn::getTensorNames(value));
  return suggestNames(name, names);
}
} // namespace

/// `#3 all_reduce over model, 8192 bytes a rank, at /enc/MatMul: what it is for`.
static void printLine(size_t number, const CollectiveReport &collective) {
  llvm::outs() << llvm::formatv("#{0} {1} over {2}, {3} bytes a rank, at {4}: {5}\n", number, collective.kind,
                                llvm::join(collective.axes, ", "), collective.wireBytes,
                                collective.node.empty() ? "-" : collective.node, collective.cause);
}

/// `f32[8, 4]`.
static std::string formatShape(StringRef type, ArrayRef<int64_t> shape) {
  return llvm::formatv("{0}[{1:$[, ]}]", type, llvm::make_range(shape.begin(), shape.end()));
}

/// What each collective of the partitioned module is for.
static void printCollectives(const Report &report) {
  for (auto [index, collective] : llvm::enumerate(report.collectives))
    printLine(index + 1, collective);
}

/// The report of a copy of the decided module: what was decided about its values is still to be asked.
static std::optional<Report> makeReportOfCopy(Session &session) {
  OwningOpRef<ModuleOp> copy = session.getModule().clone();
  ShardState state;
  for (const PipelinePhase &step : getShardPhases()) {
    if (step.phase <= Phase::Propagated)
      continue;
    PassManager manager(&session.getContext());
    manager.enableVerifier(false);
    step.addPasses(manager, session.getOptions().compile.sharding, state);
    if (failed(manager.run(*copy)))
      return std::nullopt;
  }
  auto func = copy->lookupSymbol<func::FuncOp>(session.getEntry().getName());
  return makeReport(func, session.getOptions().compile.model);
}

/// The collective asked for, with the chains of what it is sent for.
static ExitCode explainCollective(Session &session, const Explainer &explainer) {
  std::optional<Report> report = makeReportOfCopy(session);
  if (!report)
    return session.getExitCode();
  const std::vector<CollectiveReport> &collectives = report->collectives;
  StringRef asked = session.getOptions().value;
  size_t number;
  if (asked.drop_front().getAsInteger(10, number) || number == 0 || number > collectives.size())
    return session.fail(makeError("there is no collective {0}: they are #1 to #{1}", quote(asked), collectives.size()));
  const CollectiveReport &collective = collectives[number - 1];
  printLine(number, collective);
  llvm::outs() << llvm::formatv("  {0} to {1}, in groups of {2} ranks\n",
                                formatShape(collective.type, collective.operandShape),
                                formatShape(collective.type, collective.resultShape), collective.groupSize);
  std::string error;
  if (std::optional<NamePattern> node = NamePattern::create(collective.node, error); node && !collective.node.empty())
    for (ValueId value : explainer.find(*node))
      explainer.printChains(value);
  return kDone;
}

/// `#3`.
static bool isCollective(StringRef asked) { return asked.starts_with("#"); }

ExitCode cleave::driver::explainCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  if (!session.hasMesh())
    return session.fail(makeError("no mesh is given: use --mesh data=2,model=4, or a plan with one"));
  if (Phase phase = session.getPhase(); phase > Phase::Annotated)
    return session.fail(makeError("{0} is {1} already: explain decides anew, and needs a file from before that",
                                  options.compile.model, toString(phase)));
  Decisions decisions;
  session.keepDecisions(decisions);
  func::FuncOp func = session.advance(Phase::Propagated) ? session.getEntry() : nullptr;
  if (!func)
    return session.getExitCode();
  const FunctionProblem *source = decisions.find(func);
  Explainer explainer(*source, *decisions.atoms, llvm::outs());
  bool asksValue = !options.value.empty() && !isCollective(options.value);
  if (asksValue) {
    std::string error;
    std::optional<NamePattern> pattern = NamePattern::create(options.value, error);
    if (!pattern)
      return session.fail(makeError("{0} is no pattern: {1}", quote(options.value), error));
    SmallVector<ValueId, 1> values = explainer.find(*pattern);
    if (values.empty())
      return session.fail(makeError("{0}: no tensor or node is called {1}{2}", options.compile.model,
                                    quote(options.value), explainer.suggest(options.value)));
    for (ValueId value : values)
      explainer.printChains(value);
    if (options.report.empty() && !options.timePhases)
      return kDone;
  }
  for (ValueId value = 0; options.value.empty() && value < source->getProblem().numValues(); ++value)
    if (explainer.isSharded(value))
      explainer.printLine(value);
  if (isCollective(options.value))
    if (ExitCode code = explainCollective(session, explainer))
      return code;
  std::optional<Report> report;
  if (session.advance(Phase::Optimized))
    report = session.makeReport();
  if (!report)
    return session.getExitCode();
  if (options.value.empty())
    printCollectives(*report);
  return writeReport(session, /*printsTable=*/false);
}
