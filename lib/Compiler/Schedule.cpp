//===- Schedule.cpp - what each rank of a pipeline does, and when ---------===//
//
// A schedule comes by name or from a file, gets the costs that were given, is checked whatever it comes from, and
// simulated. Shapes that a schedule does not have are errors of options; tables that are wrong, and memory that does not
// suffice, are errors of the input.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Schedule.h"

#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static cleave::Diagnostic makeFailure(std::string message, Blame blame) {
  cleave::Diagnostic failure;
  failure.blame = blame;
  failure.file = "cleave";
  failure.message = std::move(message);
  return failure;
}

static cleave::Diagnostic makeFailure(Error error, Blame blame) {
  return makeFailure(llvm::toString(std::move(error)), blame);
}

//===----------------------------------------------------------------------===//
// Where a schedule comes from
//===----------------------------------------------------------------------===//

/// Names have no dots.
static bool isFile(StringRef name) { return name.ends_with(".csv") || name.ends_with(".json"); }

/// A table or a report; errors begin with the file's name.
static Expected<schedule::CostedSchedule> readFile(StringRef path) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  StringRef bytes = (*file)->getBytes();
  auto locate = [&](Error error) { return addContext((path + ": ").str(), std::move(error)); };
  if (path.ends_with(".json")) {
    Expected<schedule::CostedSchedule> read = schedule::readJson(bytes, path);
    return read ? std::move(read) : locate(read.takeError());
  }
  Expected<schedule::Schedule> table = schedule::readCsv(bytes, path);
  if (!table)
    return locate(table.takeError());
  return schedule::CostedSchedule{std::move(*table), {}};
}

/// Sizes as the generators take them. More actions than this are no schedule that anybody runs, and would not fit.
static Error findBadSizes(const ScheduleOptions &options) {
  constexpr uint64_t most = 1 << 26;
  for (auto [name, value] : {std::pair("--ranks", options.ranks), std::pair("--microbatches", options.microbatches)})
    if (value == 0)
      return makeError("a schedule by name needs '{0}', at least 1", name);
  if (options.steps == 0)
    return makeError("'--steps' is at least 1");
  uint64_t factors[] = {options.ranks, options.microbatches, std::max<uint64_t>(options.chunks, 1), options.steps};
  uint64_t product = 1;
  for (uint64_t factor : factors) {
    if (factor > most / product)
      return makeError("{0} ranks, {1} microbatches, {2} chunks and {3} steps are more than {4} actions", factors[0],
                       factors[1], factors[2], factors[3], most);
    product *= factor;
  }
  return Error::success();
}

/// A file says itself how many ranks there are; a name has to be told.
static OrDiagnostic<schedule::CostedSchedule> getSchedule(const ScheduleOptions &options, const std::string &name,
                                                          const StagedModel *model) {
  if (isFile(name)) {
    Expected<schedule::CostedSchedule> read = readFile(name);
    if (!read)
      return makeFailure(read.takeError(), Blame::Input);
    if (options.ranks && options.ranks != uint64_t(read->schedule.numRanks))
      return makeFailure(
          llvm::formatv("'--ranks {0}': the table of '{1}' has {2}", options.ranks, name, read->schedule.numRanks)
              .str(),
          Blame::Options);
    return std::move(*read);
  }
  if (Error error = findBadSizes(options))
    return makeFailure(std::move(error), Blame::Options);
  Expected<schedule::Schedule> table = schedule::generatePlaced(
      name, {int32_t(options.ranks), int32_t(options.microbatches), int32_t(options.chunks), int32_t(options.steps)},
      model ? model->getPlacementRequest() : schedule::PlacementRequest());
  if (!table)
    return makeFailure(table.takeError(), Blame::Options);
  return schedule::CostedSchedule{std::move(*table), {}};
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// A rank's whole share, spread over its stages.
static void setShares(const NamedNumbers &numbers, double chunks, std::vector<double> &f, std::vector<double> &i,
                      std::vector<double> &w) {
  for (auto [name, values] : {std::pair("F", &f), std::pair("I", &i), std::pair("W", &w)})
    if (auto found = numbers.find(name); found != numbers.end())
      values->assign(values->size(), found->second / chunks);
}

/// What options say comes last, over a file of costs, over what came with the schedule.
static Error setCosts(const ScheduleOptions &options, schedule::CostedSchedule &costed) {
  schedule::Schedule &table = costed.schedule;
  schedule::Costs &costs = costed.costs;
  double chunks = std::max(1, table.numStages / table.numRanks);
  if (costs.forward.empty())
    costs = schedule::Costs::uniform(table.numStages, int32_t(chunks));
  if (!options.costs.empty()) {
    Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.costs);
    if (!file)
      return file.takeError();
    if (Error error = schedule::readCosts((*file)->getBytes(), table, costs))
      return addContext(options.costs + ": ", std::move(error));
  }
  setShares(options.cost, chunks, costs.forward, costs.inputGrad, costs.weightGrad);
  setShares(options.memory, chunks, costs.memoryForward, costs.memoryInputGrad, costs.memoryWeightGrad);
  if (auto found = options.cost.find("overlap"); found != options.cost.end())
    costs.overlap = found->second / chunks;
  if (options.memoryLimit)
    costs.memoryLimit.assign(table.numRanks, *options.memoryLimit);
  for (schedule::Channel &channel : table.channels)
    channel.latency = options.latency.value_or(channel.latency);
  return Error::success();
}

