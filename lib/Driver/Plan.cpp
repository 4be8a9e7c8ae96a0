//===- Plan.cpp - a plan that is found ------------------------------------===//
//
// What the library finds (Compiler/FindPlan.h) is printed as a table of the meshes that were looked at, and written as a plan.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/FindPlan.h"

#include "cleave/Driver/FoundPlanText.h"
#include "cleave/Driver/Session.h"
#include "cleave/Plan/Pipeline.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Cluster.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace cleave;
using namespace cleave::driver;

/// What people call a cell that is not an answer.
static llvm::StringRef describe(PlanCell::Verdict verdict) {
  switch (verdict) {
  case PlanCell::Verdict::Best:
    return "*";
  case PlanCell::Verdict::Worse:
    return "";
  case PlanCell::Verdict::Memory:
    return "does not fit";
  case PlanCell::Verdict::Slow:
    return "a call takes too long";
  case PlanCell::Verdict::Impossible:
    return "the model cannot be sharded so";
  case PlanCell::Verdict::Pruned:
    return "cannot be better";
  }
  llvm_unreachable("all verdicts are there");
}

/// Columns as wide as their longest text, the first to the left.
static void printTable(llvm::raw_ostream &os, llvm::ArrayRef<std::vector<std::string>> rows) {
  std::vector<size_t> widths(rows.front().size());
  for (llvm::ArrayRef<std::string> row : rows)
    for (auto [width, text] : llvm::zip(widths, row))
      width = std::max(width, text.size());
  for (llvm::ArrayRef<std::string> row : rows) {
    std::string line = row.front() + std::string(widths.front() - row.front().size(), ' ');
    for (auto [width, text] : llvm::drop_begin(llvm::zip(widths, row)))
      line += "  " + std::string(width - text.size(), ' ') + text;
    os << llvm::StringRef(line).rtrim() << '\n';
  }
}

/// A line for each cell, the best first. What only pipelines have is a column where there is one.
static void printCells(llvm::raw_ostream &os, const FoundPlan &found) {
  constexpr size_t kMostLines = 10;
  llvm::ArrayRef<PlanCell> shown = llvm::ArrayRef(found.cells).take_front(kMostLines);
  bool hasStages = llvm::any_of(shown, [](const PlanCell &cell) { return cell.stages.isPipeline(); });
  std::vector<std::vector<std::string>> rows;
  auto add = [&](std::string mesh, std::string parts, std::string call, std::string span,
                 std::vector<std::string> others) {
    std::vector<std::string> row{std::move(mesh)};
    if (hasStages)
      row.push_back(std::move(parts));
    row.push_back(std::move(call));
    if (hasStages)
      row.push_back(std::move(span));
    llvm::append_range(row, others);
    rows.push_back(std::move(row));
  };
  add("mesh", "microbatches", "a call", "each of many", {"sends", "memory of a rank", "weights", ""});
  for (const PlanCell &cell : shown) {
    std::string parts = std::to_string(cell.stages.microbatches), why = describe(cell.verdict).str();
    if (cell.verdict == PlanCell::Verdict::Impossible || cell.verdict == PlanCell::Verdict::Pruned)
      add(cell.mesh, parts, "", "", {"", "", "", why});
    else
      add(cell.mesh, parts, formatTime(cell.ns), formatTime(cell.spanNs),
          {formatBytes(cell.sentBytes), formatBytes(cell.peakBytes), formatBytes(cell.storedBytes), why});
  }
  printTable(os, rows);
  if (found.cells.size() > kMostLines)
    os << "and " << found.cells.size() - kMostLines << " more\n";
  if (found.pruned > 0)
    os << found.pruned << " other numbers of stages and microbatches cannot be better, by what one device takes\n";
}

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
  object["seconds"] = cell.ns * 1e-9;
  object["span_seconds"] = cell.spanNs * 1e-9;
  object["wire_bytes_per_rank"] = cell.sentBytes;
  object["memory"] = llvm::json::Object{{"peak", cell.peakBytes}, {"stored", cell.storedBytes}};
  return object;
}

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

/// Keys are fixed in docs/report.md.
static llvm::Error writeReport(const Options &options, const FoundPlan &found) {
  llvm::json::Object best = toJson(found.getBest());
  best["plan"] = found.getBest().text;
  llvm::json::Object report{{"version", 1},
                            {"kind", "plan"},
                            {"model", options.compile.model},
                            {"cluster", found.plan->cluster->name},
                            {"objective", kPlanObjectiveWords[static_cast<int>(options.plan.objective)]},
                            {"memory_limit", found.memoryBytes},
                            {"cells", listJson(found.cells)},
                            {"best", std::move(best)},
                            {"one_device_seconds", found.oneDeviceNs * 1e-9},
                            {"solves", found.solves},
                            {"took", found.seconds}};
  if (options.plan.wantsFront)
    report["front"] = listJson(found.front, /*hasText=*/true);
  if (found.binding)
    report["binding"] =
        llvm::json::Object{{"more_bytes", found.binding->moreBytes}, {"saved_seconds", found.binding->savedNs * 1e-9}};
  return writeFileAtomically(options.report, [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(report))) << '\n';
    return llvm::Error::success();
  });
}

