//===- LookAtCell.cpp - what is found in one cell -------------------------===//
//
// A copy of the model goes as far as annotations, becomes a problem, and is solved at several prices of memory. What was found becomes a plan;
// the program of that plan is predicted. Where it takes more than there is, what it takes beside weights is taken off the limit, and the
// price is raised.
//
// The problem of a pipeline is that of one microbatch on the devices of a stage, which all stages together do: so do their memories add up.
//
//===----------------------------------------------------------------------===//
#include "PlanFinder.h"

#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Search/MainPath.h"
#include "cleave/Support/Interruption.h"
#include "llvm/ADT/ScopeExit.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// A step is a call: its states come back in the next one.
double Compilation::PlanFinder::getMeasure(const PlanCell &cell) const {
  if (request.takesLeast)
    return static_cast<double>(cell.peakBytes);
  return request.objective == PlanObjective::Throughput ? cell.spanNs : cell.ns;
}

/// A limit that a user names counts instead of what devices have. What is no limit is 0.
/// \param fitsDevices each rank takes no more than its own device has
bool Compilation::PlanFinder::fitsMemory(int64_t peakBytes, bool fitsDevices) const {
  return (limit == 0 || peakBytes <= limit) &&
         (request.memoryBytes != 0 || given.cluster->unlike.empty() || fitsDevices);
}

/// Both limits are hard, of memory and of time.
bool Compilation::PlanFinder::fits(const PlanCell &cell) const {
  return fitsMemory(cell.peakBytes, cell.fitsDevices) && (request.withinNs == 0 || cell.ns <= request.withinNs);
}

/// What the smallest of the devices has, of a mesh that is given those on which its ranks are; 0: nobody has said.
int64_t Compilation::PlanFinder::getLeastMemory() const {
  std::vector<int64_t> devices(static_cast<size_t>(request.devices));
  std::iota(devices.begin(), devices.end(), 0);
  return given.cluster->getMemoryBytes(request.devices == 0 ? listDevices(getClusterMesh(given)) : devices);
}

/// What the search begins with; what counts in the end is what a prediction says of each rank.
///
/// Of devices that differ each rank of one stage may take as much as the least has; stages can be unequal, up to the most.
int64_t Compilation::PlanFinder::getLimit(const StageCell &stages) const {
  if (request.memoryBytes != 0 || given.cluster->unlike.empty() || stages.isPipeline())
    return limit;
  return getLeastMemory();
}

/// What is no better is not wanted: the best so far, or of several plans that are wanted the last of them.
double Compilation::PlanFinder::getBar() const {
  if (request.top <= 1)
    return best;
  llvm::StringMap<double> measures;
  for (const Tried &one : found)
    if (!one.cell.text.empty())
      measures.try_emplace(one.cell.text, getMeasure(one.cell));
  if (measures.size() < request.top)
    return kNever;
  SmallVector<double> ordered;
  for (const auto &[text, measure] : measures)
    ordered.push_back(measure);
  llvm::sort(ordered);
  return ordered[request.top - 1];
}

/// What takes longer than the best by the least that a cell can take. Where memory counts, or any plan may be on the front, nothing does.
bool Compilation::PlanFinder::isBeyond(const StageCell &stages, double ns) const {
  if (!stages.isPipeline() || request.takesLeast || request.wantsFront || !std::isfinite(ns))
    return false;
  double call = answer.isStep ? stages.boundSlowest(ns, /*largestNs=*/0) : stages.boundCall(ns, shareBeside);
  double least = request.objective == PlanObjective::Throughput && !answer.isStep ? stages.boundSpan(ns) : call;
  return least >= getBar() || (request.withinNs > 0 && call > request.withinNs);
}

