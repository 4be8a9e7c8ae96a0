//===- Checkpoints.h - the last few files of a training ---------*- C++ -*-===//
//
//   out.safetensors            the newest
//   out-000200.safetensors     those before, by the step that they are of, where more than one is kept
//   out-000100.safetensors
//
// The newest gets a second name before the next one takes its place, so that at no time there is none.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNNER_CHECKPOINTS_H
#define CLEAVE_LIB_RUNNER_CHECKPOINTS_H

#include "cleave/Program/Error.h"
#include "cleave/Runtime/Executor.h"

#include <string>
#include <vector>

namespace cleave::runner {

/// What a checkpoint says of the training besides its states.
struct Progression {
  uint64_t step = 0, seed = 0;
  bool isShuffled = true;
};

class Checkpoints {
public:
  /// `keep` files at the most, one or more. Where ranks are processes rank 0 alone deals with the older ones. What the training began with,
  /// `read`, is not counted and not taken away, whatever it is called; paths may be empty.
  Checkpoints(runtime::Executor &executor, std::string path, uint64_t keep, std::vector<std::string> read)
      : executor(executor), path(std::move(path)), keep(keep), read(std::move(read)) {}

  /// Whether there is a place to save at, which nobody wants to learn of after a night. Of a place that is there now.
  program::Status check() const;
  /// All processes call it at one step.
  runtime::ExecutorStatus save(const Progression &progression);

private:
  void keepOlder() const;

  runtime::Executor &executor;
  const std::string path;
  const uint64_t keep;
  const std::vector<std::string> read;
};

/// What the metadata of a checkpoint says; nothing where it says no step.
std::optional<Progression> readProgression(const std::map<std::string, std::string> &metadata);

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_CHECKPOINTS_H
