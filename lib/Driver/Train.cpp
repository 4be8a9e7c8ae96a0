//===- Train.cpp - `cleave train` -----------------------------------------===//
//
// The step is compiled, and taken again and again in this process, a thread for each rank (Runner/Train.h). What is saved can be taken up on
// another mesh, and written back into the model. With --check the gradients of the first batch are looked at before.
//
//===----------------------------------------------------------------------===//
#include "TextTable.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Driver/Check.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Export/Onnx/Trained.h"
#include "cleave/Program/Operands.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

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

/// The parameters of the model that the step changes, by their names in the file.
static std::vector<std::string> listWeights(Session &session) {
  std::vector<std::string> names;
  if (mlir::func::FuncOp step = session.getEntry())
    for (TrainedTensor &tensor : listTrained(step))
      if (!tensor.weight.empty())
        names.push_back(std::move(tensor.weight));
  return names;
}

/// What cannot be exported is told before the training.
static bool checkExports(Session &session, llvm::ArrayRef<onnx::Adapter> adapters) {
  const Options &options = session.getOptions();
  auto fail = [&](llvm::Error error) { return session.Compilation::fail(std::move(error), Blame::Options); };
  if (!options.trained.empty() && !session.isOnnx())
    return fail(makeError("--export is about ONNX models"));
  if (!options.adapters.empty() && adapters.empty())
    return fail(makeError("--export-adapters writes what 'lora' trains, which the plan's 'train' does not ask for"));
  for (llvm::StringRef file : {llvm::StringRef(options.trained), llvm::StringRef(options.adapters)})
    if (llvm::StringRef folder = llvm::sys::path::parent_path(file);
        !folder.empty() && !llvm::sys::fs::is_directory(folder))
      return fail(makeError("cannot write {0}: there is no folder {1}", file, folder));
  if (options.trained.empty() || !options.compile.artifacts.empty())
    return true;
  llvm::Error error = adapters.empty() ? onnx::checkStored(listWeights(session), options.compile.model)
                                       : onnx::checkFolding(adapters, options.compile.model);
  return error ? fail(std::move(error)) : true;
}

/// The model with its new weights, and adapters apart.
static bool writeTrained(Session &session, llvm::ArrayRef<onnx::Adapter> adapters) {
  const Options &options = session.getOptions();
  if (!options.trained.empty()) {
    llvm::Expected<onnx::TrainedWeights> written = onnx::exportTrained(
        options.compile.model, options.train.save, options.trained, adapters, options.compile.artifacts);
    if (!written)
      return session.Compilation::fail(written.takeError());
    if (!options.quiet)
      llvm::outs() << llvm::formatv("{0} has {1} new weights\n", options.trained, written->replaced.size());
  }
  if (options.adapters.empty())
    return true;
  llvm::Expected<size_t> count = onnx::exportAdapters(adapters, options.train.save, options.adapters);
  if (!count)
    return session.Compilation::fail(count.takeError());
  if (!onnx::areModules(adapters)) {
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::Warning;
    warning.file = options.adapters;
    warning.message = "adapters of parts of a fused weight are not modules of PEFT: no adapter_config.json is written";
    session.report(warning);
  }
  if (!options.quiet)
    llvm::outs() << llvm::formatv("{0} has {1} adapters\n", options.adapters, *count);
  return true;
}

/// The gradients of the first batch: those of the ranks' program against one device, and where that is asked for against slopes. The step is made
/// once more, with gradients as outputs. Tells whether they are right; nothing after an error.
static std::optional<bool> checkGradients(Session &session, const program::Program &program, bool hasMesh) {
  const Options &options = session.getOptions();
  bool hasSlopes = options.checkKind == CheckKind::Differences;
  RunOptions how;
  how.executor = hasMesh ? ExecutorKind::Program : ExecutorKind::Reference;
  how.checks = hasMesh;
  how.seed = options.seed;
  how.rtol = options.rtol;
  how.atol = options.atol;
  program::Status error =
      runner::withFirstBatch(program, options.train, [&](const std::vector<runtime::Argument> &batch) {
        for (const runtime::Argument &input : batch)
          how.given[std::string(input.name)].assign(static_cast<const char *>(input.data),
                                                    program::getBytes(program::Type{input.type, input.shape, {}}));
      });
  if (error)
    return session.fail(makeError("{0}", error->message)), std::nullopt;
  CompileOptions again = session.getGivenOptions();
  again.keepsGradients = true;
  again.stepsPerCall = 1;
  again.evaluates = false;
  again.dumpPhases.clear();
  Compilation step(again, [&](const Diagnostic &diagnostic) {
    if (diagnostic.severity == Diagnostic::Severity::Error)
      session.report(diagnostic);
  });
  std::unique_ptr<ModelRun> run = ModelRun::create(step, how);
  if (!run || !run->prepare() || !run->run())
    return std::nullopt;
  bool isRight = true;
  if (hasSlopes) {
    std::optional<std::vector<SlopeCheck>> slopes = run->checkSlopes();
    if (!slopes)
      return std::nullopt;
    isRight = printSlopes(llvm::outs(), *slopes, options.quiet);
  }
  std::optional<std::vector<OutputCheck>> outputs = how.checks ? run->check() : std::vector<OutputCheck>();
  if (!outputs)
    return std::nullopt;
  return printChecks(llvm::outs(), *outputs, options.quiet) && isRight;
}

ExitCode cleave::driver::trainCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  std::vector<onnx::Adapter> adapters = onnx::listAdapters(session.getModule());
  if (!checkExports(session, adapters))
    return session.getExitCode();
  bool hasMesh = session.hasMesh();
  if (options.check && options.checkKind == CheckKind::Ranks && !hasMesh)
    return session.fail(makeError("no mesh is given, and --check is about ranks; --check=differences needs none"),
                        Blame::Options);
  if (!options.quiet)
    printTrained(session);
  std::unique_ptr<runtime::Executor> executor = openModel(session);
  if (!executor)
    return session.getExitCode();
  if (!options.report.empty())
    if (std::optional<Report> report = session.makeReport(); !report || writeReport(session, *report, false))
      return session.getExitCode();
  if (options.check)
    if (std::optional<bool> isRight = checkGradients(session, executor->getProgram(), hasMesh); !isRight || !*isRight)
      return isRight ? kDifference : session.getExitCode();
  runner::TrainSummary summary;
  if (std::optional<runner::TrainError> error = runner::train(*executor, options.train, summary)) {
    session.fail(makeError("{0}", error->message), error->code == kRunFault ? Blame::Run : Blame::Input);
    return static_cast<ExitCode>(error->code);
  }
  if (!options.quiet)
    llvm::outs() << runner::formatSummary(summary) << '\n';
  return writeTrained(session, adapters) ? writePage(session) : session.getExitCode();
}
