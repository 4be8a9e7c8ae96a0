//===- Advance.cpp - from phase to phase ----------------------------------===//
//
// Each phase that the module has not been through runs in a pass manager of its own, so that it can be timed, dumped
// and blamed by itself: a phase begins with what an earlier gate let pass, and what it leaves illegal is our fault.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Interruption.h"
#include "cleave/Support/Status.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SaveAndRestore.h"

#include <chrono>

using namespace mlir;
using namespace cleave;

bool Compilation::State::hasMesh() {
  // Rules without a mesh are told where the plan is placed. A program that has annotations or shardings names its mesh; kernels
  // may be those of one device.
  bool isAsked = plan && (!plan->mesh.empty() || !plan->rules.empty());
  Phase phase = cleave::getPhase(*module);
  return isAsked || (*module)->hasAttr(spmd::SpmdDialect::kMeshAttr) ||
         (phase >= Phase::Annotated && phase < Phase::Clustered);
}

/// A plan asks for one, or the file says that it is of a microbatch.
bool Compilation::State::isPipelined() { return handed.pipeline || pipe::getMicrobatches(*module); }

bool cleave::isDumpName(std::string_view name) {
  StringRef text = name;
  unsigned number;
  return !text.consumeInteger(10, number) && text.consume_front("-") && text.consume_back(".mlir") &&
         llvm::any_of(getPhaseNames(), [&](const PhaseName &phase) { return phase.word == text; });
}

/// `DIR/3-propagated.mlir`; numbers are those of the phases that the model goes through.
llvm::Error Compilation::State::dump(Phase phase) {
  StringRef folder = options.dumpPhases;
  if (folder.empty())
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  SmallString<128> path(folder);
  int number = static_cast<int>(phase);
  if (phase > Phase::Differentiated && !handed.hasStep())
    --number;
  if (phase > Phase::PerRank && !isPipelined())
    number -= static_cast<int>(getPipelinePhases().size());
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}.mlir", number, toString(phase)));
  return writeModule(*module, path);
}

void Compilation::State::addSeconds(StringRef name, double time) {
  auto it = llvm::find_if(seconds, [&](const auto &entry) { return entry.first == name; });
  if (it == seconds.end())
    seconds.emplace_back(name.str(), time);
  else
    it->second += time;
}

/// Whatever the file said: it was legal before the phase.
bool Compilation::State::verifyModule() {
  llvm::SaveAndRestore ours(current, Blame::Bug);
  return succeeded(verify(*module));
}

bool Compilation::State::runPhase(const PipelinePhase &step, bool isVerified) {
  Phase phase = step.phase;
  PassManager manager(context.get());
  // Each phase ends in its gate, which checks what that phase promises. The ops themselves were verified as they were
  // imported, and are again at the end: on a large model every further time costs as much as a phase.
  manager.enableVerifier(false);
  handed.memory = memory;
  step.addPasses(manager, options.sharding, handed);
  Telling telling(onProgress, "phase " + toString(phase).str());
  if (Interruption::isAsked())
    return fail(makeError("interrupted"), Blame::Run);
  auto start = std::chrono::steady_clock::now();
  bool isDone = succeeded(manager.run(*module));
  isDone = isDone && (!isVerified || verifyModule());
  if (!isDone && !worst)
    fail(makeError("{0}: cannot be {1}", options.model, toString(phase)), Blame::Bug);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  addSeconds(getPhaseNames()[static_cast<int>(phase)].timeKey, time.count());
  isChecked |= isDone;
  return isDone;
}

void Compilation::State::takePlan(std::shared_ptr<const spmd::Plan> taken) {
  plan = handed.plan = std::move(taken);
  handed.pipeline = plan->pipeline ? plan : nullptr;
  if (!handed.training || !plan->train)
    return;
  // What it says of memory counts from now on, and microbatches are of another step.
  handed.training = getTrainingPlan(plan);
  if (plan->pipeline && hasOtherStep() && splitStep())
    module = std::move(stepOfParts);
}

bool Compilation::State::hasFreeAxes() {
  auto free = (*module)->getAttrOfType<ArrayAttr>(spmd::kFreeAttr);
  return (handed.plan && handed.plan->hasFree()) || (free && !free.empty());
}

