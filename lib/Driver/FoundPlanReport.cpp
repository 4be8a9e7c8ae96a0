//===- FoundPlanReport.cpp - a found plan as JSON -------------------------===//
//
// Times are seconds there, as in all reports; a cell without an answer has no figures, so that nobody takes a zero for one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/FoundPlanText.h"

#include "cleave/Driver/PlanProof.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Cluster.h"

using namespace cleave;
using namespace cleave::driver;

/// A cell without an answer has no figures.
static llvm::json::Object toJson(const PlanCell &cell) {
  llvm::json::Object object{{"mesh", cell.mesh},
                            {"stages", cell.stages.stages},
                            {"microbatches", cell.stages.microbatches},
                            {"why", kVerdictWords[static_cast<int>(cell.verdict)]}};
  if (!cell.reason.empty())
    object["reason"] = cell.reason;
  if (cell.verdict == PlanCell::Verdict::Impossible || cell.verdict == PlanCell::Verdict::Pruned)
    return object;
  if (!cell.recompute.empty())
    object["recompute"] = cell.recompute;
  if (!cell.schedule.empty())
    object["schedule"] = cell.schedule;
  object["seconds"] = cell.ns * 1e-9;
  object["span_seconds"] = cell.spanNs * 1e-9;
  object["wire_bytes_per_rank"] = cell.sentBytes;
  object["memory"] = llvm::json::Object{{"peak", cell.peakBytes}, {"stored", cell.storedBytes}};
  return object;
}

/// Of the front each point is a plan; of cells the best alone is, under `best`.
static llvm::json::Array listJson(llvm::ArrayRef<PlanCell> cells, bool hasText = false) {
  llvm::json::Array list;
  for (const PlanCell &cell : cells) {
    llvm::json::Object object = toJson(cell);
    if (hasText)
      object["plan"] = cell.text;
    list.push_back(std::move(object));
  }
  return list;
}

llvm::json::Object cleave::driver::toJson(const FoundPlan &found, llvm::StringRef model, const PlanRequest &request,
                                          const PlanProof *proof) {
  llvm::json::Object best = ::toJson(found.getBest());
  best["plan"] = found.getBest().text;
  addProof(best, proof);
  llvm::json::Object report{{"version", 1},
                            {"kind", "plan"},
                            {"model", model},
                            {"cluster", found.plan->cluster->name},
                            {"objective", kPlanObjectiveWords[static_cast<int>(found.objective)]},
                            {"memory_limit", found.memoryBytes},
                            {"cells", listJson(found.cells)},
                            {"best", std::move(best)},
                            {"one_device_seconds", found.oneDeviceNs * 1e-9},
                            {"solves", found.solves},
                            {"took", found.seconds}};
  if (found.leftOut > 0)
    report["left_out"] = found.leftOut;
  if (request.wantsFront)
    report["front"] = listJson(found.front, /*hasText=*/true);
  if (found.binding)
    report["binding"] =
        llvm::json::Object{{"more_bytes", found.binding->moreBytes}, {"saved_seconds", found.binding->savedNs * 1e-9}};
  return report;
}

llvm::Error cleave::driver::writeReport(const Options &options, const FoundPlan &found, const PlanProof *proof,
                                        llvm::json::Object structure) {
  llvm::json::Object report = toJson(found, options.compile.model, options.plan, proof);
  for (auto &[key, value] : structure)
    report[key] = std::move(value);
  return writeReport(options, std::move(report));
}
