//===- FindPlan.cpp - a plan that is found --------------------------------===//
//
// Per mesh: a copy of the model goes as far as annotations, becomes a problem with all axes free and the storage of weights open, and is
// solved at several prices of memory. What was found becomes a plan, in the words that a person would use; the program of that plan is
// predicted. Where it takes more than there is, what it takes beside weights is taken off the limit, and the price is raised.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/FindPlan.h"

#include "State.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Search/AxisNames.h"
#include "cleave/Search/CellSearch.h"
#include "cleave/Search/MeshCells.h"
#include "cleave/Search/PlanRules.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

static constexpr double kNever = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// From a decision to a plan
//===----------------------------------------------------------------------===//

namespace {
/// One mesh: its problem, and what was found.
class Cell {
public:
  /// Null after an error: the model cannot be sharded.
  static std::unique_ptr<Cell> create(OwningOpRef<ModuleOp> module, SolverOptions options);

  CellSearch &getSearch() { return *search; }
  /// The plan that says what was decided: axes with names, where the cell's have none (`borders`: see `nameAxes`), and a rule for each
  /// parameter and input that is split.
  Plan makePlan(const CellAnswer &answer, const Plan &given, std::optional<ArrayRef<unsigned>> borders) const;

private:
  std::vector<PlanRule> makeRules(const Decision &decision, const AtomMesh &mesh, ArrayRef<MeshAxis> axes) const;

  OwningOpRef<ModuleOp> module;
  std::unique_ptr<MeshAtoms> atoms;
  std::unique_ptr<FunctionProblem> source;
  std::unique_ptr<DimClasses> classes;
  std::unique_ptr<CellSearch> search;
};
} // namespace

std::unique_ptr<Cell> Cell::create(OwningOpRef<ModuleOp> module, SolverOptions options) {
  auto cell = std::make_unique<Cell>();
  cell->module = std::move(module);
  llvm::Expected<func::FuncOp> func = findEntry(*cell->module);
  if (!func) {
    llvm::consumeError(func.takeError());
    return nullptr;
  }
  cell->atoms = MeshAtoms::create(*cell->module);
  if (!cell->atoms)
    return nullptr;
  FailureOr<AtomList> free = getFreeAtoms(*cell->module, *cell->atoms);
  if (failed(free))
    return nullptr;
  cell->source =
      FunctionProblem::create(*func, *cell->atoms, {/*holdsQueries=*/false, /*storesParameters=*/true, *free});
  if (!cell->source)
    return nullptr;
  cell->classes = std::make_unique<DimClasses>(cell->source->getProblem());
  // As people do: batches alone, weights alone, tokens alone.
  std::vector<SearchStyle> styles;
  for (DimTag tag : kDimTags)
    styles.push_back([classes = cell->classes.get(), tag](OpId op, FactorId factor) {
      return classes->getTag(classes->ofFactor(op, factor)) == tag;
    });
  cell->search = std::make_unique<CellSearch>(cell->source->getProblem(), std::move(options), std::move(styles));
  return cell;
}

/// The names by which a plan addresses a value: of an input or a parameter there is one.
static StringRef getPlanName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      return getArgumentName(func, argument.getArgNumber());
  if (auto parameter = value.getDefiningOp<ParameterOpInterface>())
    return parameter.getParameterName();
  return "";
}

/// A part of an axis is a digit of it, as plans write sub-axes; a dim that is cut by nothing is closed.
static std::vector<PlanDim> makeDims(const State &state, const AtomMesh &mesh, ArrayRef<MeshAxis> axes) {
  std::vector<PlanDim> dims;
  for (const AtomList &list : state.dims) {
    PlanDim &dim = dims.emplace_back();
    for (const SubAxis &part : mesh.subAxesOf(list)) {
      bool isWhole = part.size == mesh.axisSize(part.axis);
      dim.axes.push_back({axes[part.axis].name, isWhole ? 1 : part.preSize, isWhole ? 0 : part.size, {}});
    }
  }
  return dims;
}

