//===- Run.cpp - a model, run step by step --------------------------------===//
//
// With a mesh two programs come from one file: the model as it is, and the partitioned one. Both take the same inputs, and a check holds
// the second's reassembled outputs against the first's. A file that is partitioned already has no original: it is run alone. Where the
// original is still there, options name it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Run.h"

#include "State.h"

#include "cleave/Codegen/Device/Device.h"
#include "cleave/Compiler/CheckOutputs.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Compiler/Slopes.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Reference/Begins.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Runtime/Device.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using reference::Tensor;

struct ModelRun::State {
  State(Compilation &compilation, const RunOptions &options) : compilation(compilation), options(options) {}

  bool load();
  llvm::Expected<SmallVector<Tensor>> makeInputs();
  SmallVector<Tensor> leaveOutBeginnings(SmallVector<Tensor> given);
  std::optional<SmallVector<Tensor>> runProgram(ArrayRef<RankedTensorType> types);
  SmallVector<Tensor> runOnOneDevice();

  Compilation &compilation;
  RunOptions options;
  bool isProgram = false, hasMesh = false;
  /// The model as it is; null: nothing is compared.
  OwningOpRef<ModuleOp> original;
  /// What was made of it, before memory was planned for its types, and before it was compiled; null: the compilation has it.
  OwningOpRef<ModuleOp> unplanned, compiled;
  /// What is run, and what says of its inputs and outputs what they are.
  func::FuncOp func, unsharded;
  std::optional<Compilation::BlameScope> running;
  SmallVector<Tensor> inputs, outputs;
  std::vector<LibraryReport> libraries;
  std::optional<WindowReport> windows;
};

//===----------------------------------------------------------------------===//
// Before it runs
//===----------------------------------------------------------------------===//

bool ModelRun::State::load() {
  if (!compilation.isLoaded() && !compilation.load())
    return false;
  compilation.state->options.sharding.checkBytes |= options.checks;
  const std::string &model = compilation.getOptions().model;
  Phase phase = compilation.getPhase();
  isProgram = options.executor == ExecutorKind::Program || compilation.getOptions().target != "host";
  if (isProgram && phase >= Phase::Planned)
    return compilation.fail(
        makeError("{0} is {1} already: cleave compile makes a program of it", model, toString(phase)));
  if (isProgram && !compilation.hasMesh())
    compilation.useOneDevice();
  const spmd::Plan *plan = compilation.getPlan();
  hasMesh = compilation.hasMesh();
  // Weights of a stored file may lie in another one by now.
  if (!compilation.isOnnx() && failed(reference::checkWeights(compilation.getModule())))
    return false;
  if (!hasMesh && (options.checks || options.reports))
    return compilation.fail(
        makeError("no mesh is given, and {0} is about ranks: use --mesh data=2,model=4, or a plan with one",
                  options.checks ? "--check" : "--report"),
        Blame::Options);
  // What a plan expects is said of a program, which the model as it is has none of.
  if (!hasMesh && plan && !plan->bounds.empty()) {
    compilation.useOneDevice();
    hasMesh = true;
  }
  if (options.checks && compilation.getOptions().train && plan && plan->pipeline &&
      !schedule::hasFlush(plan->pipeline->schedule))
    return compilation.fail(makeError("--check holds a step against one device, whose weights are never old: schedule "
                                      "\"{0}\" computes other steps",
                                      plan->pipeline->schedule),
                            Blame::Options);
  bool isPartitioned = phase >= Phase::Partitioned;
  if (options.against.empty()) {
    // The original is only needed where something is compared with it.
    if (options.checks && hasMesh && !isPartitioned)
      original = compilation.getModule().clone();
    // Without a mesh the model runs as it is.
    if (!original && hasMesh)
      return true;
    return compilation.state->repeatSteps(original ? *original : compilation.getModule());
  }
  if (!isPartitioned)
    return compilation.fail(makeError("--against is about partitioned files, and {0} is not: use --check", model),
                            Blame::Options);
  original = loadOriginal(compilation, options.against);
  return static_cast<bool>(original);
}

/// Says which argument does not fit into memory, if one does not.
static LogicalResult checkSizes(func::FuncOp func) {
  for (auto [name, type] : llvm::zip_equal(getInputNames(func), getInputTypes(func)))
    if (!Tensor::fits(type))
      return func.emitError() << "input '" << name << "' of " << type << " does not fit into memory";
  return success();
}

