//===- Predict.cpp - what would come of a model ---------------------------===//
//
// Some choices are made by trying: a copy of the model goes through the phases, nothing is said of it, and what a rank of it takes is
// counted as a report counts it.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Plan/Plan.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseSet.h"

#include <limits>

using namespace mlir;
using namespace cleave;

/// Larger programs are not sharded for the sake of a comparison. A step of a recurrent net is some ops.
static constexpr int64_t kMostOps = 5000, kOpsOfStep = 10;

bool Compilation::State::isSmall() {
  int64_t numOps = 0;
  module->walk([&](Operation *op) {
    auto recurrence = dyn_cast<nn::RecurrenceOp>(op);
    numOps += recurrence ? kOpsOfStep * getShape(recurrence.getProjected()).front() : 1;
  });
  return numOps < kMostOps;
}

bool Compilation::State::mayCompare() {
  return cleave::getPhase(*module) < Phase::Propagated && !isPipelined() && hasMesh() && isSmall();
}

/// Kernels are those of the host, whatever the program is for, or commands would decide differently.
static ShardOptions makeTrial(ShardOptions sharding) {
  sharding.traceDecisions = sharding.isForDevices = sharding.usesLibraries = sharding.narrowsFloats = false;
  sharding.panelWidth = 0;
  sharding.chunks.reset();
  return sharding;
}

std::function<LogicalResult(mlir::Diagnostic &)> cleave::keepFirstError(std::string *reason) {
  return [reason](mlir::Diagnostic &diagnostic) {
    if (reason && reason->empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      *reason = diagnostic.str();
    return success();
  };
}

OwningOpRef<ModuleOp> Compilation::State::advanceCopy(const std::shared_ptr<const spmd::Plan> &candidate,
                                                      const ShardOptions &sharding, Phase last, std::string *reason,
                                                      bool warns) {
  // What a handler does not take, the one outside of it gets.
  ScopedDiagnosticHandler quiet(context.get(), [keep = keepFirstError(reason), warns](mlir::Diagnostic &diagnostic) {
    return warns && diagnostic.getSeverity() == DiagnosticSeverity::Warning ? failure() : keep(diagnostic);
  });
  bool isInParts = candidate && candidate->pipeline && hasOtherStep();
  if (isInParts && !splitStep())
    return nullptr;
  OwningOpRef<ModuleOp> copy((isInParts ? *stepOfParts : *module).clone());
  ShardState handing;
  handing.plan = candidate;
  // As it runs: updates early, gradients in buckets, and what the candidate makes again.
  if (handed.training && candidate && candidate->train)
    handing.training = getTrainingPlan(candidate);
  handing.memory = memory;
  handing.isPipelined = candidate && candidate->pipeline;
  if (handing.isPipelined)
    handing.pipeline = candidate;
  ShardOptions tried = makeTrial(sharding);
  Phase done = cleave::getPhase(*module);
  for (const PipelinePhase &step :
       llvm::concat<const PipelinePhase>(getShardPhases(), getPipelinePhases(), getLowerPhases())) {
    if (!isAhead(step.phase, done) || step.phase > last || (isOfPipeline(step.phase) && !handing.isPipelined))
      continue;
    PassManager manager(context.get());
    manager.enableVerifier(false);
    step.addPasses(manager, tried, handing);
    if (failed(manager.run(*copy)))
      return nullptr;
  }
  return copy;
}

/// Nothing for a module without a program.
static std::optional<Report> makeReportOf(ModuleOp module, StringRef model, const spmd::Cluster &machine) {
  if (SmallVector<func::FuncOp, 4> ranks = pipe::getRankFunctions(module); !ranks.empty())
    return cleave::makePipelineReport(ranks, model, &machine);
  llvm::Expected<func::FuncOp> func = findEntry(module);
  if (func)
    return cleave::makeReport(*func, model, &machine);
  llvm::consumeError(func.takeError());
  return std::nullopt;
}

/// A report counts parameters that are loaded, and those of a step, which are arguments. States stay in the ranks as well, and so do parameters
/// of a function that is written by hand, which are arguments, too.
static int64_t countStored(ModuleOp module, const Report &report) {
  llvm::Expected<func::FuncOp> func = findEntry(module);
  if (!func) { // Ranks of a pipeline, which have no states.
    llvm::consumeError(func.takeError());
    return report.parameterBytesPerRank;
  }
  llvm::SmallDenseSet<unsigned> states;
  for (unsigned index = 0; index < func->getNumResults(); ++index)
    if (std::optional<unsigned> state = spmd::findStateArgument(*func, index))
      states.insert(*state);
  int64_t bytes = report.parameterBytesPerRank;
  for (unsigned index = 0; index < func->getNumArguments(); ++index) {
    bool isParameter = spmd::isParameter(*func, index);
    bool isReported = isParameter && func->getArgAttr(index, nn::kBeginsAttr);
    if (!isReported && (isParameter || states.contains(index)))
      bytes += spmd::getBytes(func->getArgumentTypes()[index]);
  }
  return bytes;
}

std::optional<Report> Compilation::State::makeTrialReport(const std::shared_ptr<const spmd::Plan> &candidate,
                                                          const ShardOptions &sharding) {
  OwningOpRef<ModuleOp> copy =
      advanceCopy(candidate, sharding, candidate->pipeline ? Phase::PerRank : Phase::Optimized);
  return copy ? makeReportOf(*copy, options.model, sharding.cluster.value_or(spmd::Cluster())) : std::nullopt;
}

/// Nothing of one stage.
static std::optional<StagesTime> readStages(const Report &report) {
  const llvm::json::Object *schedule = report.pipeline ? report.pipeline->getObject("schedule") : nullptr;
  if (!schedule)
    return std::nullopt;
  auto read = [](const llvm::json::Object &from, StringRef key) { return from.getNumber(key).value_or(0); };
  return StagesTime{read(*schedule, "makespan_ns"), read(*schedule, "bound_ns"),
                    read(*report.pipeline, "bottleneck_ns"), read(*report.pipeline, "bound_ns")};
}

Compilation::State::Prediction Compilation::State::predict(const std::shared_ptr<const spmd::Plan> &candidate,
                                                           const ShardOptions &sharding, Trial trial) {
  const Prediction impossible{std::numeric_limits<double>::infinity()};
  ScopedDiagnosticHandler quiet(context.get(), keepFirstError(nullptr));
  Phase sharded = candidate && candidate->pipeline ? Phase::PerRank : Phase::Optimized;
  OwningOpRef<ModuleOp> copy =
      advanceCopy(candidate, sharding, trial == Trial::WithKernels ? Phase::Clustered : sharded);
  if (!copy)
    return impossible;
  PassManager recognition(context.get());
  recognition.addPass(exec::createRecognizeAttention());
  if (trial == Trial::WithAttention && failed(recognition.run(*copy)))
    return impossible;
  std::optional<Report> report = makeReportOf(*copy, options.model, sharding.cluster.value_or(spmd::Cluster()));
  if (!report)
    return impossible;
  bool hasRings = copy->walk([](exec::PartialAttentionOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return {report->time->getCallNs(),
          report->peakBytesPerRank,
          hasRings,
          report->getWireBytes(),
          report->time->getSpanNs(),
          countStored(*copy, *report),
          !report->memory || report->memory->excess.empty(),
          readStages(*report)};
}
