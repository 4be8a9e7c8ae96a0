//===- Runner.cpp - what `cleave-run` does --------------------------------===//
//
// Arrays in, calls, arrays out. Under a launcher every process reads the inputs, and rank 0 writes everything.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runner/Runner.h"
#include "Interrupt.h"
#include "Local.h"
#include "NumpyTypes.h"
#include "cleave/Arrays/Npz.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runner/Progress.h"
#include "cleave/Runtime/CommandFiles.h"
#include "cleave/Runtime/Device.h"
#include "cleave/Runtime/Files.h"
#include "cleave/Runtime/Launch.h"
#include "cleave/Runtime/Profile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace cleave::runner;
using namespace cleave::runtime;
namespace program = cleave::program;
using cleave::arrays::NpyArray;
using cleave::arrays::NpzArrays;
using program::concat;
using program::printable;

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// Arrays as the executor takes them; they stay where they are.
static std::vector<Argument> makeArguments(const NpzArrays &arrays) {
  std::vector<Argument> arguments;
  for (const auto &[name, array] : arrays)
    arguments.push_back({name, getElement(array.dtype), array.shape, array.data.data()});
  return arguments;
}

/// Zeros for every input of the first variant that is no state; what takes one value only has that.
static NpzArrays makeZeros(const program::Program &program) {
  const program::Variant &variant = program.variants.front();
  NpzArrays arrays;
  for (uint32_t i = 0; i < variant.inputs.size(); ++i) {
    if (std::any_of(variant.states.begin(), variant.states.end(),
                    [&](const program::State &state) { return state.input == i; }))
      continue;
    const program::Type &type = program.types[variant.inputs[i].type];
    NpyArray array{kDtypes[size_t(type.element)], type.shape, std::vector<char>(program::getBytes(type))};
    std::copy(variant.inputs[i].value.begin(), variant.inputs[i].value.end(), array.data.begin());
    arrays.emplace_back(variant.inputs[i].name, std::move(array));
  }
  return arrays;
}

