//===- Phases.cpp - what each phase of a model's way does -----------------===//
//
// One function per phase: its passes in order, then its gate. This is the place to read what happens to a model; each
// pass says how (dialects/*/*Passes.td).
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/Phases.h"

#include "cleave/Cost/Memory.h"
#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Nn/Transforms/TrainPasses.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Dialect/Spmd/Transforms/Decisions.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/PlanPasses.h"
#include "cleave/Pipelines/Canonicalize.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace cleave;

static void addFormGate(OpPassManager &manager, Phase phase) {
  nn::NnVerifyFormOptions options;
  options.form = phase;
  manager.addPass(nn::createNnVerifyForm(options));
}

static void addGate(OpPassManager &manager, Phase phase) {
  spmd::VerifyPhaseOptions options;
  options.phase = phase;
  manager.addPass(spmd::createVerifyPhase(options));
}

/// What a plan asks of the model: of one that trains, labels and gradients are the step's.
static spmd::PlanRef getModelPlan(spmd::PlanRef plan, bool trains) {
  if (!plan->train)
    return plan;
  auto own = std::make_shared<spmd::Plan>(spmd::splitForTraining(*plan).first);
  if (!trains)
    own->states = plan->states;
  return own;
}

/// One form for what exporters write in many. What the plan names must survive, so its annotations are placed before.
static void addCanonical(OpPassManager &manager, const ShardOptions &options, ShardState &state) {
  addFormGate(manager, Phase::Imported);
  if (auto plan = std::exchange(state.plan, nullptr))
    manager.addPass(spmd::createPinAnnotations(getModelPlan(std::move(plan), bool(state.training))));
  buildCanonicalizePipeline(manager);
  // Who asks for a form of attention means those too that exporters write as products and softmax.
  if (options.attention != spmd::AttentionMethod::Auto) {
    exec::RecognizeAttentionOptions recognizing;
    recognizing.skipsGradients = true; // they are decided on as products
    manager.addPass(exec::createRecognizeAttention(recognizing));
    manager.addPass(nn::createNnFuseMovement());
    manager.addPass(nn::createNnMergeEqual());
    manager.addPass(nn::createNnStoreNodes());
  }
  addFormGate(manager, Phase::Canonical);
}

/// From a model to a step that trains it: a loss, its gradients, the next weights. Nothing is recomposed here: what belongs together has been
/// put together before it was differentiated. What a plan says of gradients and states is placed now that there are some.
static void addDifferentiated(OpPassManager &manager, const ShardOptions &, ShardState &state) {
  if (!state.hasStep())
    return;
  // A model that says itself how it is trained has its gradients and updates since it was imported: here its form is checked.
  if (state.isOwnStep) {
    if (state.evaluates)
      manager.addPass(nn::createNnKeepLoss());
    return addFormGate(manager, Phase::Differentiated);
  }
  manager.addPass(nn::createNnRestoreNodes());
  manager.addPass(nn::createNnAddAdapters(state.training));
  manager.addPass(nn::createNnOutlineStep(state.training, state.evaluates));
  manager.addPass(nn::createNnDifferentiate());
  manager.addPass(nn::createNnAttachUpdate(state.training, state.keepsGradients));
  manager.addPass(nn::createNnFuseMovement());
  manager.addPass(createCanonicalizerPass(getOnePass()));
  manager.addPass(nn::createNnMergeEqual());
  manager.addPass(nn::createNnStoreNodes());
  if (auto plan = spmd::splitForTraining(*state.training).second; !plan.rules.empty())
    manager.addPass(spmd::createPinAnnotations(std::make_shared<const spmd::Plan>(std::move(plan))));
  if (state.evaluates)
    manager.addPass(nn::createNnKeepLoss());
  addFormGate(manager, Phase::Differentiated);
}