/// By whatever objective `chooseObjective` would take: it looks at all where no axis is free. That saves little, so what takes far more
/// than `least` by time is left at that.
Compilation::State::Prediction Compilation::PlanFinder::predictAsTaken(const std::shared_ptr<Plan> &plan,
                                                                       double least) {
  constexpr double kClose = 1.1;
  ShardOptions sharding = state.searchBy(*plan);
  auto [entry, isNew] = predicted.try_emplace(formatPlanFile(*plan, state.options.sharding.attention, {}));
  Predicted &known = entry->second;
  if (isNew)
    known.taken = state.predict(plan, sharding, State::Trial::WithKernels);
  bool mayCompare = !plan->hasFree() && !plan->pipeline && state.isSmall();
  if (mayCompare && !known.isCompared && known.taken.ns < kClose * least) {
    state.compareObjectives(plan, sharding, [&](Optimize optimize) { return makeCosts(*plan, optimize); }, known.taken);
    known.isCompared = true;
  }
  return known.taken;
}

/// Stages are split for time; where a rank then has too much, within the limit, if they can be. Whoever splits them counts weights and the
/// largest of what ops make, and a program has several values at once: where it takes more than the limit, stages are split within as much
/// less. What is slower than the best as it is does not become faster by that.
Compilation::State::Prediction Compilation::PlanFinder::predictInMemory(std::shared_ptr<Plan> &plan, double least) {
  constexpr unsigned kMostTries = 4;
  State::Prediction taken = predictAsTaken(plan, least);
  if (!plan->pipeline || limit == 0)
    return taken;
  auto isTooLarge = [&](const State::Prediction &one) { return !fitsMemory(one.peakBytes, one.fitsDevices); };
  auto isTooSlow = [&](const State::Prediction &one) {
    return (request.objective == PlanObjective::Throughput ? one.spanNs : one.ns) >= getBar();
  };
  std::shared_ptr<Plan> given = plan;
  int64_t within = limit;
  for (unsigned round = 0; round < kMostTries && taken.ns != kNever && isTooLarge(taken) && within > 0; ++round) {
    if (round > 0 && isTooSlow(taken))
      break;
    auto limited = std::make_shared<Plan>(*given);
    limited->pipeline->memoryLimit = within;
    State::Prediction again = predictAsTaken(limited, least);
    if (again.ns == kNever)
      break;
    if (again.peakBytes < taken.peakBytes || !isTooLarge(again)) {
      taken = again;
      plan = limited;
    }
    if (again.peakBytes <= limit) // It is one device of several that has less.
      break;
    within -= again.peakBytes - limit;
  }
  return taken;
}

/// Of a step in stages its schedule, which has a name even where the plan has none.
static void describeStep(const Plan &plan, PlanCell &cell) {
  if (plan.train)
    cell.recompute = kRecomputeWords[static_cast<int>(plan.train->memory.policy)];
  if (!plan.pipeline)
    return;
  int64_t chunks = plan.pipeline->countChunks();
  cell.schedule = plan.pipeline->schedule.empty() ? "1f1b" : plan.pipeline->schedule;
  if (chunks > 1)
    cell.schedule += llvm::formatv(", {0} a rank", chunks);
}

/// What a rule names is kept as it is, which may make another program of the model: weights of a recurrence, say, are there twice then. Of such a
/// plan nothing is proved (CertifyPlan.cpp).
bool Compilation::PlanFinder::isProvable(const Plan &plan) {
  if (!problemOfCell)
    return true;
  std::unique_ptr<MeshProblem> problem = state.makeProblem(plan, state.searchBy(plan), /*storesParameters=*/false);
  return problem && haveSameValues(problem->getProblem(), *problemOfCell);
}