/// The number of stages is known once there is a schedule, so that this is found late.
static Error scaleStages(llvm::ArrayRef<double> scale, schedule::Costs &costs) {
  if (scale.empty())
    return Error::success();
  if (scale.size() != costs.forward.size())
    return makeError("'--stage-scale' has {0} factors, and the schedule {1} stages", scale.size(),
                     costs.forward.size());
  for (std::vector<double> *values : {&costs.forward, &costs.inputGrad, &costs.weightGrad})
    for (auto [value, factor] : llvm::zip_equal(*values, scale))
      value *= factor;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// What becomes of it
//===----------------------------------------------------------------------===//

namespace {
/// Placements with their costs, and how a model is split for each.
struct Candidates {
  std::vector<schedule::SearchCandidate> placements;
  std::vector<std::optional<schedule::StageSplit>> splits;
};
} // namespace

/// A placement gets its costs: a model's, over these those of options.
static Expected<std::optional<schedule::StageSplit>>
setAllCosts(const ScheduleOptions &options, const StagedModel *model, schedule::CostedSchedule &costed) {
  std::optional<schedule::StageSplit> split;
  if (model) {
    Expected<schedule::StageSplit> found = model->splitStages(costed);
    if (!found)
      return found.takeError();
    split = std::move(*found);
  }
  if (Error error = setCosts(options, costed))
    return error;
  return split;
}

/// All that `auto` may choose from, each with its costs; what they do not fit (a list by stage, and other stages) is left
/// out. Error: nothing is left, and why the first was not.
static Expected<Candidates> getCandidates(const ScheduleOptions &options, const StagedModel *model) {
  std::optional<schedule::Placement> placement = options.placement;
  if (!placement && model)
    placement = model->getPlacementRequest().placement;
  Candidates fitting;
  std::string reason;
  for (schedule::Schedule &blank : schedule::getPlacements(int32_t(options.ranks), int32_t(options.microbatches),
                                                           placement, int32_t(options.chunks))) {
    schedule::CostedSchedule costed{std::move(blank), {}};
    Expected<std::optional<schedule::StageSplit>> split = setAllCosts(options, model, costed);
    Error error = split ? scaleStages(options.stageScale, costed.costs) : split.takeError();
    if (!error) {
      fitting.placements.push_back({std::move(costed.schedule), std::move(costed.costs)});
      fitting.splits.push_back(std::move(*split));
    } else if (std::string text = llvm::toString(std::move(error)); reason.empty()) {
      reason = std::move(text);
    }
  }
  if (fitting.placements.empty())
    return reason.empty()
               ? makeError("no placement has {0} chunks per rank here: linear has 1, v 2, wave an even number",
                           options.chunks)
               : makeError("{0}", reason);
  return fitting;
}

static OrDiagnostic<ScheduleResult> searchSchedule(const ScheduleOptions &options, const StagedModel *model) {
  if (Error error = findBadSizes(options))
    return makeFailure(std::move(error), Blame::Options);
  if (options.steps != 1)
    return makeFailure("'--steps' is about schedules by name, 'auto' is one batch", Blame::Options);
  Expected<Candidates> candidates = getCandidates(options, model);
  if (!candidates)
    return makeFailure(candidates.takeError(), model ? Blame::Input : Blame::Options);
  schedule::Effort effort =
      model && model->isSearchedAsRun() ? schedule::kSearchOfRun.effort : schedule::SearchOptions().effort;
  schedule::SearchOptions wanted{options.seed, options.effort.value_or(effort)};
  Expected<schedule::SearchResult> found = schedule::search(candidates->placements, wanted);
  if (!found)
    return makeFailure(found.takeError(), Blame::Input);
  ScheduleResult made;
  made.table = std::move(found->schedule);
  made.costs = std::move(candidates->placements[found->candidate].costs);
  made.split = std::move(candidates->splits[found->candidate]);
  made.bound = found->bound;
  made.search = llvm::json::Object{{"seed", int64_t(wanted.seed)},
                                   {"effort", getWord(wanted.effort)},
                                   {"tables", found->tables},
                                   {"moves", found->moves},
                                   {"optimal", found->isOptimal}};
  return made;
}

/// By name or from a file, with its costs and a bound.
static OrDiagnostic<ScheduleResult> getSource(const ScheduleOptions &options, const std::string &name,
                                              const StagedModel *model) {
  if (name == "auto")
    return searchSchedule(options, model);
  OrDiagnostic<schedule::CostedSchedule> source = getSchedule(options, name, model);
  if (auto *failure = std::get_if<cleave::Diagnostic>(&source))
    return std::move(*failure);
  auto &costed = std::get<schedule::CostedSchedule>(source);
  Expected<std::optional<schedule::StageSplit>> split = setAllCosts(options, model, costed);
  if (!split)
    return makeFailure(split.takeError(), Blame::Input);
  if (Error error = scaleStages(options.stageScale, costed.costs))
    return makeFailure(std::move(error), Blame::Options);
  ScheduleResult made;
  made.table = std::move(costed.schedule);
  made.costs = std::move(costed.costs);
  made.split = std::move(*split);
  return made;
}

OrDiagnostic<ScheduleResult> cleave::makeSchedule(const ScheduleOptions &options, const StagedModel *model) {
  const std::string name = options.name.empty() ? "1f1b" : options.name;
  OrDiagnostic<ScheduleResult> source = getSource(options, name, model);
  if (std::holds_alternative<cleave::Diagnostic>(source))
    return source;
  ScheduleResult &made = std::get<ScheduleResult>(source);
  made.checked = schedule::check(made.table, made.costs);
  if (!made.checked.violations.empty()) {
    const schedule::Violation &first = made.checked.violations.front();
    size_t more = made.checked.violations.size() - 1;
    return makeFailure(llvm::formatv("schedule '{0}': {1} ({2}){3}", name, first.message, first.constraint,
                                     more ? llvm::formatv("; and {0} more", more).str() : "")
                           .str(),
                       Blame::Input);
  }
  // Reports and tables say where messages stand, and rendezvous needs them.
  bool needsMessages = made.table.isComputeOnly();
  if (needsMessages)
    if (Error error = schedule::addMessages(made.table))
      return makeFailure(std::move(error), Blame::Input);
  // Updates fill what is left of waits, once messages are there, as in a run.
  if (model && made.split) {
    Expected<std::vector<schedule::LateUpdate>> late = model->placeUpdates(*made.split, made.table, made.costs);
    if (!late)
      return makeFailure(late.takeError(), Blame::Input);
    made.late = std::move(*late);
  }
  Expected<schedule::Simulation> simulation = schedule::simulate(made.table, made.costs, options.messages);
  if (!simulation)
    return makeFailure(simulation.takeError(), Blame::Input);
  made.simulation = std::move(*simulation);
  if (name != "auto")
    made.bound = schedule::computeLowerBound(made.table, made.costs);
  if (model)
    made.notes = model->getNotes(made.table);
  return source;
}

std::optional<cleave::Diagnostic> cleave::checkScheduleSizes(const ScheduleOptions &options) {
  Error error = findBadSizes(options);
  return error ? std::optional(makeFailure(std::move(error), Blame::Options)) : std::nullopt;
}

std::optional<ScheduleResult> cleave::scheduleModel(Compilation &compilation, ScheduleOptions options) {
  std::unique_ptr<StagedModel> model = StagedModel::create(compilation, options);
  if (!model)
    return std::nullopt;
  OrDiagnostic<ScheduleResult> made = makeSchedule(options, model.get());
  if (auto *result = std::get_if<ScheduleResult>(&made))
    return std::move(*result);
  compilation.report(std::get<cleave::Diagnostic>(made));
  return std::nullopt;
}
