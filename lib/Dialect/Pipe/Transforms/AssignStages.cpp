//===- AssignStages.cpp - which stage each op is in -----------------------===//
//
//   %a   %b   %c │ %d   %e │ %f        the function as a row of ops, split where stages are best, or start by hand
//
// The decision is `splitStages`, on what a StageSplitter knows; here is what options say instead of a plan, and what is said about the answer.
//
//===----------------------------------------------------------------------===//
#include "../Microbatches/BatchDims.h"
#include "../Stages/StepOps.h"
#include "../Stages/Table.h"

#include "cleave/Dialect/Pipe/IR/NodeOrder.h"
#include "cleave/Dialect/Pipe/Stages/StageGradients.h"
#include "cleave/Dialect/Pipe/Stages/StageSplitter.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Schedule/Generate.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

#include <cmath>

namespace cleave::pipe {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

#define DEBUG_TYPE "pipe-assign-stages"

ALWAYS_ENABLED_STATISTIC(numOps, "ops of the graph that is cut");
ALWAYS_ENABLED_STATISTIC(numAssigned, "stages");

namespace {
struct AssignStages : pipe::impl::AssignStagesBase<AssignStages> {
  using AssignStagesBase::AssignStagesBase;
  AssignStages(spmd::PlanRef plan, int64_t steps) : given(std::move(plan)), steps(steps) {}

  void runOnOperation() override;

private:
  DeviceRates getRates() const;
  FailureOr<std::vector<int32_t>> placeStages();
  FailureOr<std::vector<int32_t>> followPlan();
  bool hasBackward();
  bool changesParameters();
  LogicalResult followOptions(StageSplitter &splitter, Location loc);
  LogicalResult assign(func::FuncOp func, ArrayRef<int32_t> placement);

