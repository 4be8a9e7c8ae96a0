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

/// `#3 all_reduce over model, 8192 bytes a rank, 9.2 us, at /enc/MatMul: what it is for`.
static void printCollective(llvm::raw_ostream &os, size_t number, const CollectiveReport &collective) {
  std::string time = collective.ns > 0 ? ", " + formatTime(collective.ns) : "";
  os << llvm::formatv("#{0} {1} over {2}, {3} bytes a rank{4}, at {5}: {6}\n", number, collective.kind,
                      llvm::join(collective.axes, ", "), collective.wireBytes, time,
                      collective.node.empty() ? "-" : collective.node, collective.cause);
}

/// What is asked first of a collective is what it would take to do without it.
static void printNextBest(llvm::raw_ostream &os, const CollectiveReport &collective, const Explainer &explainer) {
  if (std::optional<Alternative> least = explainer.findNextBest(collective.node))
    printExplanation(os, *least);
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
  printCollective(os, number, collective);
  os << llvm::formatv("  {0} to {1}, in groups of {2} ranks\n", formatShape(collective.type, collective.operandShape),
                      formatShape(collective.type, collective.resultShape), collective.groupSize);
  for (const ValueExplanation &value : explainer.explainName(collective.node))
    printExplanation(os, value);
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
      printExplanation(os, value);
    if (options.report.empty() && !options.timePhases)
      return writePage(session);
  }
  if (asksAll)
    for (const ShardedValue &value : explainer->getSharded()) {
      printExplanation(os, value);
      os << '\n';
    }
  std::optional<Report> report;
  if (session.advance(Phase::Optimized))
    report = session.makeReport();
  if (!report)
    return session.getExitCode();
  if (asksAll)
    for (auto [index, collective] : llvm::enumerate(report->collectives)) {
      printCollective(os, index + 1, collective);
      if (report->time)
        printNextBest(os, collective, *explainer);
    }
  if (asksCollective)
    if (llvm::Error error = explainCollective(os, options.value, *report, *explainer))
      return session.fail(std::move(error), Blame::Options);
  ExitCode code = writeReport(session, *report, /*printsTable=*/false);
  return code == kDone ? writePage(session) : code;
}
