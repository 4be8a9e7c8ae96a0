//===- FindPlan.cpp - a plan that is found --------------------------------===//
//
// Cells in three rounds. For each number of stages and microbatches first the mesh with an axis for each kind of link, in which sweeps over
// parts of an axis find mixtures by themselves; what cannot be better than the best so far, by the least that its cell takes, is left at
// that. Then all meshes of the three best numbers, and of one stage. The least of all is the answer (docs/finding-plans.md).
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/FindPlan.h"

#include "PlanFinder.h"

#include "cleave/Dialect/Pipe/Microbatches/Samples.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Plan/ProposeStates.h"
#include "cleave/Search/MeshCells.h"
#include "cleave/Sharding/MeshLimits.h"
#include "cleave/Support/Interruption.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// Of as many stages and microbatches.
static constexpr size_t kMostMeshes = 24, kMostMeshesOfPipelines = 8;

//===----------------------------------------------------------------------===//
// What is searched
//===----------------------------------------------------------------------===//

/// What a rank may have at most, wherever it is; 0: nobody has said.
static int64_t getMostMemory(const Cluster &cluster) {
  int64_t most = cluster.device.memoryBytes;
  for (const auto &[number, unlike] : cluster.unlike)
    most = most == 0 ? 0 : std::max(most, unlike.memoryBytes);
  return most;
}

/// A plan for the machine of the options, or the one that a target stands for.
bool Compilation::PlanFinder::prepare() {
  // A step has the mesh of the plan that it was made by.
  bool isSplit = !state.handed.training && (*state.module)->hasAttr(SpmdDialect::kMeshAttr);
  if (cleave::getPhase(*state.module) >= Phase::Annotated || isSplit)
    return fail(makeError("{0} is {1} already: a plan comes too late", state.options.model,
                          toString(cleave::getPhase(*state.module))),
                Blame::Options);
  if (state.options.sharding.optimize == Optimize::Bytes)
    return fail(makeError("--optimize=bytes leaves nothing to find: a model that is not sharded sends nothing; plans "
                          "are found by time"),
                Blame::Options);
  given = state.plan ? *state.plan : Plan();
  answer.isStep = state.handed.hasStep();
  answer.objective =
      answer.isStep && request.objective == PlanObjective::Latency ? PlanObjective::Step : request.objective;
  if (given.train && given.train->microbatches > 1)
    return fail(makeError("microbatches are found as well, and 'train' of the plan says {0}: --microbatches {0} with "
                          "--stages says how many there may be",
                          given.train->microbatches),
                Blame::Options);
  if (given.pipeline)
    return fail(makeError("stages are found as well: the plan that is given has a pipeline; --stages says how many "
                          "there may be"),
                Blame::Options);
  names = listNames(*state.module);
  given.areAllFree = given.isByTime = true;
  if (given.cluster && given.clusterFile.empty())
    given.clusterFile = state.options.cluster;
  if (!given.cluster && (given.cluster = state.getTargetCluster()))
    given.clusterFile = given.cluster->name;
  if (!given.cluster)
    given.cluster = Cluster();
  limit = request.memoryBytes ? request.memoryBytes : getMostMemory(*given.cluster);
  if (request.objective == PlanObjective::Step && given.states.empty() && !answer.isStep)
    return fail(makeError("--objective step is about models whose outputs are next values of inputs: --state "
                          "'w*=w*_next' says which"),
                Blame::Options);
  return checkDevices();
}

/// It is for a person to say whether caches stay in the ranks: the caller then neither gives nor gets them.
void Compilation::PlanFinder::findStates() {
  llvm::Expected<func::FuncOp> func = findEntry(*state.module);
  if (!func || !given.states.empty()) {
    llvm::consumeError(func.takeError());
    return;
  }
  SmallVector<StringRef> inputs, outputs;
  for (unsigned index = 0; index < func->getNumArguments(); ++index)
    inputs.push_back(getArgumentName(*func, index));
  for (unsigned index = 0; index < func->getNumResults(); ++index)
    outputs.push_back(getResultName(*func, index));
  auto fits = [&](size_t input, size_t output) {
    return matchState(func->getArgumentTypes()[input], func->getResultTypes()[output]).has_value();
  };
  for (const PlanState &proposed : proposeStates(inputs, outputs, fits))
    answer.proposedStates.push_back(proposed.input.text + "=" + proposed.output.text);
}

