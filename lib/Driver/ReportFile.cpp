//===- ReportFile.cpp - what was decided, sent and stored -----------------===//
//
// The numbers are those of Pipelines/Report.h. They go to people as a table and to programs as JSON; a table is kept
// out of standard output where that carries the module.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/ReportFile.h"

#include "cleave/Pipelines/Report.h"
#include "cleave/Support/File.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

void cleave::driver::printSeconds(const Session &session) {
  const Options &options = session.getOptions();
  // A module on standard output must stay readable.
  bool hasModule = options.command == "shard" && options.writesToOutput();
  if (options.timePhases)
    for (const auto &[phase, seconds] : session.getSeconds())
      (hasModule ? llvm::errs() : llvm::outs()) << llvm::formatv("{0,-24} {1:f4} s\n", phase, seconds);
}

ExitCode cleave::driver::writeReport(Session &session, const Report &report, bool printsTable) {
  const Options &options = session.getOptions();
  if (printsTable)
    printReport(llvm::outs(), report);
  printSeconds(session);
  if (options.report.empty())
    return kDone;
  llvm::Error error = writeFileAtomically(options.report, [&](llvm::raw_ostream &os) {
    writeJson(os, report);
    os << '\n';
    return llvm::Error::success();
  });
  return error ? session.fail(std::move(error)) : kDone;
}

llvm::Error cleave::driver::writeReport(const Options &options, llvm::json::Object report) {
  return writeTextAtomically(options.report, llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report))).str());
}
