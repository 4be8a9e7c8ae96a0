//===- ScheduleModel.cpp - a model's stages under a schedule --------------===//
//
// The schedule says how many stages there are and where each stands; the model is cut into as many, exactly
// (StageSplit.h), and gives them times, and channels their bytes:
//
//   table of `1f1b` on 4 ranks ──▶ 4 stages of the model ──▶ F, I, W of each, channels ──▶ times
//
// Times are those of the shapes of one microbatch: products and values are cut with the batch, weights are not. With a plan, schedules
// without gradients get the stages that a run with that plan has, of the program that it partitions.
//
//===----------------------------------------------------------------------===//
#include "ScheduleModel.h"

#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"

#include <map>

using namespace cleave;
using namespace cleave::driver;

/// What the plan says goes for what no option says.
static llvm::Error takeFromPlan(const spmd::Plan &plan, ScheduleOptions &options, std::vector<std::string> &notes) {
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
  if (options.name.empty() && options.compare.empty()) {
    schedule::Shape shape{static_cast<int32_t>(options.ranks), static_cast<int32_t>(options.microbatches),
                          static_cast<int32_t>(options.chunks ? options.chunks : pipeline.countChunks())};
    options.name = pipe::getRunSchedule("", shape, pipe::getPlacementWish(pipeline)).str();
  }
  // Where a model runs so many stages are on a rank, and here the same.
  if (!options.chunks && options.name == "circular")
    options.chunks = pipeline.countChunks();
  if (!isNamed && options.compare.empty())
    notes.push_back(
        llvm::formatv("the plan names no schedule: {0}, by which a run goes; --schedule shows others", options.name));
  if (pipeline.recompute != spmd::PlanRecompute::Never)
    return makeError("'recompute' of a pipeline is not followed yet");
  return llvm::Error::success();
}

/// Without gradients, as far as names tell: a file may say anything.
static bool mayRun(llvm::StringRef name) {
  if (name.ends_with(".csv") || name.ends_with(".json"))
    return true;
  return llvm::any_of(schedule::getGenerators(),
                      [&](const schedule::GeneratorInfo &known) { return known.isForwardOnly && known.name == name; });
}

/// Users of parameters that the plan names stay together.
static llvm::Error addTogether(const spmd::PlanPipeline &pipeline, pipe::StageGraph &graph) {
  for (const spmd::PlanPattern &pattern : pipeline.together) {
    llvm::Expected<std::vector<uint32_t>> users = pipe::findUsers(graph, pattern);
    if (!users)
      return users.takeError();
    graph.problem.together.push_back(std::move(*users));
  }
  return llvm::Error::success();
}

/// Takes the model through what a run does before it cuts stages. Error: why no run would get there.
static llvm::Expected<std::unique_ptr<RunGraph>> makeRunGraph(const Session &session, const spmd::Plan &plan) {
  auto run = std::make_unique<RunGraph>();
  run->compilation = std::make_unique<Compilation>(session.getOptions().compile);
  run->compilation->tellProgress(session.getProgress());
  mlir::func::FuncOp entry;
  if (run->compilation->load() && run->compilation->advance(Phase::Optimized))
    entry = run->compilation->getEntry();
  for (const Diagnostic &diagnostic : run->compilation->getDiagnostics())
    if (!entry && diagnostic.severity == Diagnostic::Severity::Error)
      return makeError("{0}", diagnostic.formatText());
  if (!entry)
    return makeError("it cannot be partitioned");
  run->graph = pipe::makeStageGraph(entry, pipe::DeviceRates::get(&plan));
  run->gradients.resize(run->graph.ops.size());
  if (llvm::Error error = addTogether(*plan.pipeline, run->graph))
    return std::move(error);
  return run;
}

