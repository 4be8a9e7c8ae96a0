//===- Calls.h - the compiler as functions from options to JSON -*- C++ -*-===//
//
// What Python calls. Each call asks the library (include/cleave/Compiler), prints nothing and throws nothing; what comes back is one text:
//
//   {"result": .., "diagnostics": [{"severity": "error", "file": .., "line": .., ..}], "blame": "input"}
//
// `result` is null after an error, of which `blame` says whose it is. Paths that options name are files; a call may be made by several
// threads at once, each with options of its own.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PYTHON_NATIVE_CALLS_H
#define CLEAVE_PYTHON_NATIVE_CALLS_H

#include "cleave/Compiler/Check.h"
#include "cleave/Compiler/FindPlan.h"
#include "cleave/Compiler/Schedule.h"
#include "cleave/Runner/Train.h"
#include <atomic>
#include <mutex>

namespace cleave::python {

/// What stops a call from another thread.
class Stop {
public:
  /// Fails the ranks of the training that goes on, or of the one that will begin; all else ends where it looks next: before a phase of a model,
  /// a cell of a search, an op of the reference evaluator, a call of a bench.
  void stop();
  const std::atomic<bool> &isAsked() const { return isStopped; }

  /// While it lives, `stop` is about this executor.
  class Scope {
  public:
    Scope(Stop &stop, runtime::Executor &executor);
    ~Scope();

  private:
    Stop &stop;
  };

private:
  void failRanks();
  std::mutex mutex;
  runtime::Executor *executor = nullptr;
  std::atomic<bool> isStopped = false;
};

/// What is written of a training beside its checkpoints; each may be empty.
struct TrainFiles {
  std::string exported, adapters; ///< the model with its new weights; adapters alone
};

/// Writes the program to `path`. The result is its report.
std::string compile(const CompileOptions &options, const std::string &path, const Stop &stop);
/// The page of the model's decision, as text of HTML; `compare`, another plan, and `measured`, the trace of a run, may be empty.
std::string page(const CompileOptions &options, const std::string &compare, const std::string &measured,
                 const Stop &stop);
/// How long calls of a model, or of a program file, take: seconds.
std::string bench(const CompileOptions &options, uint64_t calls, uint64_t seed, const Stop &stop);
/// The report of what ranks would send, store and take. `output`: the module of a device goes there, up to `phase` where one is named; both
/// may be empty.
std::string shard(const CompileOptions &options, const std::string &phase, const std::string &output, const Stop &stop);
/// Ranks against one device: the outputs, and the report of the program that ran.
std::string check(const CompileOptions &options, const RunOptions &how, const Stop &stop);
/// Values that match `pattern`, all that are sharded where it is empty; and collectives with the least that others would cost more.
std::string explain(const CompileOptions &options, const std::string &pattern, const Stop &stop);
/// The report of a plan that is found; `memory` is a size such as `72GB`, `least`, or empty. With `reasons` what else there was.
std::string plan(const CompileOptions &options, PlanRequest request, const std::string &memory, bool reasons,
                 const Stop &stop);
/// The report of a schedule; of no model where options name none.
std::string schedule(const CompileOptions &options, const ScheduleOptions &wanted, const Stop &stop);
/// What is in a model or, with `"kind": "program"`, in a program file.
std::string inspect(const CompileOptions &options, const Stop &stop);
/// Trains in this process. The result has the report of the step and the figures of the training; losses are in the log of `train`.
std::string train(const CompileOptions &options, const runner::TrainOptions &train, const TrainFiles &files,
                  Stop &stop);
/// Writes a program file to another place: what it refers to stays where it is.
std::string moveProgram(const std::string &from, const std::string &to);

} // namespace cleave::python

#endif // CLEAVE_PYTHON_NATIVE_CALLS_H
