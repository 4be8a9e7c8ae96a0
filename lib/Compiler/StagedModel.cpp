//===- StagedModel.cpp - a model's stages under a schedule ----------------===//
//
// The schedule says how many stages there are and where each stands; the model is split into as many, exactly
// (StageSplit.h), and gives them times, and channels their bytes:
//
//   table of `1f1b` on 4 ranks ──▶ 4 stages of the model ──▶ F, I, W of each, channels ──▶ times
//
// Times are those of the shapes of one microbatch: products and values are split with the batch, weights are not. With a plan, the model is the
// program that a run with that plan partitions, whatever the schedule: also where options say how many ranks, microbatches and chunks there
// are, which then stand in the plan. Without one it is the model as it is.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Schedule.h"
#include "cleave/Dialect/Pipe/Stages/StageGradients.h"
#include "cleave/Dialect/Pipe/Stages/StageProfile.h"
#include "cleave/Dialect/Pipe/Stages/StageSplitter.h"
#include "cleave/Dialect/Pipe/Transforms/PlaceUpdates.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"

using namespace cleave;

namespace {
/// A program of one microbatch, with all that is known of it.
struct Program {
  /// Owns the ops of a partitioned one; null: those of the model as it is.
  std::unique_ptr<Compilation> compilation;
  /// With times of F, and of all that training does.
  pipe::StageSplitter forward, training;
  /// Per op.
  std::vector<pipe::OpGradients> gradients;
  /// Which times were measured, for people.
  std::string profile;

  /// The gradients are there, and are not to be estimated.
  bool isStep() const { return !forward.graph.backwardNs.empty(); }

  void setGradients() {
    training = forward;
    if (isStep())
      return;
    gradients = pipe::findGradients(forward.graph);
    training.graph = pipe::addGradients(std::move(training.graph), gradients);
  }
};
} // namespace

struct StagedModel::State {
  /// Partitioned as in a run, where there is such a run; else `notes` say why not.
  Program program;
  schedule::PlacementRequest request;
  /// A plan says how the model becomes a pipeline.
  bool isPlanned = false;
  /// Of a step whose plan says `auto`: where that has its stages. Nothing of others.
  std::optional<schedule::PlacementRequest> searched;
  /// How what is shown and what runs are related, for people.
  std::vector<std::string> notes;
};

/// What the plan says goes for what no option says.
static llvm::Error takeFromPlan(const spmd::Plan &plan, bool areSeveral, bool trains, ScheduleOptions &options,
                                std::vector<std::string> &notes) {
  const spmd::PlanPipeline &pipeline = *plan.pipeline;
  const spmd::MeshAxis *axis = plan.findAxis(pipeline.axis);
  if (!options.ranks && !axis)
    return makeError("the plan has no mesh with the pipeline's axis '{0}': how many ranks it has is said by --ranks",
                     pipeline.axis);
  if (!options.ranks)
    options.ranks = axis->size;
  if (!options.microbatches && pipeline.microbatchSize)
    return makeError("the plan gives a microbatch_size: here --microbatches is needed");
  if (!options.microbatches)
    options.microbatches = *pipeline.microbatches;
  if (!options.chunks && pipeline.chunks > 1)
    options.chunks = pipeline.chunks;
  bool isNamed = !options.name.empty() || !pipeline.schedule.empty();
  if (options.name.empty())
    options.name = pipeline.schedule;
  if (options.name.empty() && !areSeveral) {
    schedule::Shape shape{static_cast<int32_t>(options.ranks), static_cast<int32_t>(options.microbatches),
                          static_cast<int32_t>(options.chunks ? options.chunks : pipeline.countChunks())};
    options.name = pipe::getRunSchedule("", shape, pipe::getPlacementRequest(pipeline), trains).str();
  }
  // Where a model runs so many stages are on a rank, and here the same.
  if (!options.chunks && options.name == "circular")
    options.chunks = pipeline.countChunks();
  if (!isNamed && !areSeveral)
    notes.push_back(
        llvm::formatv("the plan names no schedule: {0}, by which a run goes; --schedule shows others", options.name));
  if (pipeline.recompute != spmd::PlanRecompute::Never && !trains)
    return makeError("'recompute' of a pipeline is about gradients: '--train' asks for them");
  return llvm::Error::success();
}

/// A run searches an order, and neither how many stages a rank has nor where they stand.
static void settleStages(const spmd::PlanPipeline &pipeline, const schedule::PlacementRequest &request,
                         ScheduleOptions &options) {
  if (!options.chunks)
    options.chunks = pipeline.countChunks();
  if (!request.placement)
    options.placement = options.chunks > 1 ? schedule::Placement::Loop : schedule::Placement::Linear;
}

