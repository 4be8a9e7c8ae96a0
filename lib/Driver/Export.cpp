//===- Export.cpp - ONNX files of the ranks' programs ---------------------===//
//
// The model goes as far as `shard` takes it; then every rank's program is written as ONNX instead of MLIR. Without a mesh there is
// one rank, and the file is the model in canonical form.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Compile.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

ExitCode cleave::driver::exportCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  std::optional<Report> report = predictModel(session);
  if (!report)
    return session.getExitCode();
  onnx::ExportOptions exporting;
  exporting.collectives = options.collectives;
  std::optional<onnx::ExportSummary> summary = session.exportOnnx(options.output, exporting);
  if (!summary)
    return session.getExitCode();
  if (!options.quiet)
    llvm::outs() << llvm::formatv(
        "exported:             {0} files for {1} ranks, {2} nodes, {3} collectives, {4} of weights\n", summary->files,
        summary->ranks, summary->nodes, summary->collectives, formatBytes(summary->bytes));
  return writeReport(session, *report, !options.quiet);
}
