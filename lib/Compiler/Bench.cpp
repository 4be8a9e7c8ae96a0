//===- Bench.cpp - how long a call of a program takes ---------------------===//
//
// A program, or a model that is compiled first, is called a few times to warm up and then as often as asked for. Then
// once more with a clock around every command, which tells where the time goes and costs some itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Bench.h"

#include "cleave/Compiler/RunProgram.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Interruption.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringMap.h"

#include <random>

using namespace cleave;

struct Bench::State {
  llvm::Expected<std::unique_ptr<runtime::Executor>> open(bool keepsTimes) const;
  llvm::Error call(uint64_t count, bool keepsTimes, llvm::function_ref<void(const runtime::Executor &)> visit) const;

  BenchOptions options;
  runtime::ExecutorOptions how;
  std::string path;                      ///< of a program file
  std::unique_ptr<Assembly> assembly;    ///< of a program that is in no file
  std::vector<std::vector<char>> inputs; ///< in order
  size_t variant = 0;                    ///< the one that they are for
};

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

llvm::Expected<std::unique_ptr<Bench>> Bench::create(const MappedFile &file, const CompileOptions &compile,
                                                     const BenchOptions &options) {
  program::Result<program::Program> program =
      program::readProgram(file.getBytes(), program::Verify(!compile.ignoreDigests));
  if (!program)
    return makeError("{0}: {1}", file.getPath(), program.getError().message);
  const program::Variant *variant = findVariant(*program, compile.dims);
  if (!variant)
    return makeError("{0}: no variant of the program is for these --dim: see 'cleave inspect'", file.getPath());
  auto state = std::make_unique<State>();
  std::mt19937 random(options.seed + 1);
  state->options = options;
  state->variant = variant - program->variants.data();
  for (const program::Tensor &input : variant->inputs)
    state->inputs.push_back(input.value.empty() ? draw(program->types[input.type], random)
                                                : std::vector<char>(input.value.begin(), input.value.end()));
  state->path = file.getPath().str();
  state->how.weightsFolder = compile.weights;
  state->how.verifies = !compile.ignoreDigests;
  return std::unique_ptr<Bench>(new Bench(std::move(state)));
}

std::unique_ptr<Bench> Bench::create(Compilation &compilation, const BenchOptions &options) {
  if (!compilation.isLoaded() && !compilation.load())
    return nullptr;
  if (!compilation.hasMesh())
    compilation.useOneDevice();
  if (Phase last = compilation.getLastPhase(); compilation.getPhase() < last && !compilation.advance(last))
    return nullptr;
  mlir::func::FuncOp func = compilation.getEntry();
  if (!func)
    return nullptr;
  const CompileOptions &compile = compilation.getOptions();
  llvm::Expected<llvm::SmallVector<reference::Tensor>> inputs =
      compile.inputs.empty() ? drawInputs(func, options.seed, compilation.getInputRanges())
                             : readInputs(func, compile.inputs);
  if (!inputs)
    return compilation.fail(inputs.takeError()), nullptr;
  auto state = std::make_unique<State>();
  state->options = options;
  for (const reference::Tensor &input : *inputs)
    state->inputs.emplace_back(input.getBytes().begin(), input.getBytes().end());
  state->assembly = compilation.makeProgram(".");
  if (!state->assembly)
    return nullptr;
  state->how = getExecutorOptions(compile);
  state->how.verifies = !compile.ignoreDigests;
  return std::unique_ptr<Bench>(new Bench(std::move(state)));
}

Bench::Bench(std::unique_ptr<State> state) : state(std::move(state)) {}
Bench::~Bench() = default;

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<runtime::Executor>> Bench::State::open(bool keepsTimes) const {
  runtime::ExecutorOptions opened = how;
  opened.keepsTimes = keepsTimes;
  if (assembly)
    return openProgram(*assembly, ".", opened);
  std::unique_ptr<runtime::Executor> executor;
  if (runtime::ExecutorStatus error = runtime::Executor::open(path, opened, executor))
    return makeError("{0}", error->message);
  return executor;
}

