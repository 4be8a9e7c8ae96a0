//===- Schedule.cpp - which rank does what, in which order ----------------===//
//
// The table of a schedule, by name or from a file, for the stages and channels that the loop has. Messages are placed by one
// global order, and the checker of schedules has the last word, however the table was made.
//
// Who shows a table instead of running it asks here for its updates: a copy goes through pipe-split, and what stands behind its loop is what a run
// has there.
//
//===----------------------------------------------------------------------===//
#include "../Stages/Staged.h"

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlaceUpdates.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Schedule/Bounds.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Search.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/Statistic.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_SCHEDULESTAGES
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

#define DEBUG_TYPE "pipe-schedule"

ALWAYS_ENABLED_STATISTIC(numActions, "actions of all ranks");
ALWAYS_ENABLED_STATISTIC(numMessages, "those that send or receive");
ALWAYS_ENABLED_STATISTIC(numEarly, "stages that are updated while their rank waits for others");

namespace {
struct ScheduleStages : pipe::impl::ScheduleStagesBase<ScheduleStages> {
  using ScheduleStagesBase::ScheduleStagesBase;

  void runOnOperation() override;

private:
  LogicalResult addTable(func::FuncOp func, MicrobatchesOp loop);
  LogicalResult predict(func::FuncOp func, MicrobatchesOp loop, schedule::Schedule &table);
};
} // namespace

/// The stages of `pipe.boundaries`, where it has as many as the table; else null.
static ArrayAttr findStages(ModuleOp module, const schedule::Schedule &table) {
  auto boundaries = module->getAttrOfType<DictionaryAttr>(PipeDialect::kBoundariesAttr);
  auto stages = boundaries ? boundaries.getAs<ArrayAttr>("stages") : ArrayAttr();
  return stages && stages.size() == static_cast<size_t>(table.numStages) ? stages : ArrayAttr();
}

static int64_t readNumber(DictionaryAttr from, StringRef key) {
  auto number = from.getAs<IntegerAttr>(key);
  return number ? number.getInt() : 0;
}

/// A limit is one of a device, that of the plan or, where a stage says it, a lower one of its own: what its stages' parameters leave of it.
static void setLimits(DictionaryAttr boundaries, ArrayAttr stages, const schedule::Schedule &table,
                      schedule::Costs &costs) {
  int64_t limit = readNumber(boundaries, "memory_limit");
  if (limit == 0 || table.isForwardOnly)
    return;
  costs.memoryLimit.assign(table.numRanks, static_cast<double>(limit));
  // Stages of one rank say the same; ways through the ranks share them.
  const std::vector<int32_t> &placement = table.replicas.front().placement;
  for (auto [rank, entry] : llvm::zip_equal(placement, stages.getAsRange<DictionaryAttr>()))
    if (int64_t own = readNumber(entry, "memory_limit"))
      costs.memoryLimit[rank] = static_cast<double>(own);
  for (const schedule::Replica &replica : table.replicas)
    for (auto [rank, entry] : llvm::zip_equal(replica.placement, stages.getAsRange<DictionaryAttr>()))
      costs.memoryLimit[rank] -= static_cast<double>(readNumber(entry, "parameters_bytes"));
}

/// As when stages were chosen: what is said of them then is what the schedule is made of. Channels of `table` get their bytes and latency.
static schedule::Costs readCosts(ModuleOp module, ArrayAttr stages, schedule::Schedule &table) {
  auto boundaries = module->getAttrOfType<DictionaryAttr>(PipeDialect::kBoundariesAttr);
  DeviceRates rates;
  auto readRate = [&](StringRef key, double otherwise) {
    auto number = boundaries.getAs<FloatAttr>(key);
    return number ? number.getValueAsDouble() : otherwise;
  };
  schedule::Costs costs = schedule::Costs::uniform(table.numStages, 1);
  costs.bandwidth = readRate("link_bytes_per_ns", rates.link.bytesPerNs);
  for (int32_t stage = 0; stage < table.numStages; ++stage) {
    auto entry = cast<DictionaryAttr>(stages[stage]);
    auto read = [&](StringRef key) { return static_cast<double>(readNumber(entry, key)); };
    // `ns` is the time of all that a microbatch takes there.
    costs.inputGrad[stage] = read("input_grad_ns");
    costs.weightGrad[stage] = read("weight_grad_ns");
    costs.forward[stage] = read("ns") - costs.inputGrad[stage] - costs.weightGrad[stage];
    costs.memoryForward[stage] = read("kept_bytes");
    costs.memoryInputGrad[stage] = read("kept_by_input_grad_bytes");
    costs.memoryWeightGrad[stage] = -costs.memoryForward[stage] - costs.memoryInputGrad[stage];
    auto sends = entry.getAs<ArrayAttr>("sends");
    if (!sends)
      continue;
    for (DictionaryAttr send : sends.getAsRange<DictionaryAttr>())
      for (schedule::Channel &channel : table.channels)
        if (channel.from == stage && channel.to == readNumber(send, "to"))
          channel.bytes += readNumber(send, "bytes");
  }
  for (schedule::Channel &channel : table.channels)
    channel.latency = readRate("message_ns", rates.getMessageNs());
  setLimits(boundaries, stages, table, costs);
  return costs;
}

