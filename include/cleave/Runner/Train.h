//===- Train.h - steps again and again --------------------------*- C++ -*-===//
//
// The loop around a program that is a step of training: batches in, the states of ranks change in their place, a loss out. Ranks are
// threads of this process, or processes, which all run this loop. No MLIR, no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNNER_TRAIN_H
#define CLEAVE_RUNNER_TRAIN_H

#include "cleave/Program/Error.h"
#include "cleave/Runtime/Executor.h"

namespace cleave::runner {

struct TrainOptions {
  std::string data;                 ///< .npz, or a folder (docs/command-line.md)
  uint64_t steps = 0, epochs = 0;   ///< one of them: how many there are in the end, with those before `resume`
  bool isShuffled = true;           ///< else samples come as they are given
  std::optional<uint64_t> seed;     ///< of the order; nothing: that of `resume`, or 0
  std::string save;                 ///< .safetensors, written at the end
  uint64_t saveEvery = 0, keep = 1; ///< after so many steps, too; so many files
  std::string resume, weightsFrom;  ///< .safetensors: goes on there; begins with its weights
  std::string log;                  ///< .jsonl or .csv
  std::string evalData;             ///< as `data`: what the entry `eval` is run on in the end
  uint64_t evalEvery = 0;           ///< and after so many steps
};

/// What came of it.
struct TrainSummary {
  uint64_t steps = 0, samples = 0; ///< done now
  uint64_t lastStep = 0;           ///< those before included
  double firstLoss = 0, lastLoss = 0, seconds = 0;
  std::optional<double> eval; ///< the last one
};

struct TrainError {
  int code; ///< of `ExitCode` (Runner.h)
  std::string message;
};

/// Options that say nothing together, or nothing without data: a word that is passed over would be a night that is lost.
program::Status checkOptions(const TrainOptions &options);

/// Whether a program is a step: it gives a loss, and has states that are parameters.
bool isStep(const program::Program &program);

/// Trains. Rank 0 writes the log and knows losses. After an error files are those of the last step that was saved.
std::optional<TrainError> train(runtime::Executor &executor, const TrainOptions &options, TrainSummary &summary);

/// Calls `use` with the batch that a training would begin with.
program::Status withFirstBatch(const program::Program &program, const TrainOptions &options,
                               const std::function<void(const std::vector<runtime::Argument> &)> &use);

/// The mean of the loss that the entry `eval` gives over all batches of `data`, in the order of the samples; those that are left at the end
/// and are fewer than a batch are passed over. Rank 0 knows it.
std::optional<TrainError> evaluate(runtime::Executor &executor, const std::string &data, double &loss);

/// `20 steps, loss 0.693 to 0.412, 3.2 ms a step, 2500 samples/s`
std::string formatSummary(const TrainSummary &summary);

} // namespace cleave::runner

#endif // CLEAVE_RUNNER_TRAIN_H
