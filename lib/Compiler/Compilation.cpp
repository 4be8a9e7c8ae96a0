//===- Compilation.cpp - one model on its way through the compiler --------===//
//
// The object that programs see; what it does stands in Load.cpp, ParseMlir.cpp, Advance.cpp and Write.cpp. MLIR's
// diagnostics become ours here, with somebody to blame: whoever the code that emits them says (OwnFaults), or else whoever
// is to blame for errors at that time.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Compilation.h"

#include "State.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/IR/Entry.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Pipelines/Registration.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// The place of the innermost file location, or else the model.
static void setPlace(Location loc, StringRef model, cleave::Diagnostic &diagnostic) {
  auto file = loc->findInstanceOf<FileLineColLoc>();
  diagnostic.file = file ? file.getFilename().str() : model.str();
  diagnostic.line = file ? file.getLine() : 0;
  diagnostic.column = diagnostic.line ? file.getColumn() : 0;
}

static std::string getNode(Location loc) {
  for (const nn::NodeInfo &info : nn::getNodeInfos(loc))
    if (!info.node.empty())
      return info.node.str();
  return "";
}

static cleave::Diagnostic::Severity getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return cleave::Diagnostic::Severity::Error;
  case DiagnosticSeverity::Warning:
    return cleave::Diagnostic::Severity::Warning;
  case DiagnosticSeverity::Remark:
    return cleave::Diagnostic::Severity::Remark;
  case DiagnosticSeverity::Note:
    return cleave::Diagnostic::Severity::Note;
  }
}

static cleave::Diagnostic convert(mlir::Diagnostic &source, StringRef model) {
  cleave::Diagnostic diagnostic;
  diagnostic.severity = getSeverity(source.getSeverity());
  setPlace(source.getLocation(), model, diagnostic);
  diagnostic.node = getNode(source.getLocation());
  diagnostic.message = source.str();
  for (mlir::Diagnostic &note : source.getNotes()) {
    cleave::Diagnostic &converted = diagnostic.notes.emplace_back();
    converted.severity = cleave::Diagnostic::Severity::Note;
    setPlace(note.getLocation(), model, converted);
    converted.message = note.str();
  }
  return diagnostic;
}

void Compilation::State::report(const Diagnostic &diagnostic) {
  if (diagnostic.severity == Diagnostic::Severity::Error)
    worst = std::max(worst.value_or(Blame::Input), diagnostic.blame);
  if (handler)
    handler(diagnostic);
  else
    diagnostics.push_back(diagnostic);
}

bool Compilation::State::fail(llvm::Error error, Blame blame) {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    Diagnostic diagnostic;
    diagnostic.blame = blame;
    diagnostic.file = "cleave";
    diagnostic.message = info.message();
    report(diagnostic);
  });
  return false;
}

Compilation::State::State(CompileOptions options, DiagnosticHandler handler)
    : given(options), options(std::move(options)), handler(std::move(handler)), memory(spmd::makeSearchMemory()) {
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  // Said once more, for what keeps types and attributes: the constructor does not tell it, and it goes on locking.
  context->disableMultithreading();
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  context->getDiagEngine().registerHandler([this](mlir::Diagnostic &source) {
    Diagnostic diagnostic = convert(source, this->options.model);
    // What is said of a place in an option.
    bool isOption = StringRef(diagnostic.file).starts_with("--");
    diagnostic.blame = isChecked && isOwnFault(source) ? Blame::Bug : isOption ? Blame::Options : current;
    report(diagnostic);
    return success();
  });
}

//===----------------------------------------------------------------------===//
// The object
//===----------------------------------------------------------------------===//

Compilation::Compilation(CompileOptions options, DiagnosticHandler handler)
    : state(std::make_unique<State>(std::move(options), std::move(handler))) {}

Compilation::~Compilation() = default;

bool Compilation::load(bool collectAllErrors) {
  state->module = state->load(collectAllErrors);
  if (!state->module || (state->options.train && !startTraining()))
    return false;
  bool isStyled = !state->options.like.empty() || (state->plan && !state->plan->like.empty());
  if (isStyled ? !takeLikePlan() : state->options.devices > 0 && !takeFoundPlan())
    return false;
  // Behind what finds a plan: that is for the model as it is.
  return !state->options.returnsAll || returnAll();
}