/// Makes ops of `entry` what is split, with the times that were measured of nodes, where there are some. False after an error, which is among
/// the diagnostics of the compilation.
static bool take(Compilation &compilation, mlir::func::FuncOp entry, const pipe::DeviceRates &rates,
                 const std::string &profile, Program &program) {
  if (!entry)
    return false;
  const spmd::Plan *plan = compilation.getPlan();
  llvm::Expected<pipe::StageSplitter> splitter =
      pipe::StageSplitter::create(entry, rates, plan && plan->pipeline ? &*plan->pipeline : nullptr);
  if (!splitter)
    return compilation.fail(splitter.takeError());
  program.forward = std::move(*splitter);
  if (profile.empty())
    return true;
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(profile);
  if (!file)
    return compilation.fail(file.takeError());
  llvm::FailureOr<std::string> applied = pipe::applyProfile(entry, profile, (*file)->getBytes(), program.forward.graph);
  if (succeeded(applied))
    program.profile = std::move(*applied);
  return succeeded(applied);
}

/// The first error of a compilation that has failed.
static std::string describeFailure(const Compilation &compilation) {
  for (const cleave::Diagnostic &diagnostic : compilation.getDiagnostics())
    if (diagnostic.severity == cleave::Diagnostic::Severity::Error)
      return llvm::formatv("{0}{1}", diagnostic.line ? diagnostic.formatPlace() + ": " : "", diagnostic.formatText());
  return "it cannot be partitioned";
}

/// Takes the model through what a run does before it splits stages. Error: why no run would get there.
static llvm::Expected<Program> partition(CompileOptions options, const std::string &profile,
                                         const ProgressHandler &tell) {
  Program program;
  program.compilation = std::make_unique<Compilation>(std::move(options));
  Compilation &compilation = *program.compilation;
  compilation.tellProgress(tell);
  if (compilation.load() && compilation.advance(Phase::Optimized) &&
      take(compilation, compilation.getEntry(), pipe::DeviceRates::get(compilation.getPlan()), profile, program))
    return program;
  return makeError("{0}", describeFailure(compilation));
}

/// What is measured of nodes is of whole ones.
static bool splitsNodes(const spmd::Plan &plan) {
  return llvm::any_of(plan.mesh,
                      [&](const spmd::MeshAxis &axis) { return axis.size > 1 && axis.name != plan.pipeline->axis; });
}

/// The program of a run with what options say in the plan's place; or a note that says why what is shown is none.
static std::optional<Program> findRun(const Compilation &whole, const ScheduleOptions &given,
                                      std::vector<std::string> &notes) {
  CompileOptions options = whole.getGivenOptions();
  options.dumpPhases.clear();
  std::string reason;
  if (!given.profile.empty() && splitsNodes(*whole.getPlan()))
    reason = "as its nodes are what was measured";
  else if (options.model == "-")
    reason = "as standard input is read once";
  if (reason.empty()) {
    // What stages of a step make again depends on the schedule. Of a search only the plan's own is what a run looks for.
    bool isNamed = options.train && !given.name.empty() && given.name != "auto";
    options.pipeline = {given.ranks, given.microbatches, given.chunks, isNamed ? given.name : ""};
    bool isOther = given.ranks || given.microbatches || given.chunks;
    llvm::Expected<Program> run = partition(options, given.profile, whole.getProgress());
    // A schedule that the plan refuses may still be shown with the stages of the plan's own.
    if (!run && isNamed) {
      llvm::consumeError(run.takeError());
      options.pipeline.schedule.clear();
      run = partition(options, given.profile, whole.getProgress());
    }
    if (run && isOther)
      notes.push_back("stages are those of a run with what options say in the plan");
    if (run)
      return std::move(*run);
    reason = llvm::formatv("as a run with {0} is refused: {1}", isOther ? "these options" : "this plan",
                           llvm::toString(run.takeError()));
  }
  notes.push_back("stages are those of the unsharded model, " + reason);
  return std::nullopt;
}

/// The canonical form of the model, without the shardings that a plan asks for. False after an error.
static bool takeModel(Compilation &compilation, const ScheduleOptions &options, Program &program) {
  if (compilation.getPhase() < Phase::Canonical && !compilation.advance(Phase::Canonical))
    return false;
  pipe::DeviceRates rates = pipe::DeviceRates::get(compilation.getPlan());
  rates.microbatches = static_cast<int64_t>(options.microbatches);
  return take(compilation, compilation.getEntry(), rates, options.profile, program);
}