/// Devices, or a mesh; what says both, or stages of a mesh, has no answer.
bool Compilation::PlanFinder::checkDevices() {
  if (request.devices == 0)
    return !given.mesh.empty() ||
           fail(makeError("how many devices? --devices 8, or --mesh data=2,model=4"), Blame::Options);
  // As for a mesh that is given: more would be counted and factored for minutes before a plan was refused.
  if (request.devices > kMostRanks)
    return fail(makeError("--devices {0}: there are at most 2^22, {1}", request.devices, kMostRanks), Blame::Options);
  if (given.mesh.empty()) {
    // A mesh that is found gets its names last, by what its axes split.
    if (!given.cluster->axes.empty())
      return fail(
          makeError("the cluster '{0}' has a link for axis '{1}', and axes of a mesh that is found have no names "
                    "before: say the mesh, --mesh {1}=..",
                    given.cluster->name, given.cluster->axes.begin()->first),
          Blame::Options);
    llvm::Expected<std::vector<MeshCell>> cells = listMeshCells(*given.cluster, request.devices, /*mostAxes=*/1);
    return cells || fail(cells.takeError(), Blame::Options);
  }
  int64_t ranks = 1;
  for (const MeshAxis &axis : given.mesh)
    ranks *= axis.size;
  return fail(makeError("--devices {0} and a mesh of {1} ranks: give one", request.devices, ranks), Blame::Options);
}

/// The mesh that is given, or those of the devices of a stage; axes of these get their names when it is known what they cut.
llvm::Expected<std::vector<Compilation::PlanFinder::Candidate>>
Compilation::PlanFinder::listCandidates(StageCell stages, bool isQuick) {
  if (request.devices == 0)
    return std::vector<Candidate>{{stages, given.mesh, std::nullopt}};
  llvm::Expected<std::vector<MeshCell>> cells =
      listMeshCells(*given.cluster, request.devices / stages.stages, isQuick ? 1 : request.mostAxes);
  if (!cells) // All devices fill nodes, those of a stage do not.
    return cells.takeError();
  std::vector<Candidate> candidates;
  for (MeshCell &cell : *cells)
    candidates.push_back({stages, makeAxes(cell.sizes), std::move(cell.borders)});
  return candidates;
}

/// What all is compared with, and by what bounds are made: rules that are given are about several devices.
void Compilation::PlanFinder::predictOneDevice() {
  Plan alone = given;
  alone.rules.clear();
  alone.mesh = {{"device", 1, {}}};
  answer.oneDeviceNs =
      state.predict(std::make_shared<Plan>(alone), state.searchBy(alone), State::Trial::WithKernels).ns;
  // A step whose states are sharded over a mesh that is given is of no other one.
  if (!std::isfinite(answer.oneDeviceNs))
    answer.oneDeviceNs = 0;
}

//===----------------------------------------------------------------------===//
// The rounds
//===----------------------------------------------------------------------===//

static std::string describe(CountRange range) {
  return range.least == range.most ? std::to_string(range.least)
                                   : std::string(llvm::formatv("{0} to {1}", range.least, range.most));
}

/// Before anything is made of a cell, it is held to what one device takes: its share of that is the least that a microbatch takes, unless
/// what is cut fits into a cache.
bool Compilation::PlanFinder::lookAtStages() {
  std::vector<StageCell> cells{{}};
  int64_t samples = 1;
  if (llvm::Expected<func::FuncOp> func = findEntry(*state.module))
    samples = pipe::countSamples(*func);
  else
    llvm::consumeError(func.takeError());
  answer.samples = samples;
  if (!request.isQuick && request.devices > 0)
    cells = listStageCells(request.devices, samples, request.stages, request.microbatches);
  if (cells.empty())
    return fail(makeError("{0} devices and a batch of {1} have no {2} stages with {3} microbatches", request.devices,
                          samples, describe(request.stages), describe(request.microbatches)),
                Blame::Options);
  for (StageCell cell : cells) {
    // A step on one device is all of its microbatches.
    int64_t times = answer.isStep ? 1 : cell.microbatches;
    auto parts = static_cast<double>(request.devices * times) / static_cast<double>(cell.stages);
    if (given.cluster->device.cacheBytes == 0 && isBeyond(cell, answer.oneDeviceNs / parts)) {
      ++answer.pruned;
      continue;
    }
    llvm::Expected<std::vector<Candidate>> candidates = listCandidates(cell, /*isQuick=*/true);
    if (!candidates) {
      std::string reason = llvm::formatv("in each of {0} stages {1}", cell.stages, toString(candidates.takeError()));
      found.push_back({makeImpossible({cell, {}, {}}, std::move(reason)), nullptr});
      continue;
    }
    for (const Candidate &candidate : *candidates)
      found.push_back(look(candidate));
  }
  return true;
}

