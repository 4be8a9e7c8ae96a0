//===- AssignStages.cpp - which stage each op is in -----------------------===//
//
//   %a   %b   %c │ %d   %e │ %f        the function as a row of ops, cut where stages are best, or start by hand
//
// The decision is `splitStages`; here is what it decides on (StageGraph.h), and what is said about the answer.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/StageGraph.h"
#include "cleave/Schedule/Schedule.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct AssignStages : pipe::impl::AssignStagesBase<AssignStages> {
  using AssignStagesBase::AssignStagesBase;

  void runOnOperation() override;

private:
  LogicalResult makeOptions(schedule::SplitOptions &options);
  LogicalResult assign(func::FuncOp func, const schedule::SplitOptions &options);
  FailureOr<std::vector<spmd::PlanStage>> getLines(Location loc);
};
} // namespace

/// Errors of options are of the module: they have no place in it.
LogicalResult AssignStages::makeOptions(schedule::SplitOptions &options) {
  ModuleOp module = getOperation();
  int64_t stages = this->stages, ranks = this->ranks;
  StringRef placement = this->placement, objective = this->objective;
  std::optional<schedule::Placement> found = schedule::parsePlacement(placement);
  if (!found)
    return mlir::emitError(module.getLoc()) << "'" << placement << "' is no placement: linear, loop, v, wave";
  if (stages < 1 || ranks < 0 || stages > INT32_MAX)
    return mlir::emitError(module.getLoc()) << "there are no " << (stages < 1 ? stages : ranks) << " stages or ranks";
  int64_t numRanks = ranks ? ranks : *found == schedule::Placement::Linear ? stages : std::max<int64_t>(1, stages / 2);
  int64_t chunks = stages / numRanks;
  if (stages % numRanks != 0 || !schedule::mayHaveChunks(*found, static_cast<int32_t>(chunks)))
    return mlir::emitError(module.getLoc())
           << stages << " stages have no placement '" << placement << "' on " << numRanks
           << " ranks: linear has a stage on each, v two, wave an even number, loop any";
  if (objective != "throughput" && objective != "latency")
    return mlir::emitError(module.getLoc()) << "'" << objective << "' is no objective: throughput, latency";
  options.placement = schedule::placeStages(*found, static_cast<int32_t>(numRanks), static_cast<int32_t>(chunks));
  options.objective = objective == "latency" ? schedule::SplitObjective::Latency : schedule::SplitObjective::Throughput;
  options.microbatches = microbatches;
  options.latencyNs = linkNs;
  options.bytesPerNs = linkBytesPerNs;
  options.overlapsSends = overlapSends;
  options.relays = relay;
  options.memoryLimit = memoryLimit;
  return success();
}

/// A stage starts with the function, each further one at the first op of a node. Nothing by hand: no lines.
FailureOr<std::vector<spmd::PlanStage>> AssignStages::getLines(Location loc) {
  std::vector<spmd::PlanStage> lines;
  if (starts.empty())
    return lines;
  int64_t stages = this->stages;
  if (starts.size() + 1 != static_cast<size_t>(stages))
    return mlir::emitError(loc) << stages << " stages have " << stages - 1 << " starts behind the first, got "
                                << starts.size();
  lines.emplace_back();
  for (const std::string &start : starts)
    lines.push_back({spmd::PlanStage::Kind::First, {start, {}}, {}});
  return lines;
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

/// Nothing is written before the whole answer is known.
LogicalResult AssignStages::assign(func::FuncOp func, const schedule::SplitOptions &options) {
  DeviceRates rates{flopsPerNs, bytesPerNs, launchNs, linkBytesPerNs, linkNs};
  StageGraph graph = makeStageGraph(func, rates);
  FailureOr<std::vector<spmd::PlanStage>> lines = getLines(func.getLoc());
  if (failed(lines))
    return failure();
  llvm::Expected<schedule::StageSplit> answer = cutStages(graph, *lines, options);
  if (!answer)
    return mlir::emitError(func.getLoc()) << llvm::toString(answer.takeError());
  for (auto [op, stage] : llvm::zip_equal(graph.ops, answer->stageOf))
    setStage(op, stage);
  InFlightDiagnostic remark = mlir::emitRemark(func.getLoc());
  remark << answer->stages.size() << " stages: the slowest takes " << answer->bottleneckNs
         << " ns, no cuts are faster than " << answer->boundNs << " ns";
  for (auto [number, stage] : llvm::enumerate(answer->stages))
    remark.attachNote(func.getLoc()) << "stage " << number << ": "
                                     << describe(stage, number + 1 == answer->stages.size());
  return success();
}

void AssignStages::runOnOperation() {
  schedule::SplitOptions options;
  if (failed(makeOptions(options)))
    return signalPassFailure();
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (!func.isExternal() && failed(assign(func, options)))
      return signalPassFailure();
}