/// What comes of a plan; nothing where it has no program. `least`: what is known to do better is not looked at by other objectives.
std::optional<Compilation::PlanFinder::Tried> Compilation::PlanFinder::makeTried(Plan plan, const StageCell &stages,
                                                                                 std::optional<int64_t> storedBytes,
                                                                                 double least) {
  if (Interruption::isAsked() || (request.wantsProof && !isProvable(plan)))
    return std::nullopt;
  auto made = std::make_shared<Plan>(std::move(plan));
  State::Prediction taken = predictInMemory(made, least);
  if (taken.ns == kNever)
    return std::nullopt;
  PlanCell cell;
  cell.mesh = formatMesh(made->mesh);
  cell.stages = stages;
  cell.ns = taken.ns;
  // The next step needs the weights of this one.
  cell.spanNs = answer.isStep ? taken.ns : taken.spanNs;
  cell.peakBytes = taken.peakBytes;
  cell.storedBytes = made->pipeline ? taken.storedBytes : storedBytes.value_or(taken.storedBytes);
  cell.sentBytes = taken.sentBytes;
  cell.fitsDevices = taken.fitsDevices;
  if (answer.isStep)
    describeStep(*made, cell);
  leastBytes = std::min(leastBytes, cell.peakBytes);
  leastNs = std::min(leastNs, cell.ns);
  cell.verdict = fits(cell)                                      ? PlanCell::Verdict::Worse
                 : !fitsMemory(cell.peakBytes, cell.fitsDevices) ? PlanCell::Verdict::Memory
                                                                 : PlanCell::Verdict::Slow;
  tried.push_back({cell, made});
  return Tried{std::move(cell), std::move(made)};
}

/// Keeps what fits and is better than what is known. Where nothing fits yet, the last one is kept.
/// \return it fits
bool Compilation::PlanFinder::take(Tried one, Tried &known) {
  bool isAnswer = one.cell.verdict == PlanCell::Verdict::Worse;
  if (!known.cell.text.empty() && !(isAnswer && getMeasure(one.cell) < getMeasure(known.cell)))
    return isAnswer;
  // By lifetimes it fits. Buffers have gaps, which of a step, whose values live long, may be more than a limit has room for.
  if (isAnswer && answer.isStep && (request.takesLeast || (limit > 0 && one.cell.peakBytes > limit / 2))) {
    one.cell.peakBytes = std::max(one.cell.peakBytes, measurePlanned(one.plan));
    isAnswer = fits(one.cell);
    one.cell.verdict = isAnswer ? PlanCell::Verdict::Worse : PlanCell::Verdict::Memory;
  }
  if (isAnswer) {
    one.cell.text = writeText(one.cell, *one.plan);
    best = std::min(best, getMeasure(one.cell));
  }
  known = std::move(one);
  return isAnswer;
}

/// Predicts a plan, and keeps it where it is better than the best of its cell.
/// \return it fits
bool Compilation::PlanFinder::tryPlan(Plan plan, std::optional<int64_t> storedBytes, Look &look) {
  const PlanCell &known = look.best.cell;
  std::optional<Tried> made =
      makeTried(std::move(plan), look.candidate.stages, storedBytes, known.text.empty() ? kNever : known.ns);
  return made && take(std::move(*made), look.best);
}

/// First what time alone decides; where that does not fit, what stores less, as much less as it is too much, with a price on what passes
/// through memory too, in the share that the last answer had of it at its peak. The answer that fits, or else stores least; null: there is
/// none, or none can be better than what is known.
const CellAnswer *Compilation::PlanFinder::searchCell(Look &look) {
  constexpr unsigned kMostTries = 5;
  CellSearch &search = look.cell.getSearch();
  PlanCell &known = look.best.cell;
  int64_t stages = look.candidate.stages.stages;
  int64_t most = std::numeric_limits<int64_t>::max(), own = getLimit(look.candidate.stages);
  if (own > 0 && own < most / stages)
    most = own * stages;
  if (const CellAnswer *smallest = request.takesLeast ? search.findSmallest() : nullptr)
    most = smallest->storedBytes;
  for (unsigned round = 0; round < kMostTries; ++round) {
    const CellAnswer *met = search.find(most);
    if (!met)
      break;
    if (isBeyond(look.candidate.stages, met->ns)) {
      known.verdict = PlanCell::Verdict::Pruned;
      return nullptr;
    }
    tryPlan(look.cell.makePlan(*met, look.plan, look.candidate.borders), met->storedBytes, look);
    if (known.verdict != PlanCell::Verdict::Memory)
      return met;
    auto beside = static_cast<double>((known.peakBytes - known.storedBytes) * stages);
    search.setValueShare(std::max(beside, 0.0) / std::max(search.countValues(met->getDecision()), 1.0));
    most = met->storedBytes - (known.peakBytes - own) * stages;
  }
  return search.findSmallest();
}

