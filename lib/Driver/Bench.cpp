//===- Bench.cpp - how long a call of a program takes ---------------------===//
//
// A program, or a model that is compiled first, is called a few times to warm up and then as often as asked for. Then
// once more with a clock around every command, which tells where the time goes and costs some itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Driver/Session.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Executor.h"
#include "cleave/Runtime/Profile.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <random>

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

namespace {

/// Bytes for each input, in order.
using Inputs = std::vector<std::vector<char>>;

/// What is timed.
struct Subject {
  std::string path, weightsFolder;
  std::unique_ptr<Assembly> assembly; ///< of a program that is in no file
  Inputs inputs;
  size_t variant = 0; ///< the one that they are for
  bool verifies = true;
};

struct Timing {
  double load = 0;
  uint64_t peakBytes = 0;
  std::vector<double> runs;
};

/// Rows of the table: seconds of all commands of one kind for one node.
using Rows = llvm::MapVector<llvm::StringRef, double>;

} // namespace

//===----------------------------------------------------------------------===//
// What is timed
//===----------------------------------------------------------------------===//

/// Floats in [-1, 1), everything else 0: an index of 0 is always there.
static std::vector<char> draw(const program::Type &type, std::mt19937 &random) {
  std::vector<char> bytes(program::getBytes(type));
  if (type.element == program::Element::F32)
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      float value = float(random() >> 8) / float(1 << 23) - 1;
      memcpy(&bytes[i], &value, sizeof(value));
    }
  return bytes;
}

/// The first variant that was compiled for these sizes; null if there is none.
static const program::Variant *findVariant(const program::Program &program,
                                           const std::map<std::string, int64_t> &dims) {
  auto isFor = [&](const program::Variant &variant, const std::pair<const std::string, int64_t> &dim) {
    return llvm::any_of(variant.dims,
                        [&](const program::Dim &known) { return known.name == dim.first && known.size == dim.second; });
  };
  for (const program::Variant &variant : program.variants)
    if (llvm::all_of(dims, [&](const auto &dim) { return isFor(variant, dim); }))
      return &variant;
  return nullptr;
}

static llvm::Error takeProgram(const MappedFile &file, const Options &options, Subject &subject) {
  program::Result<program::Program> program = program::readProgram(file.getBytes(), program::Verify(subject.verifies));
  if (!program)
    return makeError("{0}: {1}", file.getPath(), program.getError().message);
  const program::Variant *variant = findVariant(*program, options.compile.dims);
  if (!variant)
    return makeError("{0}: no variant of the program is for these --dim: see 'cleave inspect'", file.getPath());
  std::mt19937 random(options.seed + 1);
  subject.variant = variant - program->variants.data();
  for (const program::Tensor &input : variant->inputs)
    subject.inputs.push_back(input.value.empty() ? draw(program->types[input.type], random)
                                                 : std::vector<char>(input.value.begin(), input.value.end()));
  subject.path = file.getPath().str();
  subject.weightsFolder = options.compile.weights;
  return llvm::Error::success();
}