/// The three best, or as many as there are plans wanted, and one stage, which is what most people ask for.
std::vector<StageCell> Compilation::PlanFinder::pickBest() const {
  const size_t kMostPicked = std::max<size_t>(3, request.top);
  std::vector<const Tried *> ordered;
  for (const Tried &one : found)
    if (!one.cell.text.empty() || one.cell.verdict == PlanCell::Verdict::Memory)
      ordered.push_back(&one);
  auto key = [&](const PlanCell &cell) {
    return std::tuple(cell.text.empty(), getMeasure(cell), cell.stages.stages, cell.stages.microbatches);
  };
  llvm::sort(ordered, [&](const Tried *lhs, const Tried *rhs) { return key(lhs->cell) < key(rhs->cell); });
  std::vector<StageCell> picked;
  for (const Tried *one : llvm::ArrayRef(ordered).take_front(kMostPicked))
    picked.push_back(one->cell.stages);
  if (!llvm::is_contained(picked, StageCell()) && request.stages.contains(1))
    picked.emplace_back();
  return picked;
}

/// The first mesh of each has been looked at. Of devices with many divisors there are more than anybody waits for: those with few axes come
/// first, and how many are left out is told.
void Compilation::PlanFinder::lookAtMeshes(llvm::ArrayRef<StageCell> picked) {
  for (StageCell cell : picked) {
    std::vector<Candidate> candidates = llvm::cantFail(listCandidates(cell, /*isQuick=*/false));
    size_t looked = std::min(candidates.size(), cell.isPipeline() ? kMostMeshesOfPipelines : kMostMeshes);
    for (const Candidate &candidate : llvm::ArrayRef(candidates).take_front(looked).drop_front(looked > 0))
      found.push_back(look(candidate));
    answer.leftOut += candidates.size() - looked;
  }
}

//===----------------------------------------------------------------------===//
// The answer
//===----------------------------------------------------------------------===//

/// Meshes of other axes in which the same was found.
void Compilation::PlanFinder::dropEqual() {
  llvm::StringSet<> texts;
  llvm::erase_if(found,
                 [&](const Tried &one) { return !one.cell.text.empty() && !texts.insert(one.cell.text).second; });
}

/// Plans that come to the same in all figures differ in rules alone that change nothing.
static std::string getFigures(const PlanCell &cell, const Plan &plan) {
  std::string text = llvm::formatv("{0} {1} {2} {3} {4} {5}", cell.ns, cell.peakBytes, cell.storedBytes, cell.sentBytes,
                                   cell.stages.stages, cell.stages.microbatches);
  for (const MeshAxis &axis : plan.mesh)
    text += " " + std::to_string(axis.size);
  return text;
}

/// Where more plans are wanted than there are cells with an answer, what else fits, the best first: of one cell several plans may be of use.
void Compilation::PlanFinder::addOthers() {
  llvm::StringSet<> known;
  for (const Tried &one : found)
    if (!one.cell.text.empty())
      known.insert(getFigures(one.cell, *one.plan));
  auto key = [&](const PlanCell &cell) {
    return std::tuple(getMeasure(cell), cell.ns, cell.peakBytes, StringRef(cell.mesh));
  };
  std::vector<const Tried *> ordered;
  for (const Tried &one : tried)
    if (fits(one.cell))
      ordered.push_back(&one);
  llvm::stable_sort(ordered, [&](const Tried *lhs, const Tried *rhs) { return key(lhs->cell) < key(rhs->cell); });
  for (const Tried *one : ordered) {
    if (known.size() >= request.top)
      return;
    Tried other = *one;
    // As in `take`: of a step buffers may need more than what lives at a time.
    if (answer.isStep && limit > 0)
      other.cell.peakBytes = std::max(other.cell.peakBytes, measurePlanned(other.plan));
    if (!fits(other.cell) || !known.insert(getFigures(other.cell, *other.plan)).second)
      continue;
    other.cell.verdict = PlanCell::Verdict::Worse;
    other.cell.text = writeText(other.cell, *other.plan);
    found.push_back(std::move(other));
  }
}

/// What nothing else is better than in both time and memory, the fastest first. What is no faster than a smaller one has no place.
void Compilation::PlanFinder::listFront() {
  auto key = [&](const PlanCell &cell) { return std::tuple(getMeasure(cell), cell.peakBytes, StringRef(cell.mesh)); };
  llvm::sort(tried, [&](const Tried &lhs, const Tried &rhs) { return key(lhs.cell) < key(rhs.cell); });
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Tried &one : tried) {
    if (one.cell.peakBytes >= least)
      continue;
    least = one.cell.peakBytes;
    one.cell.text = writeText(one.cell, *one.plan);
    answer.front.push_back(one.cell);
  }
}

