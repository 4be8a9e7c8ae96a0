//===- Api.cpp - the runtime for C ----------------------------------------===//
//
// Thin: arguments are checked for null, the rest is the executor's. Messages are kept per thread.
//
//===----------------------------------------------------------------------===//
#include "cleave/runtime.h"

#include "cleave/Program/Error.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Executor.h"

using namespace cleave::runtime;
namespace program = cleave::program;

static_assert(int(ErrorKind::Program) == CLEAVE_ERROR_PROGRAM && int(ErrorKind::Machine) == CLEAVE_ERROR_MACHINE &&
              int(ErrorKind::Weights) == CLEAVE_ERROR_WEIGHTS && int(ErrorKind::Memory) == CLEAVE_ERROR_MEMORY &&
              int(ErrorKind::Arguments) == CLEAVE_ERROR_ARGUMENTS && int(ErrorKind::Ranks) == CLEAVE_ERROR_RANKS);
static_assert(int(ElementType::F16) == CLEAVE_F16 && int(ElementType::F64) == CLEAVE_F64 &&
              int(ElementType::I1) == CLEAVE_I1 && int(ElementType::I64) == CLEAVE_I64 &&
              int(ElementType::UI8) == CLEAVE_UI8 && int(ElementType::UI64) == CLEAVE_UI64);

struct cleave_program {
  std::unique_ptr<Executor> executor;
  /// Of the last run.
  std::vector<Value> outputs;
};

static thread_local std::string lastError;

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
  converted.ranks = RankKind(options.use_mpi & 3);
  converted.pinsThreads = options.pin_threads != 0;
  converted.catchesCrashes = options.catch_crashes != 0;
  converted.verifies = options.no_verify == 0;
  return converted;
}

cleave_status cleave_open(const char *path, const cleave_options *options, cleave_program **opened) noexcept {
  if (!path || !opened)
    return failForNull(path ? "program" : "path");
  auto made = std::make_unique<cleave_program>();
  cleave_status status = finish(Executor::open(path, convert(options), made->executor));
  *opened = status == CLEAVE_OK ? made.release() : nullptr;
  return status;
}

cleave_status cleave_open_memory(const void *data, size_t bytes, const char *folder, const cleave_options *options,
                                 cleave_program **opened) noexcept {
  if (!data || !opened)
    return failForNull(data ? "program" : "data");
  auto made = std::make_unique<cleave_program>();
  cleave_status status = finish(Executor::open(std::string_view(static_cast<const char *>(data), bytes),
                                               folder ? folder : "", convert(options), made->executor));
  *opened = status == CLEAVE_OK ? made.release() : nullptr;
  return status;
}

void cleave_close(cleave_program *opened) noexcept { delete opened; }

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

cleave_status cleave_run(cleave_program *opened, const cleave_tensor *inputs, size_t inputCount, cleave_tensor *outputs,
                         size_t outputCount) noexcept {
  if (!opened || (inputCount && !inputs) || (outputCount && !outputs))
    return failForNull(opened ? "a list of tensors" : "program");
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
  if (cleave_status status = finish(opened->executor->run(arguments, opened->outputs, wanted)))
    return status;
  for (size_t i = 0; i < outputCount; ++i) {
    cleave_tensor &output = outputs[i];
    output = {output.name, CLEAVE_F32, 0, nullptr, nullptr, 0};
    if (i >= opened->outputs.size())
      continue;
    const Value &value = opened->outputs[i];
    output = {output.name,        cleave_type(value.type), value.shape.size(),
              value.shape.data(), value.data.data(),       value.data.size()};
  }
  return CLEAVE_OK;
}

cleave_status cleave_reset_states(cleave_program *opened) noexcept {
  if (!opened)
    return failForNull("program");
  opened->executor->resetStates();
  return CLEAVE_OK;
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

static cleave_status describe(const cleave_program *opened, size_t variant, size_t index, bool isInput,
                              cleave_tensor *tensor) {
  if (!opened || !tensor)
    return failForNull(opened ? "tensor" : "program");
  const program::Program &source = opened->executor->getProgram();
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

/// What `ask` says of an open program; 0 of none.
template <typename Ask> static auto askOf(const cleave_program *opened, Ask ask) -> decltype(ask(*opened->executor)) {
  return opened ? ask(*opened->executor) : 0;
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