/// Parts of one parameter may be stored in different ways, which no rule can say: those are left to whoever takes the plan. What the given
/// plan asks for it says itself.
std::vector<PlanRule> Cell::makeRules(const Decision &decision, const AtomMesh &mesh, ArrayRef<MeshAxis> axes) const {
  const Problem &problem = source->getProblem();
  llvm::MapVector<StringRef, std::optional<std::vector<PlanDim>>> found;
  std::vector<StringRef> names;
  for (auto [id, value] : llvm::enumerate(source->getValues())) {
    llvm::append_range(names, getTensorNames(value));
    StringRef name = problem.producer(id) == kNone && !problem.annotation(id) ? getPlanName(value) : "";
    const State &state = decision.states[decision.valueStates[id]];
    if (name.empty() || state.isPartial())
      continue;
    std::vector<PlanDim> dims = makeDims(state, mesh, axes);
    PlanRule mine, other;
    mine.dims = dims;
    auto [entry, isNew] = found.try_emplace(name, std::move(dims));
    if (isNew || !entry->second)
      continue;
    other.dims = *entry->second;
    if (mine.formatDims() != other.formatDims())
      entry->second.reset();
  }
  std::vector<TensorDims> tensors;
  for (auto &[name, dims] : found)
    if (dims && llvm::any_of(*dims, [](const PlanDim &dim) { return !dim.axes.empty(); }))
      tensors.push_back({name.str(), std::move(*dims)});
  return makePlanRules(tensors, names);
}

/// Atoms keep their numbers: axes are runs of them, so that states say the same over the new mesh.
Plan Cell::makePlan(const CellAnswer &answer, const Plan &given, std::optional<ArrayRef<unsigned>> borders) const {
  const Problem &problem = source->getProblem();
  Plan plan = given;
  if (borders) {
    plan.mesh.clear();
    for (const NamedAxis &axis : nameAxes(problem, *classes, answer.getDecision(), *borders))
      plan.mesh.push_back({axis.name, axis.size, {}});
  }
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : plan.mesh)
    sizes.push_back(axis.size);
  AtomMesh mesh(sizes);
  assert(mesh.numAtoms() == problem.getMesh().numAtoms() && "axes are runs of the same atoms");
  llvm::append_range(plan.rules, makeRules(answer.getDecision(), mesh, plan.mesh));
  return plan;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

class Compilation::PlanFinder {
public:
  PlanFinder(State &state, const PlanRequest &request) : state(state), request(request) {}

  std::optional<FoundPlan> run();

private:
  struct Candidate {
    std::vector<MeshAxis> mesh;
    /// See `nameAxes`; nothing: axes have names.
    std::optional<std::vector<unsigned>> borders;
  };
  /// The best of a mesh so far, and its plan.
  struct Found {
    PlanCell cell;
    Plan plan;
  };
  /// A mesh while it is looked at.
  struct Look {
    const Candidate &candidate;
    /// What is given, on that mesh.
    Plan plan;
    Cell &cell;
    Found &best;
  };

  bool prepare();
  bool listMeshes();
  ShardOptions getOptions(const Plan &plan) const;
  Found look(const Candidate &candidate);
  const CellAnswer *searchCell(Look &look);
  void takeOthers(Look &look, const CellAnswer &met);
  void tryPlan(Plan plan, int64_t storedBytes, Found &best);
  State::Prediction predictAsTaken(const std::shared_ptr<Plan> &plan, double least);
  void dropEqual();
  std::string writeText(const PlanCell &cell, const Plan &plan) const;
  bool failWithout();
  bool fail(llvm::Error error, Blame blame = Blame::Input) { return state.fail(std::move(error), blame); }

  State &state;
  const PlanRequest &request;
  /// What is given, with all axes free, on the machine that counts.
  Plan given;
  std::vector<Candidate> candidates;
  std::vector<Found> found;
  int64_t limit = 0;
  /// The least that any answer took.
  int64_t leastBytes = std::numeric_limits<int64_t>::max();
  FoundPlan answer;
};