/// The least more memory that would have saved time.
void Compilation::PlanFinder::findBinding() {
  const PlanCell &best = answer.getBest();
  for (const Tried &one : tried) {
    int64_t more = one.cell.peakBytes - limit;
    double saved = getMeasure(best) - getMeasure(one.cell);
    if (limit == 0 || more <= 0 || saved <= 0 || (answer.binding && more >= answer.binding->moreBytes))
      continue;
    answer.binding = {more, saved};
  }
}

/// What a limit leads to is not always the least that there is, for prices of memory that it raises are rough ones. So before it is said that
/// nothing was found, all is searched for the least, as `--memory least` does: what that says fits, fits. Nothing where it does not.
std::optional<FoundPlan> Compilation::PlanFinder::findLeast() {
  bool isLimited = limit > 0 || (request.memoryBytes == 0 && !given.cluster->unlike.empty());
  if (request.takesLeast || request.isQuick || tried.empty() || !isLimited || (limit > 0 && provedBytes > limit))
    return std::nullopt;
  PlanRequest ofLeast = request;
  ofLeast.takesLeast = true;
  ofLeast.wantsFront = false;
  ofLeast.memoryBytes = std::numeric_limits<int64_t>::max();
  std::optional<FoundPlan> smallest = PlanFinder(state, ofLeast).run();
  if (!smallest)
    return std::nullopt;
  const PlanCell &best = smallest->getBest();
  leastBytes = std::min(leastBytes, best.peakBytes);
  if (!fits(best))
    return std::nullopt;
  smallest->memoryBytes = limit;
  for (PlanCell &cell : smallest->cells)
    if (!cell.text.empty() && !fits(cell)) {
      cell.text.clear();
      cell.verdict = PlanCell::Verdict::Memory;
    }
  return smallest;
}

/// The least that was met is told, so that a user knows what to ask for. Without an answer nothing is pruned but for the time of a call.
bool Compilation::PlanFinder::failWithout() {
  bool isPruned = answer.pruned > 0 ||
                  llvm::any_of(found, [](const Tried &one) { return one.cell.verdict == PlanCell::Verdict::Pruned; });
  if (tried.empty() && isPruned)
    return fail(makeError("{0}: no plan was found that takes {1} a {2}: by a bound all of these stages take more",
                          state.options.model, formatTime(request.withinNs), answer.getWord()));
  if (tried.empty()) {
    auto named = llvm::find_if(found, [](const Tried &one) { return !one.cell.reason.empty(); });
    std::string reason = named == found.end() ? "" : ": " + named->cell.reason;
    return fail(makeError("{0}: no mesh of these devices has a program{1}", state.options.model, reason));
  }
  if (request.withinNs > 0 && leastNs > request.withinNs)
    return fail(makeError("{0}: no plan was found that takes {1} a {3}; the least that was met is {2} (not proved to "
                          "be the least)",
                          state.options.model, formatTime(request.withinNs), formatTime(leastNs), answer.getWord()));
  // Of a step, what a limit must have room for is what is planned.
  if (answer.isStep) {
    auto smallest = llvm::min_element(
        tried, [](const Tried &lhs, const Tried &rhs) { return lhs.cell.peakBytes < rhs.cell.peakBytes; });
    leastBytes = std::max(leastBytes, measurePlanned(smallest->plan));
  }
  if (leastBytes <= limit && request.withinNs > 0)
    return fail(makeError("{0}: no plan was found that takes {1} a {3} in {2} a rank; each alone was met",
                          state.options.model, formatTime(request.withinNs), formatBytes(limit), answer.getWord()));
  // There is no one limit: a rank may fit some of the devices, and not the one that it is on.
  if (request.memoryBytes == 0 && !given.cluster->unlike.empty() && (limit == 0 || leastBytes <= limit))
    return fail(
        makeError("{0}: no plan was found of which each rank fits its device, the smallest of which has {1}; the "
                  "least that was met is {2} (not proved to be the least)",
                  state.options.model, formatBytes(getLeastMemory()), formatBytes(leastBytes)));
  // What was pruned is not looked at, and has no bound.
  if (isPruned)
    return fail(
        makeError("{0}: no plan was found in {1} a rank; the least that was met is {2} (not proved to be the least)",
                  state.options.model, formatBytes(limit), formatBytes(leastBytes)));
  return fail(makeError("{0}: {1} {2} a rank; the least that was met is {3}, and none takes less than {4} (proved)",
                        state.options.model, provedBytes > limit ? "no plan fits in" : "no plan was found in",
                        formatBytes(limit), formatBytes(leastBytes), formatBytes(provedBytes)));
}

