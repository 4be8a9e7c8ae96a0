//===- ExplainPlan.cpp - why a found plan, and no other -------------------===//
//
// Each style is a compilation of its own, decided by time on the same machine. The plan that was found is taken once more, as any command
// would take it: first to its decisions, which are asked for alternatives, then as far as kernels, whose report has what is sent.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/ExplainPlan.h"

#include "State.h"

#include "cleave/Plan/Plan.h"
#include "cleave/Search/Styles.h"
#include "cleave/Support/NumberedName.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using llvm::formatv;

class Compilation::PlanExplainer {
public:
  PlanExplainer(State &state, const FoundPlan &found, const PlanRequest &request)
      : state(state), found(found), request(request) {}

  /// Nothing after an error.
  std::optional<PlanReasons> run();

private:
  std::unique_ptr<Compilation> makeTrial(std::string &reason) const;
  OtherPlan tryStyle(llvm::StringRef style) const;
  std::vector<OtherPlan> listStages() const;
  std::vector<DearCollective> listCollectives(const Report &report, const Explainer *explainer) const;

  State &state;
  const FoundPlan &found;
  const PlanRequest &request;
};

/// The same model, of which nothing is said but the first error.
std::unique_ptr<Compilation> Compilation::PlanExplainer::makeTrial(std::string &reason) const {
  CompileOptions options = state.given;
  options.devices = 0;
  options.like.clear();
  options.sharding.free = false;
  auto keepFirst = [&reason](const Diagnostic &diagnostic) {
    if (diagnostic.severity == Diagnostic::Severity::Error && reason.empty())
      reason = diagnostic.message;
  };
  return std::make_unique<Compilation>(std::move(options), keepFirst);
}

/// Decided by time, as what is found: otherwise a style would be held to another objective.
/// What the plan of a user says besides is part of it, as of what was found.
OtherPlan Compilation::PlanExplainer::tryStyle(llvm::StringRef style) const {
  OtherPlan other;
  other.name = style.str();
  std::unique_ptr<Compilation> trial = makeTrial(other.reason);
  CompileOptions &options = trial->state->options;
  options.like = style.str();
  options.devices = request.devices;
  options.sharding.optimize = spmd::Optimize::Time;
  if (!trial->load()) {
    llvm::StringRef reason = other.reason;
    if (reason.consume_front(formatv("--like {0}: ", style).str()))
      other.reason = reason.str();
    return other;
  }
  auto plan = std::make_shared<spmd::Plan>(*trial->state->plan);
  plan->cluster = found.plan->cluster;
  trial->state->takePlan(plan);
  std::optional<Report> report;
  if (trial->advance(Phase::Clustered))
    report = trial->makeReport();
  if (!report)
    return other;
  other.reason.clear();
  other.mesh = trial->getLikePlan()->mesh;
  other.ns = report->time ? report->time->getCallNs() : 0;
  other.peakBytes = report->peakBytesPerRank;
  other.sentBytes = report->getWireBytes();
  if (found.memoryBytes > 0 && other.peakBytes > found.memoryBytes)
    other.reason = "does not fit";
  return other;
}

/// Cells are in the order of what is to be least, those without an answer last.
std::vector<OtherPlan> Compilation::PlanExplainer::listStages() const {
  llvm::MapVector<int64_t, OtherPlan> byStages;
  for (const PlanCell &cell : found.cells) {
    auto [entry, isNew] = byStages.try_emplace(cell.stages.stages);
    if (!isNew || cell.stages.stages == found.getBest().stages.stages)
      continue;
    OtherPlan &other = entry->second;
    bool isMet = cell.verdict != PlanCell::Verdict::Pruned && cell.verdict != PlanCell::Verdict::Impossible;
    other.name = formatv("{0} {1}, {2} {3}", cell.stages.stages, cell.stages.stages == 1 ? "stage" : "stages",
                         cell.stages.microbatches, cell.stages.microbatches == 1 ? "microbatch" : "microbatches");
    if (isMet && !cell.schedule.empty())
      other.name += ", " + cell.schedule;
    if (isMet && !cell.recompute.empty() && cell.recompute != "none")
      other.name += ", again: " + cell.recompute;
    if (isMet) {
      other.mesh = cell.mesh;
      other.ns = cell.ns;
      other.peakBytes = cell.peakBytes;
      other.sentBytes = cell.sentBytes;
    }
    bool isNamed = cell.verdict == PlanCell::Verdict::Impossible && !cell.reason.empty();
    other.reason = isNamed ? cell.reason : describeVerdict(cell.verdict).str();
  }
  std::vector<OtherPlan> others;
  for (auto &[stages, other] : byStages)
    if (!other.name.empty())
      others.push_back(std::move(other));
  return others;
}

