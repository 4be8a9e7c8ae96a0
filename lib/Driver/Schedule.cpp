//===- Schedule.cpp - what each rank of a pipeline does, and when ---------===//
//
// What the library makes of a schedule (Compiler/Schedule.h) is printed, written and drawn; of several, a line each.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Schedule.h"

#include "Measured.h"
#include "cleave/Driver/Session.h"
#include "cleave/Schedule/Draw.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Schedule/Measured.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Numbers.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::StringRef;
using schedule::formatNumber;
using schedule::Simulation;

static ExitCode print(const Diagnostic &failure) {
  if (failure.blame == Blame::Options)
    return printMistake("schedule", failure.message);
  llvm::errs() << "cleave: error: " << failure.message << '\n';
  return kBadInput;
}

/// Stages with one reason share a line.
static void printLate(llvm::raw_ostream &os, llvm::ArrayRef<schedule::LateUpdate> late) {
  llvm::MapVector<StringRef, std::vector<std::string>> stages;
  for (const schedule::LateUpdate &update : late)
    stages[update.why].push_back(std::to_string(update.stage));
  for (const auto &[why, numbers] : stages)
    os << llvm::formatv("updated at the end: stage{0} {1}: {2}\n", numbers.size() > 1 ? "s" : "",
                        llvm::join(numbers, ", "), why);
}

/// A line per rank: the bytes of its buffers in a run, and what they are for where most of them are in use.
static void printPlanned(llvm::raw_ostream &os, llvm::ArrayRef<schedule::PlannedPeak> planned) {
  if (planned.empty())
    return;
  os << llvm::formatv("{0,5} {1,13}", "rank", "peak");
  for (const auto &[role, bytes] : planned.front().byRole)
    os << llvm::formatv(" {0,13}", role);
  os << '\n';
  for (auto [rank, peak] : llvm::enumerate(planned)) {
    os << llvm::formatv("{0,5} {1,13}", rank, peak.bytes);
    for (const auto &[role, bytes] : peak.byRole)
      os << llvm::formatv(" {0,13}", bytes);
    os << '\n';
  }
}

/// A line per stage: its time is that of a microbatch, in training of F, I and W together. Then what is to be known of them.
/// Bytes are summed up by receiver: a message has all values of a pair.
static void printStages(llvm::raw_ostream &os, const ScheduleResult &made) {
  os << llvm::formatv("{0,5} {1,5} {2,6} {3,12} {4,14} {5}\n", "stage", "rank", "ops", "ns", "parameters", "sends");
  for (auto [number, stage] : llvm::enumerate(made.split->stages)) {
    std::map<int32_t, int64_t> bytesTo;
    for (const schedule::StageSend &send : stage.sends)
      bytesTo[send.to] += send.bytes;
    std::string sends;
    for (auto [to, bytes] : bytesTo)
      sends += llvm::formatv("{0}{1} bytes to {2}", sends.empty() ? "" : ", ", bytes, to).str();
    os << llvm::formatv("{0,5} {1,5} {2,6} {3,12} {4,14} {5}\n", number, made.table.replicas.front().placement[number],
                        stage.numOps, stage.ns, stage.parameterBytes, sends);
  }
  os << llvm::formatv("slowest stage or link {0} ns, no split is faster than {1} ns\n", made.split->bottleneckNs,
                      made.split->boundNs);
  printPlanned(os, made.planned);
  printLate(os, made.late);
  for (const std::string &note : made.notes)
    os << note << '\n';
}

static void printSummary(llvm::raw_ostream &os, const ScheduleResult &made) {
  const schedule::Schedule &table = made.table;
  const Simulation &simulation = made.simulation;
  os << llvm::formatv("{0}: {1} ranks, {2} stages, {3} microbatches: makespan {4}, bubble {5:p2} ({6:p2} of the span "
                      "{7}), peak {8} stages, memory {9}, {10} messages, bound {11}\n",
                      table.name, table.numRanks, table.numStages, table.numMicrobatches,
                      formatNumber(simulation.makespan), simulation.bubbleMakespan, simulation.bubbleSpan,
                      formatNumber(simulation.span), *llvm::max_element(simulation.peak.held),
                      formatNumber(*llvm::max_element(simulation.peak.memory)), simulation.messages,
                      formatNumber(made.bound.makespan));
}

/// The columns of a terminal, or what fits any page.
static size_t getWidth() {
  constexpr size_t otherwise = 100;
  unsigned columns = llvm::sys::Process::StandardOutIsDisplayed() ? llvm::sys::Process::StandardOutColumns() : 0;
  return columns ? columns : otherwise;
}

/// Nothing is left of a file whose table cannot be written.
static llvm::Error writeTable(const ScheduleCommand &options, const schedule::Schedule &table) {
  schedule::Schedule copy = table;
  if (options.computeOnly)
    schedule::removeMessages(copy);
  if (options.table == "-")
    return schedule::writeCsv(llvm::outs(), copy);
  return writeFileAtomically(options.table, [&](llvm::raw_ostream &os) { return schedule::writeCsv(os, copy); });
}

static llvm::Error writeReport(const std::string &path, const ScheduleResult &made,
                               const schedule::Simulation *measured) {
  schedule::ReportExtras extras;
  extras.measured = measured;
  extras.late = made.late;
  extras.planned = made.planned;
  extras.checks = made.checked.checks;
  extras.bound = made.bound;
  extras.search = llvm::json::Object(made.search);
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    schedule::writeJson(os, made.table, made.costs, made.simulation, extras);
    return llvm::Error::success();
  });
}

