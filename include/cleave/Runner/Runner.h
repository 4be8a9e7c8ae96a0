//===- Runner.h - what `cleave-run` does ------------------------*- C++ -*-===//
//
// Opens a program file, hands it the arrays of an .npz file, runs it, and writes what comes of it; or, where it is a step, trains. No
// MLIR, no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNNER_RUNNER_H
#define CLEAVE_RUNNER_RUNNER_H

#include "cleave/Program/Error.h"
#include "cleave/Runner/Train.h"
#include "cleave/Runtime/RankKind.h"
#include <string>
#include <vector>

namespace cleave::runner {

/// How `cleave-run` ends; the codes are those of `cleave`. Ended by a signal: 128 and its number.
enum ExitCode {
  kDone = 0,
  kBadInput = 1,       ///< the program, weights, arrays, or the machine
  kBadCommandLine = 2, ///< the command line is wrong
  kRunFault = 4,       ///< a rank failed
};

struct RunOptions {
  std::string program;
  std::string inputs, outputs;            ///< .npz files
  std::string entry;                      ///< which function of several; the first without it
  std::string weights, record;            ///< folders
  std::string trace, report, profileFile; ///< JSON files
  unsigned repeat = 0;                    ///< calls after the first
  std::optional<runtime::RankKind> ranks; ///< nothing: processes where a launcher says that this is one of several
  std::string rendezvous;                 ///< where processes find rank 0
  bool local = false;                     ///< a process for each rank, started from here
  std::vector<std::string> words;         ///< the command line without --local
  double deadline = 60;                   ///< seconds that ranks wait for each other
  double silence = 0;                     ///< seconds that a rank may be silent; 0: the runtime's own
  bool profile = false, nan = false, pin = true, graph = true;
  bool verify = true; ///< holds the program and its weights against their digests
  TrainOptions train; ///< with data: trains
};

/// The command line, or what is wrong with it. Words that only print are not for this (`printsOnly`).
program::Result<RunOptions> parseOptions(const std::vector<std::string> &words);
/// What `--help` and `--version` print; empty for other words.
std::string printsOnly(const std::vector<std::string> &words);

/// Runs a program. Messages go to standard error, what is asked for to standard output.
int run(const RunOptions &options);

/// Puts what was printed where standard output goes. `code`, or `kBadInput` and a message where that cannot be done: what nobody got is
/// not done.
int finishOutput(int code);

} // namespace cleave::runner

#endif // CLEAVE_RUNNER_RUNNER_H
