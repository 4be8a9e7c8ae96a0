//===- Train.cpp - `cleave train` -----------------------------------------===//
//
// The step is compiled, and taken again and again in this process, a thread for each rank (Runner/Train.h). What is saved can be taken up on
// another mesh, and written back into the model.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Export/Onnx/Trained.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

/// What is trained, and what stays as it is.
static void printTrained(Session &session) {
  mlir::func::FuncOp step = session.getEntry();
  if (!step)
    return;
  int64_t tensors = 0, elements = 0;
  for (const TrainedTensor &tensor : listTrained(step)) {
    ++tensors;
    elements += tensor.elements;
    if (session.getOptions().verbose)
      llvm::outs() << "trains " << tensor.name << "  " << tensor.type << '\n';
  }
  llvm::outs() << llvm::formatv("trains {0} tensors of {1:n} numbers\n", tensors, elements);
}

/// The model with its new weights.
static bool writeTrained(Session &session) {
  const Options &options = session.getOptions();
  llvm::Expected<onnx::TrainedWeights> written =
      onnx::exportTrained(options.compile.model, options.train.save, options.trained);
  if (!written)
    return session.Compilation::fail(written.takeError());
  if (!options.quiet)
    llvm::outs() << llvm::formatv("{0} has {1} new weights\n", options.trained, written->replaced.size());
  return true;
}

ExitCode cleave::driver::trainCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  if (!options.trained.empty() && !session.isOnnx())
    return session.fail(makeError("--export is about ONNX models"), Blame::Options);
  if (!options.trained.empty() && session.getPlan()->train->lora)
    return session.fail(
        makeError("--export does not put adapters into their weights yet: --save keeps them, and --resume goes on"),
        Blame::Options);
  if (!options.quiet)
    printTrained(session);
  std::unique_ptr<runtime::Executor> executor = openModel(session);
  if (!executor)
    return session.getExitCode();
  if (!options.report.empty())
    if (std::optional<Report> report = session.makeReport(); !report || writeReport(session, *report, false))
      return session.getExitCode();
  runner::TrainSummary summary;
  if (std::optional<runner::TrainError> error = runner::train(*executor, options.train, summary)) {
    session.fail(makeError("{0}", error->message), error->code == kRunFault ? Blame::Run : Blame::Input);
    return static_cast<ExitCode>(error->code);
  }
  if (!options.quiet)
    llvm::outs() << runner::formatSummary(summary) << '\n';
  return options.trained.empty() || writeTrained(session) ? kDone : session.getExitCode();
}
