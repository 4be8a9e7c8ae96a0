//===- RunIdle.h - any bytes, opened and run without their code -*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_RUNIDLE_H
#define CLEAVE_TEST_UNIT_RUNTIME_RUNIDLE_H

#include "IdleDevice.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Runtime/Executor.h"

#include <algorithm>

namespace cleave::runtime::test {

/// Opens what are the bytes of a small program, and calls each variant twice, on zeros; kernels do nothing. False where the
/// bytes are refused, or ask for more than 8 ranks or 16 MiB; `error` is then why. Digests are not looked at: nothing else would be.
inline bool runIdle(std::string_view bytes, const std::string &folder, std::string &error) {
  program::Result<program::Program> program = program::readProgram(bytes, program::Verify::No);
  if (!program) {
    error = program.getError().message;
    return false;
  }
  if (program->ranks > 8) {
    error = "too many ranks";
    return false;
  }
  ExecutorOptions options;
  options.pinsThreads = false;
  options.verifies = false;
  options.communication.deadline = 5;
  options.makeDevice = [] { return std::make_unique<IdleDevice>(); };
  std::unique_ptr<Executor> executor;
  if (ExecutorStatus status = Executor::open(bytes, folder, options, executor)) {
    error = status->message;
    return false;
  }
  for (const program::Variant &variant : program->variants) {
    std::vector<std::vector<char>> zeros;
    std::vector<Argument> arguments;
    for (const program::Tensor &input : variant.inputs) {
      const program::Type &type = program->types[input.type];
      zeros.emplace_back(std::min<uint64_t>(program::getBytes(type), 1 << 26));
      if (zeros.back().size() < program::getBytes(type)) {
        error = "an input is too large";
        return false;
      }
      arguments.push_back({input.name, type.element, type.shape, zeros.back().data()});
    }
    for (const program::Tensor &output : variant.outputs)
      if (program::getBytes(program->types[output.type]) > 1 << 26) {
        error = "an output is too large";
        return false;
      }
    std::vector<Value> outputs;
    for (int call = 0; call < 2; ++call)
      if (ExecutorStatus status = executor->run(arguments, outputs)) {
        error = status->message;
        return false;
      }
  }
  return true;
}

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_RUNIDLE_H
