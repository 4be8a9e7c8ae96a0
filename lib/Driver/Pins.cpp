//===- Pins.cpp - what a choice that is held costs ------------------------===//
//
// `--pin` holds what a rule says, as `--shard` does. All else is solved again without it, by a compilation of its own, so that both figures
// are those of a whole search.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/PlanQuestions.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

/// `--pin 'w=[_, model]' --pin ..`.
static std::string formatPins(const Options &options) {
  return llvm::join(llvm::map_range(options.pins, [](const std::string &pin) { return "--pin '" + pin + "'"; }), " ");
}

/// Pins are the last of the rules (CommandLine.cpp).
static CompileOptions withoutPins(const Options &options) {
  CompileOptions without = options.compile;
  without.sharding.shard.resize(without.sharding.shard.size() - options.pins.size());
  return without;
}

/// Rules of both options are read alike.
static void nameOption(Diagnostic &diagnostic) {
  if (diagnostic.file == "--shard")
    diagnostic.file = "--pin";
  for (Diagnostic &note : diagnostic.notes)
    nameOption(note);
}

/// Axes have names only where the mesh is given; what is wrong with rules is said where they are placed, and where they are decided.
bool cleave::driver::checkPins(Session &session) {
  const Options &options = session.getOptions();
  spmd::Plan plan;
  spmd::PlanError ignored;
  for (const std::string &pin : options.pins)
    (void)spmd::parseShardOption(pin, plan, ignored);
  bool namesAxes = llvm::any_of(plan.rules, [](const spmd::PlanRule &rule) { return !rule.getAxes().empty(); });
  if (options.plan.devices > 0 && namesAxes)
    return session.Compilation::fail(
        makeError("{0} names an axis, and --devices leaves it to the search what axes there are: give the mesh, as in "
                  "--mesh model={1}",
                  formatPins(options), options.plan.devices),
        Blame::Options);
  CompileOptions tried = options.compile;
  if (options.plan.devices > 0)
    tried.sharding.mesh = "device=" + std::to_string(options.plan.devices);
  bool areAllPins = tried.sharding.shard.size() == options.pins.size();
  Compilation check(std::move(tried), [&](Diagnostic diagnostic) {
    if (areAllPins)
      nameOption(diagnostic);
    if (diagnostic.severity == Diagnostic::Severity::Error)
      session.report(diagnostic);
  });
  return check.load() && check.advance(Phase::Propagated);
}

/// Both searches look at the same cells, so that the difference is that of the pins.
std::optional<std::string> cleave::driver::describePins(Session &session, const FoundPlan &found) {
  const Options &options = session.getOptions();
  Compilation other(withoutPins(options), [](const Diagnostic &) {});
  std::optional<FoundPlan> without = findPlan(other, options.plan);
  if (!without)
    return std::nullopt;
  const PlanCell &with = found.getBest(), &free = without->getBest();
  double more = 100 * (with.ns / free.ns - 1);
  return formatv("with {0} a {9} takes {1} and sends {2}, a rank {3}; without {4}, {5}, {6}: {7}{8:f1} % of time",
                 formatPins(options), formatTime(with.ns), formatBytes(with.sentBytes), formatBytes(with.peakBytes),
                 formatTime(free.ns), formatBytes(free.sentBytes), formatBytes(free.peakBytes), more < 0 ? "" : "+",
                 more, found.getWord())
      .str();
}

/// The least that is met, whatever the limit.
static std::optional<int64_t> findLeast(CompileOptions compile, PlanRequest request) {
  request.takesLeast = true;
  request.memoryBytes = std::numeric_limits<int64_t>::max();
  Compilation compilation(std::move(compile), [](const Diagnostic &) {});
  std::optional<FoundPlan> found = findPlan(compilation, request);
  return found ? std::optional(found->getBest().peakBytes) : std::nullopt;
}

/// A note below the error that says what was looked for.
void cleave::driver::explainPins(Session &session) {
  const Options &options = session.getOptions();
  std::optional<int64_t> with = findLeast(options.compile, options.plan),
                         without = findLeast(withoutPins(options), options.plan);
  if (!with || !without)
    return;
  Diagnostic note;
  note.severity = Diagnostic::Severity::Note;
  note.file = options.compile.model;
  note.message =
      formatv("with {0} the least is {1}, without {2}", formatPins(options), formatBytes(*with), formatBytes(*without));
  session.report(note);
}