/// Those that are given, and states as they begin.
static llvm::Expected<SmallVector<Tensor>> takeInputs(func::FuncOp func,
                                                      const std::map<std::string, std::string> &given) {
  FailureOr<SmallVector<std::optional<reference::Beginning>>> beginnings = reference::getBeginnings(func);
  if (failed(beginnings))
    return makeError("what states begin as cannot be read");
  SmallVector<Tensor> inputs;
  for (auto [name, type, begins] : llvm::zip_equal(getInputNames(func), getInputTypes(func), *beginnings)) {
    auto found = given.find(name);
    if (found == given.end() && !begins)
      return makeError("input {0} is missing", quote(name));
    if (found == given.end()) {
      inputs.push_back(begins->value);
      continue;
    }
    auto bytes = std::make_shared<std::string>(found->second);
    inputs.push_back(Tensor::fromBytes(type, {bytes->data(), bytes->size()}, bytes));
  }
  return inputs;
}

/// Out of a file, or drawn. What they are for is known best where the model is whole.
llvm::Expected<SmallVector<Tensor>> ModelRun::State::makeInputs() {
  const CompileOptions &compile = compilation.getOptions();
  for (unsigned index = 0; index < unsharded.getNumArguments(); ++index)
    if (Attribute value = unsharded.getArgAttr(index, nn::NnDialect::kValueAttr);
        value && !getFixedValue(unsharded, index))
      return makeError("{0}: the {1} of argument {2} is not dense elements of its type", compile.model,
                       nn::NnDialect::kValueAttr, quote(getInputNames(unsharded)[index]));
  if (!options.given.empty())
    return takeInputs(unsharded, options.given);
  if (!compile.inputs.empty())
    return readInputs(unsharded, compile.inputs);
  return drawInputs(unsharded, options.seed,
                    options.against.empty() ? compilation.getInputRanges() : findRanges(unsharded));
}