/// What the user asked for, written into types. Nothing else changes but calls, of a file that begins here.
static void addAnnotated(OpPassManager &manager, const ShardOptions &options, ShardState &state) {
  manager.addPass(nn::createNnInlineCalls());
  if (state.pipeline)
    manager.addPass(pipe::createMicrobatch(state.pipeline));
  manager.addPass(state.plan ? spmd::createAnnotate(std::exchange(state.plan, nullptr))
                             : spmd::createAnnotate(options));
  addGate(manager, Phase::Annotated);
}

/// What follows from it: every value gets a sharding, each with a cause. Slices that take a value apart are decided together.
static void addPropagated(OpPassManager &manager, const ShardOptions &options, ShardState &state) {
  manager.addPass(nn::createNnGroupSlices());
  manager.addPass(spmd::createPropagate(options, options.getDecidingCosts(), state.decisions, state.memory));
  addGate(manager, Phase::Propagated);
}

/// Where layouts meet that differ, the change stands in the program.
static void addResharded(OpPassManager &manager, const ShardOptions &options, ShardState &) {
  manager.addPass(spmd::createInsertReshards());
  addGate(manager, Phase::Resharded);
}

/// From one global program to the program of one device.
static void addPartitioned(OpPassManager &manager, const ShardOptions &options, ShardState &) {
  manager.addPass(spmd::createPartition(options));
  addGate(manager, Phase::Partitioned);
}

static bool hasStages(const ShardState &state) {
  if (!state.pipeline)
    return false;
  const spmd::MeshAxis *axis = state.pipeline->findAxis(state.pipeline->pipeline->axis);
  return (axis ? axis->size : 1) * state.pipeline->pipeline->countChunks() > 1;
}

/// Steps of a call; of what evaluates there is one.
static int64_t getSteps(const ShardState &state) {
  return state.hasStep() && !state.evaluates ? state.stepsPerCall : 1;
}

/// Whether values of the step wait in the host's memory.
static bool offloads(const ShardState &state) {
  return state.training && !state.evaluates && !state.training->train->memory.offload.empty();
}

/// Bytes of all buffers of each rank, once memory is planned; of what has not been told, since it is a trial. \param inserts copies to the
/// host's memory are still to be made.
static SmallVector<int64_t> measureMemory(ModuleOp module, const ShardOptions &options, ShardState state,
                                          bool inserts) {
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  setPhase(module, Phase::Optimized);
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  if (inserts && offloads(state) && !state.isPipelined)
    manager.addPass(exec::createOffload(state.training->train->memory, exec::OffloadMode::Insert));
  for (const PipelinePhase &phase : llvm::concat<const PipelinePhase>(getPipelinePhases(), getLowerPhases()))
    if (phase.phase <= Phase::Planned && (state.isPipelined || !isOfPipeline(phase.phase)))
      phase.addPasses(manager, options, state);
  SmallVector<int64_t> bytes;
  if (failed(manager.run(module)))
    return bytes;
  SmallVector<func::FuncOp, 4> ranks = pipe::getRankFunctions(module);
  for (func::FuncOp rank : ranks)
    bytes.push_back(cost::countPeakBytes(rank));
  for (auto func : module.getOps<func::FuncOp>())
    if (ranks.empty())
      bytes.push_back(cost::countPeakBytes(func));
  return bytes;
}

