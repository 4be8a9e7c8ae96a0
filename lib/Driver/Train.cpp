//===- Train.cpp - `cleave train` -----------------------------------------===//
//
// The step is compiled, and taken again and again in this process, a thread for each rank (Runner/Train.h). What is saved can be taken up on
// another mesh, and written back into the model.
//
//===----------------------------------------------------------------------===//
#include "TextTable.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Export/Onnx/Trained.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;

/// `layer.7.bias` as `layer.*.bias`.
static std::string hideNumbers(llvm::StringRef name) {
  std::string text;
  for (char c : name)
    if (!llvm::isDigit(c))
      text += c;
    else if (!llvm::StringRef(text).ends_with("*"))
      text += '*';
  return text;
}

/// A line for each tensor, but one for all those that differ in numbers of their names alone: layers are alike.
static void printTable(llvm::ArrayRef<TrainedTensor> trained) {
  llvm::StringMap<size_t> numbers;
  std::vector<std::vector<const TrainedTensor *>> alike;
  for (const TrainedTensor &tensor : trained) {
    size_t number = numbers.try_emplace(hideNumbers(tensor.name) + " " + tensor.type, alike.size()).first->second;
    alike.resize(std::max(alike.size(), number + 1));
    alike[number].push_back(&tensor);
  }
  std::vector<std::vector<std::string>> rows;
  for (llvm::ArrayRef<const TrainedTensor *> tensors : alike) {
    const TrainedTensor &first = *tensors.front();
    bool isOne = tensors.size() == 1;
    rows.push_back({"  " + (isOne ? first.name : hideNumbers(first.name)), first.type,
                    isOne ? "" : "x " + std::to_string(tensors.size())});
  }
  printTable(llvm::outs(), rows, TextColumns::AllLeft);
}

/// What is trained, and what stays as it is.
static void printTrained(Session &session) {
  mlir::func::FuncOp step = session.getEntry();
  if (!step)
    return;
  std::vector<TrainedTensor> trained = listTrained(step);
  int64_t elements = 0;
  for (const TrainedTensor &tensor : trained)
    elements += tensor.elements;
  llvm::outs() << llvm::formatv("trains {0} tensors of {1:n} numbers\n", trained.size(), elements);
  printTable(trained);
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
