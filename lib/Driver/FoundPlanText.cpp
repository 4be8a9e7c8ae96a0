//===- FoundPlanText.cpp - a found plan in words --------------------------===//
//
// What only pipelines have is a column where there is one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/FoundPlanText.h"

#include "TextTable.h"

#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace cleave;
using namespace cleave::driver;

/// Of a step whose backward reads what was made twice.
static bool makesAgain(const PlanCell &cell) { return !cell.recompute.empty() && cell.recompute != "none"; }

/// Cells that a bound leaves out are counted.
void cleave::driver::printCells(llvm::raw_ostream &os, const FoundPlan &found) {
  constexpr size_t kMostLines = 10;
  std::vector<PlanCell> shown = found.cells;
  llvm::erase_if(shown, [](const PlanCell &cell) { return cell.verdict == PlanCell::Verdict::Pruned; });
  size_t pruned = found.pruned + found.cells.size() - shown.size();
  size_t more = shown.size() - std::min(shown.size(), kMostLines);
  shown.resize(shown.size() - more);
  bool hasStages = llvm::any_of(shown, [](const PlanCell &cell) { return cell.stages.isPipeline(); });
  bool hasAgain = llvm::any_of(shown, [](const PlanCell &cell) { return makesAgain(cell); });
  std::vector<std::vector<std::string>> rows;
  auto add = [&](std::string mesh, std::vector<std::string> parts, std::string call, std::string span,
                 std::vector<std::string> others) {
    std::vector<std::string> row{std::move(mesh)};
    if (hasStages)
      row.push_back(parts[0]);
    if (hasStages && found.isStep)
      row.push_back(parts[1]);
    if (hasAgain)
      row.push_back(parts[2]);
    row.push_back(std::move(call));
    if (hasStages && !found.isStep)
      row.push_back(std::move(span));
    llvm::append_range(row, others);
    rows.push_back(std::move(row));
  };
  add("mesh", {"microbatches", "schedule", "again"}, ("a " + found.getWord()).str(), "each of many",
      {"sends", "memory of a rank", "weights", ""});
  for (const PlanCell &cell : shown) {
    std::vector<std::string> parts{std::to_string(cell.stages.microbatches), cell.schedule, cell.recompute};
    std::string why = cell.verdict == PlanCell::Verdict::Best ? "*" : describeVerdict(cell.verdict).str();
    if (cell.verdict == PlanCell::Verdict::Impossible)
      add(cell.mesh, parts, "", "", {"", "", "", why});
    else
      add(cell.mesh, parts, formatTime(cell.ns), formatTime(cell.spanNs),
          {formatBytes(cell.sentBytes), formatBytes(cell.peakBytes), formatBytes(cell.storedBytes), why});
  }
  printTable(os, rows, TextColumns::FirstLeft);
  if (more > 0)
    os << "and " << more << " more\n";
  if (pruned > 0)
    os << pruned << " other numbers of stages and microbatches cannot be better\n";
  if (found.leftOut > 0)
    os << found.leftOut << " meshes were not looked at: there are many; --axes bounds them, --mesh names one\n";
}

/// Bars are as long as memory is large, so that the eye sees where time begins to cost much of it.
void cleave::driver::drawFront(llvm::raw_ostream &os, const FoundPlan &found) {
  constexpr double kWidth = 40;
  auto peak = [](const PlanCell &cell) { return static_cast<double>(cell.peakBytes); };
  double most = 0;
  for (const PlanCell &cell : found.front)
    most = std::max(most, peak(cell));
  std::vector<std::vector<std::string>> rows{
      {"front", ("a " + found.getWord()).str(), "each of many", "memory of a rank", "mesh"}};
  for (const PlanCell &cell : found.front) {
    std::string bar(std::max<size_t>(1, std::lround(kWidth * peak(cell) / most)), '=');
    std::string parts =
        cell.stages.isPipeline() ? llvm::formatv(", {0} microbatches", cell.stages.microbatches).str() : "";
    rows.push_back({bar, formatTime(cell.ns), formatTime(cell.spanNs), formatBytes(cell.peakBytes), cell.mesh + parts});
  }
  printTable(os, rows, TextColumns::FirstLeft);
}

/// What is predicted first, for that is what most people want to know; what binds last, for that is what they can change.
std::vector<std::string> cleave::driver::summarize(const FoundPlan &found) {
  const PlanCell &best = found.getBest();
  std::string follow = best.stages.isPipeline() && !found.isStep
                           ? llvm::formatv(", {0} where calls follow each other", formatTime(best.spanNs)).str()
                           : "";
  std::string alone =
      found.oneDeviceNs > 0 ? llvm::formatv(", {0} on one device", formatTime(found.oneDeviceNs)).str() : "";
  std::vector<std::string> lines{
      llvm::formatv("{0} on {1}: a {2} is predicted to take {3}{4}{5}", best.mesh, found.plan->cluster->name,
                    found.getWord(), formatTime(best.ns), follow, alone),
      llvm::formatv("a rank takes {0}, of them {1} weights and states, and sends {2}", formatBytes(best.peakBytes),
                    formatBytes(best.storedBytes), formatBytes(best.sentBytes))};
  if (found.isStep && best.stages.isPipeline())
    lines.push_back(llvm::formatv("its stages run by schedule {0}", best.schedule));
  if (makesAgain(best))
    lines.push_back(llvm::formatv("what backward reads is made again by 'recompute: {0}'", best.recompute));
  if (best.stages.isPipeline() && best.stages.microbatches == 1)
    lines.push_back(llvm::formatv(found.samples == 1
                                      ? "a batch of 1 makes one microbatch: in a {0} stages only wait for each other"
                                      : "with one microbatch stages only wait for each other in a {0}",
                                  found.getWord()));
  constexpr double kMuch = 0.95;
  bool isAlone = llvm::all_of(found.plan->mesh, [](const spmd::MeshAxis &axis) { return axis.size == 1; });
  if (found.oneDeviceNs > 0 && best.ns > kMuch * found.oneDeviceNs && !isAlone && !found.plan->uneven)
    lines.push_back(
        "no split saves much here; --uneven looks at splits that do not divide as well, and pads their last "
        "shards");
  const spmd::Cluster &cluster = *found.plan->cluster;
  std::vector<int64_t> devices = spmd::listDevices(spmd::getClusterMesh(*found.plan));
  if (double speed = cluster.getSpeed(devices); speed < 1 && !best.stages.isPipeline())
    lines.push_back(llvm::formatv("shards are equally large, so all wait for the slowest device, which has {0:f2} of "
                                  "the speed; stages of a pipeline can be unequal",
                                  speed));
  if (found.binding)
    lines.push_back(llvm::formatv("memory binds: {0} more a rank would save {1}", formatBytes(found.binding->moreBytes),
                                  formatTime(found.binding->savedNs)));
  return lines;
}
