//===- Api.cpp - the runtime for C ----------------------------------------===//
//
// Thin: arguments are checked for null, the rest is the executor's. Messages are kept per thread.
//
// A handle is looked up before it is used, so that one that has been closed is an error, and so is one that another thread is in:
//
//   handle ──table──▶ program, kept while the call lasts ──lock──▶ executor
//
// Whoever closes a program that runs elsewhere takes the handle away; the program goes with the call.
//
// Memory that runs out is the one thing that is thrown, by the standard library, and caught here: what a call prepares, the next one does
// anew. Where it runs out in a rank, the executor knows.
//
//===----------------------------------------------------------------------===//
#include "cleave/runtime.h"

#include "cleave/Program/Error.h"
#include "cleave/Program/Exhaustion.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Executor.h"

#include <map>
#include <memory>
#include <mutex>

using namespace cleave::runtime;
namespace program = cleave::program;

static_assert(int(ErrorKind::Program) == CLEAVE_ERROR_PROGRAM && int(ErrorKind::Machine) == CLEAVE_ERROR_MACHINE &&
              int(ErrorKind::Weights) == CLEAVE_ERROR_WEIGHTS && int(ErrorKind::Memory) == CLEAVE_ERROR_MEMORY &&
              int(ErrorKind::Arguments) == CLEAVE_ERROR_ARGUMENTS && int(ErrorKind::Ranks) == CLEAVE_ERROR_RANKS);
static_assert(int(ElementType::F16) == CLEAVE_F16 && int(ElementType::F64) == CLEAVE_F64 &&
              int(ElementType::I1) == CLEAVE_I1 && int(ElementType::I64) == CLEAVE_I64 &&
              int(ElementType::UI8) == CLEAVE_UI8 && int(ElementType::UI64) == CLEAVE_UI64);

/// What a handle stands for.
struct cleave_program {
  std::unique_ptr<Executor> executor;
  /// Of the last run.
  std::vector<Value> outputs;
  /// Held by the call that uses the executor.
  std::mutex inUse;
};

static thread_local std::string lastError;

namespace {
/// All programs that are open. It is never destroyed: threads may outlive what is static.
class Handles {
public:
  static Handles &get() {
    static auto *handles = new Handles;
    return *handles;
  }

  /// A handle is a number that no other program will have, which an address could be.
  cleave_program *add(std::shared_ptr<cleave_program> program) {
    std::lock_guard<std::mutex> lock(mutex);
    auto *handle = reinterpret_cast<cleave_program *>(last += alignof(cleave_program));
    open[handle] = std::move(program);
    return handle;
  }
  /// Null where it is closed, or was never open.
  std::shared_ptr<cleave_program> find(const cleave_program *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = open.find(handle);
    return found == open.end() ? nullptr : found->second;
  }
  /// Hands it out for the last time.
  std::shared_ptr<cleave_program> remove(const cleave_program *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = open.find(handle);
    std::shared_ptr<cleave_program> program = found == open.end() ? nullptr : std::move(found->second);
    if (program)
      open.erase(found);
    return program;
  }

private:
  std::mutex mutex;
  uintptr_t last = 0;
  std::map<const cleave_program *, std::shared_ptr<cleave_program>> open;
};
} // namespace

static cleave_status fail(cleave_status status, std::string message) {
  lastError = std::move(message);
  return status;
}

static cleave_status finish(const ExecutorStatus &status) {
  return status ? fail(cleave_status(status->kind), status->message) : CLEAVE_OK;
}

static cleave_status failForNull(const char *what) {
  return fail(CLEAVE_ERROR_ARGUMENTS, std::string(what) + " is null");
}

static cleave_status failForUse() {
  return fail(CLEAVE_ERROR_IN_USE, "the program is in use by another thread: one call at a time");
}

static cleave_status failForClosed() { return fail(CLEAVE_ERROR_ARGUMENTS, "the program is closed"); }

static cleave_status failForMemory() noexcept {
  // As many letters as a string holds without memory.
  lastError = "out of memory";
  return CLEAVE_ERROR_MEMORY;
}

/// What `call` returns; of what it throws, which can only be that memory runs out, an error.
template <typename Call> static cleave_status guard(Call call) noexcept {
  cleave_status status = CLEAVE_OK;
  return program::completes([&] { status = call(); }) ? status : failForMemory();
}

/// A call that uses the executor, one at a time. What is thrown ends in `guard`, and passes frames of this library without ending
/// what they hold (it is built without exceptions): so the lock is taken, and given back, outside of it.
template <typename Call> static cleave_status use(cleave_program *opened, Call call) noexcept {
  std::shared_ptr<cleave_program> program = Handles::get().find(opened);
  if (!program)
    return guard(failForClosed);
  std::unique_lock<std::mutex> lock(program->inUse, std::try_to_lock);
  return lock ? guard([&] { return call(*program); }) : guard(failForUse);
}

const char *cleave_last_error(void) noexcept { return lastError.c_str(); }
const char *cleave_version(void) noexcept { return CLEAVE_VERSION; }

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

void cleave_options_init(cleave_options *options) noexcept {
  if (!options)
    return;
  *options = {};
  options->pin_threads = 1;
}