/// The graph of a run where what is shown is one, or a note that says what is different.
static void findRun(const Session &session, const ScheduleOptions &given, const ScheduleOptions &options,
                    ScheduleModel &model) {
  const spmd::Plan &plan = *session.getPlan();
  llvm::SmallVector<llvm::StringRef> names{options.name};
  if (!options.compare.empty())
    llvm::StringRef(options.compare == "all" ? "forward" : options.compare).split(names, ',');
  if (llvm::none_of(names, mayRun))
    return;
  constexpr llvm::StringLiteral kUnsharded = "stages are those of the unsharded model, ";
  if (given.ranks || given.microbatches || given.chunks || plan.mesh.empty() || !options.profile.empty())
    return model.notes.push_back((kUnsharded + "as options say otherwise than the plan").str());
  if (session.getOptions().compile.model == "-")
    return model.notes.push_back((kUnsharded + "as standard input is read once").str());
  llvm::Expected<std::unique_ptr<RunGraph>> run = makeRunGraph(session, plan);
  if (run)
    model.run = std::move(*run);
  else
    model.notes.push_back((kUnsharded + "as a run with this plan is refused: ").str() +
                          llvm::toString(run.takeError()));
}

std::optional<ScheduleModel> cleave::driver::loadScheduleModel(Session &session, ScheduleOptions &options) {
  if (!session.load())
    return std::nullopt;
  const spmd::Plan *plan = session.getPlan();
  bool hasPipeline = plan && plan->pipeline;
  ScheduleModel model;
  const ScheduleOptions given = options;
  if (hasPipeline)
    if (llvm::Error error = takeFromPlan(*plan, options, model.notes)) {
      session.fail(std::move(error));
      return std::nullopt;
    }
  if (!options.ranks || !options.microbatches) {
    session.fail(
        makeError("how many ranks and microbatches a pipeline has is said by --ranks and --microbatches, or by "
                  "'pipeline' of a plan"),
        Blame::Options);
    return std::nullopt;
  }
  // Wishes of the plan stand in the canonical form; nothing is cut along other axes yet.
  mlir::func::FuncOp entry = session.getPhase() < Phase::Canonical && !session.advance(Phase::Canonical)
                                 ? mlir::func::FuncOp()
                                 : session.getEntry();
  if (!entry)
    return std::nullopt;
  model.rates = pipe::DeviceRates::get(plan);
  model.rates.microbatches = static_cast<int64_t>(options.microbatches);
  model.graph = pipe::makeStageGraph(entry, model.rates);
  if (!options.profile.empty() && !applyProfile(session, entry, options.profile, model))
    return std::nullopt;
  model.gradients = findGradients(model.graph);
  model.options.latencyNs = options.latency.value_or(model.rates.getMessageNs());
  model.options.bytesPerNs = model.rates.link.bytesPerNs;
  model.options.microbatches = model.rates.microbatches;
  model.isPlanned = hasPipeline;
  if (hasPipeline) {
    model.lines = plan->pipeline->stages;
    model.said = plan->pipeline->said;
    model.wish = pipe::getPlacementWish(*plan->pipeline);
    if (options.placement != PlacementWish::Any)
      model.wish.placement.reset();
    if (llvm::Error error = addTogether(*plan->pipeline, model.graph)) {
      session.fail(std::move(error));
      return std::nullopt;
    }
    model.options.memoryLimit = plan->pipeline->memoryLimit;
    model.options.relays = plan->pipeline->relays;
    if (plan->pipeline->balance == spmd::PlanBalance::Latency)
      model.options.objective = schedule::SplitObjective::Latency;
    findRun(session, given, options, model);
  }
  model.trainingGraph = addGradients(model.graph, model.gradients);
  return model;
}

/// One channel for each pair of stages on different ranks; those between neighbors on one rank stay, so that all work
/// of a microbatch keeps its order.
static void setChannels(const ScheduleModel &model, const pipe::StageGraph &graph, const schedule::StageSplit &split,
                        schedule::Schedule &table) {
  std::map<std::pair<int32_t, int32_t>, schedule::Channel> channels;
  for (int32_t stage = 1; stage < table.numStages; ++stage)
    channels[{stage, stage - 1}] = {stage - 1, stage, model.options.latencyNs, 0, {}};
  for (auto [from, stage] : llvm::enumerate(split.stages))
    for (const schedule::StageSend &send : stage.sends) {
      int32_t sender = static_cast<int32_t>(from);
      schedule::Channel &channel =
          channels.try_emplace({send.to, sender}, schedule::Channel{sender, send.to, model.options.latencyNs, 0, {}})
              .first->second;
      channel.bytes += send.bytes;
      channel.values.push_back(graph.problem.values[send.value].name);
    }
  table.channels.clear();
  for (auto &[key, channel] : channels)
    table.channels.push_back(std::move(channel));
}

