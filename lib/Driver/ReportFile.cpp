//===- ReportFile.cpp - what was decided, sent and stored -----------------===//
#include "cleave/Driver/ReportFile.h"

#include "cleave/Pipelines/Report.h"
#include "cleave/Support/File.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

void cleave::driver::printSeconds(const Session &session) {
  const Options &options = session.getOptions();
  // A module on standard output must stay readable.
  bool hasModule = options.command == "shard" && (options.output.empty() || options.output == "-");
  if (options.timePhases)
    for (const auto &[phase, seconds] : session.getSeconds())
      (hasModule ? llvm::errs() : llvm::outs()) << llvm::formatv("{0,-24} {1:f4} s\n", phase, seconds);
}

ExitCode cleave::driver::writeReport(Session &session, bool printsTable) {
  const Options &options = session.getOptions();
  std::optional<Report> report = session.makeReport();
  if (!report)
    return session.getExitCode();
  if (printsTable)
    printReport(llvm::outs(), *report);
  printSeconds(session);
  if (options.report.empty())
    return kDone;
  llvm::Error error = writeFileAtomically(options.report, [&](llvm::raw_ostream &os) {
    writeJson(os, *report);
    os << '\n';
    return llvm::Error::success();
  });
  return error ? session.fail(std::move(error)) : kDone;
}