bool ModelRun::prepare() {
  Compilation &compilation = state->compilation;
  Phase last = state->options.last.value_or(compilation.getLastPhase()), done = compilation.getPhase();
  // Checking may want the program in double, which has to be made before memory is planned for its types.
  if (state->original && last > Phase::Outlined && done <= Phase::Outlined) {
    if (!compilation.advance(Phase::Outlined))
      return false;
    state->unplanned = compilation.getModule().clone();
  }
  // A file may be further already.
  if (state->hasMesh && !compilation.advance(std::max(last, compilation.getPhase())))
    return false;
  func::FuncOp func = compilation.getEntry();
  if (!func)
    return false;
  // What is compiled has no tensors in the end; names, types and the check are about what it was made from.
  if (state->isProgram) {
    state->compiled = compilation.getModule().clone();
    func = state->compiled->lookupSymbol<func::FuncOp>(func.getName());
  }
  state->func = func;
  state->unsharded = state->original ? state->original->lookupSymbol<func::FuncOp>(func.getName()) : func;
  state->running.emplace(compilation, Blame::Run);
  if (failed(checkSizes(state->unsharded)))
    return false;
  llvm::Expected<SmallVector<Tensor>> inputs = state->makeInputs();
  if (!inputs)
    return compilation.fail(inputs.takeError());
  state->inputs = std::move(*inputs);
  return true;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// What states begin as the program knows by itself: it is given nothing else, so that its own loads are what is run. A tensor that
/// was given in a file stays, unless it is just that.
SmallVector<Tensor> ModelRun::State::leaveOutBeginnings(SmallVector<Tensor> given) {
  FailureOr<SmallVector<std::optional<reference::Beginning>>> beginnings = reference::getBeginnings(unsharded);
  for (unsigned index = 0; succeeded(beginnings) && index < given.size(); ++index)
    if (const auto &begins = (*beginnings)[index]; begins && begins->value.getBytes() == given[index].getBytes())
      given[index] = Tensor();
  return given;
}

/// Compiles what is left of the way, and runs that in this process. Nothing after an error.
std::optional<SmallVector<Tensor>> ModelRun::State::runProgram(ArrayRef<RankedTensorType> types) {
  std::unique_ptr<Assembly> made = compilation.makeProgram(".");
  if (!made)
    return std::nullopt;
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor =
      openProgram(*made, ".", getExecutorOptions(compilation.getOptions()));
  llvm::Expected<SmallVector<Tensor>> results =
      executor ? cleave::runProgram(**executor, leaveOutBeginnings(inputs), types) : executor.takeError();
  if (results) {
    libraries.clear();
    windows.reset();
    for (const runtime::LibraryUse &use : (*executor)->getLibraries())
      libraries.push_back({use.name, int64_t(use.calls), int64_t(use.fallbacks), use.reason, int64_t(use.workspace)});
    if (runtime::WindowUse use = (*executor)->getWindows(); use.collectives + use.without > 0)
      windows = {int64_t(use.collectives), int64_t(use.without), use.reason};
    return std::move(*results);
  }
  // What the program cannot take of its inputs has been seen before.
  compilation.fail(results.takeError(), executor ? Blame::Run : Blame::Input);
  return std::nullopt;
}

bool ModelRun::run() {
  if (!state->isProgram)
    return succeeded(reference::runGlobal(state->func, state->inputs, state->outputs));
  std::optional<SmallVector<Tensor>> results = state->runProgram(getOutputTypes(state->func));
  if (results)
    state->outputs = std::move(*results);
  return results.has_value();
}

std::optional<Report> ModelRun::makeReport() {
  std::optional<Report> report = state->compilation.makeReport();
  if (report) {
    report->libraries = state->libraries;
    report->windows = state->windows;
  }
  return report;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// What a check allows of f32 instead of its own default.
static std::optional<Tolerance> getTolerance(const CompileOptions &options) {
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
SmallVector<Tensor> ModelRun::State::runOnOneDevice() {
  bool isAsked = isProgram && compilation.getOptions().precision == Precision::BF16 && !options.rtol && !options.atol;
  if (!isAsked || cleave::getPhase(*original) >= Phase::Annotated)
    return {};
  compilation.restartOnOneDevice(original->clone());
  func::FuncOp entry = compilation.getEntry();
  return entry ? runProgram(getOutputTypes(entry)).value_or(SmallVector<Tensor>()) : SmallVector<Tensor>();
}

std::optional<std::vector<OutputCheck>> ModelRun::check() {
  assert(hasOriginal() && "there is nothing to compare with");
  SmallVector<Tensor> expected;
  if (failed(reference::runGlobal(state->unsharded, state->inputs, expected)))
    return std::nullopt;
  func::FuncOp ranks =
      state->unplanned ? state->unplanned->lookupSymbol<func::FuncOp>(state->func.getName()) : state->func;
  SmallVector<Tensor> narrow = state->runOnOneDevice();
  if (state->compilation.getBlame())
    return std::nullopt;
  std::optional<Tolerance> tolerance = state->isProgram ? getTolerance(state->compilation.getOptions()) : std::nullopt;
  return checkOutputs({ranks, state->unsharded, state->inputs, state->outputs, expected, state->options.rtol,
                       state->options.atol, tolerance, narrow});
}

/// The whole step: on ranks gradients are compared with these.
std::optional<std::vector<SlopeCheck>> ModelRun::checkSlopes() {
  return cleave::checkSlopes(state->unsharded, state->inputs, state->options.seed);
}

std::optional<CheckResult> cleave::checkModel(Compilation &compilation, RunOptions options) {
  assert(compilation.hasMesh() && "a model without a mesh");
  options.checks = true;
  std::unique_ptr<ModelRun> run = ModelRun::create(compilation, options);
  if (!run || !run->prepare() || !run->run())
    return std::nullopt;
  if (!run->hasOriginal()) {
    compilation.fail(makeError("{0} is {1} already: what it was made from is not in it", compilation.getOptions().model,
                               toString(compilation.getPhase())),
                     Blame::Options);
    return std::nullopt;
  }
  std::optional<Report> report = run->makeReport();
  std::optional<std::vector<OutputCheck>> outputs = report ? run->check() : std::nullopt;
  return outputs ? std::optional(CheckResult{std::move(*outputs), std::move(*report)}) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// The object
//===----------------------------------------------------------------------===//

ModelRun::ModelRun(std::unique_ptr<State> state) : state(std::move(state)) {}
ModelRun::~ModelRun() = default;

std::unique_ptr<ModelRun> ModelRun::create(Compilation &compilation, const RunOptions &options) {
  auto state = std::make_unique<State>(compilation, options);
  return state->load() ? std::unique_ptr<ModelRun>(new ModelRun(std::move(state))) : nullptr;
}

std::vector<std::string> ModelRun::getOriginalFiles() const {
  bool isOther = state->original && !state->options.against.empty();
  return isOther ? reference::listWeightFiles(*state->original) : std::vector<std::string>();
}

bool ModelRun::hasOriginal() const { return static_cast<bool>(state->original); }

llvm::Error ModelRun::writeInputs(StringRef path) const {
  return writeTensors(getInputNames(state->unsharded), state->inputs, path);
}

llvm::Error ModelRun::writeOutputs(StringRef path) const {
  return writeTensors(getOutputNames(state->func), state->outputs, path);
}

std::vector<OutputSummary> ModelRun::summarize() const {
  std::vector<OutputSummary> summaries;
  for (auto [name, tensor] : llvm::zip_equal(getOutputNames(state->func), state->outputs))
    summaries.push_back({name, formatType(tensor.getType()), cleave::summarize(tensor)});
  return summaries;
}
