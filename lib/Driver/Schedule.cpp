//===- Schedule.cpp - what each rank of a pipeline does, and when ---------===//
//
// A schedule comes by name or from a file, gets the costs that were given, is checked whatever it comes from, and
// simulated. Then it is printed, written and drawn. Shapes that a schedule does not have are errors of the command line;
// tables that are wrong, and memory that does not suffice, are errors of what it names.
//
//===----------------------------------------------------------------------===//
#include "ScheduleModel.h"
#include "cleave/Driver/Session.h"
#include "cleave/Schedule/Draw.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Numbers.h"
#include "cleave/Schedule/Search.h"
#include "cleave/Schedule/Text.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <variant>

using namespace cleave;
using namespace cleave::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using schedule::formatNumber;
using schedule::Simulation;

namespace {

/// An error, and how the program ends with it.
struct Failure {
  ExitCode code = kBadInput;
  std::string message;
};

/// A schedule with all that is known of it.
struct Subject {
  schedule::Schedule table;
  schedule::Costs costs;
  /// What a search says of itself, for the report; empty for other schedules.
  llvm::json::Object search;
  schedule::LowerBound bound;
  schedule::CheckResult checked;
  Simulation simulation;
  /// Of a model.
  std::optional<schedule::StageSplit> split;
};

template <typename T> using OrFailure = std::variant<T, Failure>;

} // namespace

static Failure makeFailure(Error error, ExitCode code) { return {code, llvm::toString(std::move(error))}; }