/// The values are not needed any more, and are moved.
static program::Status writeOutputs(const std::string &path, std::vector<Value> &values) {
  NpzArrays arrays;
  for (Value &value : values)
    arrays.emplace_back(value.name, NpyArray{kDtypes[size_t(value.type)], value.shape, std::move(value.data)});
  program::Status failed = writeFile(path, [&](const Sink &sink) { return cleave::arrays::writeNpz(arrays, sink); });
  return failed;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

namespace {

class Run {
public:
  Run(const RunOptions &options, RankKind ranks)
      : options(options), ranks(ranks), interrupt(getTraits(ranks).areProcesses()) {}
  int run();

private:
  int open();
  int readInputs();
  int call();
  int train();
  int evaluate();
  int write();
  ExecutorStatus gather();
  /// A trace needs times, and so does a profile; the report then has what both come of.
  bool keepsTimes() const { return options.profile || !options.trace.empty(); }
  std::string formatReport() const;
  /// Prints a message, and gives the exit code back.
  int fail(int code, const std::string &message);
  int fail(const ExecutorError &error);

  const RunOptions &options;
  const RankKind ranks;
  Interrupt interrupt;
  std::unique_ptr<Executor> executor;
  NpzArrays inputs;
  std::vector<Value> outputs;
  std::vector<double> seconds, deviceSeconds;
  std::string why; ///< what was last told as an error
};

} // namespace

int Run::fail(int code, const std::string &message) {
  why = message;
  std::fprintf(stderr, "cleave-run: error: %s\n", message.c_str());
  return interrupt.getSignal() ? 128 + interrupt.getSignal() : code;
}

int Run::fail(const ExecutorError &error) {
  return fail(error.kind == ErrorKind::Ranks ? kRunFault : kBadInput, error.message);
}

/// A launcher that started a single process may as well have started none. What a launcher says and makes no sense is an error: one
/// rank of several would run the whole program.
static Status pickRanks(const RunOptions &options, RankKind &kind) {
  kind = options.ranks.value_or(RankKind::Threads);
  if (options.ranks)
    return {};
  auto getEnv = [](const char *name) -> const char * { return std::getenv(name); };
  std::optional<Launch> launch;
  Status status = readLaunch(getEnv, launch);
  if (status.isOk() && launch && launch->size > 1)
    kind = pickRankKind(*launch, !options.rendezvous.empty(), getEnv);
  return status;
}

/// The executor with all that was asked for. A kernel that crashes is a failure like others here: the process is ours.
int Run::open() {
  ExecutorOptions how;
  how.weightsFolder = options.weights;
  how.communication.deadline = options.deadline;
  how.communication.silence = options.silence;
  how.communication.recordFolder = options.record;
  how.ranks = ranks;
  how.rendezvous = options.rendezvous;
  how.pinsThreads = options.pin;
  how.usesGraphs = options.graph;
  how.catchesCrashes = true;
  how.findsNan = options.nan;
  how.verifies = options.verify;
  how.timesDevices = !options.report.empty();
  how.keepsTimes = keepsTimes();
  Progress progress;
  how.onLoad = [&](uint64_t loaded, uint64_t total) { progress.say(formatLoading(loaded, total)); };
  ExecutorStatus error = Executor::open(options.program, how, executor);
  progress.say("");
  return error ? fail(*error) : int(kDone);
}

/// All processes read the same file, and compare what they read when they call. If this one cannot, the others need not wait.
int Run::readInputs() {
  if (options.inputs.empty()) {
    inputs = makeZeros(executor->getProgram());
    return kDone;
  }
  auto failAll = [&](const std::string &message) {
    if (getTraits(ranks).areProcesses())
      executor->fail(Cause::Aborted, message);
    return fail(kBadInput, message);
  };
  FileBytes file;
  if (program::Status error = file.read(options.inputs))
    return failAll(error->message);
  program::Result<NpzArrays> read = cleave::arrays::readNpz(file.get());
  if (!read)
    return failAll(concat("cannot read ", printable(options.inputs), ": ", read.getError().message));
  inputs = std::move(*read);
  return kDone;
}

/// All calls. The first one is not timed: it touches memory and wakes threads.
int Run::call() {
  std::vector<Argument> arguments = makeArguments(inputs);
  for (unsigned i = 0; i <= options.repeat; ++i) {
    if (ExecutorStatus error = executor->run(arguments, outputs, {}, options.entry))
      return fail(*error);
    if (i == 0)
      continue;
    seconds.push_back(executor->getRunSeconds());
    if (std::optional<double> onDevice = executor->getDeviceSeconds())
      deviceSeconds.push_back(*onDevice);
  }
  return kDone;
}

/// With the weights of a file, or those of the model.
int Run::evaluate() {
  const TrainOptions &train = options.train;
  const std::string &from = train.weightsFrom.empty() ? train.resume : train.weightsFrom;
  if (!from.empty())
    if (ExecutorStatus error = executor->loadStates(from, /*onlyParameters=*/true))
      return fail(*error);
  double loss = 0;
  if (std::optional<TrainError> error = cleave::runner::evaluate(*executor, train.data, loss))
    return fail(error->code, error->message);
  if (executor->getRank() == 0)
    std::printf("eval %.6g\n", loss);
  return kDone;
}

/// All steps. Rank 0 says what came of them.
int Run::train() {
  TrainSummary summary;
  if (!options.entry.empty())
    return evaluate();
  if (std::optional<TrainError> error = cleave::runner::train(*executor, options.train, summary))
    return fail(error->code, error->message);
  if (executor->getRank() != 0)
    return kDone;
  std::printf("%s\n", formatSummary(summary).c_str());
  if (!options.train.save.empty())
    std::printf("saved %s, step %llu\n", printable(options.train.save).c_str(),
                static_cast<unsigned long long>(summary.lastStep));
  return kDone;
}

static std::string formatSeconds(const std::vector<double> &seconds) {
  std::string text;
  for (double each : seconds) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.9f", each);
    text += (text.empty() ? "" : ", ") + std::string(number);
  }
  return "[" + text + "]";
}