static ExecutorOptions convert(const cleave_options *given) {
  cleave_options options;
  cleave_options_init(&options);
  if (given)
    options = *given;
  ExecutorOptions converted;
  converted.weightsFolder = options.weights_folder ? options.weights_folder : "";
  converted.communication.recordFolder = options.record_folder ? options.record_folder : "";
  if (options.deadline_seconds > 0)
    converted.communication.deadline = options.deadline_seconds;
  converted.communication.silence = options.silence_seconds;
  converted.memoryLimit = options.memory_limit;
  converted.ranks = RankKind(options.ranks);
  converted.pinsThreads = options.pin_threads != 0;
  converted.catchesCrashes = options.catch_crashes != 0;
  converted.verifies = options.no_verify == 0;
  return converted;
}

/// C lets any number be an enum.
static bool areKnown(const cleave_options *options) { return !options || size_t(options->ranks) < kNumRankKinds; }

cleave_status cleave_open(const char *path, const cleave_options *options, cleave_program **opened) noexcept {
  if (!path || !opened)
    return failForNull(path ? "program" : "path");
  if (!areKnown(options))
    return fail(CLEAVE_ERROR_ARGUMENTS, "options.ranks is not one of cleave_ranks");
  *opened = nullptr;
  return guard([&] {
    auto made = std::make_shared<cleave_program>();
    cleave_status status = finish(Executor::open(path, convert(options), made->executor));
    if (status == CLEAVE_OK)
      *opened = Handles::get().add(std::move(made));
    return status;
  });
}

cleave_status cleave_open_memory(const void *data, size_t bytes, const char *folder, const cleave_options *options,
                                 cleave_program **opened) noexcept {
  if (!data || !opened)
    return failForNull(data ? "program" : "data");
  if (!areKnown(options))
    return fail(CLEAVE_ERROR_ARGUMENTS, "options.ranks is not one of cleave_ranks");
  *opened = nullptr;
  return guard([&] {
    auto made = std::make_shared<cleave_program>();
    std::string_view program(static_cast<const char *>(data), bytes);
    cleave_status status = finish(Executor::open(program, folder ? folder : "", convert(options), made->executor));
    if (status == CLEAVE_OK)
      *opened = Handles::get().add(std::move(made));
    return status;
  });
}

void cleave_close(cleave_program *opened) noexcept { (void)Handles::get().remove(opened); }

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// A tensor of C as an argument. Its bytes are compared with what type and shape ask for.
static cleave_status convert(const cleave_tensor &tensor, Argument &argument) {
  if (!tensor.name || (tensor.rank > 0 && !tensor.shape))
    return failForNull(tensor.name ? "the shape of an input" : "the name of an input");
  if (tensor.type < CLEAVE_F16 || tensor.type > CLEAVE_UI64)
    return fail(CLEAVE_ERROR_ARGUMENTS, program::concat("input ", program::quote(tensor.name), " has no known type"));
  argument = {tensor.name, ElementType(tensor.type), {tensor.shape, tensor.shape + tensor.rank}, tensor.data};
  uint64_t bytes = program::getElementBytes(argument.type);
  bool fits = true;
  for (int64_t size : argument.shape)
    fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, uint64_t(size), &bytes);
  if (fits && bytes == tensor.bytes)
    return CLEAVE_OK;
  return fail(CLEAVE_ERROR_ARGUMENTS, program::concat("input ", program::quote(tensor.name), " has ", tensor.bytes,
                                                      " bytes, its type and shape need ", bytes));
}

/// What a call gives; nothing in processes that get none.
static void hand(const std::vector<Value> &values, size_t index, cleave_tensor &output) {
  output = {output.name, CLEAVE_F32, 0, nullptr, nullptr, 0};
  if (index >= values.size())
    return;
  const Value &value = values[index];
  output = {output.name,        cleave_type(value.type), value.shape.size(),
            value.shape.data(), value.data.data(),       value.data.size()};
}

cleave_status cleave_run(cleave_program *opened, const cleave_tensor *inputs, size_t inputCount, cleave_tensor *outputs,
                         size_t outputCount) noexcept {
  return cleave_run_entry(opened, nullptr, inputs, inputCount, outputs, outputCount);
}

cleave_status cleave_run_entry(cleave_program *opened, const char *entry, const cleave_tensor *inputs,
                               size_t inputCount, cleave_tensor *outputs, size_t outputCount) noexcept {
  if (!opened || (inputCount && !inputs) || (outputCount && !outputs))
    return failForNull(opened ? "a list of tensors" : "program");
  return use(opened, [&](cleave_program &program) {
    std::vector<Argument> arguments(inputCount);
    for (size_t i = 0; i < inputCount; ++i)
      if (cleave_status status = convert(inputs[i], arguments[i]))
        return status;
    std::vector<std::string> wanted;
    for (size_t i = 0; i < outputCount; ++i) {
      if (!outputs[i].name)
        return failForNull("the name of an output");
      wanted.push_back(outputs[i].name);
    }
    if (cleave_status status = finish(program.executor->run(arguments, program.outputs, wanted, entry ? entry : "")))
      return status;
    for (size_t i = 0; i < outputCount; ++i)
      hand(program.outputs, i, outputs[i]);
    return CLEAVE_OK;
  });
}