/// A plan for the machine of the options, or the one that a target stands for.
bool Compilation::PlanFinder::prepare() {
  if (cleave::getPhase(*state.module) >= Phase::Annotated || (*state.module)->hasAttr(SpmdDialect::kMeshAttr))
    return fail(makeError("{0} is {1} already: a plan comes too late", state.options.model,
                          toString(cleave::getPhase(*state.module))),
                Blame::Options);
  if (state.options.sharding.optimize == Optimize::Bytes)
    return fail(makeError("--optimize=bytes leaves nothing to find: a model that is not sharded sends nothing; plans "
                          "are found by time"),
                Blame::Options);
  given = state.plan ? *state.plan : Plan();
  if (given.pipeline)
    return fail(makeError("a plan is found for one stage: the plan that is given has a pipeline"), Blame::Options);
  given.areAllFree = given.isByTime = true;
  if (!given.cluster && state.options.target == "host") {
    given.cluster = getHostCluster();
    given.clusterFile = given.cluster->name;
  } else if (!given.cluster) {
    given.cluster = Cluster();
  } else if (given.clusterFile.empty()) {
    given.clusterFile = state.options.cluster;
  }
  limit = request.memoryBytes ? request.memoryBytes : given.cluster->device.memoryBytes;
  return true;
}

/// The mesh that is given, or all of so many devices; axes of these get their names when it is known what they cut.
bool Compilation::PlanFinder::listMeshes() {
  if (request.devices == 0) {
    if (given.mesh.empty())
      return fail(makeError("how many devices? --devices 8, or --mesh data=2,model=4"), Blame::Options);
    candidates.push_back({given.mesh, std::nullopt});
    return true;
  }
  if (!given.mesh.empty()) {
    int64_t ranks = 1;
    for (const MeshAxis &axis : given.mesh)
      ranks *= axis.size;
    return fail(makeError("--devices {0} and a mesh of {1} ranks: give one", request.devices, ranks), Blame::Options);
  }
  llvm::Expected<std::vector<MeshCell>> cells = listMeshCells(*given.cluster, request.devices, request.isQuick);
  if (!cells)
    return fail(cells.takeError(), Blame::Options);
  for (MeshCell &cell : *cells) {
    Candidate &candidate = candidates.emplace_back();
    candidate.borders = std::move(cell.borders);
    for (auto [index, size] : llvm::enumerate(cell.sizes))
      candidate.mesh.push_back({"axis" + std::to_string(index), size, {}});
  }
  return true;
}

ShardOptions Compilation::PlanFinder::getOptions(const Plan &plan) const {
  ShardOptions sharding = state.options.sharding;
  sharding.optimize = Optimize::Time;
  sharding.decidingCosts.reset();
  return withMachine(plan, std::move(sharding));
}

/// By whatever objective `chooseObjective` would take: it looks at all where no axis is free. That saves little, so what takes far more
/// than `least` by time is left at that.
Compilation::State::Prediction Compilation::PlanFinder::predictAsTaken(const std::shared_ptr<Plan> &plan,
                                                                       double least) {
  constexpr double kClose = 1.1;
  ShardOptions sharding = getOptions(*plan);
  State::Prediction best = state.predict(plan, sharding, State::Trial::WithKernels);
  if (!plan->hasFree() && best.ns < kClose * least && state.isSmall())
    state.compareObjectives(plan, sharding, [&](Optimize optimize) { return makeCosts(*plan, optimize); }, best);
  return best;
}

