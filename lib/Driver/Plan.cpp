//===- Plan.cpp - a plan that is found ------------------------------------===//
//
// What the library finds (Compiler/FindPlan.h) is printed as a table of the meshes that were looked at, and written as a plan.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/FindPlan.h"

#include "cleave/Driver/FoundPlanText.h"
#include "cleave/Driver/PlanQuestions.h"
#include "cleave/Driver/Session.h"
#include "cleave/Plan/Pipeline.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Cluster.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace cleave;
using namespace cleave::driver;

/// A line for each mesh, the best first.
static void printCells(llvm::raw_ostream &os, const FoundPlan &found) {
  constexpr size_t kMostLines = 10;
  size_t width = llvm::StringRef("mesh").size();
  llvm::ArrayRef<PlanCell> shown = llvm::ArrayRef(found.cells).take_front(kMostLines);
  for (const PlanCell &cell : shown)
    width = std::max(width, cell.mesh.size());
  auto pad = [&](llvm::StringRef text, size_t columns) {
    return std::string(columns - std::min(columns, text.size()), ' ');
  };
  os << "mesh" << pad("mesh", width) << "        a call        sends  memory of a rank      weights\n";
  for (const PlanCell &cell : shown) {
    os << cell.mesh << pad(cell.mesh, width);
    if (cell.verdict == PlanCell::Verdict::Impossible) {
      os << "  the model cannot be sharded so\n";
      continue;
    }
    std::string time = formatTime(cell.ns), sent = formatBytes(cell.sentBytes), peak = formatBytes(cell.peakBytes),
                stored = formatBytes(cell.storedBytes);
    os << pad(time, 14) << time << pad(sent, 13) << sent << pad(peak, 18) << peak << pad(stored, 13) << stored;
    os << (cell.verdict == PlanCell::Verdict::Best     ? "  *\n"
           : cell.verdict == PlanCell::Verdict::Memory ? "  does not fit\n"
                                                       : "\n");
  }
  if (found.cells.size() > kMostLines)
    os << "and " << found.cells.size() - kMostLines << " more\n";
}

/// A cell without an answer has no figures.
static llvm::json::Object toJson(const PlanCell &cell) {
  llvm::json::Object object{{"mesh", cell.mesh}, {"why", kVerdictWords[static_cast<int>(cell.verdict)]}};
  if (cell.verdict == PlanCell::Verdict::Impossible)
    return object;
  object["seconds"] = cell.ns * 1e-9;
  object["wire_bytes_per_rank"] = cell.sentBytes;
  object["memory"] = llvm::json::Object{{"peak", cell.peakBytes}, {"stored", cell.storedBytes}};
  return object;
}

/// Keys are fixed in docs/report.md.
static llvm::Error writeReport(const Options &options, const FoundPlan &found, llvm::json::Object structure) {
  llvm::json::Array cells;
  for (const PlanCell &cell : found.cells)
    cells.push_back(toJson(cell));
  llvm::json::Object best = toJson(found.getBest());
  best["plan"] = found.getBest().text;
  llvm::json::Object report{{"version", 1},
                            {"kind", "plan"},
                            {"model", options.compile.model},
                            {"cluster", found.plan->cluster->name},
                            {"objective", "latency"},
                            {"memory_limit", found.memoryBytes},
                            {"cells", std::move(cells)},
                            {"best", std::move(best)},
                            {"one_device_seconds", found.oneDeviceNs * 1e-9},
                            {"solves", found.solves},
                            {"took", found.seconds}};
  for (auto &[key, value] : structure)
    report[key] = std::move(value);
  return writeFileAtomically(options.report, [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(report))) << '\n';
    return llvm::Error::success();
  });
}

std::vector<std::string> cleave::driver::summarize(const FoundPlan &found) {
  const PlanCell &best = found.getBest();
  return {llvm::formatv("{0} on {1}: a call is predicted to take {2}, {3} on one device", best.mesh,
                        found.plan->cluster->name, formatTime(best.ns), formatTime(found.oneDeviceNs)),
          llvm::formatv("a rank takes {0}, of them {1} weights and states, and sends {2}", formatBytes(best.peakBytes),
                        formatBytes(best.storedBytes), formatBytes(best.sentBytes))};
}

/// What is written is written before anything is printed: a table for a plan that is not there would be none.
ExitCode cleave::driver::planCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!options.schedule.compare.empty())
    return comparePlans(session);
  if (!session.load())
    return session.getExitCode();
  if (const LikePlan *like = session.getLikePlan())
    return likePlan(session, *like);
  if (!options.compile.sharding.free)
    return answerWithout(session);
  if (!options.pins.empty() && !checkPins(session))
    return session.getExitCode();
  std::optional<FoundPlan> found = findPlan(session, options.plan);
  if (!found && !options.pins.empty())
    explainPins(session);
  if (!found)
    return session.getExitCode();
  found->cells.front().text = noteRoles(session, *found->plan, found->getBest().text);
  llvm::json::Object structure;
  if (!answerStructure(session, found->plan.get(), &structure))
    return session.getExitCode();
  if (!options.output.empty() && options.output != "-") {
    llvm::Error error = writeFileAtomically(options.output, [&](llvm::raw_ostream &os) {
      os << found->getBest().text;
      return llvm::Error::success();
    });
    if (error)
      return session.fail(std::move(error));
  }
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options, *found, std::move(structure)))
      return session.fail(std::move(error));
  bool isShown = options.output.empty() || options.output == "-";
  llvm::raw_ostream &os = isShown ? llvm::errs() : llvm::outs();
  if (!options.quiet) {
    printCells(os, *found);
    for (const std::string &line : summarize(*found))
      os << "found: " << line << '\n';
    if (std::optional<std::string> pins = options.pins.empty() ? std::nullopt : describePins(session, *found))
      os << *pins << '\n';
  }
  if (isShown)
    llvm::outs() << found->getBest().text;
  return kDone;
}
