//===- Explain.cpp - why is it sharded so? --------------------------------===//
//
// What the library says of values (Explanation.h), as text: each axis of each dim has a chain of causes, one a line. Without
// a value: one line per sharded value, then what each collective of the partitioned program is for, by number; `#3` asks
// for one of them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Explanation.h"

#include "cleave/Driver/ReportFile.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::StringRef;

static std::string format(const CauseStep &step) {
  switch (step.kind) {
  case CauseStep::Kind::Op:
    return step.name + (step.node.empty() ? "" : " " + step.node) + ", " + step.dim +
           (step.avoidsConflict ? ", to avoid a conflict" : "");
  case CauseStep::Kind::Value:
    return step.dim + " of " + step.name;
  case CauseStep::Kind::Output:
    return step.dim + " of output " + step.name;
  case CauseStep::Kind::PassedOn:
    return "passed on from " + step.name;
  case CauseStep::Kind::Annotation:
    return "asked for in " + step.name;
  case CauseStep::Kind::Free:
    return "the axis is free: that takes least time";
  }
  return "";
}

static void print(llvm::raw_ostream &os, const ShardedValue &value) {
  os << value.name << ": " << value.type << ' ' << value.sharding;
  if (!value.holds.empty())
    os << ", holds " << value.holds;
}

static void print(llvm::raw_ostream &os, const Alternative &alternative) {
  os << "    the next best choice here costs " << alternative.bytes << " bytes more, ";
  if (alternative.ns > 0)
    os << formatTime(alternative.ns) << " on this cluster, ";
  os << "surcharges of the objective included: " << alternative.sharding << '\n';
}

static void print(llvm::raw_ostream &os, const AxisExplanation &axis) {
  os << "  " << (axis.dim ? "dim " + std::to_string(*axis.dim) : "partial") << " over " << axis.axes << ":\n";
  for (auto [index, step] : llvm::enumerate(axis.chain))
    os << (index ? "    from " : "    ") << format(step) << '\n';
  if (axis.dim && axis.chain.empty())
    os << "    chosen because it costs less, without an annotation\n";
  if (axis.nextBest)
    print(os, *axis.nextBest);
}

static void print(llvm::raw_ostream &os, const ValueExplanation &value) {
  for (const ShardedValue &output : value.returned) {
    print(os, output);
    os << ", as it is returned; inside:\n";
  }
  print(os, static_cast<const ShardedValue &>(value));
  os << '\n';
  for (const AxisExplanation &axis : value.axes)
    print(os, axis);
  if (value.isReplicated)
    os << "  replicated on every rank: " << (value.isReached ? "that costs least" : "no annotation reaches it") << '\n';
  for (const Alternative &alternative : value.alternatives)
    print(os, alternative);
  for (const std::string &axis : value.unfollowed)
    os << "  the annotation for " << axis << " is not followed here (see --remarks)\n";
}

/// `#3 all_reduce over model, 8192 bytes a rank, 9.2 us, at /enc/MatMul: what it is for`.
static void print(llvm::raw_ostream &os, size_t number, const CollectiveReport &collective) {
  std::string time = collective.ns > 0 ? ", " + formatTime(collective.ns) : "";
  os << llvm::formatv("#{0} {1} over {2}, {3} bytes a rank{4}, at {5}: {6}\n", number, collective.kind,
                      llvm::join(collective.axes, ", "), collective.wireBytes, time,
                      collective.node.empty() ? "-" : collective.node, collective.cause);
}

/// What is asked first of a collective is what it would take to do without it.
static void printNextBest(llvm::raw_ostream &os, const CollectiveReport &collective, const Explainer &explainer) {
  if (std::optional<Alternative> least = explainer.findNextBest(collective.node))
    print(os, *least);
}

/// `f32[8, 4]`.
static std::string formatShape(StringRef type, llvm::ArrayRef<int64_t> shape) {
  return llvm::formatv("{0}[{1:$[, ]}]", type, llvm::make_range(shape.begin(), shape.end()));
}

/// The collective `#3`, with the chains of what it is sent for.
static llvm::Error explainCollective(llvm::raw_ostream &os, StringRef asked, const Report &report,
                                     const Explainer &explainer) {
  size_t number;
  if (report.collectives.empty())
    return makeError("there is no collective {0}: nothing is sent", quote(asked));
  if (asked.drop_front().getAsInteger(10, number) || number == 0 || number > report.collectives.size())
    return makeError("there is no collective {0}: they are #1 to #{1}", quote(asked), report.collectives.size());
  const CollectiveReport &collective = report.collectives[number - 1];
  print(os, number, collective);
  os << llvm::formatv("  {0} to {1}, in groups of {2} ranks\n", formatShape(collective.type, collective.operandShape),
                      formatShape(collective.type, collective.resultShape), collective.groupSize);
  for (const ValueExplanation &value : explainer.explainName(collective.node))
    print(os, value);
  return llvm::Error::success();
}

ExitCode cleave::driver::explainCommand(Session &session) {
  const Options &options = session.getOptions();
  llvm::raw_ostream &os = llvm::outs();
  if (!session.load())
    return session.getExitCode();
  if (!session.hasMesh())
    return session.fail(makeError("no mesh is given: use --mesh data=2,model=4, or a plan with one"), Blame::Options);
  std::unique_ptr<Explainer> explainer = Explainer::create(session);
  if (!explainer)
    return session.getExitCode();
  bool asksAll = options.value.empty(), asksCollective = StringRef(options.value).starts_with("#");
  if (!asksAll && !asksCollective) {
    auto values = explainer->explain(options.value);
    if (!values)
      return session.getExitCode();
    for (const ValueExplanation &value : *values)
      print(os, value);
    if (options.report.empty() && !options.timePhases)
      return kDone;
  }
  if (asksAll)
    for (const ShardedValue &value : explainer->getSharded()) {
      print(os, value);
      os << '\n';
    }
  std::optional<Report> report;
  if (session.advance(Phase::Optimized))
    report = session.makeReport();
  if (!report)
    return session.getExitCode();
  if (asksAll)
    for (auto [index, collective] : llvm::enumerate(report->collectives)) {
      print(os, index + 1, collective);
      if (report->time)
        printNextBest(os, collective, *explainer);
    }
  if (asksCollective)
    if (llvm::Error error = explainCollective(os, options.value, *report, *explainer))
      return session.fail(std::move(error), Blame::Options);
  return writeReport(session, *report, /*printsTable=*/false);
}
