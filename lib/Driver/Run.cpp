//===- Run.cpp - runs a model, on one device or on every rank -------------===//
//
// With a mesh two programs come from one file: the model as it is, and the partitioned one. Both take the same inputs;
// --check holds the second's reassembled outputs against the first's. A file that is partitioned already has no
// original: it is run alone, and --check then means that copies on different ranks agree, which running demands anyway.
// Where the original is still there, --against names it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Driver/Check.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Reference/Evaluator.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Runtime/Device.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/Format.h"

#include <cstdlib>

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;
using reference::Tensor;

/// Says which argument does not fit into memory, if one does not.
static LogicalResult checkSizes(func::FuncOp func) {
  for (auto [name, type] : llvm::zip_equal(getInputNames(func), getInputTypes(func)))
    if (!Tensor::fits(type))
      return func.emitError() << "input '" << name << "' of " << type << " does not fit into memory";
  return success();
}

/// The arguments: out of --inputs, or drawn; saved where that is asked for. What they are for is known best where the model is whole.
static llvm::Expected<SmallVector<Tensor>> getInputs(const Session &session, func::FuncOp func) {
  const Options &options = session.getOptions();
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (Attribute value = func.getArgAttr(index, nn::NnDialect::kValueAttr); value && !getFixedValue(func, index))
      return makeError("{0}: the {1} of argument {2} is not dense elements of its type", options.compile.model,
                       nn::NnDialect::kValueAttr, quote(getInputNames(func)[index]));
  InputRanges ranges = options.against.empty() ? session.getInputRanges() : findRanges(func);
  llvm::Expected<SmallVector<Tensor>> inputs = options.compile.inputs.empty()
                                                   ? drawInputs(func, options.seed, ranges)
                                                   : readInputs(func, options.compile.inputs);
  if (inputs && !options.saveInputs.empty())
    if (llvm::Error error = writeTensors(getInputNames(func), *inputs, options.saveInputs))
      return std::move(error);
  return inputs;
}

/// One line per output: name, type, least, mean, largest.
static void printOutputs(func::FuncOp func, ArrayRef<Tensor> outputs) {
  size_t nameWidth = 0, typeWidth = 0;
  SmallVector<std::string> names = getOutputNames(func);
  for (auto [name, tensor] : llvm::zip_equal(names, outputs)) {
    nameWidth = std::max(nameWidth, name.size());
    typeWidth = std::max(typeWidth, formatType(tensor.getType()).size());
  }
  for (auto [name, tensor] : llvm::zip_equal(names, outputs))
    llvm::outs() << "output " << llvm::left_justify(name, nameWidth) << "  "
                 << llvm::left_justify(formatType(tensor.getType()), typeWidth) << "  " << summarize(tensor) << '\n';
}

/// Lets a library of ours stand for CUDA's: one device per rank, that this machine plays. What the user has set stays.
static void emulateDevices(uint32_t ranks) {
  setenv("CLEAVE_CUDA_LIBRARY", "libcleave_emulated_cuda.so", /*overwrite=*/0);
  setenv("CLEAVE_EMULATION_DEVICES", std::to_string(ranks).c_str(), /*overwrite=*/0);
}

/// Compiles what is left of the way, and runs that in this process. Nothing after an error.
static std::optional<SmallVector<Tensor>> runAsProgram(Session &session, ArrayRef<Tensor> inputs,
                                                       ArrayRef<RankedTensorType> outputs,
                                                       std::vector<LibraryReport> &libraries,
                                                       std::optional<WindowReport> &windows) {
  std::unique_ptr<Assembly> made = makeProgram(session, ".");
  if (!made)
    return std::nullopt;
  if (getTraits(session.getOptions().device).isEmulated)
    emulateDevices(made->program.ranks);
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor = openProgram(*made, ".");
  llvm::Expected<SmallVector<Tensor>> results =
      executor ? runProgram(**executor, inputs, outputs) : executor.takeError();
  if (results) {
    for (const runtime::LibraryUse &use : (*executor)->getLibraries())
      libraries.push_back({use.name, int64_t(use.calls), int64_t(use.fallbacks), use.reason, int64_t(use.workspace)});
    if (runtime::WindowUse use = (*executor)->getWindows(); use.collectives + use.without > 0)
      windows = {int64_t(use.collectives), int64_t(use.without), use.reason};
    return std::move(*results);
  }
  // What the program cannot take of its inputs has been seen before.
  session.Compilation::fail(results.takeError(), executor ? Blame::Run : Blame::Input);
  return std::nullopt;
}

/// What --check allows of f32 instead of its own default.
static std::optional<Tolerance> getTolerance(const Options &options) {
  switch (options.precision) {
  case Precision::F32:
    if (options.allowed != codegen::Allowed::Nothing)
      return Tolerance{0, 0, getTraits(options.allowed).ofRow};
    return std::nullopt;
  case Precision::BF16:
    return kNarrowTolerance;
  case Precision::Split:
    return kSplitTolerance;
  }
}