/// Other answers count as long as they are not far above by the costs of the solver, which leave out launches. They do with axes free for
/// the rest, and as rules alone, as people write plans: what these bring is another way down. Either way what the program stores is not what
/// the answer did, which had all of one style.
void Compilation::PlanFinder::takeOthers(Look &look, const CellAnswer &met) {
  constexpr double kFar = 1.3;
  for (const CellAnswer *one : look.cell.getSearch().findOthers(met)) {
    if (one->ns >= kFar * met.ns && !look.best.cell.text.empty())
      continue;
    Plan plan = look.cell.makePlan(*one, look.plan, look.candidate.borders);
    tryPlan(plan, std::nullopt, look);
    plan.areAllFree = false;
    tryPlan(std::move(plan), std::nullopt, look);
  }
}

/// What people write, where memory binds: the price on what passes through memory is a rough one, and where activations are most of what
/// there is, a style may fit that is better than what the search comes down to. As rules alone and with axes free for the rest.
void Compilation::PlanFinder::takeStyles(Look &look) {
  if (look.candidate.stages.isPipeline() || look.plan.mesh.size() > 2)
    return;
  for (Style style :
       {Style::Data, Style::Fsdp, Style::Megatron, Style::Sequence, Style::Context, Style::Expert, Style::Spatial}) {
    SmallVector<Style, 2> styles{style};
    if (look.plan.mesh.size() == 2)
      styles.insert(styles.begin(), Style::Data);
    std::optional<Plan> plan = look.cell.makeStyledPlan(styles, look.plan, look.candidate.borders.has_value());
    if (!plan)
      continue;
    tryPlan(*plan, std::nullopt, look);
    plan->areAllFree = true;
    tryPlan(std::move(*plan), std::nullopt, look);
  }
}

/// Between two answers that follow each other on the front, one of which is too large, lie those that have some layers of the one and the
/// rest of the other: as many of the faster one as fit, from either end of the model, are found by bisection.
void Compilation::PlanFinder::takeMixtures(Look &look, const CellAnswer &met) {
  constexpr double kFar = 1.1;
  const CellAnswer *faster = look.cell.getSearch().findFaster(met);
  if (!faster || (!look.best.cell.text.empty() && getMeasure(look.best.cell) > kFar * best))
    return;
  for (bool isOfFirst : {true, false}) {
    size_t fitting = 0, large = look.cell.countDifferent(met, *faster);
    while (fitting + 1 < large) {
      size_t middle = (fitting + large) / 2;
      CellPlan::Mixture mixture{*faster, middle, isOfFirst};
      Plan plan = look.cell.makePlan(met, look.plan, look.candidate.borders, &mixture);
      (tryPlan(std::move(plan), std::nullopt, look) ? fitting : large) = middle;
    }
  }
}

/// Answers that store less and less, a tenth at a time.
void Compilation::PlanFinder::followFront(Look &look) {
  constexpr unsigned kMostPoints = 12;
  constexpr double kStep = 0.9;
  CellSearch &search = look.cell.getSearch();
  const CellAnswer *smallest = search.findSmallest();
  const CellAnswer *met = search.find(std::numeric_limits<int64_t>::max());
  for (unsigned point = 0; point < kMostPoints && met && smallest && met->storedBytes > smallest->storedBytes;
       ++point) {
    auto most = static_cast<int64_t>(kStep * static_cast<double>(met->storedBytes));
    met = search.find(std::max(most, smallest->storedBytes));
    if (met)
      tryPlan(look.cell.makePlan(*met, look.plan, look.candidate.borders), met->storedBytes, look);
  }
}

PlanCell Compilation::PlanFinder::makeImpossible(const Candidate &candidate, std::string reason) const {
  PlanCell cell;
  cell.mesh = formatMesh(makeCellPlan(given, candidate.stages, candidate.mesh).mesh);
  cell.stages = candidate.stages;
  cell.verdict = PlanCell::Verdict::Impossible;
  cell.reason = std::move(reason);
  return cell;
}