static ExitCode print(const Failure &failure) {
  llvm::errs() << "cleave: error: " << failure.message
               << (failure.code == kBadCommandLine ? "; see 'cleave schedule --help'\n" : "\n");
  return failure.code;
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
static Error checkSizes(const ScheduleOptions &options) {
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
static OrFailure<schedule::CostedSchedule> getSchedule(const ScheduleOptions &options, const std::string &name,
                                                       const ScheduleModel *model) {
  if (isFile(name)) {
    Expected<schedule::CostedSchedule> read = readFile(name);
    if (!read)
      return makeFailure(read.takeError(), kBadInput);
    if (options.ranks && options.ranks != uint64_t(read->schedule.numRanks))
      return Failure{kBadCommandLine, llvm::formatv("'--ranks {0}': the table of '{1}' has {2}", options.ranks, name,
                                                    read->schedule.numRanks)};
    return std::move(*read);
  }
  if (Error error = checkSizes(options))
    return makeFailure(std::move(error), kBadCommandLine);
  Expected<schedule::Schedule> table = schedule::generatePlaced(
      name, {int32_t(options.ranks), int32_t(options.microbatches), int32_t(options.chunks), int32_t(options.steps)},
      model ? model->wish : schedule::PlacementWish());
  if (!table)
    return makeFailure(table.takeError(), kBadCommandLine);
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
static Error setCosts(const ScheduleOptions &options, schedule::CostedSchedule &subject) {
  schedule::Schedule &table = subject.schedule;
  schedule::Costs &costs = subject.costs;
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

/// Placements with their costs, and how a model is cut for each.
struct Candidates {
  std::vector<schedule::SearchCandidate> placements;
  std::vector<std::optional<schedule::StageSplit>> splits;
};

/// A placement gets its costs: a model's, over these those of options.
static Expected<std::optional<schedule::StageSplit>>
setAllCosts(const ScheduleOptions &options, const ScheduleModel *model, schedule::CostedSchedule &costed) {
  std::optional<schedule::StageSplit> split;
  if (model) {
    Expected<schedule::StageSplit> found = applyModel(*model, costed);
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
static Expected<Candidates> getCandidates(const ScheduleOptions &options, const ScheduleModel *model) {
  std::optional<schedule::Placement> placement = model ? model->wish.placement : std::nullopt;
  if (options.placement != PlacementWish::Any)
    placement = static_cast<schedule::Placement>(static_cast<int>(options.placement) - 1);
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

static OrFailure<Subject> searchSchedule(const Options &options, const ScheduleModel *model) {
  if (Error error = checkSizes(options.schedule))
    return makeFailure(std::move(error), kBadCommandLine);
  if (options.schedule.steps != 1)
    return Failure{kBadCommandLine, "'--steps' is about schedules by name, 'auto' is one batch"};
  Expected<Candidates> candidates = getCandidates(options.schedule, model);
  if (!candidates)
    return makeFailure(candidates.takeError(), model ? kBadInput : kBadCommandLine);
  schedule::SearchOptions wanted{options.seed, options.schedule.effort};
  Expected<schedule::SearchResult> found = schedule::search(candidates->placements, wanted);
  if (!found)
    return makeFailure(found.takeError(), kBadInput);
  Subject subject;
  subject.table = std::move(found->schedule);
  subject.costs = std::move(candidates->placements[found->candidate].costs);
  subject.split = std::move(candidates->splits[found->candidate]);
  subject.bound = found->bound;
  subject.search = llvm::json::Object{{"seed", int64_t(wanted.seed)},
                                      {"effort", getWord(wanted.effort)},
                                      {"tables", found->tables},
                                      {"moves", found->moves},
                                      {"optimal", found->isOptimal}};
  return subject;
}

/// By name or from a file, with its costs and a bound.
static OrFailure<Subject> getSubject(const Options &options, const std::string &name, const ScheduleModel *model) {
  if (name == "auto")
    return searchSchedule(options, model);
  OrFailure<schedule::CostedSchedule> source = getSchedule(options.schedule, name, model);
  if (auto *failure = std::get_if<Failure>(&source))
    return std::move(*failure);
  auto &costed = std::get<schedule::CostedSchedule>(source);
  Expected<std::optional<schedule::StageSplit>> split = setAllCosts(options.schedule, model, costed);
  if (!split)
    return makeFailure(split.takeError(), kBadInput);
  if (Error error = scaleStages(options.schedule.stageScale, costed.costs))
    return makeFailure(std::move(error), kBadCommandLine);
  Subject subject;
  subject.table = std::move(costed.schedule);
  subject.costs = std::move(costed.costs);
  subject.split = std::move(*split);
  return subject;
}

/// From a name to times; what is wrong with a table is said in full.
static OrFailure<Subject> prepare(const Options &options, const std::string &name, const ScheduleModel *model) {
  OrFailure<Subject> source = getSubject(options, name, model);
  if (std::holds_alternative<Failure>(source))
    return source;
  Subject &subject = std::get<Subject>(source);
  subject.checked = schedule::check(subject.table, subject.costs);
  if (!subject.checked.violations.empty()) {
    const schedule::Violation &first = subject.checked.violations.front();
    size_t more = subject.checked.violations.size() - 1;
    return Failure{kBadInput, llvm::formatv("schedule '{0}': {1} ({2}){3}", name, first.message, first.constraint,
                                            more ? llvm::formatv("; and {0} more", more).str() : "")};
  }
  // Reports and tables say where messages stand, and rendezvous needs them.
  bool needsMessages = subject.table.isComputeOnly();
  if (needsMessages)
    if (Error error = schedule::addMessages(subject.table))
      return makeFailure(std::move(error), kBadInput);
  Expected<Simulation> simulation = schedule::simulate(subject.table, subject.costs, options.schedule.messages);
  if (!simulation)
    return makeFailure(simulation.takeError(), kBadInput);
  subject.simulation = std::move(*simulation);
  if (name != "auto")
    subject.bound = schedule::computeLowerBound(subject.table, subject.costs);
  return source;
}

static void printSummary(llvm::raw_ostream &os, const Subject &subject) {
  const schedule::Schedule &table = subject.table;
  const Simulation &simulation = subject.simulation;
  os << llvm::formatv("{0}: {1} ranks, {2} stages, {3} microbatches: makespan {4}, bubble {5:p2} ({6:p2} of the span "
                      "{7}), peak {8} stages, memory {9}, {10} messages, bound {11}\n",
                      table.name, table.numRanks, table.numStages, table.numMicrobatches,
                      formatNumber(simulation.makespan), simulation.bubbleMakespan, simulation.bubbleSpan,
                      formatNumber(simulation.span), *llvm::max_element(simulation.peak.held),
                      formatNumber(*llvm::max_element(simulation.peak.memory)), simulation.messages,
                      formatNumber(subject.bound.makespan));
}

/// The columns of a terminal, or what fits any page.
static size_t getWidth() {
  constexpr size_t otherwise = 100;
  unsigned columns = llvm::sys::Process::StandardOutIsDisplayed() ? llvm::sys::Process::StandardOutColumns() : 0;
  return columns ? columns : otherwise;
}

/// Nothing is left of a file whose table cannot be written.
static Error writeTable(const ScheduleOptions &options, const schedule::Schedule &table) {
  schedule::Schedule copy = table;
  if (options.computeOnly)
    schedule::removeMessages(copy);
  if (options.table == "-")
    return schedule::writeCsv(llvm::outs(), copy);
  return writeFileAtomically(options.table, [&](llvm::raw_ostream &os) { return schedule::writeCsv(os, copy); });
}

static Error writeReport(const std::string &path, const Subject &subject) {
  schedule::ReportExtras extras;
  extras.checks = subject.checked.checks;
  extras.bound = subject.bound;
  extras.search = llvm::json::Object(subject.search);
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    schedule::writeJson(os, subject.table, subject.costs, subject.simulation, extras);
    return Error::success();
  });
}

/// By the end of the name, which the command line has checked.
static Error drawPicture(StringRef path, const Subject &subject) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) -> Error {
    if (path.ends_with(".svg"))
      return schedule::drawSvg(os, subject.table, subject.costs, subject.simulation);
    if (path.ends_with(".html"))
      return schedule::drawHtml(os, subject.table, subject.costs, subject.simulation);
    schedule::drawTrace(os, subject.table, subject.costs, subject.simulation);
    return Error::success();
  });
}

/// All files, then what is printed.
static Error deliver(const Options &options, const Subject &subject, const ScheduleModel *model) {
  const ScheduleOptions &wanted = options.schedule;
  if (!options.report.empty())
    if (Error error = writeReport(options.report, subject))
      return error;
  if (!wanted.draw.empty())
    if (Error error = drawPicture(wanted.draw, subject))
      return error;
  if (!wanted.table.empty())
    if (Error error = writeTable(wanted, subject.table))
      return error;
  // A table on standard output must stay readable.
  if (wanted.table == "-")
    return Error::success();
  if (model)
    printStages(llvm::outs(), *model, subject.table, *subject.split);
  printSummary(llvm::outs(), subject);
  bool useColor = options.color == Color::Always || (options.color == Color::Auto && llvm::outs().has_colors());
  if (!options.quiet)
    schedule::drawText(llvm::outs(), subject.table, subject.simulation, getWidth(), useColor);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Several
//===----------------------------------------------------------------------===//

/// Under the heads of `compare`.
static void printRow(llvm::raw_ostream &os, const Subject &subject) {
  const Simulation &simulation = subject.simulation;
  os << llvm::formatv("{0,-14} {1,10} {2,9:p2} {3,9:p2} {4,8} {5,8} {6,10}\n", subject.table.name,
                      formatNumber(simulation.makespan), simulation.bubbleMakespan, simulation.bubbleSpan,
                      formatNumber(*llvm::max_element(simulation.peak.memory)), simulation.messages,
                      formatNumber(subject.bound.makespan));
}

/// Of `all`, schedules that do not have this shape say so in their line; one that was named is an error.
static ExitCode compare(const Options &options, const ScheduleModel *model) {
  bool isAll = options.schedule.compare == "all";
  std::vector<std::string> names;
  if (isAll)
    for (const schedule::GeneratorInfo &info : schedule::getGenerators())
      names.push_back(info.name.str());
  else
    for (StringRef name : llvm::split(options.schedule.compare, ","))
      names.push_back(name.str());
  // Nobody has any shape where these are wrong.
  if (Error error = checkSizes(options.schedule); error && isAll)
    return print(makeFailure(std::move(error), kBadCommandLine));
  else
    llvm::consumeError(std::move(error));
  if (model && !model->profile.empty())
    llvm::outs() << model->profile << '\n';
  llvm::outs() << llvm::formatv("{0,-14} {1,10} {2,9} {3,9} {4,8} {5,8} {6,10}\n", "schedule", "makespan", "bubble",
                                "of span", "memory", "messages", "bound");
  for (const std::string &name : names) {
    OrFailure<Subject> subject = prepare(options, name, model);
    if (auto *failure = std::get_if<Failure>(&subject)) {
      if (!isAll)
        return print(*failure);
      llvm::outs() << llvm::formatv("{0,-14} {1}\n", name, failure->message);
    } else {
      printRow(llvm::outs(), std::get<Subject>(subject));
    }
  }
  return kDone;
}

ExitCode cleave::driver::scheduleCommand(Session &session) {
  Options options = session.getOptions();
  std::optional<ScheduleModel> model;
  if (!options.compile.model.empty()) {
    model = loadScheduleModel(session, options.schedule);
    if (!model)
      return session.getExitCode();
  }
  const ScheduleModel *known = model ? &*model : nullptr;
  if (options.schedule.name.empty())
    options.schedule.name = "1f1b";
  if (!options.schedule.compare.empty())
    return compare(options, known);
  OrFailure<Subject> subject = prepare(options, options.schedule.name, known);
  if (auto *failure = std::get_if<Failure>(&subject))
    return print(*failure);
  if (Error error = deliver(options, std::get<Subject>(subject), known))
    return print(makeFailure(std::move(error), kBadInput));
  return kDone;
}