/// Calls the program `count` times, after some that do not count; `visit` sees the executor after each.
llvm::Error Bench::State::call(uint64_t count, bool keepsTimes,
                               llvm::function_ref<void(const runtime::Executor &)> visit) const {
  constexpr uint64_t warmUp = 3;
  llvm::Expected<std::unique_ptr<runtime::Executor>> opened = open(keepsTimes);
  if (!opened)
    return opened.takeError();
  runtime::Executor *executor = opened->get();
  const program::Program &program = executor->getProgram();
  std::vector<runtime::Argument> arguments;
  for (auto [input, bytes] : llvm::zip_equal(program.variants[variant].inputs, inputs)) {
    const program::Type &type = program.types[input.type];
    arguments.push_back({input.name, type.element, type.shape, bytes.data()});
  }
  std::vector<runtime::Value> outputs;
  for (uint64_t i = 0; i < warmUp + count; ++i) {
    if (Interruption::isAsked())
      return makeError("interrupted");
    // States are given once, and stay.
    for (size_t input = i == 1 ? arguments.size() : 0; input-- > 0;)
      if (llvm::any_of(program.variants.front().states,
                       [&](const program::State &state) { return state.input == input; }))
        arguments.erase(arguments.begin() + ptrdiff_t(input));
    if (runtime::ExecutorStatus error = executor->run(arguments, outputs))
      return makeError("{0}", error->message);
    if (i >= warmUp)
      visit(*executor);
  }
  return llvm::Error::success();
}

static std::string getName(const program::Program &program, const program::Command &command) {
  const auto *launch = std::get_if<program::Launch>(&command.action);
  return launch ? program.kernels[launch->kernel].name : std::string(getWord(command.action));
}

namespace {
/// Sums over calls with a clock.
class Clocked {
public:
  void add(const runtime::Executor &executor);
  /// Of `count` calls the means.
  void finish(uint64_t count, BenchResult &result);

private:
  llvm::StringMap<size_t> rows;
  std::vector<CommandTime> commands;
  std::vector<runtime::RoleTime> roles;
};
} // namespace

void Clocked::add(const runtime::Executor &executor) {
  std::vector<runtime::RoleTime> times = runtime::getRoleTimes(executor);
  roles.resize(times.size());
  for (auto [role, time] : llvm::zip_equal(roles, times))
    role = {time.name, time.ranks, role.busy + time.busy, role.meeting + time.meeting};
  const program::Program &program = executor.getProgram();
  const program::List &list = executor.getList(executor.getVariant(), 0);
  for (const runtime::Event &event : executor.getEvents()) {
    if (event.rank != 0)
      continue;
    const program::Command &command = list.commands[event.command];
    std::string name = getName(program, command), node = command.node >= 0 ? program.nodes[command.node] : "";
    auto [row, isNew] = rows.try_emplace(name + '\n' + node, commands.size());
    if (isNew)
      commands.push_back({std::move(name), std::move(node)});
    commands[row->second].seconds += event.getSeconds();
  }
}

void Clocked::finish(uint64_t count, BenchResult &result) {
  for (CommandTime &command : commands)
    command.seconds /= double(count);
  for (runtime::RoleTime &role : roles) {
    role.busy /= double(count);
    role.meeting /= double(count);
  }
  llvm::sort(commands, [](const CommandTime &a, const CommandTime &b) {
    return std::tie(b.seconds, a.command, a.node) < std::tie(a.seconds, b.command, b.node);
  });
  result.commands = std::move(commands);
  result.roles = std::move(roles);
}

llvm::Expected<BenchResult> Bench::run() const {
  BenchResult result;
  auto note = [&](const runtime::Executor &executor) {
    result.ranks = executor.getProgram().ranks;
    result.runs.push_back(executor.getRunSeconds());
    result.load = executor.getLoadSeconds();
    result.peakBytes = executor.getPeakBytes();
    result.peakBytesOfRanks = executor.getPeakBytesOfRanks();
  };
  if (llvm::Error error = state->call(state->options.calls, /*keepsTimes=*/false, note))
    return error;
  constexpr uint64_t clocked = 5;
  Clocked times;
  if (llvm::Error error =
          state->call(clocked, /*keepsTimes=*/true, [&](const runtime::Executor &executor) { times.add(executor); }))
    return error;
  times.finish(clocked, result);
  return result;
}

double cleave::getMedian(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}
