//===- Run.cpp - runs a model, on one device or on every rank -------------===//
//
// What the library runs and checks (Compiler/Run.h) is printed and written. Of a file that is partitioned already, --check means that copies
// on different ranks agree, which running demands anyway.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Run.h"

#include "cleave/Driver/Check.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/Format.h"

using namespace cleave;
using namespace cleave::driver;

/// One line per output: name, type, least, mean, largest.
static void printOutputs(llvm::raw_ostream &os, llvm::ArrayRef<OutputSummary> outputs) {
  size_t nameWidth = 0, typeWidth = 0;
  for (const OutputSummary &output : outputs) {
    nameWidth = std::max(nameWidth, output.name.size());
    typeWidth = std::max(typeWidth, output.type.size());
  }
  for (const OutputSummary &output : outputs)
    os << "output " << llvm::left_justify(output.name, nameWidth) << "  " << llvm::left_justify(output.type, typeWidth)
       << "  " << output.text << '\n';
}

/// Of what the outputs are held against, nothing may be lost either.
static bool checkFiles(Session &session, const ModelRun &run) {
  runtime::CommandFiles files = listFiles(session.getOptions());
  for (const std::string &path : run.getOriginalFiles())
    files.addInput("a file of the weights of --against", path);
  return session.checkFiles(files);
}

/// Outputs into their file, the report, or else a line for each.
static ExitCode deliver(Session &session, ModelRun &run, bool isReported) {
  const Options &options = session.getOptions();
  if (!options.outputs.empty())
    if (llvm::Error error = run.writeOutputs(options.outputs))
      return session.fail(std::move(error));
  if (isReported) {
    std::optional<Report> report = run.makeReport();
    if (!report)
      return session.getExitCode();
    if (ExitCode code = writeReport(session, *report, !options.quiet))
      return code;
  }
  if (options.outputs.empty() && !options.quiet && !options.compile.returnsAll)
    printOutputs(llvm::outs(), run.summarize());
  return kDone;
}

ExitCode cleave::driver::runCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  bool isReported = session.hasMesh(), hasSlopes = options.check && options.checkKind == CheckKind::Differences;
  // Slopes need no ranks.
  RunOptions how{options.executor,        options.emit.phase, options.seed, options.check && (isReported || !hasSlopes),
                 !options.report.empty(), options.against,    options.rtol, options.atol};
  std::unique_ptr<ModelRun> run = ModelRun::create(session, how);
  if (!run || !checkFiles(session, *run) || !run->prepare())
    return session.getExitCode();
  if (!options.saveInputs.empty())
    if (llvm::Error error = run->writeInputs(options.saveInputs))
      return session.fail(std::move(error));
  if (!run->run())
    return session.getExitCode();
  if (ExitCode code = deliver(session, *run, isReported))
    return code;
  std::optional<std::vector<SlopeCheck>> slopes = hasSlopes ? run->checkSlopes() : std::vector<SlopeCheck>();
  if (!slopes)
    return session.getExitCode();
  if (hasSlopes && slopes->empty())
    return session.fail(makeError("'--check=differences' is about gradients, and there are none: --train makes a step"),
                        Blame::Options);
  bool isRight = printSlopes(llvm::outs(), *slopes, options.quiet);
  if (!run->hasOriginal()) {
    if (hasSlopes)
      return isRight ? kDone : kDifference;
    if (options.check && !options.quiet)
      llvm::outs() << "check: copies on all ranks agree; a partitioned file has no original to compare with\n";
    return kDone;
  }
  std::optional<std::vector<OutputCheck>> outputs = run->check();
  if (!outputs)
    return session.getExitCode();
  // Of all tensors only those that part are told.
  isRight &= printChecks(llvm::outs(), *outputs, options.quiet || options.compile.returnsAll);
  if (options.compile.returnsAll && !options.quiet)
    llvm::outs() << "check: " << llvm::count_if(*outputs, [](const OutputCheck &found) { return found.isRight(); })
                 << " of " << outputs->size() << " tensors are those of one device\n";
  return isRight ? kDone : kDifference;
}
