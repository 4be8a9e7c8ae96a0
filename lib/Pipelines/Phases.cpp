//===- Phases.cpp - what each phase of a model's way does -----------------===//
#include "cleave/Pipelines/Phases.h"

#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Pipelines/Canonicalize.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace cleave;

static void addFormGate(OpPassManager &manager, Phase phase) {
  nn::NnVerifyFormOptions options;
  options.form = toString(phase).str();
  manager.addPass(nn::createNnVerifyForm(options));
}

static void addGate(OpPassManager &manager, Phase phase) {
  spmd::VerifyPhaseOptions options;
  options.phase = toString(phase).str();
  manager.addPass(spmd::createVerifyPhase(options));
}

/// One form for what exporters write in many. What the plan names must survive, so its wishes are placed before.
static void addCanonical(OpPassManager &manager, ShardOptions &options) {
  addFormGate(manager, Phase::Imported);
  if (options.plan)
    manager.addPass(spmd::createPinWishes(std::exchange(options.plan, nullptr)));
  buildCanonicalizePipeline(manager);
  addFormGate(manager, Phase::Canonical);
}

static spmd::AnnotateOptions getAnnotateOptions(const spmd::PlanSource &source) {
  spmd::AnnotateOptions options;
  options.plan = source.file;
  options.mesh = source.mesh;
  options.shard.assign(source.shard.begin(), source.shard.end());
  return options;
}

/// What the user asked for, written into types. Nothing else changes but calls, of a file that begins here.
static void addAnnotated(OpPassManager &manager, ShardOptions &options) {
  manager.addPass(nn::createNnInlineCalls());
  if (options.source.isEmpty())
    manager.addPass(spmd::createAnnotate(std::exchange(options.plan, nullptr)));
  else
    manager.addPass(spmd::createAnnotate(getAnnotateOptions(options.source)));
  addGate(manager, Phase::Annotated);
}

/// What follows from it: every value gets a sharding, each with a cause.
static void addPropagated(OpPassManager &manager, ShardOptions &options) {
  spmd::PropagateOptions propagate;
  propagate.optimize = options.optimize;
  propagate.traceDecisions = options.traceDecisions;
  manager.addPass(spmd::createPropagate(propagate, options.getCosts(), options.decisions));
  addGate(manager, Phase::Propagated);
}

/// Where layouts meet that differ, the change stands in the program.
static void addResharded(OpPassManager &manager, ShardOptions &options) {
  manager.addPass(spmd::createInsertReshards(options.getCosts()));
  addGate(manager, Phase::Resharded);
}

/// From one global program to the program of one device.
static void addPartitioned(OpPassManager &manager, ShardOptions &options) {
  spmd::PartitionOptions partition;
  partition.checkBytes = options.checkBytes;
  manager.addPass(spmd::createPartition(partition, options.getCosts()));
  addGate(manager, Phase::Partitioned);
}

/// The same values with no more bytes and no more launches.
static void addOptimized(OpPassManager &manager, ShardOptions &) {
  manager.addPass(spmd::createOptimizeCollectives());
  addGate(manager, Phase::Optimized);
}

ArrayRef<PipelinePhase> cleave::getShardPhases() {
  static constexpr PipelinePhase phases[] = {{Phase::Canonical, addCanonical},     {Phase::Annotated, addAnnotated},
                                             {Phase::Propagated, addPropagated},   {Phase::Resharded, addResharded},
                                             {Phase::Partitioned, addPartitioned}, {Phase::Optimized, addOptimized}};
  return phases;
}