/// What libraries computed of the commands that they may compute; nothing where no device has libraries.
static std::string formatLibraries(const std::vector<LibraryUse> &libraries) {
  std::string text;
  for (const LibraryUse &use : libraries)
    text += concat(text.empty() ? ", \"libraries\": [" : ", ", "{\"name\": ", quoteJson(use.name),
                   ", \"calls\": ", use.calls, ", \"fallbacks\": ", use.fallbacks,
                   ", \"reason\": ", quoteJson(use.reason), ", \"workspace_bytes\": ", use.workspace, "}");
  return text.empty() ? text : text + "]";
}

/// Where operands of collectives lie; nothing where there are none of devices.
static std::string formatWindows(const WindowUse &use) {
  if (use.collectives + use.without == 0)
    return "";
  return concat(", \"nccl_windows\": {\"collectives\": ", use.collectives, ", \"without\": ", use.without,
                ", \"reason\": ", quoteJson(use.reason), "}");
}

/// A line behind a profile, for people: how many took the way they should, and of the others the first one's reason.
static void printUse(const std::string &name, const char *what, uint64_t count, const char *instead, uint64_t others,
                     const std::string &reason) {
  std::string text = concat(name, ": ", count, " ", what);
  if (others)
    text += concat(", ", others, " ", instead, ": ", reason);
  std::puts(text.c_str());
}

static void printUses(const Executor &executor) {
  for (const LibraryUse &use : executor.getLibraries())
    printUse(use.name, "calls", use.calls, "left to kernels", use.fallbacks, use.reason);
  if (WindowUse use = executor.getWindows(); use.collectives + use.without > 0)
    printUse("NCCL windows", "collectives", use.collectives, "without", use.without, use.reason);
}

static std::string formatBytes(const std::vector<uint64_t> &bytes) {
  std::string text;
  for (uint64_t one : bytes)
    text += concat(text.empty() ? "" : ", ", one);
  return "[" + text + "]";
}

/// docs/report.md fixes its fields.
std::string Run::formatReport() const {
  char load[32];
  std::snprintf(load, sizeof(load), "%.6f", executor->getLoadSeconds());
  std::string text = concat("{\"version\": 1, \"ranks\": ", executor->getProgram().ranks, ", \"load_seconds\": ", load,
                            ", \"runs\": ", formatSeconds(seconds));
  if (!deviceSeconds.empty())
    text += ", \"device_runs\": " + formatSeconds(deviceSeconds);
  if (keepsTimes() && executor->getProgram().roles.size() > 1)
    text += ", \"roles\": " + formatRoleTimes(getRoleTimes(*executor));
  if (keepsTimes())
    if (std::optional<PipelineTimes> times = getPipelineTimes(*executor))
      text += ", \"pipeline\": " + formatPipelineTimes(*times);
  return text + concat(", \"peak_bytes_per_rank\": ", executor->getPeakBytes(),
                       ", \"peak_bytes_of_ranks\": ", formatBytes(executor->getPeakBytesOfRanks()),
                       formatLibraries(executor->getLibraries()), formatWindows(executor->getWindows()), "}\n");
}

/// What other processes did in the last run, if any rank was asked for it, and how long the slowest took for each.
ExecutorStatus Run::gather() {
  std::vector<double> asks = {double(keepsTimes() || !options.report.empty())};
  if (ExecutorStatus error = executor->takeLargest(asks))
    return error;
  if (asks.front() == 0)
    return std::nullopt;
  if (ExecutorStatus error = executor->takeLargest(seconds))
    return error;
  if (ExecutorStatus error = executor->takeLargest(deviceSeconds))
    return error;
  return executor->gatherResults();
}