/// Stages as they would be if nothing were made again, whatever memory there is: of a copy, without a word.
static exec::StagesOfOps findStages(func::FuncOp func, const ShardState &state) {
  ScopedDiagnosticHandler silent(func.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy(func->getParentOfType<ModuleOp>().clone());
  auto plan = std::make_shared<spmd::Plan>(*state.pipeline);
  plan->pipeline->memoryLimit = 0;
  PassManager manager(func.getContext());
  manager.enableVerifier(false);
  manager.addPass(pipe::createAssignStages(std::move(plan), getSteps(state)));
  exec::StagesOfOps found;
  if (failed(manager.run(*copy)))
    return found;
  pipe::StageUnits units = pipe::StageUnits::get(*copy, 0);
  auto boundaries = (*copy)->getAttrOfType<DictionaryAttr>(pipe::PipeDialect::kBoundariesAttr);
  if (!units.hasGradients() || !boundaries)
    return found;
  for (auto stage : boundaries.getAs<ArrayAttr>("stages").getAsRange<DictionaryAttr>())
    found.rankOf.push_back(stage.getAs<IntegerAttr>("rank").getInt());
  for (Operation &op : copy->lookupSymbol<func::FuncOp>(func.getSymName()).getBody().front().without_terminator()) {
    std::optional<int64_t> unit = pipe::getStage(&op);
    bool isForward = unit && units.getKind(*unit) == pipe::UnitKind::Forward;
    found.stageOf.push_back(isForward ? units.getStage(*unit) : -1);
  }
  return found;
}

/// What of a step is kept, and what is made again; in microbatches, of each.
static void addRecompute(OpPassManager &manager, const ShardOptions &options, const ShardState &state) {
  manager.addPass(exec::createAdvanceUpdates());
  spmd::PlanMemory memory = state.training->train->memory;
  if (!memory.limit && options.cluster)
    memory.limit = options.cluster->device.memoryBytes;
  auto judge = [options, state](ModuleOp module) { return measureMemory(module, options, state, /*inserts=*/true); };
  ArrayRef<spmd::PlanPolicy> policies;
  if (state.pipeline)
    policies = state.pipeline->pipeline->recomputeOfStages;
  // Of one stage that is what the step says; that a list is of another length than the stages is found where these are cut.
  if (policies.size() == 1)
    memory.policy = policies.front();
  if (!hasStages(state) && policies.size() < 2)
    return manager.addPass(exec::createRecompute(memory, judge));
  // What a pipeline asks for is said of whole microbatches, whose backward begins with their forward.
  spmd::PlanRecompute ofStages = state.pipeline->pipeline->recompute;
  if ((ofStages == spmd::PlanRecompute::Always || ofStages == spmd::PlanRecompute::ExceptLast) &&
      memory.policy == spmd::PlanMemory::Policy::None)
    memory.policy = spmd::PlanMemory::Policy::Blocks;
  auto find = [state](func::FuncOp func) { return findStages(func, state); };
  manager.addPass(exec::createRecompute(memory, judge, find, ofStages == spmd::PlanRecompute::ExceptLast, policies));
}

/// What waits for the backward in the host's memory. Ranks of a pipeline have their copies once there are ranks (addClustered); what is wrong
/// with the plan is told here in any case.
static void addOffload(OpPassManager &manager, const ShardOptions &options, const ShardState &state) {
  if (!offloads(state))
    return;
  exec::MemoryJudge before, after;
  if (options.isForDevices) {
    ShardState without = state;
    auto plan = std::make_shared<spmd::Plan>(*state.training);
    plan->train->memory.offload.clear();
    without.training = plan;
    before = [options, without](ModuleOp module) { return measureMemory(module, options, without, false); };
    after = [options, state](ModuleOp module) { return measureMemory(module, options, state, false); };
  }
  exec::OffloadMode mode = state.isPipelined ? exec::OffloadMode::Check : exec::OffloadMode::Insert;
  manager.addPass(exec::createOffload(state.training->train->memory, mode, before, after));
}

static void addBuckets(OpPassManager &manager, const ShardOptions &options) {
  exec::BucketReductionsOptions bucketing;
  bucketing.byTime = options.cluster.has_value();
  manager.addPass(exec::createBucketReductions(bucketing));
}

/// Several steps of a call, one behind the other.
static void addSteps(OpPassManager &manager, const ShardState &state) {
  if (getSteps(state) == 1)
    return;
  pipe::RepeatStepOptions repeating;
  repeating.steps = getSteps(state);
  manager.addPass(pipe::createRepeatStep(repeating));
}

/// The same values with no more bytes and no more launches, but for rings, whose launches save time or memory. By time, what
/// travels faster than a collective begins does not begin alone.
static void addOptimized(OpPassManager &manager, const ShardOptions &options, ShardState &state) {
  exec::FormRingsOptions rings;
  rings.attention = options.attention;
  rings.byTime = options.getCosts().isTime();
  manager.addPass(exec::createFormRings(rings));
  manager.addPass(spmd::createOptimizeCollectives());
  if (spmd::CostModel costs = options.getCosts(); costs.isTime()) {
    spmd::BundleCollectivesOptions bundling;
    bundling.mostBytes = costs.toBytes(costs.perCollective);
    double begin = std::max<double>(1, costs.perCollective);
    bundling.launchShare = static_cast<double>(costs.perLaunch) / begin;
    bundling.memoryShare = costs.perMemoryByte / begin;
    manager.addPass(spmd::createBundleCollectives(bundling));
  }
  if (state.training) {
    addRecompute(manager, options, state);
    addOffload(manager, options, state);
    // Of stages or microbatches each rank has its own, whose order its row says (addClustered): a body that is called for each microbatch
    // reduces as often, and what two calls reduce is no bucket.
    if (!state.isPipelined)
      addBuckets(manager, options);
  }
  if (!state.isPipelined)
    addSteps(manager, state);
  addGate(manager, Phase::Optimized);
}

static void addPipelineGate(OpPassManager &manager, Phase phase) {
  pipe::VerifyPhaseOptions options;
  options.phase = phase;
  manager.addPass(pipe::createVerifyPhase(options));
}

/// Stages as functions, in a loop over microbatches. A file may say by itself which op is in which stage.
static void addStaged(OpPassManager &manager, const ShardOptions &, ShardState &state) {
  pipe::SplitOptions options;
  if (state.pipeline) {
    manager.addPass(pipe::createAssignStages(state.pipeline, getSteps(state)));
    options.relay = state.pipeline->pipeline->relays;
  }
  manager.addPass(pipe::createSplit(options));
  addPipelineGate(manager, Phase::Staged);
}

/// Which rank runs what, in which order.
static void addScheduled(OpPassManager &manager, const ShardOptions &, ShardState &state) {
  pipe::ScheduleStagesOptions options;
  if (state.pipeline) {
    const spmd::PlanPipeline &pipeline = *state.pipeline->pipeline;
    options.schedule = pipeline.schedule;
    options.placement = pipeline.placement;
    options.ofStep = state.pipeline->train.has_value();
    options.steps = getSteps(state);
    options.updatesEarly = pipeline.updatesEarly;
    llvm::append_range(options.ranks, pipe::getPlacementRequest(pipeline).ranks);
  }
  manager.addPass(pipe::createScheduleStages(options));
  addPipelineGate(manager, Phase::Scheduled);
}

/// A function for each rank.
static void addPerRank(OpPassManager &manager, const ShardOptions &, ShardState &state) {
  pipe::LowerOptions options;
  options.isBehind = state.pipeline && pipe::isStepBehind(*state.pipeline);
  manager.addPass(pipe::createLower(options));
  // Without a flush the table is of all steps, and so are the functions of ranks.
  if (!state.pipeline || pipe::hasFlush(*state.pipeline))
    addSteps(manager, state);
  addPipelineGate(manager, Phase::PerRank);
}

static void addLoweringGate(OpPassManager &manager, Phase phase) {
  exec::VerifyFormOptions options;
  options.form = phase;
  manager.addPass(exec::createVerifyForm(options));
}

/// Ops in groups that run as one kernel each; what a library computes is its command.
static void addClustered(OpPassManager &manager, const ShardOptions &options, ShardState &state) {
  if (state.isPipelined)
    manager.addPass(pipe::createInline());
  if (state.training && state.isPipelined)
    addBuckets(manager, options);
  if (offloads(state) && (state.isPipelined || !options.isForDevices))
    manager.addPass(exec::createOffload(state.training->train->memory,
                                        options.isForDevices ? exec::OffloadMode::Insert : exec::OffloadMode::Drop));
  if (options.chunks) {
    exec::ChunkCollectivesOptions chunking;
    chunking.chunks = *options.chunks;
    manager.addPass(exec::createChunkCollectives(chunking));
  }
  manager.addPass(exec::createFlattenLoops());
  manager.addPass(exec::createUnrollRecurrences());
  manager.addPass(exec::createConvolvePhases());
  exec::RecognizeAttentionOptions recognizing;
  recognizing.forDevices = options.isForDevices;
  manager.addPass(exec::createRecognizeAttention(recognizing));
  exec::ChooseLayoutsOptions ordering;
  ordering.forDevices = options.isForDevices;
  manager.addPass(exec::createChooseLayouts(ordering));
  if (options.isForDevices)
    manager.addPass(exec::createPackCollectives());
  exec::FuseKernelsOptions forming;
  forming.forDevices = options.isForDevices;
  manager.addPass(exec::createFuseKernels(forming));
  if (options.isForDevices) {
    exec::SplitKernelsOptions splitting;
    splitting.forLibraries = options.usesLibraries;
    splitting.narrowsFloats = options.narrowsFloats;
    manager.addPass(exec::createSplitKernels(splitting));
  }
  if (options.narrowsFloats)
    manager.addPass(exec::createNarrowFloats());
  if (options.usesLibraries) {
    manager.addPass(exec::createUseLibraries());
    exec::PackWeightsOptions packing;
    packing.forLibraries = true;
    manager.addPass(exec::createPackWeights(packing));
  }
  if (options.panelWidth) {
    exec::PackWeightsOptions packing;
    packing.width = options.panelWidth;
    manager.addPass(exec::createPackWeights(packing));
  }
  addLoweringGate(manager, Phase::Clustered);
}

/// Each distinct kernel once, however many layers there are.
static void addOutlined(OpPassManager &manager, const ShardOptions &, ShardState &) {
  manager.addPass(exec::createOutline());
  addLoweringGate(manager, Phase::Outlined);
}

static void addPlanGate(OpPassManager &manager, Phase phase) {
  exec::VerifyPlanOptions options;
  options.phase = phase;
  manager.addPass(exec::createVerifyPlan(options));
}

/// No tensors but in kernels: every value has a place in memory.
static void addPlanned(OpPassManager &manager, const ShardOptions &options, ShardState &) {
  exec::PlanMemoryOptions planning;
  planning.forDevices = options.isForDevices;
  manager.addPass(exec::createPlanMemory(planning));
  addPlanGate(manager, Phase::Planned);
}

/// Collectives beside kernels, where memory lets them.
static void addOrdered(OpPassManager &manager, const ShardOptions &, ShardState &) {
  manager.addPass(exec::createOrder());
  addPlanGate(manager, Phase::Ordered);
}

ArrayRef<PipelinePhase> cleave::getPipelinePhases() {
  static constexpr PipelinePhase phases[] = {
      {Phase::Staged, addStaged}, {Phase::Scheduled, addScheduled}, {Phase::PerRank, addPerRank}};
  return phases;
}

ArrayRef<PipelinePhase> cleave::getLowerPhases() {
  static constexpr PipelinePhase phases[] = {{Phase::Clustered, addClustered},
                                             {Phase::Outlined, addOutlined},
                                             {Phase::Planned, addPlanned},
                                             {Phase::Ordered, addOrdered}};
  return phases;
}

ArrayRef<PipelinePhase> cleave::getShardPhases() {
  static constexpr PipelinePhase phases[] = {
      {Phase::Canonical, addCanonical}, {Phase::Differentiated, addDifferentiated},
      {Phase::Annotated, addAnnotated}, {Phase::Propagated, addPropagated},
      {Phase::Resharded, addResharded}, {Phase::Partitioned, addPartitioned},
      {Phase::Optimized, addOptimized}};
  return phases;
}