/// Inputs as `cleave run` draws or reads them. False after an error.
static bool compile(Session &session, Subject &subject) {
  if (!session.load())
    return false;
  if (!session.hasMesh())
    session.useOneDevice();
  const Options &options = session.getOptions();
  if (Phase last = session.getLastPhase(); session.getPhase() < last && !session.advance(last))
    return false;
  mlir::func::FuncOp func = session.getEntry();
  if (!func)
    return false;
  llvm::Expected<llvm::SmallVector<reference::Tensor>> inputs =
      options.compile.inputs.empty() ? drawInputs(func, options.seed, session.getInputRanges())
                                     : readInputs(func, options.compile.inputs);
  if (!inputs)
    return session.Compilation::fail(inputs.takeError());
  for (const reference::Tensor &input : *inputs)
    subject.inputs.emplace_back(input.getBytes().begin(), input.getBytes().end());
  subject.assembly = session.makeProgram(".");
  return subject.assembly != nullptr;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<runtime::Executor>> open(const Subject &subject,
                                                               const runtime::ExecutorOptions &options) {
  if (subject.assembly)
    return openProgram(*subject.assembly, ".", options);
  std::unique_ptr<runtime::Executor> executor;
  if (runtime::ExecutorStatus error = runtime::Executor::open(subject.path, options, executor))
    return makeError("{0}", error->message);
  return executor;
}

/// Calls the program `count` times, after some that do not count; `visit` sees the executor after each.
static llvm::Error call(const Subject &subject, uint64_t count, bool keepsTimes, Timing &timing,
                        llvm::function_ref<void(const runtime::Executor &)> visit) {
  constexpr uint64_t warmUp = 3;
  runtime::ExecutorOptions options;
  options.keepsTimes = keepsTimes;
  options.verifies = subject.verifies;
  options.weightsFolder = subject.weightsFolder;
  llvm::Expected<std::unique_ptr<runtime::Executor>> opened = open(subject, options);
  if (!opened)
    return opened.takeError();
  runtime::Executor *executor = opened->get();
  const program::Program &program = executor->getProgram();
  std::vector<runtime::Argument> arguments;
  for (auto [input, bytes] : llvm::zip_equal(program.variants[subject.variant].inputs, subject.inputs)) {
    const program::Type &type = program.types[input.type];
    arguments.push_back({input.name, type.element, type.shape, bytes.data()});
  }
  std::vector<runtime::Value> outputs;
  for (uint64_t i = 0; i < warmUp + count; ++i) {
    // States are given once, and stay.
    for (size_t input = i == 1 ? arguments.size() : 0; input-- > 0;)
      if (llvm::any_of(program.variants.front().states,
                       [&](const program::State &state) { return state.input == input; }))
        arguments.erase(arguments.begin() + ptrdiff_t(input));
    if (runtime::ExecutorStatus error = executor->run(arguments, outputs))
      return makeError("{0}", error->message);
    if (i < warmUp)
      continue;
    timing.runs.push_back(executor->getRunSeconds());
    visit(*executor);
  }
  timing.load = executor->getLoadSeconds();
  timing.peakBytes = executor->getPeakBytes();
  return llvm::Error::success();
}

static double getMedian(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// What a command is called in the table.
static std::string describe(const program::Program &program, const program::Command &command) {
  std::string name = command.node >= 0 ? program.nodes[command.node] : "";
  if (const auto *launch = std::get_if<program::Launch>(&command.action))
    return formatv("{0,-32} {1}", program.kernels[launch->kernel].name, name);
  return formatv("{0,-32} {1}", getWord(command.action), name);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printRows(Rows &rows, uint64_t count, bool isLong) {
  double total = 0;
  for (const auto &entry : rows)
    total += entry.second;
  auto sorted = rows.takeVector();
  llvm::sort(sorted,
             [](const auto &a, const auto &b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
  constexpr size_t most = 20;
  size_t shown = isLong ? sorted.size() : std::min(most, sorted.size());
  llvm::outs() << formatv("{0,10}  {1,6}  {2,-32} {3}\n", "us", "share", "command", "node (rank 0)");
  for (const auto &[name, seconds] : llvm::ArrayRef(sorted).take_front(shown))
    llvm::outs() << formatv("{0,10:f1}  {1,6:p1}  {2}\n", seconds / double(count) * 1e6,
                            total > 0 ? seconds / total : 0, name);
  if (shown < sorted.size())
    llvm::outs() << formatv("and {0} more: --verbose\n", sorted.size() - shown);
}

/// The form of docs/report.md, which cleave-run writes, too.
static llvm::Error writeReport(const std::string &path, const Timing &timing, uint32_t ranks,
                               llvm::ArrayRef<runtime::RoleTime> roles) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    llvm::json::Object object{{"version", 1},
                              {"ranks", int64_t(ranks)},
                              {"load_seconds", timing.load},
                              {"runs", llvm::json::Array(timing.runs)},
                              {"peak_bytes_per_rank", int64_t(timing.peakBytes)}};
    llvm::json::Array list;
    for (const runtime::RoleTime &role : roles)
      list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(role.name)},
                                        {"ranks", int64_t(role.ranks)},
                                        {"busy_seconds", role.busy},
                                        {"meeting_seconds", role.meeting}});
    if (list.size() > 1)
      object["roles"] = std::move(list);
    os << formatv("{0:2}\n", llvm::json::Value(std::move(object)));
    return llvm::Error::success();
  });
}