std::unique_ptr<StagedModel> StagedModel::create(Compilation &compilation, ScheduleOptions &options,
                                                 llvm::ArrayRef<std::string> others) {
  if (!compilation.isLoaded() && !compilation.load())
    return nullptr;
  auto fail = [&](llvm::Error error, Blame blame = Blame::Input) {
    compilation.fail(std::move(error), blame);
    return nullptr;
  };
  const spmd::Plan *plan = compilation.getPlan();
  const spmd::PlanPipeline *pipeline = plan && plan->pipeline ? &*plan->pipeline : nullptr;
  auto state = std::make_unique<State>();
  const ScheduleOptions given = options;
  const bool trains = compilation.getGivenOptions().train;
  if (pipeline)
    if (llvm::Error error = takeFromPlan(*plan, !others.empty(), trains, options, state->notes))
      return fail(std::move(error));
  if (!options.ranks || !options.microbatches)
    return fail(makeError("how many ranks and microbatches a pipeline has is said by --ranks and --microbatches, or by "
                          "'pipeline' of a plan"),
                Blame::Options);
  if (!takeModel(compilation, options, state->program))
    return nullptr;
  state->isPlanned = pipeline;
  if (pipeline) {
    state->request = pipe::getPlacementRequest(*pipeline);
    if (options.placement)
      state->request.placement.reset();
    if (trains && given.name.empty() && !given.placement && pipeline->schedule == "auto") {
      state->searched = pipe::getPlacementRequest(*pipeline);
      settleStages(*pipeline, *state->searched, options);
    }
    if (std::optional<Program> run = findRun(compilation, given, state->notes))
      state->program = std::move(*run);
  }
  schedule::SplitOptions &split = state->program.forward.options;
  split.latencyNs = options.latency.value_or(split.latencyNs);
  split.microbatches = static_cast<int64_t>(options.microbatches);
  state->program.setGradients();
  return std::unique_ptr<StagedModel>(new StagedModel(std::move(state)));
}

StagedModel::StagedModel(std::unique_ptr<State> state) : state(std::move(state)) {}
StagedModel::~StagedModel() = default;

bool StagedModel::isSearchedAsRun() const { return state->searched.has_value(); }
const std::string &StagedModel::getProfile() const { return state->program.profile; }
const schedule::PlacementRequest &StagedModel::getPlacementRequest() const { return state->request; }

std::vector<std::string> StagedModel::getNotes(const schedule::Schedule &table) const {
  std::vector<std::string> notes;
  if (!state->program.profile.empty())
    notes.push_back(state->program.profile);
  llvm::append_range(notes, state->notes);
  if (state->isPlanned && !table.isForwardOnly && !state->program.isStep())
    notes.push_back("a schedule of training: a run goes without gradients, and their sums over ranks are not counted");
  return notes;
}

/// One channel for each pair of stages on different ranks; those between neighbors on one rank stay, so that all work
/// of a microbatch keeps its order.
static void setChannels(const pipe::StageSplitter &splitter, const schedule::StageSplit &split,
                        schedule::Schedule &table) {
  double latency = splitter.options.latencyNs;
  std::map<std::pair<int32_t, int32_t>, schedule::Channel> channels;
  for (int32_t stage = 1; stage < table.numStages; ++stage)
    channels[{stage, stage - 1}] = {stage - 1, stage, latency, 0, {}};
  for (auto [from, stage] : llvm::enumerate(split.stages))
    for (const schedule::StageSend &send : stage.sends) {
      int32_t sender = static_cast<int32_t>(from);
      schedule::Channel &channel =
          channels.try_emplace({send.to, sender}, schedule::Channel{sender, send.to, latency, 0, {}}).first->second;
      channel.bytes += send.bytes;
      channel.values.push_back(splitter.graph.problem.values[send.value].name);
    }
  table.channels.clear();
  for (auto &[key, channel] : channels)
    table.channels.push_back(std::move(channel));
}

/// A limit is one of a device: what parameters leave of it. Without gradients F takes what is live at a time, and messages
/// that wait.
static void setCosts(const schedule::SplitOptions &options, llvm::ArrayRef<pipe::StageGradients> sums,
                     const schedule::StageSplit &split, const schedule::Schedule &table, schedule::Costs &costs) {
  costs = schedule::Costs::uniform(static_cast<int32_t>(split.stages.size()), 1);
  costs.unit = "ns";
  costs.bandwidth = options.bytesPerNs;
  costs.memoryByte = table.isForwardOnly ? 1 : 0;
  for (auto [stage, sum] : llvm::enumerate(sums)) {
    costs.forward[stage] = sum.forwardNs;
    costs.inputGrad[stage] = sum.inputGradNs;
    costs.weightGrad[stage] = sum.weightGradNs;
    costs.memoryForward[stage] = table.isForwardOnly ? sum.liveBytes : sum.keptBytes;
    costs.memoryInputGrad[stage] = sum.inputGradBytes;
    costs.memoryWeightGrad[stage] = sum.weightGradBytes;
  }
  if (!options.memoryLimit)
    return;
  for (int32_t rank = 0; rank < table.numRanks; ++rank)
    costs.memoryLimit.push_back(static_cast<double>(options.getLimit(rank)));
  for (const schedule::Replica &replica : table.replicas)
    for (auto [rank, stage] : llvm::zip_equal(replica.placement, split.stages))
      costs.memoryLimit[rank] -= static_cast<double>(stage.parameterBytes);
}