/// Rank 0 writes what is asked for; what was not, it tells in a line per output.
int Run::write() {
  if (ExecutorStatus error = gather())
    return fail(*error);
  if (executor->getRank() != 0)
    return kDone;
  for (const Value &value : outputs)
    if (options.outputs.empty())
      std::printf("%s  %s\n", printable(value.name).c_str(),
                  format(program::Type{value.type, value.shape, {}}).c_str());
  if (options.profile) {
    std::fputs(formatProfile(makeProfile(*executor)).c_str(), stdout);
    printUses(*executor);
  }
  program::Status failed;
  if (!options.outputs.empty())
    failed = writeOutputs(options.outputs, outputs);
  if (!failed && !options.trace.empty())
    failed = writeFile(options.trace, formatTrace(*executor));
  if (!failed && !options.profileFile.empty())
    failed = writeFile(options.profileFile, formatProfileJson(*executor));
  if (!failed && !options.report.empty())
    failed = writeFile(options.report, formatReport());
  return failed ? fail(kBadInput, failed->message) : int(kDone);
}

/// Signals are the executor's while it runs; before and behind it they end the process.
int Run::run() {
  int code = open();
  bool trains = !options.train.data.empty();
  if (code == kDone && !trains && options.inputs.empty() && options.entry.empty() && isStep(executor->getProgram()))
    code = fail(kBadInput, concat(printable(options.program), " is a training program: --data FILE, or --entry eval"));
  if (code == kDone && !trains)
    code = readInputs();
  if (code == kDone) {
    interrupt.watch(executor.get());
    code = trains ? train() : call();
    interrupt.watch(nullptr);
  }
  if (code == kDone && (!trains || keepsTimes() || !options.report.empty()))
    code = write();
  code = finishOutput(code);
  // Others may be on their way to the same error: they find it themselves, and not that this process is gone.
  if (code != kDone && executor && !executor->hasFailed())
    executor->leave(why);
  // Who uses MPI must not end it after a failure, and a rank that hangs would never be joined.
  if (code != kDone)
    _exit(code);
  return code;
}

int cleave::runner::finishOutput(int code) {
  errno = 0;
  bool isWritten = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (isWritten || code != kDone)
    return code;
  std::fprintf(stderr, "cleave-run: error: cannot write to standard output: %s\n", std::strerror(errno ? errno : EIO));
  return kBadInput;
}

/// What the command line says would lose, or nothing.
static program::Status checkFiles(const RunOptions &options) {
  CommandFiles files;
  files.addOutput("--outputs", options.outputs);
  files.addOutput("--report", options.report);
  files.addOutput("--trace", options.trace);
  files.addOutput("--profile", options.profileFile);
  files.addOutputFolder("--record", options.record,
                        [](std::string_view name) { return name.substr(0, 15) == "flight-recorder"; });
  if (constexpr std::string_view prefix = "file:"; options.rendezvous.substr(0, prefix.size()) == prefix)
    files.addOutput("--rendezvous", options.rendezvous.substr(prefix.size()));
  files.addOutput("--log", options.train.log);
  // A training may go on in the file that it began with: it is read whole before the first step, and replaced after it.
  bool isOneFile = options.train.save == options.train.resume;
  files.addOutput("--save", isOneFile ? "" : options.train.save);
  files.addStandardOutput();
  files.addInput("--inputs", options.inputs);
  files.addInput("--data", options.train.data);
  files.addInput("--eval-data", options.train.evalData);
  files.addInput("--weights-from", options.train.weightsFrom);
  files.addInput("--resume", isOneFile ? "" : options.train.resume);
  files.addProgram(options.program, options.weights);
  return files.check();
}

int cleave::runner::run(const RunOptions &options) {
  if (program::Status error = checkFiles(options)) {
    std::fprintf(stderr, "cleave-run: error: %s\n", error->message.c_str());
    return kBadCommandLine;
  }
  if (options.local)
    return runLocal(options);
  RankKind ranks;
  if (Status status = pickRanks(options, ranks); !status.isOk()) {
    std::fprintf(stderr, "cleave-run: error: %s; --ranks threads runs all ranks in this process\n",
                 status.getFailure().detail.c_str());
    return kBadInput;
  }
  return Run(options, ranks).run();
}