/// What one device makes of the model, computing in as little as the ranks did; nothing where that is not asked for, or cannot be.
static SmallVector<Tensor> runOnOneDevice(Session &session, ModuleOp original, ArrayRef<Tensor> inputs) {
  const Options &options = session.getOptions();
  bool isAsked = options.precision == Precision::BF16 && !options.rtol && !options.atol;
  if (!isAsked || getPhase(original) >= Phase::Annotated)
    return {};
  session.restartOnOneDevice(original.clone());
  std::vector<LibraryReport> libraries;
  std::optional<WindowReport> windows;
  SmallVector<RankedTensorType> types = getOutputTypes(session.getEntry());
  return runAsProgram(session, inputs, types, libraries, windows).value_or(SmallVector<Tensor>());
}

ExitCode cleave::driver::runCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  bool isProgram = options.runsProgram();
  if (isProgram && session.getPhase() >= Phase::Planned)
    return session.fail(makeError("{0} is {1} already: cleave compile makes a program of it", options.compile.model,
                                  toString(session.getPhase())));
  bool isReported = session.hasMesh();
  if (isProgram && !isReported)
    session.useOneDevice();
  // Weights of a stored file may lie in another one by now.
  if (!session.isOnnx() && failed(reference::checkWeights(session.getModule())))
    return session.getExitCode();
  // The original is only needed where something is compared with it.
  bool isPartitioned = session.getPhase() >= Phase::Partitioned, hasMesh = session.hasMesh();
  if (!hasMesh && (options.check || !options.report.empty()))
    return session.fail(
        makeError("no mesh is given, and {0} is about ranks: use --mesh data=2,model=4, or a plan with one",
                  options.check ? "--check" : "--report"),
        Blame::Options);
  OwningOpRef<ModuleOp> original;
  if (!options.against.empty()) {
    if (!isPartitioned)
      return session.fail(
          makeError("--against is about partitioned files, and {0} is not: use --check", options.compile.model),
          Blame::Options);
    original = loadOriginal(session, options.against);
    if (!original)
      return session.getExitCode();
    runtime::CommandFiles files = listFiles(options);
    for (const std::string &path : reference::listWeightFiles(*original))
      files.addInput("a file of the weights of --against", path);
    if (!session.checkFiles(files))
      return session.getExitCode();
  } else if (options.check && hasMesh && !isPartitioned) {
    original = session.getModule().clone();
  }
  // Checking may want the program in double, which has to be made before memory is planned for its types.
  OwningOpRef<ModuleOp> unplanned;
  Phase last = options.getEmit(session.isPipelined());
  if (original && last > Phase::Outlined && session.getPhase() <= Phase::Outlined) {
    if (!session.advance(Phase::Outlined))
      return session.getExitCode();
    unplanned = session.getModule().clone();
  }
  // A file may be further already.
  if (hasMesh && !session.advance(std::max(last, session.getPhase())))
    return session.getExitCode();
  func::FuncOp func = session.getEntry();
  if (!func)
    return session.getExitCode();
  // What is compiled has no tensors in the end; names, types and the check are about what it was made from.
  OwningOpRef<ModuleOp> compiled = isProgram ? session.getModule().clone() : nullptr;
  if (compiled)
    func = compiled->lookupSymbol<func::FuncOp>(func.getName());
  func::FuncOp unsharded = original ? original->lookupSymbol<func::FuncOp>(func.getName()) : func;
  Compilation::BlameScope running(session, Blame::Run);
  if (failed(checkSizes(unsharded)))
    return session.getExitCode();
  llvm::Expected<SmallVector<Tensor>> inputs = getInputs(session, unsharded);
  if (!inputs)
    return session.fail(inputs.takeError());
  SmallVector<Tensor> outputs, expected;
  std::vector<LibraryReport> libraries;
  std::optional<WindowReport> windows;
  if (isProgram) {
    std::optional<SmallVector<Tensor>> results =
        runAsProgram(session, *inputs, getOutputTypes(func), libraries, windows);
    if (!results)
      return session.getExitCode();
    outputs = std::move(*results);
  } else if (failed(reference::runGlobal(func, *inputs, outputs))) {
    return session.getExitCode();
  }
  if (!options.outputs.empty())
    if (llvm::Error error = writeTensors(getOutputNames(func), outputs, options.outputs))
      return session.fail(std::move(error));
  if (isReported) {
    std::optional<Report> report = session.makeReport();
    if (!report)
      return session.getExitCode();
    report->libraries = std::move(libraries);
    report->windows = std::move(windows);
    if (ExitCode code = writeReport(session, *report, !options.quiet))
      return code;
  }
  if (options.outputs.empty() && !options.quiet)
    printOutputs(func, outputs);
  if (!original) {
    if (options.check && !options.quiet)
      llvm::outs() << "check: copies on all ranks agree; a partitioned file has no original to compare with\n";
    return kDone;
  }
  if (failed(reference::runGlobal(unsharded, *inputs, expected)))
    return session.getExitCode();
  func::FuncOp ranks = unplanned ? unplanned->lookupSymbol<func::FuncOp>(func.getName()) : func;
  SmallVector<Tensor> narrow = isProgram ? runOnOneDevice(session, *original, *inputs) : SmallVector<Tensor>();
  if (session.getBlame())
    return session.getExitCode();
  Check check{ranks, unsharded, *inputs, outputs, expected, options.rtol, options.atol, getTolerance(options), narrow};
  return printChecks(llvm::outs(), check, options.quiet) ? kDone : kDifference;
}