/// Microbatches whose activations stages keep, which decide with a limit of memory where they are cut. Before a search there are no rows: then,
/// as in a run, those of the schedule from which the search begins.
static llvm::Expected<std::vector<int64_t>> countInFlight(const schedule::Schedule &table,
                                                          const std::optional<schedule::PlacementRequest> &searched) {
  if (!searched || llvm::any_of(table.programs, [](const auto &program) { return !program.empty(); }))
    return schedule::countInFlight(table);
  schedule::Shape shape{table.numRanks, table.numMicrobatches, table.numStages / table.numRanks};
  llvm::Expected<schedule::Schedule> first =
      schedule::generatePlaced(pipe::getRunSchedule("", shape, *searched, /*trains=*/true), shape, *searched);
  if (!first)
    return first.takeError();
  return schedule::countInFlight(*first);
}

llvm::Expected<schedule::StageSplit> StagedModel::splitStages(schedule::CostedSchedule &costed) const {
  schedule::Schedule &table = costed.schedule;
  if (table.isForwardOnly && state->program.isStep())
    return makeError("schedule \"{0}\" has no gradients, and a step of training has them", table.name);
  if (table.replicas.size() != 1 && !state->program.isStep())
    return makeError("schedule '{0}' runs two ways through the ranks, each with stages of its own: of a model, that is "
                     "not shown yet",
                     table.name);
  if (llvm::Error error = schedule::numberRanks(table, state->request))
    return error;
  const Program &program = state->program;
  const pipe::StageSplitter &splitter = table.isForwardOnly ? program.forward : program.training;
  std::vector<int64_t> inFlight;
  if (program.isStep()) {
    llvm::Expected<std::vector<int64_t>> counted = countInFlight(table, state->searched);
    if (!counted)
      return counted.takeError();
    inFlight = std::move(*counted);
  }
  llvm::Expected<schedule::StageSplit> split =
      splitter.splitStages(table.replicas.front().placement, nullptr, inFlight);
  if (!split)
    return split;
  setChannels(splitter, *split, table);
  std::vector<pipe::StageGradients> sums =
      program.isStep()
          ? pipe::sumStep(program.forward.graph, split->stageOf, split->stages.size())
          : pipe::sumGradients(program.forward.graph, program.gradients, split->stageOf, split->stages.size());
  pipe::scaleTimes(splitter.options, table.replicas.front().placement, sums);
  setCosts(splitter.options, sums, *split, table, costed.costs);
  return split;
}

llvm::Expected<std::vector<schedule::LateUpdate>>
StagedModel::placeUpdates(const schedule::StageSplit &split, schedule::Schedule &table, schedule::Costs &costs) const {
  const Program &program = state->program;
  // A step that is shown unsharded, as no run gets there, has no program whose updates could be looked at.
  if (!program.isStep() || !program.compilation)
    return std::vector<schedule::LateUpdate>();
  return pipe::placeUpdates(program.forward.graph, split.stageOf, *program.compilation->getPlan()->pipeline, table,
                            costs);
}

/// As the report of a compiled program has them.
static std::vector<schedule::PlannedPeak> readPeaks(const llvm::json::Object &pipeline) {
  std::vector<schedule::PlannedPeak> peaks;
  const llvm::json::Array *bytes = pipeline.getArray("peak_bytes_of_ranks"),
                          *byRole = pipeline.getArray("memory_of_ranks");
  if (!bytes || !byRole)
    return peaks;
  for (auto [most, own] : llvm::zip_equal(*bytes, *byRole)) {
    schedule::PlannedPeak &peak = peaks.emplace_back();
    peak.bytes = most.getAsInteger().value_or(0);
    for (llvm::StringRef role : kMemoryRoleWords)
      peak.byRole.emplace_back(role, own.getAsObject()->getInteger(role).value_or(0));
  }
  return peaks;
}

/// The table may be another one than that of a run: of a search that looks further, or where options say what the plan refuses.
void StagedModel::planMemory(ScheduleResult &made) {
  Program &program = state->program;
  if (!program.isStep() || !program.compilation)
    return;
  Compilation &run = *program.compilation;
  std::string why;
  std::optional<Report> report;
  if (!run.advance(Phase::Scheduled))
    why = describeFailure(run);
  else if (!pipe::runsBy(run.getModule(), made.table))
    why = "a run with this plan goes by another table";
  else if (!run.planMemory() || !(report = run.makeReport()))
    why = describeFailure(run);
  if (!report || !report->pipeline)
    made.notes.push_back("what ranks take is not planned: " + why);
  else
    made.planned = readPeaks(*report->pipeline);
}