/// By the end of the name, which the command line has checked.
static llvm::Error drawPicture(StringRef path, const ScheduleResult &made, const schedule::Simulation *measured) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) -> llvm::Error {
    if (path.ends_with(".svg"))
      return schedule::drawSvg(os, made.table, made.costs, made.simulation, measured);
    if (path.ends_with(".html"))
      return schedule::drawHtml(os, made.table, made.costs, made.simulation, measured);
    schedule::drawTrace(os, made.table, made.costs, made.simulation);
    return llvm::Error::success();
  });
}

llvm::Expected<std::optional<Simulation>> cleave::driver::readMeasured(const std::string &path,
                                                                       const ScheduleResult &made) {
  if (path.empty())
    return std::nullopt;
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::Expected<Simulation> read = schedule::readMeasured((*file)->getBytes(), made.table, made.costs.unit);
  if (!read)
    return addContext(path + ": ", read.takeError());
  return std::optional(std::move(*read));
}

/// All files, then what is printed.
static llvm::Error deliver(const Options &options, const ScheduleResult &made) {
  const ScheduleCommand &wanted = options.schedule;
  llvm::Expected<std::optional<Simulation>> run = readMeasured(wanted.measured, made);
  if (!run)
    return run.takeError();
  const Simulation *measured = *run ? &**run : nullptr;
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options.report, made, measured))
      return error;
  if (!wanted.draw.empty())
    if (llvm::Error error = drawPicture(wanted.draw, made, measured))
      return error;
  if (!wanted.table.empty())
    if (llvm::Error error = writeTable(wanted, made.table))
      return error;
  // A table on standard output must stay readable.
  if (wanted.table == "-")
    return llvm::Error::success();
  if (made.split)
    printStages(llvm::outs(), made);
  printSummary(llvm::outs(), made);
  if (measured)
    llvm::outs() << llvm::formatv("measured: makespan {0}, bubble {1:p2} ({2:p2} of the span {3})\n",
                                  formatNumber(measured->makespan), measured->bubbleMakespan, measured->bubbleSpan,
                                  formatNumber(measured->span));
  bool useColor = options.color == Color::Always || (options.color == Color::Auto && llvm::outs().has_colors());
  if (options.quiet)
    return llvm::Error::success();
  schedule::drawText(llvm::outs(), made.table, made.simulation, getWidth(), useColor);
  if (measured)
    schedule::drawText(llvm::outs(), made.table, *measured, getWidth(), useColor);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Several
//===----------------------------------------------------------------------===//

/// Under the heads of `compare`.
static void printRow(llvm::raw_ostream &os, const ScheduleResult &made) {
  const Simulation &simulation = made.simulation;
  os << llvm::formatv("{0,-14} {1,10} {2,9:p2} {3,9:p2} {4,8} {5,8} {6,10}\n", made.table.name,
                      formatNumber(simulation.makespan), simulation.bubbleMakespan, simulation.bubbleSpan,
                      formatNumber(*llvm::max_element(simulation.peak.memory)), simulation.messages,
                      formatNumber(made.bound.makespan));
}

static std::vector<std::string> listCompared(StringRef text) {
  std::vector<std::string> names;
  if (text == "all")
    for (const schedule::GeneratorInfo &info : schedule::getGenerators())
      names.push_back(info.name.str());
  else if (!text.empty())
    for (StringRef name : llvm::split(text, ","))
      names.push_back(name.str());
  return names;
}

/// Of `all`, schedules that do not have this shape say so in their line; one that was named is an error.
static ExitCode compareSchedules(const ScheduleCommand &wanted, llvm::ArrayRef<std::string> names,
                                 const StagedModel *model) {
  bool isAll = wanted.compare == "all";
  // Nobody has any shape where these are wrong.
  if (std::optional<Diagnostic> bad = checkScheduleSizes(wanted); bad && isAll)
    return print(*bad);
  if (model && !model->getProfile().empty())
    llvm::outs() << model->getProfile() << '\n';
  llvm::outs() << llvm::formatv("{0,-14} {1,10} {2,9} {3,9} {4,8} {5,8} {6,10}\n", "schedule", "makespan", "bubble",
                                "of span", "memory", "messages", "bound");
  ScheduleOptions one = wanted;
  for (const std::string &name : names) {
    one.name = name;
    OrDiagnostic<ScheduleResult> made = makeSchedule(one, model);
    if (auto *failure = std::get_if<Diagnostic>(&made)) {
      if (!isAll)
        return print(*failure);
      llvm::outs() << llvm::formatv("{0,-14} {1}\n", name, failure->message);
    } else {
      printRow(llvm::outs(), std::get<ScheduleResult>(made));
    }
  }
  return kDone;
}

ExitCode cleave::driver::scheduleCommand(Session &session) {
  const Options &options = session.getOptions();
  ScheduleCommand wanted = options.schedule;
  wanted.seed = options.seed;
  std::vector<std::string> compared = listCompared(wanted.compare);
  std::unique_ptr<StagedModel> model;
  if (!options.compile.model.empty()) {
    if (session.load())
      model = StagedModel::create(session, wanted, compared);
    if (!model)
      return session.getExitCode();
  }
  if (!compared.empty())
    return compareSchedules(wanted, compared, model.get());
  OrDiagnostic<ScheduleResult> made = makeSchedule(wanted, model.get());
  if (auto *failure = std::get_if<Diagnostic>(&made))
    return print(*failure);
  // Last, since nothing else can be asked of the model then.
  if (model && wanted.table != "-")
    model->planMemory(std::get<ScheduleResult>(made));
  if (llvm::Error error = deliver(options, std::get<ScheduleResult>(made)))
    return session.fail(std::move(error));
  return writePage(session);
}
