//===- Explain.cpp - why is it sharded so? --------------------------------===//
//
// What spmd-propagate decided is kept, and asked: each axis of each dim has a chain of causes, from the op
// that took it over back to the wish that it started from (the plan's line). Without a value: one line per sharded
// value, then what each collective of the partitioned program is for.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/ReportFile.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Pipelines/Report.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/Status.h"
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
  /// The line, the chain of causes of each axis, and what the next best choice would cost.
  void printChains(ValueId value) const;
  /// The value with that ONNX name, or the first result of the node with that name.
  SmallVector<ValueId, 1> find(StringRef name) const;
  /// `; did you mean ..?`, or nothing.
  std::string suggest(StringRef name) const;
  bool isSharded(ValueId value) const { return !atoms.toSharding(getState(value)).isReplicated(); }

private:
  const State &getState(ValueId value) const { return decision.states[decision.valueStates[value]]; }
  std::string getName(ValueId value) const;
  std::string describe(const CauseLink &link) const;
  std::string describeFactor(OpId op, FactorId factor) const;
  std::string describePlace(Location loc) const;
  void printChain(ArrayRef<CauseLink> chain) const;
  void printPartial(ValueId value, AtomId atom) const;
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

void Explainer::printLine(ValueId id) const {
  os << getName(id) << ": " << cast<RankedTensorType>(source.getValues()[id].getType()).getElementType() << '[';
  llvm::interleaveComma(problem.shape(id), os);
  os << "] " << formatSharding(atoms.toSharding(getState(id))) << '\n';
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

void Explainer::printChain(ArrayRef<CauseLink> chain) const {
  for (auto [index, link] : llvm::enumerate(chain))
    os << (index ? "    from " : "    ") << describe(link) << '\n';
  if (chain.empty())
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
            return printChain(chain);
  }
}

void Explainer::printPrice(ValueId value, AtomId atom) const {
  OpId producer = problem.producer(value);
  if (producer == kNone || problem.isConstraint(producer))
    return;
  if (std::optional<int64_t> price = source.getSolver().priceOfNextBest(producer, atom))
    os << "    the next best choice here costs " << *price << " bytes more, surcharges of the objective included\n";
}

void Explainer::printChains(ValueId value) const {
  printLine(value);
  for (auto [dim, list] : llvm::enumerate(getState(value).dims))
    for (AtomId atom : list) {
      os << "  dim " << dim << " over " << atoms.getAxisNames()[atoms.getAtoms().axisOf(atom)] << ":\n";
      printChain(source.getSolver().explainValue(value, dim, atom));
      printPrice(value, atom);
    }
  for (AtomId atom : getState(value).partial)
    printPartial(value, atom);
  if (!isSharded(value))
    os << "  whole on every rank: no wish reaches it, or keeping it whole costs least\n";
  for (const ForcedReplication &forced : decision.forced)
    if (forced.op == problem.producer(value))
      os << "  the wish for " << atoms.getAxisNames()[atoms.getAtoms().axisOf(forced.atom)]
         << " is not followed here (see --remarks)\n";
}

SmallVector<ValueId, 1> Explainer::find(StringRef name) const {
  // A wish for one of several equal values stands behind them, under the same name: the last one counts. A parameter
  // may be loaded in parts, which all count.
  SmallVector<ValueId, 1> byTensor, byNode;
  for (auto [id, value] : llvm::enumerate(source.getValues())) {
    Operation *op = Value(value).getDefiningOp();
    auto load = dyn_cast_if_present<nn::LoadOp>(op);
    if (llvm::is_contained(nn::getTensorNames(value), name)) {
      if (!load || !load.isPart())
        byTensor.clear();
      byTensor.push_back(id);
    }
    if (op && nn::describeNode(op) == name)
      byNode.assign(1, id);
  }
  return byTensor.empty() ? byNode : byTensor;
}

std::string Explainer::suggest(StringRef name) const {
  SmallVector<StringRef> names;
  for (Value value : source.getValues())
    llvm::append_range(names, nn::getTensorNames(value));
  return suggestNames(name, names);
}
} // namespace

/// What each collective of the partitioned module is for.
static void printCollectives(const Report &report) {
  for (const CollectiveReport &collective : report.collectives)
    llvm::outs() << llvm::formatv("{0} over {1}, {2} bytes a rank, at {3}: {4}\n", collective.kind,
                                  llvm::join(collective.axes, ", "), collective.wireBytes,
                                  collective.node.empty() ? "-" : collective.node, collective.cause);
}

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
  if (!options.value.empty()) {
    SmallVector<ValueId, 1> values = explainer.find(options.value);
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
  std::optional<Report> report;
  if (session.advance(Phase::Optimized))
    report = session.makeReport();
  if (!report)
    return session.getExitCode();
  if (options.value.empty())
    printCollectives(*report);
  return writeReport(session, /*printsTable=*/false);
}
