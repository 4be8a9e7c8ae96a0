//===- Page.cpp - a whole decision on one page ----------------------------===//
//
// `cleave page`, and `--html` of other commands: the model is taken anew as far as a page needs it, so that what those commands do stays as
// it is. A second plan is taken as the first.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Page.h"
#include "cleave/Driver/Session.h"

#include "Measured.h"
#include "cleave/Compiler/ComparePlans.h"
#include "cleave/Pictures/Page.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace cleave;
using namespace cleave::driver;

/// By node the layer that it is in: for who lays a run next to the page, which does not have it.
static constexpr llvm::StringLiteral kLayerOfKey = "layer_of";

/// What a plan is called on the page: its file, or how it came about.
static std::string namePlan(const CompileOptions &options) {
  if (!options.sharding.plan.empty())
    return llvm::sys::path::filename(options.sharding.plan).str();
  if (options.devices)
    return llvm::formatv("found for {0} devices", options.devices);
  return options.sharding.mesh.empty() ? "one device" : options.sharding.mesh;
}

static std::optional<llvm::json::Object> describePlan(Compilation &compilation) {
  if (!compilation.isLoaded() && !compilation.load())
    return std::nullopt;
  if (!compilation.hasMesh())
    compilation.useOneDevice();
  return compilation.describeForPage(namePlan(compilation.getGivenOptions()));
}

static int64_t countRanks(const llvm::json::Object &plan) {
  int64_t ranks = 1;
  for (const llvm::json::Value &axis : *plan.getArray("axes"))
    ranks *= axis.getAsObject()->getInteger("size").value_or(1);
  return ranks;
}

/// The page shows a run next to the first plan: of a pipeline its actions next to the schedule, else what was done of each layer.
static llvm::Error addMeasured(llvm::json::Object &plan, const CompileOptions &given, const std::string &path) {
  if (path.empty())
    return llvm::Error::success();
  std::optional<ScheduleResult> made;
  if (plan.getObject("schedule")) {
    Compilation anew(given, [](const Diagnostic &) {});
    made = scheduleModel(anew, {});
  }
  if (!made) {
    llvm::Expected<llvm::json::Object> run =
        readRun(path, *plan.getObject(kLayerOfKey), plan.getArray("layers")->size(), countRanks(plan));
    if (!run)
      return run.takeError();
    plan["run"] = std::move(*run);
    return llvm::Error::success();
  }
  llvm::Expected<std::optional<schedule::Simulation>> measured = readMeasured(path, *made);
  if (!measured)
    return measured.takeError();
  plan["schedule"] = describeSchedule(*made, &**measured);
  return llvm::Error::success();
}

/// The model by another plan, on the mesh of that one.
static CompileOptions takePlan(CompileOptions options, const std::string &plan) {
  options.sharding.plan = plan;
  options.sharding.mesh.clear();
  options.devices = 0;
  options.like.clear();
  return options;
}

std::optional<llvm::json::Object> cleave::driver::makePage(Compilation &compilation, const std::string &compare,
                                                           const std::string &measured) {
  llvm::json::Array plans;
  std::vector<std::string> differences;
  std::optional<llvm::json::Object> first = describePlan(compilation);
  if (!first)
    return std::nullopt;
  const CompileOptions &given = compilation.getGivenOptions();
  if (llvm::Error error = addMeasured(*first, given, measured)) {
    compilation.fail(std::move(error));
    return std::nullopt;
  }
  first->erase(kLayerOfKey);
  plans.push_back(std::move(*first));
  if (!compare.empty()) {
    auto handler = [&](const Diagnostic &diagnostic) { compilation.report(diagnostic); };
    Compilation second(takePlan(given, compare), handler);
    std::optional<llvm::json::Object> plan = describePlan(second);
    if (!plan)
      return std::nullopt;
    plan->erase(kLayerOfKey);
    plans.push_back(std::move(*plan));
    std::optional<PlanDifference> difference = comparePlans(given, given.sharding.plan, compare, handler);
    if (!difference)
      return std::nullopt;
    differences = std::move(difference->places);
  }
  return pictures::makePage(llvm::sys::path::filename(given.model), std::move(plans), differences);
}

void cleave::driver::writePage(llvm::raw_ostream &os, llvm::json::Object page) {
  std::string note = llvm::formatv("Cleave {0}. Times are predicted, those of one rank.", CLEAVE_VERSION);
  pictures::writePage(os, std::move(page), note);
}

ExitCode cleave::driver::writePage(Session &session, Compilation &compilation, const std::string &path) {
  const Options &options = session.getOptions();
  std::optional<llvm::json::Object> page =
      makePage(compilation, options.command == "page" ? options.schedule.compare : "", options.schedule.measured);
  if (!page)
    return session.getExitCode();
  const llvm::json::Object &first = *page->getArray("plans")->front().getAsObject();
  std::string size =
      llvm::formatv("{0} layers, {1} of them drawn", first.getArray("layers")->size(), first.getArray("kinds")->size());
  llvm::Error error = writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    writePage(os, std::move(*page));
    return llvm::Error::success();
  });
  if (error)
    return session.fail(std::move(error));
  // Equal ones are drawn once.
  if (!options.quiet)
    llvm::outs() << path << ": " << size << '\n';
  return kDone;
}

ExitCode cleave::driver::writePage(Session &session) {
  const Options &options = session.getOptions();
  if (options.html.empty())
    return kDone;
  // What the command has done to its own is not what a page begins with.
  Compilation anew(session.getGivenOptions(), [&](const Diagnostic &diagnostic) {
    if (diagnostic.severity == Diagnostic::Severity::Error)
      session.report(diagnostic);
  });
  return writePage(session, anew, options.html);
}

ExitCode cleave::driver::pageCommand(Session &session) {
  if (!session.load())
    return session.getExitCode();
  return writePage(session, session, session.getOptions().output);
}