/// Predicts a plan, and keeps it where it fits and takes less than the best of its mesh: less time, or memory where that is asked for.
void Compilation::PlanFinder::tryPlan(Plan plan, int64_t storedBytes, Found &best) {
  bool hasAnswer = !best.cell.text.empty();
  State::Prediction taken = predictAsTaken(std::make_shared<Plan>(plan), hasAnswer ? best.cell.ns : kNever);
  bool isPossible = taken.ns < kNever, fits = isPossible && (limit == 0 || taken.peakBytes <= limit);
  if (isPossible)
    leastBytes = std::min(leastBytes, taken.peakBytes);
  bool isLess = request.takesLeast ? taken.peakBytes < best.cell.peakBytes : taken.ns < best.cell.ns;
  if (!isPossible || (hasAnswer && !(fits && isLess)))
    return;
  best.cell = {formatMesh(plan.mesh),
               fits ? PlanCell::Verdict::Worse : PlanCell::Verdict::Memory,
               taken.ns,
               taken.peakBytes,
               storedBytes,
               taken.sentBytes,
               ""};
  if (fits)
    best.cell.text = writeText(best.cell, plan);
  best.plan = std::move(plan);
}

/// First what time alone decides; where that does not fit, what stores less, as much less as it is too much, with a price on what passes
/// through memory too, in the share that the last answer had of it at its peak. The answer that fits, or else stores least; null: there is
/// none.
const CellAnswer *Compilation::PlanFinder::searchCell(Look &look) {
  constexpr unsigned kMostTries = 5;
  CellSearch &search = look.cell.getSearch();
  const PlanCell &best = look.best.cell;
  int64_t most = limit ? limit : std::numeric_limits<int64_t>::max();
  if (const CellAnswer *smallest = request.takesLeast ? search.findSmallest() : nullptr)
    most = smallest->storedBytes;
  for (unsigned round = 0; round < kMostTries; ++round) {
    const CellAnswer *met = search.find(most);
    if (!met)
      break;
    tryPlan(look.cell.makePlan(*met, look.plan, look.candidate.borders), met->storedBytes, look.best);
    if (!best.text.empty() || best.verdict == PlanCell::Verdict::Impossible)
      return met;
    auto beside = static_cast<double>(best.peakBytes - best.storedBytes);
    search.setValueShare(std::max(beside, 0.0) / std::max(search.countValues(met->getDecision()), 1.0));
    most = met->storedBytes - (best.peakBytes - limit);
  }
  return search.findSmallest();
}

/// Other answers count as long as they are not far above by the costs of the solver, which leave out launches. They do with axes free for
/// the rest, and as rules alone, as people write plans: what these bring is another way down.
void Compilation::PlanFinder::takeOthers(Look &look, const CellAnswer &met) {
  constexpr double kFar = 1.3;
  for (const CellAnswer *one : look.cell.getSearch().findOthers(met)) {
    if (one->ns >= kFar * met.ns && !look.best.cell.text.empty())
      continue;
    Plan plan = look.cell.makePlan(*one, look.plan, look.candidate.borders);
    tryPlan(plan, one->storedBytes, look.best);
    plan.areAllFree = false;
    tryPlan(std::move(plan), one->storedBytes, look.best);
  }
}

Compilation::PlanFinder::Found Compilation::PlanFinder::look(const Candidate &candidate) {
  Found best;
  best.cell.mesh = formatMesh(candidate.mesh);
  best.cell.verdict = PlanCell::Verdict::Impossible;
  Plan plan = given;
  plan.mesh = candidate.mesh;
  ShardOptions sharding = getOptions(plan);
  OwningOpRef<ModuleOp> copy = state.advanceCopy(std::make_shared<Plan>(plan), sharding, Phase::Annotated);
  SolverOptions options;
  options.costs = sharding.getCosts();
  options.keepParameters = sharding.keepPlan;
  ScopedDiagnosticHandler quiet(state.context.get(), [](mlir::Diagnostic &) { return success(); });
  std::unique_ptr<Cell> cell = copy ? Cell::create(std::move(copy), std::move(options)) : nullptr;
  if (!cell)
    return best;
  Look look{candidate, std::move(plan), *cell, best};
  const CellAnswer *met = searchCell(look);
  if (met && (!request.isQuick || best.cell.text.empty()))
    takeOthers(look, *met);
  answer.solves += cell->getSearch().countSolves();
  return best;
}