/// A limit is one of a device: what parameters leave of it. Without gradients F takes what is live at a time, and messages
/// that wait.
static void setCosts(const ScheduleModel &model, llvm::ArrayRef<StageGradients> sums, const schedule::StageSplit &split,
                     const schedule::Schedule &table, schedule::Costs &costs) {
  costs = schedule::Costs::uniform(static_cast<int32_t>(split.stages.size()), 1);
  costs.unit = "ns";
  costs.bandwidth = model.options.bytesPerNs;
  costs.memoryByte = table.isForwardOnly ? 1 : 0;
  for (auto [stage, sum] : llvm::enumerate(sums)) {
    costs.forward[stage] = sum.forwardNs;
    costs.inputGrad[stage] = sum.inputGradNs;
    costs.weightGrad[stage] = sum.weightGradNs;
    costs.memoryForward[stage] = table.isForwardOnly ? sum.liveBytes : sum.keptBytes;
    costs.memoryInputGrad[stage] = sum.inputGradBytes;
    costs.memoryWeightGrad[stage] = sum.weightGradBytes;
  }
  if (!model.options.memoryLimit)
    return;
  costs.memoryLimit.assign(table.numRanks, static_cast<double>(model.options.memoryLimit));
  for (auto [rank, stage] : llvm::zip_equal(table.replicas.front().placement, split.stages))
    costs.memoryLimit[rank] -= static_cast<double>(stage.parameterBytes);
}

llvm::Expected<schedule::StageSplit> cleave::driver::applyModel(const ScheduleModel &model,
                                                                schedule::CostedSchedule &table) {
  if (table.schedule.replicas.size() != 1)
    return makeError("schedule '{0}' runs two ways through the ranks, each with stages of its own: of a model, that is "
                     "not shown yet",
                     table.schedule.name);
  if (llvm::Error error = schedule::numberRanks(table.schedule, model.wish))
    return error;
  schedule::SplitOptions options = model.options;
  options.placement = table.schedule.replicas.front().placement;
  // What training does on several devices is not modeled: its stages are those of the unsharded model.
  const RunGraph *run = table.schedule.isForwardOnly ? model.run.get() : nullptr;
  const pipe::StageGraph &graph = run ? run->graph : model.graph;
  llvm::Expected<schedule::StageSplit> split =
      pipe::cutStages(table.schedule.isForwardOnly ? graph : model.trainingGraph, model.lines, options, model.said);
  if (!split)
    return split;
  setChannels(model, graph, *split, table.schedule);
  setCosts(model, sumGradients(graph, run ? run->gradients : model.gradients, split->stageOf, split->stages.size()),
           *split, table.schedule, table.costs);
  return split;
}

// Bytes are summed up by receiver: a message has all values of a pair.
void cleave::driver::printStages(llvm::raw_ostream &os, const ScheduleModel &model, const schedule::Schedule &table,
                                 const schedule::StageSplit &split) {
  os << llvm::formatv("{0,5} {1,5} {2,6} {3,12} {4,14} {5}\n", "stage", "rank", "ops", "ns", "parameters", "sends");
  for (auto [number, stage] : llvm::enumerate(split.stages)) {
    std::map<int32_t, int64_t> bytesTo;
    for (const schedule::StageSend &send : stage.sends)
      bytesTo[send.to] += send.bytes;
    std::string sends;
    for (auto [to, bytes] : bytesTo)
      sends += llvm::formatv("{0}{1} bytes to {2}", sends.empty() ? "" : ", ", bytes, to).str();
    os << llvm::formatv("{0,5} {1,5} {2,6} {3,12} {4,14} {5}\n", number, table.replicas.front().placement[number],
                        stage.numOps, stage.ns, stage.parameterBytes, sends);
  }
  os << llvm::formatv("slowest stage or link {0} ns, no cuts are faster than {1} ns\n", split.bottleneckNs,
                      split.boundNs);
  if (!model.profile.empty())
    os << model.profile << '\n';
  for (const std::string &note : model.notes)
    os << note << '\n';
  if (model.isPlanned && !table.isForwardOnly)
    os << "a schedule of training, with stages of the unsharded model: a run goes without gradients\n";
}