  /// Instead of options; null without one.
  spmd::PlanRef given;
  /// Of a call.
  int64_t steps = 1;
  /// Stages have units of the backward. Then, by stage, microbatches whose activations it keeps at once.
  bool trains = false;
  std::vector<int64_t> inFlight;
};
} // namespace

/// Those of the cluster, but for what options say.
DeviceRates AssignStages::getRates() const {
  DeviceRates rates = DeviceRates::get(given.get());
  auto set = [](double &rate, double wanted) { rate = wanted < 0 ? rate : wanted; };
  for (auto &[type, flops] : rates.cluster.device.flopsPerNs)
    set(flops, flopsPerNs);
  set(rates.cluster.device.memoryBytesPerNs, bytesPerNs);
  set(rates.cluster.device.launchNs, launchNs);
  for (spmd::ClusterLink *link : {&rates.link, &rates.cluster.levels.front().link}) {
    set(link->bytesPerNs, linkBytesPerNs);
    set(link->latencyNs, linkNs < 0 ? -1. : 0);
  }
  set(rates.cluster.beginNs, linkNs);
  return rates;
}

/// Errors of options are of the module: they have no place in it.
FailureOr<std::vector<int32_t>> AssignStages::placeStages() {
  if (given)
    return followPlan();
  ModuleOp module = getOperation();
  int64_t stages = this->stages, ranks = this->ranks;
  StringRef placement = this->placement, objective = this->objective;
  std::optional<schedule::Placement> found = schedule::parsePlacement(placement);
  if (!found)
    return emitNoPlacement(module, placement);
  if (stages < 1 || ranks < 0 || stages > INT32_MAX)
    return mlir::emitError(module.getLoc()) << "there are no " << (stages < 1 ? stages : ranks) << " stages or ranks";
  int64_t numRanks = ranks ? ranks : *found == schedule::Placement::Linear ? stages : std::max<int64_t>(1, stages / 2);
  int64_t chunks = stages / numRanks;
  if (stages % numRanks != 0 || !schedule::mayHaveChunks(*found, static_cast<int32_t>(chunks)))
    return mlir::emitError(module.getLoc())
           << stages << " stages have no placement '" << placement << "' on " << numRanks
           << " ranks: linear has a stage on each, v two, wave an even number, loop any";
  if (objective != "throughput" && objective != "latency")
    return mlir::emitError(module.getLoc()) << "'" << objective << "' is not an objective: throughput, latency";
  return schedule::placeStages(*found, static_cast<int32_t>(numRanks), static_cast<int32_t>(chunks));
}

bool AssignStages::hasBackward() {
  return llvm::any_of(getOperation().getOps<func::FuncOp>(), [](func::FuncOp func) {
    return !func.isExternal() && !StepOps(func, spmd::Spans(func)).getBackward().empty();
  });
}

/// A parameter has a next value.
bool AssignStages::changesParameters() {
  return llvm::any_of(getOperation().getOps<func::FuncOp>(), [](func::FuncOp func) {
    for (unsigned result = 0; result < func.getNumResults(); ++result)
      if (std::optional<unsigned> state = spmd::findStateArgument(func, result);
          state && spmd::isParameter(func, *state))
        return true;
    return false;
  });
}

/// Stages stand where the schedule has them, which is the one that pipe-schedule makes. Microbatches of one stage are no pipeline where
/// nobody names a schedule.
FailureOr<std::vector<int32_t>> AssignStages::followPlan() {
  const spmd::PlanPipeline &pipeline = *given->pipeline;
  int64_t count = getMicrobatches(getOperation()).value_or(1), ranks = given->findAxis(pipeline.axis)->size;
  trains = (ranks * pipeline.countChunks() > 1 || !pipeline.schedule.empty()) && hasBackward();
  schedule::Shape shape{static_cast<int32_t>(ranks), static_cast<int32_t>(count),
                        static_cast<int32_t>(pipeline.countChunks()), static_cast<int32_t>(steps)};
  // A schedule of training knows by itself how many stages it has on a rank.
  TableUse use = trains ? TableUse::Training : given->train ? TableUse::InferenceOfStep : TableUse::Inference;
  if (use != TableUse::Inference && shape.chunks == 1 && !pipeline.schedule.empty())
    shape.chunks = 0;
  llvm::Expected<schedule::Schedule> table = makeTable(pipeline.schedule, shape, getPlacementRequest(pipeline), use);
  auto loc = FileLineColLoc::get(&getContext(), pipeline.place.file, pipeline.place.line, pipeline.place.column);
  // Of one microbatch nothing is combined: what is behind the loop cannot be told from what is in it.
  if (count == 1 && ranks * pipeline.countChunks() > 1 && changesParameters())
    return mlir::emitError(loc)
           << "a step in stages has 2 microbatches at least: with one, each stage only waits for the others";
  if (!table)
    return mlir::emitError(loc) << llvm::toString(table.takeError());
  if (trains && given->train && given->train->clip && !schedule::hasFlush(table->name))
    return mlir::emitError(loc) << "schedule \"" << table->name
                                << "\" updates each stage by itself, and 'clip' needs the gradients of all: one with a "
                                   "flush has them";
  // A step's first F stands where so many B of the one before are missing; the weights of the step before that are to be there.
  if (trains && schedule::isStepBehind(table->name) && count < ranks - 1)
    return mlir::emitError(loc) << "schedule \"" << table->name << "\" has the weights of the step before with "
                                << ranks - 1 << " microbatches of a step or more on " << ranks << " ranks, got "
                                << count;
  if (trains)
    inFlight = schedule::countInFlight(*table);
  bool isAsked = pipeline.recompute != spmd::PlanRecompute::Never;
  if (isAsked && !given->train)
    return mlir::emitError(loc) << "'recompute' is about gradients, and there are none";
  auto place = FileLineColLoc::get(&getContext(), pipeline.recomputePlace.file, pipeline.recomputePlace.line,
                                   pipeline.recomputePlace.column);
  size_t numPolicies = pipeline.recomputeOfStages.size();
  if (pipeline.recompute == spmd::PlanRecompute::ByStage && numPolicies != static_cast<size_t>(table->numStages))
    return mlir::emitError(place) << "'recompute' has a policy for each of " << table->numStages << " stages, got "
                                  << numPolicies;
  if (pipeline.recompute == spmd::PlanRecompute::ByStage &&
      given->train->memory.policy != spmd::PlanMemory::Policy::None)
    return mlir::emitError(place) << "'recompute' says for each stage what it makes again, and so does 'recompute' of "
                                     "'train' for all: one of them is enough";
  if (isAsked && given->train->memory.policy == spmd::PlanMemory::Policy::Auto)
    return mlir::emitError(loc) << "'recompute: auto' of 'train' finds out for each stage what it makes again: "
                                   "'recompute' of 'pipeline' says it, too";
  return table->replicas.front().placement;
}

/// A stage starts with the function, each further one at the first op of a node. Nothing by hand: no lines.
LogicalResult AssignStages::followOptions(StageSplitter &splitter, Location loc) {
  splitter.options.objective =
      objective == "latency" ? schedule::SplitObjective::Latency : schedule::SplitObjective::Throughput;
  splitter.options.microbatches = microbatches;
  splitter.options.relays = relay;
  splitter.options.memoryLimit = memoryLimit;
  if (starts.empty())
    return success();
  int64_t stages = this->stages;
  if (starts.size() + 1 != static_cast<size_t>(stages))
    return mlir::emitError(loc) << stages << " stages have " << stages - 1 << " starts after the first, got "
                                << starts.size();
  splitter.lines.emplace_back();
  for (const std::string &start : starts)
    splitter.lines.push_back({spmd::PlanStage::Kind::First, {start, {}}, {}});
  return success();
}

/// What people want to know of a stage; the last one sends nothing.
static std::string describe(const schedule::StageSummary &stage, bool isLast) {
  int64_t sent = 0;
  for (const schedule::StageSend &send : stage.sends)
    sent += send.bytes;
  std::string text =
      llvm::formatv("{0} ops, {1} ns, {2} bytes of parameters", stage.numOps, stage.ns, stage.parameterBytes).str();
  return isLast ? text : text + llvm::formatv(", sends {0} bytes in {1} values", sent, stage.sends.size()).str();
}

/// The same for programs that read reports, in their words (docs/report.md).
static DictionaryAttr describeBoundaries(MLIRContext *context, const StageGraph &graph,
                                         const schedule::StageSplit &split, ArrayRef<int32_t> placement,
                                         const DeviceRates &rates, ArrayRef<StageGradients> gradients,
                                         const schedule::SplitOptions &options) {
  Builder builder(context);
  auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto real = [&](StringRef name, double value) { return builder.getNamedAttr(name, builder.getF64FloatAttr(value)); };
  SmallVector<Attribute> stages;
  for (auto [index, stage, rank] : llvm::enumerate(split.stages, placement)) {
    SmallVector<Attribute> sends;
    for (const schedule::StageSend &send : stage.sends)
      sends.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("value", builder.getStringAttr(graph.problem.values[send.value].name)),
           number("to", send.to), number("bytes", send.bytes)}));
    NamedAttrList entry({number("rank", rank), number("nodes", stage.numOps), number("ns", stage.ns),
                         number("parameters_bytes", stage.parameterBytes),
                         builder.getNamedAttr("sends", builder.getArrayAttr(sends))});
    if (!options.memoryLimits.empty())
      entry.push_back(number("memory_limit", options.getLimit(rank)));
    if (!gradients.empty()) {
      entry.push_back(number("input_grad_ns", std::llround(gradients[index].inputGradNs)));
      entry.push_back(number("weight_grad_ns", std::llround(gradients[index].weightGradNs)));
      entry.push_back(number("kept_bytes", std::llround(gradients[index].keptBytes)));
      entry.push_back(number("kept_by_input_grad_bytes", std::llround(gradients[index].inputGradBytes)));
    }
    stages.push_back(entry.getDictionary(context));
  }
  NamedAttrList all({builder.getNamedAttr("stages", builder.getArrayAttr(stages)),
                     number("bottleneck_ns", split.bottleneckNs), number("bound_ns", split.boundNs),
                     real("message_ns", rates.getMessageNs()), real("link_bytes_per_ns", rates.link.bytesPerNs)});
  if (options.memoryLimit != 0)
    all.push_back(number("memory_limit", options.memoryLimit));
  return all.getDictionary(context);
}