/// In the order of the program, behind the model's own outputs, and sharded as they are: nothing is asked of them.
bool Compilation::returnAll() {
  const std::string &model = state->options.model;
  if (isPipelined())
    return fail(
        makeError("{0}: '--check=all' compares tensors of whole batches, and a pipeline has those of microbatches",
                  model),
        Blame::Options);
  if (getPhase() >= Phase::Annotated)
    return fail(makeError("{0} is {1} already: --check=all comes too late", model, toString(getPhase())),
                Blame::Options);
  func::FuncOp func = getEntry();
  if (!func)
    return false;
  Operation *terminator = func.getBody().front().getTerminator();
  llvm::StringSet<> names;
  llvm::DenseSet<Value> returned(terminator->operand_begin(), terminator->operand_end());
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    names.insert(spmd::getResultName(func, index));
  for (Operation &op : func.getBody().front())
    for (Value result : op.getResults()) {
      SmallVector<StringRef, 1> known = spmd::getTensorNames(result);
      // Constants and weights are as they were given.
      if (known.empty() || (op.getNumOperands() == 0 && nn::isData(&op)) || !returned.insert(result).second ||
          !names.insert(known.front()).second)
        continue;
      NamedAttribute name(StringAttr::get(func.getContext(), spmd::kNameAttr),
                          StringAttr::get(func.getContext(), known.front()));
      if (failed(
              func.insertResult(func.getNumResults(), result.getType(), DictionaryAttr::get(func.getContext(), name))))
        return fail(makeError("{0}: '{1}' cannot be returned", model, known.front()));
      terminator->insertOperands(terminator->getNumOperands(), result);
    }
  return true;
}

/// A step in stages is one in microbatches. How many is not asked where the plan says how large they are.
std::shared_ptr<const spmd::Plan> cleave::getTrainingPlan(const std::shared_ptr<const spmd::Plan> &plan) {
  if (!plan->pipeline)
    return plan;
  auto own = std::make_shared<spmd::Plan>(*plan);
  own->train->microbatches = plan->pipeline->microbatches.value_or(2);
  return own;
}

/// From here on the model is the step: what is asked, run and compared is that.
bool Compilation::startTraining() {
  const spmd::Plan *plan = state->plan.get();
  const std::string &model = state->options.model;
  bool isOwn = state->hasOwnStep;
  if (!isOwn && (!plan || !plan->train))
    return fail(
        makeError("{0}: --train needs a plan with a section 'train', or --train='{{loss: .., optimizer: ..}'", model),
        Blame::Options);
  // One stage is a loop around the graph, in which gradients add up, as any sum over samples does. In several a gradient would have to be
  // where its op is, which no node of the graph says.
  if (const spmd::MeshAxis *axis = isOwn && plan && plan->pipeline ? plan->findAxis(plan->pipeline->axis) : nullptr;
      axis && axis->size * plan->pipeline->chunks > 1)
    return fail(
        makeError("{0}: the step of training_info runs in microbatches, and not in stages, of which there would "
                  "be {1}; the plan's 'train' makes a step that does",
                  model, axis->size * plan->pipeline->chunks),
        Blame::Options);
  if (getPhase() > Phase::Canonical)
    return fail(makeError("{0} is {1} already: --train comes too late", model, toString(getPhase())), Blame::Options);
  // Where nobody gives a mesh no axis shards the states: that would train as if nothing had been asked.
  if (!isOwn && !plan->train->zero.empty() && plan->mesh.empty() && state->options.devices == 0 &&
      !(*state->module)->hasAttr(spmd::SpmdDialect::kMeshAttr)) {
    const spmd::PlanZero &zero = plan->train->zero.front();
    (void)spmd::emitError(state->context.get(), {zero.place,
                                                 "'zero' is over \"" + zero.axis + "\", and there is no mesh: --mesh " +
                                                     zero.axis + "=2, or 'mesh'",
                                                 {}});
    return false;
  }
  if (!isOwn && plan->train->microbatches > 1)
    state->splitSteps();
  if (!isOwn)
    state->handed.training = getTrainingPlan(state->plan);
  state->handed.isOwnStep = isOwn;
  state->handed.stepsPerCall = static_cast<int64_t>(state->options.stepsPerCall);
  state->handed.keepsGradients = state->options.keepsGradients;
  if (!advance(Phase::Canonical))
    return false;
  // Who looks for a plan may find stages, whose step is differentiated for microbatches.
  if (!isOwn && !state->handed.pipeline)
    state->canonical = state->module->clone();
  if (state->options.evaluates)
    state->keepForEvaluation();
  if (!advance(Phase::Differentiated))
    return false;
  state->inputRanges = readRanges(*state->module);
  llvm::Error error = warnOfArrays(*state->module, state->options.inputs);
  return error ? fail(std::move(error)) : true;
}

