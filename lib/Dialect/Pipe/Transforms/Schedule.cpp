//===- Schedule.cpp - which rank does what, in which order ----------------===//
//
// The table of a schedule, by name or from a file, for the stages and channels that the loop has. Messages are placed by one
// global order, and the checker of schedules has the last word, however the table was made.
//
//===----------------------------------------------------------------------===//
#include "Table.h"

#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Schedule/Check.h"
#include "cleave/Schedule/Messages.h"

namespace cleave::pipe {
#define GEN_PASS_DEF_SCHEDULESTAGES
#include "cleave/Dialect/Pipe/IR/PipePasses.h.inc"
} // namespace cleave::pipe

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

namespace {
struct ScheduleStages : pipe::impl::ScheduleStagesBase<ScheduleStages> {
  using ScheduleStagesBase::ScheduleStagesBase;

  void runOnOperation() override;

private:
  LogicalResult addTable(func::FuncOp func, MicrobatchesOp loop);
};
} // namespace

/// A message of a table may name a channel that the model has no values for: those go, and what the model needs comes in.
LogicalResult ScheduleStages::addTable(func::FuncOp func, MicrobatchesOp loop) {
  ModuleOp module = getOperation();
  auto mesh = module->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  auto axis = module->getAttrOfType<StringAttr>(PipeDialect::kAxisAttr);
  int64_t ranks = mesh && axis ? mesh.getSizes()[*mesh.findAxis(axis)] : 0;
  if (!ranks)
    return mlir::emitError(module.getLoc()) << "has no pipe.mesh and pipe.axis: nobody says how many ranks there are";
  int64_t stages = static_cast<int64_t>(getStageCalls(loop).size());
  std::string name = schedule;
  llvm::Expected<schedule::Schedule> table =
      makeTable(name, static_cast<int32_t>(ranks), static_cast<int32_t>(std::max<int64_t>(1, stages / ranks)),
                static_cast<int32_t>(loop.getCount()));
  if (!table)
    return mlir::emitError(func.getLoc()) << llvm::toString(table.takeError());
  if (table->numStages != stages)
    return mlir::emitError(func.getLoc()) << "schedule '" << table->name << "' has " << table->numStages
                                          << " stages on " << ranks << " ranks, the model " << stages;
  schedule::removeMessages(*table);
  table->channels = findChannels(loop);
  if (llvm::Error error = schedule::addMessages(*table))
    return mlir::emitError(func.getLoc()) << llvm::toString(std::move(error));
  schedule::CheckResult checked =
      schedule::check(*table, schedule::Costs::uniform(table->numStages, table->numStages / table->numRanks));
  for (const schedule::Violation &violation : checked.violations)
    mlir::emitError(func.getLoc()) << violation.message << " (" << violation.constraint << ")";
  if (!checked.violations.empty())
    return failure();
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