std::vector<std::string> cleave::driver::summarize(const FoundPlan &found) {
  const PlanCell &best = found.getBest();
  std::string follow = best.stages.isPipeline()
                           ? llvm::formatv(", {0} where calls follow each other", formatTime(best.spanNs)).str()
                           : "";
  std::vector<std::string> lines{
      llvm::formatv("{0} on {1}: a call is predicted to take {2}{3}, {4} on one device", best.mesh,
                    found.plan->cluster->name, formatTime(best.ns), follow, formatTime(found.oneDeviceNs)),
      llvm::formatv("a rank takes {0}, of them {1} weights and states, and sends {2}", formatBytes(best.peakBytes),
                    formatBytes(best.storedBytes), formatBytes(best.sentBytes))};
  if (found.binding)
    lines.push_back(llvm::formatv("memory binds: {0} more a rank would save {1}", formatBytes(found.binding->moreBytes),
                                  formatTime(found.binding->savedNs)));
  return lines;
}

/// The plans that are written, where there are several.
static std::vector<PlanCell> listWritten(const Options &options, const FoundPlan &found) {
  std::vector<PlanCell> written = options.plan.wantsFront ? found.front : found.cells;
  llvm::erase_if(written, [](const PlanCell &cell) { return cell.text.empty(); });
  if (!options.plan.wantsFront && written.size() > options.top)
    written.resize(options.top);
  return written;
}

/// One file for each plan, `plan-1.yaml` the first.
static llvm::Error writePlans(llvm::StringRef folder, llvm::ArrayRef<PlanCell> cells) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  size_t number = 0;
  for (const PlanCell &cell : cells) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, llvm::formatv("plan-{0}.yaml", ++number));
    llvm::Error error = writeFileAtomically(path, [&](llvm::raw_ostream &os) {
      os << cell.text;
      return llvm::Error::success();
    });
    if (error)
      return error;
  }
  return llvm::Error::success();
}

/// Into a folder where there are several, a file where there is one.
static llvm::Error writeFound(const Options &options, const FoundPlan &found) {
  if (options.output.empty() || options.output == "-")
    return llvm::Error::success();
  if (options.plan.wantsFront || options.top > 0)
    return writePlans(options.output, listWritten(options, found));
  return writeFileAtomically(options.output, [&](llvm::raw_ostream &os) {
    os << found.getBest().text;
    return llvm::Error::success();
  });
}

/// Points of time (down) and memory (to the right), each with its figures.
static void drawFront(llvm::raw_ostream &os, const FoundPlan &found) {
  constexpr double kWidth = 40;
  auto peak = [](const PlanCell &cell) { return static_cast<double>(cell.peakBytes); };
  double most = 0;
  for (const PlanCell &cell : found.front)
    most = std::max(most, peak(cell));
  std::vector<std::vector<std::string>> rows{{"front", "a call", "memory of a rank", "mesh"}};
  for (const PlanCell &cell : found.front) {
    std::string bar(std::max<size_t>(1, std::lround(kWidth * peak(cell) / most)), '=');
    std::string parts =
        cell.stages.isPipeline() ? llvm::formatv(", {0} microbatches", cell.stages.microbatches).str() : "";
    rows.push_back({bar, formatTime(cell.ns), formatBytes(cell.peakBytes), cell.mesh + parts});
  }
  printTable(os, rows);
}

/// What is written is written before anything is printed: a table for a plan that is not there would be none.
ExitCode cleave::driver::planCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  std::optional<FoundPlan> found = findPlan(session, options.plan);
  if (!found)
    return session.getExitCode();
  if (llvm::Error error = writeFound(options, *found))
    return session.fail(std::move(error));
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options, *found))
      return session.fail(std::move(error));
  bool isShown = options.output.empty() || options.output == "-";
  llvm::raw_ostream &os = isShown ? llvm::errs() : llvm::outs();
  if (!options.quiet) {
    printCells(os, *found);
    if (options.plan.wantsFront)
      drawFront(os, *found);
    for (const std::string &line : summarize(*found))
      os << "found: " << line << '\n';
    if (size_t written = listWritten(options, *found).size(); written > 0 && !isShown)
      os << "wrote " << written << " plans into " << options.output << '\n';
  }
  if (isShown)
    llvm::outs() << found->getBest().text;
  return kDone;
}