bool Compilation::isLoaded() const { return static_cast<bool>(state->module); }
bool Compilation::hasMesh() const { return state->hasMesh(); }
bool Compilation::isPipelined() const {
  assert(state->module && "the model is not loaded");
  return state->isPipelined();
}
bool Compilation::isOnnx() const { return state->hasOnnx; }
Phase Compilation::getPhase() const { return cleave::getPhase(*state->module); }

void Compilation::useOneDevice() {
  assert(state->module && "the model is not loaded");
  MLIRContext *context = state->context.get();
  (*state->module)->setAttr(spmd::SpmdDialect::kMeshAttr, spmd::MeshAttr::get(context, {"device"}, {1}, {}));
}

/// What a plan has asked of values: a step of training has it already, of states that the model does not have.
static void forgetAnnotations(ModuleOp module) {
  StringRef name = spmd::SpmdDialect::kAnnotationAttr;
  for (auto func : module.getOps<func::FuncOp>()) {
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      func.removeArgAttr(index, name);
    for (unsigned index = 0; index < func.getNumResults(); ++index)
      func.removeResultAttr(index, StringAttr::get(module.getContext(), name));
    func.walk([](spmd::PinOp pin) { pin.removeAnnotationAttr(); });
  }
}

void Compilation::restartOnOneDevice(ModuleOp module) {
  assert(module->getContext() == state->context.get() && "a module of another context");
  forgetAnnotations(module);
  state->module = OwningOpRef<ModuleOp>(module);
  state->plan = nullptr;
  state->handed = {};
  useOneDevice();
}

void Compilation::tellProgress(ProgressHandler handler) { state->onProgress = std::move(handler); }
const ProgressHandler &Compilation::getProgress() const { return state->onProgress; }

void Compilation::keepDecisions(spmd::Decisions *decisions) { state->handed.decisions = decisions; }

/// Where ranks do nearly twice of what an even split would give them, an axis of the mesh gains nearly nothing; empty otherwise. A
/// program that was not partitioned here does not know what the whole would take.
static std::string describeLittleSplit(func::FuncOp func, const Report &report) {
  constexpr double most = 1.8;
  double even = report.flops / double(report.ranks);
  if (!func->hasAttr(spmd::SpmdDialect::kFlopsAttr) || report.flops == 0 || report.flopsPerRank < most * even)
    return "";
  std::string mesh;
  for (const auto &[name, size] : report.mesh)
    mesh += llvm::formatv("{0}{1}={2}", mesh.empty() ? "" : ", ", name, size);
  return llvm::formatv(
      "each rank computes {0:f1} % of what the model takes, and an even split over {1} would be {2:f1} %: most of it "
      "is done by several ranks",
      100 * report.flopsPerRank / report.flops, mesh, 100 * even / report.flops);
}