/// What the schedule takes with the times of stages that `pipe.boundaries` has, and what no order of them is below, for reports: added to
/// these. In a step updates of stages fill the waits of their ranks, by these times; what is early, and why the rest is not, is told, too.
LogicalResult ScheduleStages::predict(func::FuncOp func, MicrobatchesOp loop, schedule::Schedule &table) {
  ModuleOp module = getOperation();
  ArrayAttr stages = findStages(module, table);
  if (!stages)
    return success();
  auto fail = [&](llvm::Error error) { return mlir::emitError(module.getLoc()) << llvm::toString(std::move(error)); };
  schedule::Schedule timed = table;
  schedule::Costs costs = readCosts(module, stages, timed);
  Staged staged(func, loop, table);
  std::vector<schedule::LateUpdate> late;
  if (!table.isForwardOnly) {
    if (failed(staged.addUpdateCosts(timed, costs)))
      return failure();
    llvm::Expected<std::vector<schedule::LateUpdate>> found = staged.placeUpdates(timed, costs, updatesEarly);
    if (!found)
      return fail(found.takeError());
    late = std::move(*found);
  }
  llvm::Expected<schedule::Simulation> simulation = schedule::simulate(timed, costs);
  if (!simulation)
    return fail(simulation.takeError());
  Builder builder(module.getContext());
  NamedAttrList summary, all(module->getAttrOfType<DictionaryAttr>(PipeDialect::kBoundariesAttr));
  summary.set("schedule", builder.getStringAttr(table.name));
  summary.set("ranks", builder.getI64IntegerAttr(table.numRanks));
  summary.set("makespan_ns", builder.getF64FloatAttr(simulation->makespan));
  summary.set("bound_ns", builder.getF64FloatAttr(schedule::computeLowerBound(timed, costs).makespan));
  summary.set("bubble", builder.getF64FloatAttr(simulation->bubbleMakespan));
  if (!table.isForwardOnly) {
    auto early = llvm::to_vector_of<int64_t>(schedule::listUpdated(timed));
    auto reasons = llvm::map_to_vector(late, [&](const schedule::LateUpdate &update) -> Attribute {
      return builder.getDictionaryAttr({builder.getNamedAttr("stage", builder.getI64IntegerAttr(update.stage)),
                                        builder.getNamedAttr("why", builder.getStringAttr(update.why))});
    });
    summary.set("updated_early", builder.getI64ArrayAttr(early));
    summary.set("updated_late", builder.getArrayAttr(reasons));
    numEarly += early.size();
  }
  all.set("schedule", summary.getDictionary(module.getContext()));
  module->setAttr(PipeDialect::kBoundariesAttr, all.getDictionary(module.getContext()));
  table.programs = std::move(timed.programs);
  return success();
}

/// The order that `auto` finds for stages that stand where `table` has them. Without costs it stays as it is.
static llvm::Error searchOrder(ModuleOp module, schedule::Schedule &table) {
  ArrayAttr stages = findStages(module, table);
  if (!stages || table.replicas.size() != 1)
    return llvm::Error::success();
  schedule::SearchCandidate candidate{table, {}};
  candidate.costs = readCosts(module, stages, candidate.schedule);
  llvm::Expected<schedule::SearchResult> found = schedule::search(candidate, schedule::kSearchOfRun);
  if (!found)
    return found.takeError();
  table.name = "auto";
  table.programs = std::move(found->schedule.programs);
  return llvm::Error::success();
}