/// A plan that is still to be placed goes before the module, which may have no mesh yet.
spmd::MeshAttr Compilation::State::getWholeMesh() {
  if (plan && !plan->mesh.empty())
    return spmd::getMesh(context.get(), *plan);
  return pipe::getWholeMesh(*module);
}

const spmd::Cluster *Compilation::State::getCluster() {
  if (plan && plan->cluster)
    return &*plan->cluster;
  return options.sharding.cluster ? &*options.sharding.cluster : nullptr;
}

std::optional<spmd::Cluster> Compilation::State::getTargetCluster() const {
  return options.target == "host" ? std::optional(spmd::getHostCluster()) : std::nullopt;
}

// A mesh of the plan was looked at with it.
bool Compilation::State::checkCluster() {
  spmd::MeshAttr whole = getWholeMesh();
  if (!getCluster() || !whole)
    return true;
  llvm::Error misfit = spmd::checkFit(*getCluster(), spmd::getClusterMesh(whole));
  return misfit ? fail(addContext(options.model + ": ", std::move(misfit))) : true;
}

/// Where what a rank takes must fit, before anything is written or run. That it is too much has been told.
bool Compilation::State::checkFit(const std::optional<Report> &report) {
  if (!report || report->memory)
    return report && report->memory->excess.empty();
  return fail(makeError("{0}: --must-fit needs a cluster whose device has a 'memory'", options.model), Blame::Options);
}

/// The axis of a pipeline is none that values are split along, but says where stages stand.
spmd::CostModel Compilation::State::makeCosts(spmd::Optimize optimize) {
  spmd::MeshAttr whole = getWholeMesh();
  if (!getCluster() || !whole)
    return spmd::CostModel::create(optimize);
  spmd::ClusterMesh mesh = spmd::getClusterMesh(whole);
  std::vector<std::string> inner = mesh.names;
  llvm::erase_if(inner,
                 [&](const std::string &axis) { return plan && plan->pipeline && axis == plan->pipeline->axis; });
  return spmd::makeCostModel(*getCluster(), mesh, inner, optimize);
}

/// Threads and processes of this machine compute slowly next to what they send, which is the other way round on the default cluster. There is
/// a step once it is differentiated; large ones are not decided by time unless that is asked for, since that takes long. Stages of a
/// pipeline go by the plan's machine alone. Variants of a program share states, and time may shard them for each of their sizes otherwise.
bool Compilation::State::isByHostTime() {
  Phase done = cleave::getPhase(*module);
  spmd::MeshAttr whole = getWholeMesh();
  return handed.hasStep() && !options.hasObjective && options.variants.empty() && !getCluster() && getTargetCluster() &&
         !isPipelined() && done >= Phase::Differentiated && done < Phase::Propagated && whole &&
         whole.getNumRanks() > 1 && isSmall();
}

/// Before any phase that asks for costs. A file may say which machine it is for; a plan goes before it.
bool Compilation::State::useCluster() {
  if (!plan || !plan->cluster) {
    FailureOr<std::optional<spmd::Cluster>> kept = spmd::readCluster(*module);
    if (failed(kept))
      return false;
    options.sharding.cluster = *kept;
  }
  if (isByHostTime()) {
    options.sharding.optimize = spmd::Optimize::Time;
    options.sharding.cluster = getTargetCluster();
    emitRemark(FileLineColLoc::get(context.get(), options.model, 0, 0))
        << "the step is decided by time on " << options.sharding.cluster->name
        << ", the costs of this machine; --cluster and --optimize name others";
  }
  if ((handed.plan && handed.plan->isByTime) || (*module)->hasAttr(spmd::kFreeAttr)) {
    if (options.sharding.optimize == spmd::Optimize::Bytes)
      return fail(makeError("--optimize=bytes leaves nothing to decide where axes are free: a model that is not "
                            "sharded sends nothing; "
                            "what is free is decided by time"),
                  Blame::Options);
    options.sharding.optimize = spmd::Optimize::Time;
    if (!getCluster())
      options.sharding.cluster = getTargetCluster();
  }
  spmd::MeshAttr whole = getWholeMesh();
  if (!getCluster() || !whole)
    return true;
  if (!checkCluster())
    return false;
  options.sharding.costs = makeCosts(options.sharding.optimize);
  options.sharding.cluster = *getCluster();
  spmd::writeCluster(*module, *options.sharding.cluster);
  return true;
}