std::optional<Report> Compilation::makeReport() {
  SmallVector<func::FuncOp, 4> ranks = pipe::getRankFunctions(*state->module);
  func::FuncOp func = ranks.empty() ? getEntry() : ranks.front();
  if (!func)
    return std::nullopt;
  const spmd::Cluster *cluster = state->getCluster();
  if (cluster && !state->checkCluster())
    return std::nullopt;
  Report report = ranks.empty() ? cleave::makeReport(func, state->options.model, cluster)
                                : makePipelineReport(ranks, state->options.model, cluster);
  report.seconds = state->seconds;
  report.placement = state->placement;
  if (std::string little = ranks.empty() ? describeLittleSplit(func, report) : ""; !little.empty())
    if (!std::exchange(state->isLittleTold, true))
      emitWarning(FileLineColLoc::get(state->context.get(), state->options.model, 0, 0)) << little;
  bool hasExcess = report.memory && !report.memory->excess.empty();
  if (hasExcess && !std::exchange(state->isExcessTold, true)) {
    Location loc = FileLineColLoc::get(state->context.get(), state->options.model, 0, 0);
    (state->options.mustFit ? emitError(loc) : emitWarning(loc)) << report.memory->excess;
  }
  return report;
}

bool Compilation::write(StringRef path) {
  if (!state->digestWeights())
    return false;
  llvm::Error error = writeModule(*state->module, path);
  return error ? state->fail(std::move(error)) : true;
}

const std::map<std::string, int64_t> &Compilation::getInputRanges() const {
  assert(state->module && "the model is not loaded");
  return state->inputRanges;
}

std::vector<std::pair<std::string, std::string>> Compilation::getFilesRead() const {
  assert(state->module && "the model is not loaded");
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string &path : reference::listWeightFiles(*state->module))
    files.emplace_back("a file of its weights", path);
  for (const std::string &path : state->externalFiles)
    files.emplace_back("a file of its weights", path);
  if (!state->plan)
    return files;
  if (!state->plan->clusterFile.empty())
    files.emplace_back("the cluster of the plan", state->plan->clusterFile);
  if (state->plan->pipeline && state->plan->pipeline->hasScheduleFile())
    files.emplace_back("the schedule of the plan", state->plan->pipeline->schedule);
  return files;
}

ArrayRef<std::pair<std::string, double>> Compilation::getSeconds() const { return state->seconds; }
double Compilation::getElapsedSeconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - state->start).count();
}
ArrayRef<cleave::Diagnostic> Compilation::getDiagnostics() const { return state->diagnostics; }
std::optional<Blame> Compilation::getBlame() const { return state->worst; }
void Compilation::report(const Diagnostic &diagnostic) { state->report(diagnostic); }
bool Compilation::fail(llvm::Error error, Blame blame) { return state->fail(std::move(error), blame); }
const CompileOptions &Compilation::getOptions() const { return state->options; }
const CompileOptions &Compilation::getGivenOptions() const { return state->given; }
const spmd::Plan *Compilation::getPlan() const {
  assert(state->module && "the model is not loaded");
  return state->plan.get();
}

ModuleOp Compilation::getModule() const {
  assert(state->module && "the model is not loaded");
  return *state->module;
}

MLIRContext &Compilation::getContext() const { return *state->context; }

std::string cleave::listFunctions(ModuleOp module) {
  constexpr size_t most = 8;
  std::string text;
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  for (func::FuncOp func : ArrayRef(functions).take_front(most))
    text += (text.empty() ? "" : ", ") + quote(func.getName());
  return text + (functions.size() > most ? llvm::formatv(" and {0} more", functions.size() - most).str() : "");
}

llvm::Expected<func::FuncOp> cleave::findEntry(ModuleOp module) {
  if (func::FuncOp func = spmd::findEntry(module))
    return func;
  size_t count = llvm::range_size(module.getOps<func::FuncOp>());
  return makeError("the module has {0} functions and none is called main{1}", count,
                   count == 0 ? "" : ": --entry says which of " + listFunctions(module) + " is run");
}

func::FuncOp Compilation::getEntry() {
  llvm::Expected<func::FuncOp> func = findEntry(*state->module);
  if (func)
    return *func;
  fail(func.takeError());
  return nullptr;
}

Compilation::BlameScope::BlameScope(Compilation &compilation, Blame blame)
    : current(compilation.state->current), before(current) {
  current = blame;
}

Compilation::BlameScope::~BlameScope() { current = before; }
