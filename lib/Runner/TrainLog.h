//===- TrainLog.h - a line for each step ------------------------*- C++ -*-===//
//
//   {"step": 7, "epoch": 0, "loss": 0.693, "norm": 1.2, "rate": 0.001, "scale": null, "seconds": 0.0031, "samples": 56}
//
//   {"step": 7, "epoch": 0, "eval": 0.71}
//
// or the same as CSV, by the ending of the file's name. Lines are there as soon as their steps are done.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNNER_TRAINLOG_H
#define CLEAVE_LIB_RUNNER_TRAINLOG_H

#include "cleave/Program/Error.h"
#include <cstdint>
#include <cstdio>
#include <string>

namespace cleave::runner {

/// What is told of a step; numbers that the program does not give are not there.
struct StepLine {
  uint64_t step = 0, epoch = 0;
  std::optional<double> loss, norm, rate, scale;
  double seconds = 0;
  uint64_t samples = 0; ///< that were trained on so far
};

class TrainLog {
public:
  TrainLog() = default;
  ~TrainLog();
  TrainLog(const TrainLog &) = delete;
  TrainLog &operator=(const TrainLog &) = delete;

  /// An empty path is none. Who goes on with a training goes on with its log.
  program::Status open(const std::string &path, bool goesOn);
  program::Status write(const StepLine &line);
  /// The loss on other data, behind a step.
  program::Status writeEval(uint64_t step, uint64_t epoch, double eval);

private:
  program::Status put(const std::string &text);

  std::string path;
  bool isCsv = false;
  std::FILE *file = nullptr;
};

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_TRAINLOG_H