/// Of equal measures the time of a call decides, then the least memory, then the fewest axes, which are easier to read, and then the name of
/// the mesh, so that the answer is the same on any machine.
std::optional<FoundPlan> Compilation::PlanFinder::run() {
  auto start = std::chrono::steady_clock::now();
  if (!prepare())
    return std::nullopt;
  Telling telling(state.onProgress, "plan");
  std::shared_ptr<SearchMemory> memory = request.forgets ? std::exchange(state.memory, nullptr) : state.memory;
  llvm::scope_exit remember([&] { state.memory = memory; });
  findStates();
  predictOneDevice();
  if (!lookAtStages())
    return std::nullopt;
  if (!request.isQuick && request.devices > 0)
    lookAtMeshes(pickBest());
  // What was looked at before is not the answer.
  if (Interruption::isAsked()) {
    fail(makeError("interrupted"), Blame::Run);
    return std::nullopt;
  }
  takeSchedules();
  takeAuto();
  dropEqual();
  if (request.top > 1)
    addOthers();
  auto order = [&](const PlanCell &cell) {
    return std::tuple(cell.text.empty(), getMeasure(cell), cell.ns, cell.peakBytes, llvm::count(cell.mesh, '='),
                      StringRef(cell.mesh), cell.stages.microbatches, StringRef(cell.text));
  };
  llvm::sort(found, [&](const Tried &lhs, const Tried &rhs) { return order(lhs.cell) < order(rhs.cell); });
  if (found.empty() || found.front().cell.text.empty()) {
    if (std::optional<FoundPlan> least = findLeast())
      return least;
    failWithout();
    return std::nullopt;
  }
  Tried &best = found.front();
  best.cell.verdict = PlanCell::Verdict::Best;
  answer.plan = std::move(best.plan);
  for (Tried &one : found)
    answer.cells.push_back(std::move(one.cell));
  answer.memoryBytes = limit;
  findBinding();
  if (request.wantsFront)
    listFront();
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(answer);
}

/// Of an answer there is nothing to say: it has figures.
llvm::StringRef cleave::describeVerdict(PlanCell::Verdict verdict) {
  switch (verdict) {
  case PlanCell::Verdict::Best:
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
  return "";
}

const FoundPlan *Compilation::getFoundPlan() const { return state->foundPlan.get(); }

/// The plan becomes that of the compilation, as if it had been given.
bool Compilation::takeFoundPlan() {
  if (!state->options.variants.empty())
    return state->fail(
        makeError(
            "--devices finds a plan for one size of each dim: give one, or find a plan with cleave plan and take it "
            "with --plan for all"),
        Blame::Options);
  PlanRequest request;
  request.devices = static_cast<int64_t>(state->options.devices);
  request.isQuick = true;
  std::optional<FoundPlan> found = findPlan(request);
  if (!found)
    return false;
  state->takePlan(found->plan);
  state->foundPlan = std::make_unique<FoundPlan>(std::move(*found));
  return true;
}

/// What is said of rules that may be meant otherwise, as of a name that picks nothing. Cells are looked at without a word, each by the same
/// rules; errors are theirs to tell.
void Compilation::State::warnOfRules(const spmd::Plan &given) {
  auto ruled = std::make_shared<Plan>(given);
  if (ruled->mesh.empty())
    ruled->mesh = {{"device", 1, {}}};
  if (!ruled->rules.empty())
    advanceCopy(ruled, options.sharding, Phase::Annotated, nullptr, /*warns=*/true);
}

/// Where the program of what is found is made next, that holds the plan's expectations; else its program is made for their sake.
std::optional<FoundPlan> Compilation::findPlan(const PlanRequest &request) {
  std::optional<FoundPlan> found = PlanFinder(*state, request).run();
  if (found && !request.isQuick && state->plan)
    state->warnOfRules(*state->plan);
  if (!found || request.isQuick || found->plan->bounds.empty())
    return found;
  bool isKept =
      findBlocks() && state->checkExpectations(state->makeTrialReport(found->plan, state->searchBy(*found->plan)));
  return isKept ? std::move(found) : std::nullopt;
}

std::optional<FoundPlan> cleave::findPlan(Compilation &compilation, const PlanRequest &request) {
  if (!compilation.isLoaded() && !compilation.load())
    return std::nullopt;
  return compilation.findPlan(request);
}