// Not under the lock, which the call that is to come back holds; the program lives while it is looked up here.
void cleave_stop(cleave_program *opened, const char *why) noexcept {
  (void)guard([&] {
    if (std::shared_ptr<cleave_program> program = Handles::get().find(opened))
      program->executor->fail(Cause::Aborted, why ? why : "stopped");
    return CLEAVE_OK;
  });
}

cleave_status cleave_reset_states(cleave_program *opened) noexcept {
  if (!opened)
    return failForNull("program");
  return use(opened, [](cleave_program &program) { return finish(program.executor->resetStates()); });
}

/// What `act` does with the states and the file at `path`.
template <typename Act> static cleave_status useFile(cleave_program *opened, const char *path, Act act) {
  if (!opened || !path)
    return failForNull(opened ? "path" : "program");
  return use(opened, [&](cleave_program &program) { return finish(act(*program.executor)); });
}

cleave_status cleave_save(cleave_program *opened, const char *path) noexcept {
  return useFile(opened, path, [&](Executor &executor) { return executor.saveStates(path); });
}

cleave_status cleave_load(cleave_program *opened, const char *path, int onlyParameters) noexcept {
  return useFile(opened, path, [&](Executor &executor) { return executor.loadStates(path, onlyParameters != 0); });
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

static cleave_status describe(const cleave_program *opened, size_t variant, size_t index, bool isInput,
                              cleave_tensor *tensor) {
  if (!opened || !tensor)
    return failForNull(opened ? "tensor" : "program");
  std::shared_ptr<cleave_program> program = Handles::get().find(opened);
  if (!program)
    return failForClosed();
  const program::Program &source = program->executor->getProgram();
  if (variant >= source.variants.size())
    return fail(CLEAVE_ERROR_ARGUMENTS, program::concat("variant ", variant, " of ", source.variants.size()));
  const program::Variant &which = source.variants[variant];
  const std::vector<program::Tensor> &tensors = isInput ? which.inputs : which.outputs;
  if (index >= tensors.size())
    return fail(CLEAVE_ERROR_ARGUMENTS, program::concat("tensor ", index, " of ", tensors.size()));
  const program::Type &type = source.types[tensors[index].type];
  *tensor = {tensors[index].name.c_str(), cleave_type(type.element), type.shape.size(), type.shape.data(), nullptr,
             program::getBytes(type)};
  return CLEAVE_OK;
}

cleave_status cleave_describe_input(const cleave_program *opened, size_t variant, size_t index,
                                    cleave_tensor *tensor) noexcept {
  return describe(opened, variant, index, /*isInput=*/true, tensor);
}

cleave_status cleave_describe_output(const cleave_program *opened, size_t variant, size_t index,
                                     cleave_tensor *tensor) noexcept {
  return describe(opened, variant, index, /*isInput=*/false, tensor);
}

// The first variant's: all variants have the same states.
cleave_status cleave_describe_state(const cleave_program *opened, size_t index, cleave_tensor *tensor) noexcept {
  std::shared_ptr<cleave_program> program = Handles::get().find(opened);
  if (!opened || !program)
    return opened ? failForClosed() : failForNull("program");
  const std::vector<program::State> &states = program->executor->getProgram().variants.front().states;
  if (index >= states.size())
    return fail(CLEAVE_ERROR_ARGUMENTS, program::concat("state ", index, " of ", states.size()));
  return describe(opened, 0, states[index].input, /*isInput=*/true, tensor);
}

const char *cleave_state_output(const cleave_program *opened, size_t index) noexcept {
  std::shared_ptr<cleave_program> program = Handles::get().find(opened);
  if (!program)
    return nullptr;
  const program::Variant &first = program->executor->getProgram().variants.front();
  bool isKept = index < first.states.size() && first.states[index].output >= 0;
  return isKept ? first.outputs[size_t(first.states[index].output)].name.c_str() : nullptr;
}

/// What `ask` says of an open program; 0 of none.
template <typename Ask> static auto askOf(const cleave_program *opened, Ask ask) -> decltype(ask(*opened->executor)) {
  std::shared_ptr<cleave_program> program = Handles::get().find(opened);
  return program ? ask(*program->executor) : 0;
}

size_t cleave_variant_count(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getProgram().variants.size(); });
}

size_t cleave_input_count(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getProgram().variants.front().inputs.size(); });
}

size_t cleave_output_count(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getProgram().variants.front().outputs.size(); });
}

size_t cleave_state_count(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getProgram().variants.front().states.size(); });
}

uint32_t cleave_rank_count(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getProgram().ranks; });
}

uint32_t cleave_rank(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getRank(); });
}

double cleave_load_seconds(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getLoadSeconds(); });
}

double cleave_run_seconds(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getRunSeconds(); });
}

uint64_t cleave_peak_bytes(const cleave_program *opened) noexcept {
  return askOf(opened, [](const Executor &executor) { return executor.getPeakBytes(); });
}