/// A cell without a problem keeps the first reason that the phases gave.
Compilation::PlanFinder::Tried Compilation::PlanFinder::look(const Candidate &candidate) {
  std::string reason;
  // `run` ends with an error, whatever cells say.
  if (Interruption::isAsked())
    return {makeImpossible(candidate, std::move(reason)), nullptr};
  Plan plan = makeCellPlan(given, candidate.stages, candidate.mesh);
  // What a plan with `train` says of stages is looked at where one is read, too.
  if (PlanError error; answer.isStep && failed(checkPlan(plan, error)))
    return {makeImpossible(candidate, std::move(error.message)), nullptr};
  std::unique_ptr<MeshProblem> problem =
      state.makeProblem(plan, state.searchBy(plan), /*storesParameters=*/true, &reason);
  Tried best{makeImpossible(candidate, std::move(reason)), nullptr};
  if (!problem)
    return best;
  shareBeside = findShareBeside(problem->getProblem());
  CellPlan cell(std::move(problem), names);
  problemOfCell = &cell.getProblem();
  llvm::scope_exit forget([&] { problemOfCell = nullptr; });
  Look look{candidate, std::move(plan), cell, best};
  int64_t proved = cell.countLeastBytes(candidate.stages.stages);
  provedBytes = std::min(provedBytes, proved);
  // Nothing fits: what a user may ask for instead is all that is left to find out.
  int64_t own = getLimit(candidate.stages);
  if (own > 0 && proved > own) {
    if (const CellAnswer *smallest = cell.getSearch().findSmallest())
      tryPlan(cell.makePlan(*smallest, look.plan, candidate.borders), smallest->storedBytes, look);
    takeAgain(look, nullptr);
    return best;
  }
  const CellAnswer *met = searchCell(look);
  if (met && (!request.isQuick || best.cell.text.empty()))
    takeOthers(look, *met);
  if (met)
    refine(look, *met);
  bool isTight =
      met && own > 0 && !request.isQuick && (best.cell.text.empty() || cell.getSearch().findFaster(*met) != nullptr);
  if (isTight && !request.takesLeast) {
    takeStyles(look);
    takeMixtures(look, *met);
  }
  if (met && request.wantsFront)
    followFront(look);
  takeAgain(look, met);
  answer.solves += cell.getSearch().countSolves();
  return best;
}

/// Sizes of dims come along, for the plan is about them, too: of another batch another plan may be best.
std::string Compilation::PlanFinder::writeText(const PlanCell &cell, const Plan &plan) const {
  std::vector<std::string> comments;
  comments.push_back(llvm::formatv(
      "found by cleave plan: {0} a {1} predicted on {2}, {3} a rank, of them {4} weights and states; sends {5}",
      formatTime(cell.ns), answer.getWord(), plan.cluster->name, formatBytes(cell.peakBytes),
      formatBytes(cell.storedBytes), formatBytes(cell.sentBytes)));
  if (plan.pipeline && answer.isStep)
    comments.push_back("stages begin where the slowest is fastest");
  else if (plan.pipeline)
    comments.push_back(llvm::formatv("{0} where calls follow each other; stages begin where the slowest is fastest",
                                     formatTime(cell.spanNs)));
  comments.push_back(plan.areAllFree ? "axes are free: what no rule names is decided by time"
                                     : "what no rule names follows from the rules, decided by time");
  comments.push_back("a rule may be changed, taken away or added");
  if (plan.clusterFile.empty() && given.clusterPlace.line != 0)
    comments.push_back(
        "it is for the cluster that the given plan describes: copy that section here, or give --cluster");
  for (const std::string &proposed : answer.proposedStates) {
    auto [input, output] = StringRef(proposed).split('=');
    comments.push_back(llvm::formatv(
        "state: {{\"{0}\": \"{1}\"}   would keep these in the ranks: each output looks like the next value of "
        "its input",
        input, output));
  }
  Plan file = plan;
  for (const auto &[name, size] : state.options.dims)
    file.dims.try_emplace(name, size);
  return formatPlanFile(file, state.options.sharding.attention, comments);
}