/// Of sums over `count` calls the means.
static void takeMeans(std::vector<runtime::RoleTime> &roles, uint64_t count) {
  for (runtime::RoleTime &role : roles) {
    role.busy /= double(count);
    role.meeting /= double(count);
  }
}

/// What a rank of each role did by itself.
static void printRoles(const std::vector<runtime::RoleTime> &roles) {
  if (roles.size() < 2)
    return;
  llvm::outs() << formatv("{0,10}  {1,14}  {2}\n", "us alone", "us with others", "role, a rank of it");
  for (const runtime::RoleTime &role : roles)
    llvm::outs() << formatv("{0,10:f1}  {1,14:f1}  {2}\n", role.busy * 1e6, role.meeting * 1e6,
                            program::printable(role.name));
}

/// Times, prints, writes.
static llvm::Error bench(const Subject &subject, const Options &options) {
  Timing timing, detailed;
  uint32_t ranks = 0;
  auto note = [&](const runtime::Executor &executor) { ranks = executor.getProgram().ranks; };
  if (llvm::Error error = call(subject, options.repeat, /*keepsTimes=*/false, timing, note))
    return error;
  auto [least, most] = std::minmax_element(timing.runs.begin(), timing.runs.end());
  llvm::outs() << formatv("{0} {1}, loaded in {2:f4} s; {3} calls: median {4:f4} ms, least {5:f4}, largest {6:f4}\n",
                          ranks, ranks == 1 ? "rank" : "ranks", timing.load, timing.runs.size(),
                          getMedian(timing.runs) * 1e3, *least * 1e3, *most * 1e3);
  llvm::StringMap<char> names;
  Rows rows;
  std::vector<runtime::RoleTime> roles;
  auto add = [&](const runtime::Executor &executor) {
    std::vector<runtime::RoleTime> times = runtime::getRoleTimes(executor);
    roles.resize(times.size());
    for (auto [role, time] : llvm::zip_equal(roles, times))
      role = {time.name, time.ranks, role.busy + time.busy, role.meeting + time.meeting};
    const program::List &list = executor.getList(executor.getVariant(), 0);
    for (const runtime::Event &event : executor.getEvents()) {
      if (event.rank != 0)
        continue;
      std::string name = describe(executor.getProgram(), list.commands[event.command]);
      rows[names.try_emplace(name).first->getKey()] += event.getSeconds();
    }
  };
  constexpr uint64_t profiled = 5;
  if (llvm::Error error = call(subject, profiled, /*keepsTimes=*/true, detailed, add))
    return error;
  printRows(rows, profiled, options.verbose);
  takeMeans(roles, profiled);
  printRoles(roles);
  return options.report.empty() ? llvm::Error::success() : writeReport(options.report, timing, ranks, roles);
}

ExitCode cleave::driver::benchCommand(Session &session) {
  const Options &options = session.getOptions();
  Subject subject;
  subject.verifies = !options.compile.ignoreDigests;
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.compile.model);
  bool isProgram = file && program::isProgram((*file)->getBytes());
  if (isProgram) {
    if (std::optional<std::string> idle = findIdle(options))
      return printMistake(options.command, *idle);
    runtime::CommandFiles files = listFiles(options);
    files.addProgram(options.compile.model, options.compile.weights);
    if (!session.checkFiles(files))
      return session.getExitCode();
    if (llvm::Error error = takeProgram(**file, options, subject))
      return session.fail(std::move(error));
  } else {
    llvm::consumeError(file.takeError()); // whoever reads it as a model says so
    if (!compile(session, subject))
      return session.getExitCode();
  }
  Compilation::BlameScope running(session, Blame::Run);
  llvm::Error error = bench(subject, options);
  return error ? session.fail(std::move(error)) : kDone;
}
