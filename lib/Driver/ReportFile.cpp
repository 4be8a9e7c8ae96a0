//===- ReportFile.cpp - what was decided, sent and stored -----------------===//
#include "cleave/Driver/ReportFile.h"

#include "cleave/Pipelines/Report.h"
#include "cleave/Support/File.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

int cleave::driver::writeReport(Session &session, ModuleOp module, bool printsTable) {
  const Options &options = session.getOptions();
  llvm::Expected<func::FuncOp> func = getEntry(module);
  if (!func)
    return session.fail(func.takeError());
  Report report = makeReport(*func, options.model);
  for (const auto &[phase, seconds] : session.getSeconds())
    report.seconds.emplace_back(phase, seconds);
  if (printsTable)
    printReport(llvm::outs(), report);
  if (options.timePhases)
    for (const auto &[phase, seconds] : session.getSeconds())
      llvm::outs() << llvm::formatv("{0,-24} {1:f4} s\n", phase, seconds);
  if (options.report.empty())
    return kDone;
  llvm::Error error = writeFileAtomically(options.report, [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", toJson(report)) << '\n';
    return llvm::Error::success();
  });
  return error ? session.fail(std::move(error)) : kDone;
}