/// A message of a table may name a channel that the model has no values for: those go, and what the model needs comes in.
LogicalResult ScheduleStages::addTable(func::FuncOp func, MicrobatchesOp loop) {
  ModuleOp module = getOperation();
  auto mesh = module->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  auto axis = module->getAttrOfType<StringAttr>(PipeDialect::kAxisAttr);
  int64_t numRanks = mesh && axis ? mesh.getSizes()[*mesh.findAxis(axis)] : 0;
  if (!numRanks)
    return mlir::emitError(module.getLoc()) << "has no pipe.mesh and pipe.axis, which say how many ranks there are";
  StageUnits units = StageUnits::get(module, static_cast<int64_t>(getStageCalls(loop.getBody()).size()));
  int64_t stages = units.countStages();
  std::string name = schedule;
  StringRef placement = this->placement;
  schedule::Shape shape{static_cast<int32_t>(numRanks), static_cast<int32_t>(loop.getCount()),
                        static_cast<int32_t>(std::max<int64_t>(1, stages / numRanks)), static_cast<int32_t>(steps)};
  schedule::PlacementRequest request;
  request.placement = schedule::parsePlacement(placement);
  request.ranks.assign(ranks.begin(), ranks.end());
  if (!placement.empty() && !request.placement)
    return emitNoPlacement(module, placement);
  llvm::Expected<schedule::Schedule> table = makeTable(name, shape, request,
                                                       units.hasGradients() ? TableUse::Training
                                                       : ofStep             ? TableUse::InferenceOfStep
                                                                            : TableUse::Inference);
  if (!table)
    return mlir::emitError(func.getLoc()) << llvm::toString(table.takeError());
  if (table->numStages != stages)
    return mlir::emitError(func.getLoc()) << "schedule '" << table->name << "' has " << table->numStages
                                          << " stages on " << numRanks << " ranks, the model " << stages;
  schedule::removeMessages(*table);
  table->channels = findChannels(loop);
  if (name == "auto" && units.hasGradients())
    if (llvm::Error error = searchOrder(module, *table))
      return mlir::emitError(func.getLoc()) << llvm::toString(std::move(error));
  if (llvm::Error error = schedule::addMessages(*table))
    return mlir::emitError(func.getLoc()) << llvm::toString(std::move(error));
  schedule::CheckResult checked =
      schedule::check(*table, schedule::Costs::uniform(table->numStages, table->numStages / table->numRanks));
  for (const schedule::Violation &violation : checked.violations)
    mlir::emitError(func.getLoc()) << violation.message << " (" << violation.constraint << ")";
  if (!checked.violations.empty())
    return failure();
  if (failed(predict(func, loop, *table)))
    return failure();
  for (ArrayRef<schedule::Action> program : table->programs) {
    numActions += program.size();
    numMessages += llvm::count_if(program, [](const schedule::Action &action) { return isMessage(action.kind); });
  }
  OpBuilder builder(func);
  writeTable(builder, func.getLoc(), (func.getName() + ".schedule").str(), *table);
  return success();
}

void ScheduleStages::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(enterPhase(module, Phase::Scheduled)))
    return signalPassFailure();
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (MicrobatchesOp loop = findLoop(func); loop && failed(addTable(func, loop)))
      return signalPassFailure();
}

//===----------------------------------------------------------------------===//
// Of a step that is not split
//===----------------------------------------------------------------------===//

/// The module of `graph`, split into these stages. What is remarked of a split is said where it is run, not where it is shown; the first error
/// is returned.
static llvm::Expected<OwningOpRef<ModuleOp>> splitCopy(const StageGraph &graph, ArrayRef<int32_t> stageOf,
                                                       int64_t numStages, bool relays) {
  IRMapping mapping;
  auto module = graph.ops.front()->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone(mapping));
  for (auto [op, stage] : llvm::zip_equal(graph.ops, stageOf))
    setStage(mapping.lookup(op), stage);
  for (auto [op, unit] : findUnits(graph, stageOf, numStages))
    setStage(mapping.lookup(op), unit);
  copy.get()->setAttr(PipeDialect::kStagesAttr, Builder(module.getContext()).getI64IntegerAttr(numStages));
  std::string reason;
  ScopedDiagnosticHandler quiet(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty())
      reason = diagnostic.str();
    return success();
  });
  PassManager manager(module.getContext());
  SplitOptions options;
  options.relay = relays;
  manager.addPass(createSplit(options));
  if (failed(manager.run(*copy)))
    return llvm::createStringError(reason);
  return copy;
}

bool cleave::pipe::runsBy(ModuleOp module, const schedule::Schedule &table) {
  for (auto op : module.getOps<ScheduleOp>()) {
    FailureOr<schedule::Schedule> own = readTable(op);
    if (succeeded(own) && own->programs == table.programs)
      return true;
  }
  return false;
}

llvm::Expected<std::vector<schedule::LateUpdate>>
cleave::pipe::placeUpdates(const StageGraph &graph, ArrayRef<int32_t> stageOf, const spmd::PlanPipeline &pipeline,
                           schedule::Schedule &table, schedule::Costs &costs) {
  assert(!graph.backwardNs.empty() && "not a step");
  llvm::Expected<OwningOpRef<ModuleOp>> copy = splitCopy(graph, stageOf, table.numStages, pipeline.relays);
  if (!copy)
    return copy.takeError();
  for (auto func : (*copy)->getOps<func::FuncOp>())
    if (MicrobatchesOp loop = findLoop(func)) {
      const schedule::Schedule known = table;
      Staged staged(func, loop, known);
      if (failed(staged.addUpdateCosts(table, costs)))
        return llvm::createStringError("what an update takes is not known: the step's cluster is wrong");
      return staged.placeUpdates(table, costs, pipeline.updatesEarly);
    }
  return std::vector<schedule::LateUpdate>();
}