/// Sizes of dims come along, for the plan is about them, too: of another batch another plan may be best.
std::string Compilation::PlanFinder::writeText(const PlanCell &cell, const Plan &plan) const {
  std::vector<std::string> comments;
  comments.push_back(llvm::formatv(
      "found by cleave plan: {0} a call predicted on {1}, {2} a rank, of them {3} weights and states; sends {4}",
      formatTime(cell.ns), plan.cluster->name, formatBytes(cell.peakBytes), formatBytes(cell.storedBytes),
      formatBytes(cell.sentBytes)));
  comments.push_back(plan.areAllFree ? "axes are free: what no rule names is decided by time"
                                     : "what no rule names follows from the rules, decided by time");
  comments.push_back("a rule may be changed, taken away or added");
  if (plan.clusterFile.empty() && given.clusterPlace.line != 0)
    comments.push_back(
        "it is for the cluster that the given plan describes: copy that section here, or give --cluster");
  Plan file = plan;
  for (const auto &[name, size] : state.options.dims)
    file.dims.try_emplace(name, size);
  return formatPlanFile(file, state.options.sharding.attention, comments);
}

/// Meshes of other axes in which the same was found.
void Compilation::PlanFinder::dropEqual() {
  llvm::StringSet<> texts;
  llvm::erase_if(found,
                 [&](const Found &one) { return !one.cell.text.empty() && !texts.insert(one.cell.text).second; });
}

/// The least that was met is told, so that a user knows what to ask for.
bool Compilation::PlanFinder::failWithout() {
  if (leastBytes == std::numeric_limits<int64_t>::max())
    return fail(makeError("{0}: no mesh of these devices has a program; cleave shard with --mesh and --free says why",
                          state.options.model));
  return fail(
      makeError("{0}: no plan was found in {1} a rank; the least that was met is {2} (not proved to be the least)",
                state.options.model, formatBytes(limit), formatBytes(leastBytes)));
}

std::optional<FoundPlan> Compilation::PlanFinder::run() {
  auto start = std::chrono::steady_clock::now();
  if (!prepare() || !listMeshes())
    return std::nullopt;
  Telling telling(state.onProgress, "plan");
  for (const Candidate &candidate : candidates)
    found.push_back(look(candidate));
  dropEqual();
  auto order = [&](const PlanCell &cell) {
    return std::tuple(cell.text.empty(), request.takesLeast ? static_cast<double>(cell.peakBytes) : cell.ns,
                      StringRef(cell.mesh), StringRef(cell.text));
  };
  llvm::sort(found, [&](const Found &lhs, const Found &rhs) { return order(lhs.cell) < order(rhs.cell); });
  Found &best = found.front();
  if (best.cell.text.empty()) {
    failWithout();
    return std::nullopt;
  }
  best.cell.verdict = PlanCell::Verdict::Best;
  answer.plan = std::make_shared<Plan>(std::move(best.plan));
  for (Found &one : found)
    answer.cells.push_back(std::move(one.cell));
  answer.memoryBytes = limit;
  Plan alone = given;
  alone.rules.clear();
  alone.mesh = {{"device", 1, {}}};
  answer.oneDeviceNs = state.predict(std::make_shared<Plan>(alone), getOptions(alone), State::Trial::WithKernels).ns;
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(answer);
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
  state->plan = state->handed.plan = found->plan;
  state->foundPlan = std::make_unique<FoundPlan>(std::move(*found));
  return true;
}

std::optional<FoundPlan> Compilation::findPlan(const PlanRequest &request) { return PlanFinder(*state, request).run(); }

std::optional<FoundPlan> cleave::findPlan(Compilation &compilation, const PlanRequest &request) {
  if (!compilation.isLoaded() && !compilation.load())
    return std::nullopt;
  return compilation.findPlan(request);
}