/// By node without numbers, and kind. What is decided otherwise is asked of the first of them: equal layers are decided alike nearly always. Of
/// a pipeline it is decided for a microbatch, and each does it.
std::vector<DearCollective> Compilation::PlanExplainer::listCollectives(const Report &report,
                                                                        const Explainer *explainer) const {
  int64_t microbatches = found.plan->pipeline ? found.getBest().stages.microbatches : 1;
  constexpr size_t kMost = 10;
  llvm::MapVector<std::pair<std::string, std::string>, DearCollective,
                  std::map<std::pair<std::string, std::string>, unsigned>>
      places;
  for (const CollectiveReport &one : report.collectives) {
    std::string starred = NumberedName(one.node).getStarred();
    auto [entry, isNew] = places.try_emplace({starred, one.kind});
    DearCollective &place = entry->second;
    if (isNew && explainer && (place.nextBest = explainer->findNextBest(one.node))) {
      place.nextBest->bytes *= microbatches;
      place.nextBest->ns *= static_cast<double>(microbatches);
    }
    place.node = std::move(starred);
    place.kind = one.kind;
    place.count += one.times;
    place.bytes += one.wireBytes;
    place.ns += one.ns;
  }
  std::vector<DearCollective> dear;
  for (auto &[key, place] : places)
    dear.push_back(std::move(place));
  llvm::sort(dear, [](const DearCollective &lhs, const DearCollective &rhs) {
    return std::tuple(-lhs.ns, llvm::StringRef(lhs.node), llvm::StringRef(lhs.kind)) <
           std::tuple(-rhs.ns, llvm::StringRef(rhs.node), llvm::StringRef(rhs.kind));
  });
  dear.resize(std::min(dear.size(), kMost));
  return dear;
}

/// Shardings of a pipeline are decided before it is split into stages, of one microbatch: alternatives are asked for there.
std::optional<PlanReasons> Compilation::PlanExplainer::run() {
  PlanReasons reasons;
  reasons.stages = listStages();
  for (llvm::StringRef style : spmd::kStyleWords)
    reasons.styles.push_back(tryStyle(style));
  std::string reason;
  std::unique_ptr<Compilation> taken = makeTrial(reason);
  std::unique_ptr<Explainer> explainer;
  std::optional<Report> report;
  if (taken->load()) {
    taken->state->takePlan(found.plan);
    explainer = Explainer::create(*taken);
    if (taken->advance(taken->isPipelined() ? taken->getLastPhase() : Phase::Clustered))
      report = taken->makeReport();
  }
  if (!report)
    return state.fail(makeError("the plan that was found cannot be taken again: {0}", reason)), std::nullopt;
  if (report->time) {
    reasons.computeNs = report->time->computeNs;
    reasons.communicationNs = report->time->communicationNs;
    reasons.waitNs = std::max(0.0, report->time->getCallNs() - report->time->getNs());
  }
  reasons.collectives = listCollectives(*report, explainer.get());
  return reasons;
}

/// The model of this compilation stays as it was loaded: trials are others.
std::optional<PlanReasons> Compilation::explainPlan(const FoundPlan &found, const PlanRequest &request) {
  return PlanExplainer(*state, found, request).run();
}