/// Nothing is written before the whole answer is known.
LogicalResult AssignStages::assign(func::FuncOp func, ArrayRef<int32_t> placement) {
  DeviceRates rates = getRates();
  llvm::Expected<StageSplitter> splitter = StageSplitter::create(func, rates, given ? &*given->pipeline : nullptr);
  if (!splitter)
    return mlir::emitError(func.getLoc()) << llvm::toString(splitter.takeError());
  const StageGraph &graph = splitter->graph;
  splitter->options.overlapsSends = overlapSends;
  splitter->options.microbatches = getMicrobatches(getOperation()).value_or(1);
  if (!given && failed(followOptions(*splitter, func.getLoc())))
    return failure();
  if (std::vector<std::string> unknown = findUnknown(graph, splitter->said); !unknown.empty())
    mlir::emitWarning(func.getLoc()) << "the model says in which stage '" << unknown.front() << "' is"
                                     << (unknown.size() > 1 ? ", and " + std::to_string(unknown.size() - 1) + " more"
                                                            : "")
                                     << ", and no op is called so: stages follow from nodes";
  StageFault fault;
  llvm::Expected<schedule::StageSplit> answer = splitter->splitStages(placement, &fault, inFlight);
  if (!answer) {
    // Limits and numbers of stages are the plan's.
    if (given && !fault.loop && fault.place.line == 0)
      fault.place = given->pipeline->place;
    InFlightDiagnostic error = mlir::emitError(toLoc(fault.place, fault.loop ? fault.loop->getLoc() : func.getLoc()))
                               << llvm::toString(answer.takeError());
    if (fault.loop && fault.place.line != 0)
      error.attachNote(fault.loop->getLoc()) << "the loop is here";
    return error;
  }
  for (auto [op, stage] : llvm::zip_equal(graph.ops, answer->stageOf)) {
    LDBG() << "stage " << stage << ": " << *op;
    setStage(op, stage);
  }
  StageUnits units(static_cast<int64_t>(answer->stages.size()), trains);
  if (units.hasGradients()) {
    for (auto [op, unit] : findUnits(graph, answer->stageOf, units.countStages()))
      setStage(op, unit);
    getOperation()->setAttr(PipeDialect::kStagesAttr, Builder(&getContext()).getI64IntegerAttr(units.countStages()));
  }
  numOps += graph.ops.size();
  numAssigned += answer->stages.size();
  std::vector<StageGradients> gradients;
  if (units.hasGradients())
    gradients = sumStep(graph, answer->stageOf, units.countStages());
  if (!gradients.empty())
    scaleTimes(splitter->options, placement, gradients);
  getOperation()->setAttr(PipeDialect::kBoundariesAttr, describeBoundaries(&getContext(), graph, *answer, placement,
                                                                           rates, gradients, splitter->options));
  InFlightDiagnostic remark = mlir::emitRemark(func.getLoc());
  remark << answer->stages.size() << " stages: the slowest takes " << answer->bottleneckNs
         << " ns, no split is faster than " << answer->boundNs << " ns";
  for (auto [number, stage] : llvm::enumerate(answer->stages))
    remark.attachNote(func.getLoc()) << "stage " << number << ": "
                                     << describe(stage, number + 1 == answer->stages.size());
  return success();
}

void AssignStages::runOnOperation() {
  FailureOr<std::vector<int32_t>> placement = placeStages();
  if (failed(placement))
    return signalPassFailure();
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (!func.isExternal() && failed(assign(func, *placement)))
      return signalPassFailure();
  getOperation()->removeAttr(kNodesAttr);
}

std::unique_ptr<Pass> cleave::pipe::createAssignStages(spmd::PlanRef plan, int64_t steps) {
  assert(plan && plan->pipeline && "a plan without a pipeline");
  return std::make_unique<AssignStages>(std::move(plan), steps);
}

bool cleave::pipe::hasFlush(const spmd::Plan &plan) { return schedule::hasFlush(plan.pipeline->schedule); }
bool cleave::pipe::isStepBehind(const spmd::Plan &plan) { return schedule::isStepBehind(plan.pipeline->schedule); }