/// Where there is anything to be said.
void Compilation::State::keepRanges() {
  Builder builder(context.get());
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, range] : inputRanges)
    entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(range)));
  if (!entries.empty())
    (*module)->setAttr(kRangesAttr, builder.getDictionaryAttr(entries));
}

/// A phase is never done twice, but for annotation, to which a plan may add.
bool Compilation::advance(Phase last) {
  const CompileOptions &options = state->options;
  Phase done = getPhase();
  if (last < done)
    return fail(makeError("{0} is {1} already, which comes after {2}", options.model, toString(done), toString(last)));
  if (done > Phase::Annotated && state->handed.plan)
    return fail(makeError("{0} is {1} already: --mesh, --plan{2} come too late", options.model, toString(done),
                          state->handed.plan->states.empty() ? " and --shard" : ", --shard and --state"),
                Blame::Options);
  bool isPipelined = state->handed.isPipelined = state->isPipelined();
  if (last > Phase::Differentiated) { // The step is what it is.
    state->canonical = nullptr;
    state->stepOfParts = nullptr;
  }
  if (isOfPipeline(last) && !isPipelined)
    return fail(makeError("{0} has no pipeline, and cannot become {1}: 'pipeline' in a plan asks for one",
                          options.model, toString(last)));
  if (last == Phase::Differentiated && !state->handed.hasStep() && done != last)
    return fail(makeError("{0} is not trained, and cannot become {1}: --train, with a plan that has a section 'train'",
                          options.model, toString(last)),
                Blame::Options);
  if (last > Phase::Imported && !state->chooseDevices())
    return false;
  if (!state->useCluster())
    return false;
  if (!findBlocks())
    return false;
  if (last >= Phase::Propagated) {
    state->chooseAttention();
    if (!state->hasFreeAxes())
      if (std::optional<State::Prediction> decided = state->chooseObjective())
        state->chooseStates(*decided);
  }
  if (llvm::Error error = state->dump(done))
    return fail(std::move(error));
  for (const PipelinePhase &step :
       llvm::concat<const PipelinePhase>(getShardPhases(), getPipelinePhases(), getLowerPhases())) {
    if (!State::isAhead(step.phase, done) || step.phase > last || (isOfPipeline(step.phase) && !isPipelined) ||
        (step.phase == Phase::Differentiated && !state->handed.hasStep()))
      continue;
    bool isVerified = (step.phase == last && !state->isVerifiedLater) || !options.dumpPhases.empty();
    if (!state->runPhase(step, isVerified))
      return false;
    if (step.phase == Phase::Partitioned)
      state->keepRanges();
    if (step.phase == Phase::Propagated)
      state->keepDecided();
    if (step.phase == Phase::PerRank)
      state->keepStages();
    // What a plan expects is said of the step.
    if (step.phase == getLastPhase() && !state->handed.evaluates && !state->checkExpectations(makeReport()))
      return false;
    if (llvm::Error error = state->dump(step.phase))
      return fail(std::move(error));
  }
  return !options.mustFit || last < Phase::Partitioned || state->checkFit(makeReport());
}

/// What is on standard output cannot be taken back: there it is verified and counted first.
bool Compilation::advanceAndWrite(Phase last, StringRef path, std::optional<Report> *report) {
  bool isFile = !path.empty() && path != "-";
  llvm::SaveAndRestore later(state->isVerifiedLater, isFile);
  if (!advance(last))
    return false;
  auto count = [&] { return !report || (*report = makeReport()); };
  if (!isFile)
    return count() && write(path);
  if (!state->digestWeights())
    return false;
  llvm::Error error = writeModule(*state->module, path, [&] {
    if (!state->verifyModule())
      return makeError("what was made is not legal, and is not written");
    return count() ? llvm::Error::success() : makeError("what was made cannot be counted, and is not written");
  });
  return error ? fail(std::move(error)) : true;
}
