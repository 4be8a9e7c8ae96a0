//===- Executor.h - runs a program file -------------------------*- C++ -*-===//
//
//   std::unique_ptr<Executor> executor;
//   if (ExecutorStatus error = Executor::open("m.cleave", options, executor))
//     return report(error->message);
//   std::vector<Value> outputs;
//   if (ExecutorStatus error = executor->run({{"x", ElementType::F32, {4, 8}, data}}, outputs))
//     return report(error->message);
//
// Opening reads and checks the file, loads its code, and gives each rank its memory and its weights; running hands inputs
// to the ranks, lets each go through its list of commands, and puts the outputs together. Ranks are threads of this
// process, or processes (`ExecutorOptions::ranks`): each calls the same functions with the same inputs, which is checked, and rank 0
// gets the outputs.
//
// After a failure of a rank (`ErrorKind::Ranks`) an executor stays failed.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_EXECUTOR_H
#define CLEAVE_RUNTIME_EXECUTOR_H

#include "cleave/Program/Program.h"
#include "cleave/Runtime/RankKind.h"
#include <map>

namespace cleave::runtime {

class Device;
class FileBytes;
struct LibraryUse;
struct WindowUse;

/// What an error is about. The numbers are those of cleave/runtime.h.
enum class ErrorKind : uint8_t {
  Program = 1, ///< the file cannot be read, or is no sound program
  Machine,     ///< made for another machine, or for a device that is not there
  Weights,     ///< missing, or not those that the program was compiled with
  Memory,      ///< too little of it
  Arguments,   ///< names, element types or shapes of inputs and outputs
  Ranks,       ///< a rank failed while it ran: the message is that of Failure.h
};

struct ExecutorError {
  ErrorKind kind;
  std::string message;
};
/// Nothing, or an error.
using ExecutorStatus = std::optional<ExecutorError>;

struct ExecutorOptions {
  /// Where files of weights are looked for; empty: beside the program.
  std::string weightsFolder;
  /// Deadlines, the folder for the flight recorder.
  Options communication;
  RankKind ranks = RankKind::Threads;
  /// Of processes that can be told where they meet (RankKind.h): where. Empty: where the launcher says.
  std::string rendezvous;
  /// Devices that can keep a whole list of commands, and do it at once, do.
  bool usesGraphs = true;
  /// Binds the thread of each rank to a core, where there are as many cores as ranks.
  bool pinsThreads = true;
  /// Turns SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT of a kernel into a failure, while it runs. Not for processes that use these
  /// signals themselves.
  bool catchesCrashes = false;
  /// Looks for NaN in what each command writes, and fails at the first. Slow.
  bool findsNan = false;
  /// Keeps the time of each command, for `getEvents`.
  bool keepsTimes = false;
  /// Takes the time of calls on devices, for `getDeviceSeconds`.
  bool timesDevices = false;
  /// Bytes that all ranks of this process may have together; 0: what the system says is free.
  uint64_t memoryLimit = 0;
  /// Holds digests against the program's tables and code and all weights that are read: what has changed since is refused.
  bool verifies = true;
  /// A library with all entries of CUDA's that stands for them: the emulated device. Empty: those of this machine. CLEAVE_CUDA_LIBRARY
  /// comes first, and in one process the first program that opens a device decides for all.
  std::string cudaLibrary;
  /// Told while weights are loaded, how many bytes of how many are there. From any thread, by one at a time.
  std::function<void(uint64_t loaded, uint64_t total)> onLoad;
  /// Tests only: another device than this machine.
  std::function<std::unique_ptr<Device>()> makeDevice;
};

/// A tensor of the caller's, row-major.
struct Argument {
  std::string_view name;
  ElementType type;
  std::vector<int64_t> shape;
  const void *data;
};

/// An output: row-major elements.
struct Value {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<char> data;
};

/// What a rank has done of a command. Of a meeting that is started where it stands and waited for later: starting it, moving what is under
/// way on between other commands (which counts for the oldest meeting), waiting.
enum class Part : uint8_t { Whole, Advance, Finish };

/// A command that a rank has done, or a part of it. Seconds since the run began.
struct Event {
  uint32_t rank, stream, command;
  Part part;
  double begin, end;
  /// Of a command in a long loop: how often it ran behind this, and what that took, which is kept in sum alone.
  uint64_t laterRuns = 0;
  double laterSeconds = 0;

  /// Of all runs.
  double getSeconds() const { return end - begin + laterSeconds; }
};

/// How far the clock of a rank's process is ahead of rank 0's, give or take `error`: seconds.
struct RankClock {
  uint32_t rank;
  double offset, error;
};

class Executor {
public:
  /// Opens a program file.
  static ExecutorStatus open(const std::string &path, const ExecutorOptions &options,
                             std::unique_ptr<Executor> &executor);
  /// Opens a program in memory, which is not needed any more then; relative paths of weights are looked up in `folder`.
  static ExecutorStatus open(std::string_view bytes, const std::string &folder, const ExecutorOptions &options,
                             std::unique_ptr<Executor> &executor);
  ~Executor();

  /// One call. `wanted` names outputs; empty: all but those that are states. A state may be given as an input, in place of
  /// what the last call left. Memory of `outputs` is used again where it fits. Of a program with several entries one by its name, or the
  /// first.
  ExecutorStatus run(const std::vector<Argument> &inputs, std::vector<Value> &outputs,
                     const std::vector<std::string> &wanted = {}, const std::string &entry = {});
  /// Where ranks are processes: what all of them did in the last run, and what they use, comes to rank 0, for the functions below,
  /// which tell of this process alone before. All processes call it, between the same runs.
  ExecutorStatus gatherResults();
  /// Of each value the largest that any process has, in all of them. All call it with as many.
  ExecutorStatus takeLargest(std::vector<double> &values);
  /// Sets all states to what they begin as: zeros, or weights, which are read again.
  ExecutorStatus resetStates();
  /// Writes what the states of ranks are into one file (Arrays/Safetensors.h), each rank what it holds, with `metadata`; it appears
  /// whole or not at all. Where ranks are processes all call it, and all see the file's folder.
  ExecutorStatus saveStates(const std::string &path, const std::map<std::string, std::string> &metadata = {});
  /// Reads states from such a file, whatever ranks and shardings it was written by: all that the program has, or parameters and
  /// statistics alone, and all else is what it begins as. `metadata` of the file, if wanted. All processes call it.
  ExecutorStatus loadStates(const std::string &path, bool onlyParameters = false,
                            std::map<std::string, std::string> *metadata = nullptr);
  /// Fails all ranks, from any thread; whoever runs returns.
  void fail(Cause cause, const std::string &detail);
  /// Of processes, before one ends because of an error that is no failure of a rank, such as wrong arguments: waits until the others
  /// have found theirs, within the deadline, so that nobody finds this one gone instead; who waits for it fails with `why`. Nothing may
  /// run any more.
  void leave(const std::string &why);
  /// Whether a rank has failed, and how. Any thread.
  bool hasFailed() const;
  std::string getFailure() const;

  const program::Program &getProgram() const;
  /// Of this process: 0 where ranks are threads.
  uint32_t getRank() const;
  double getLoadSeconds() const;
  /// Of the last run.
  double getRunSeconds() const;
  /// Of the last run, from its first command to its last on the device, of the rank that took longest: with `timesDevices`,
  /// where it was one graph.
  std::optional<double> getDeviceSeconds() const;
  /// Bytes in the buffers of the rank that has most.
  uint64_t getPeakBytes() const;
  /// Those of each rank, in order: of those of this process, and on rank 0 of all whose results were gathered.
  std::vector<uint64_t> getPeakBytesOfRanks() const;
  /// What libraries of devices do for the ranks of this process, in all variants; empty on the host.
  std::vector<LibraryUse> getLibraries() const;
  /// As above, of their collectives.
  WindowUse getWindows() const;
  /// The variant that the last run picked.
  uint32_t getVariant() const;
  /// What the ranks of this process did in the last run, with `keepsTimes`. Of several processes the times are those since all had come
  /// to the call, as each of them knows it; those that were gathered are in the time of rank 0, within the errors of `getClocks`.
  std::vector<Event> getEvents() const;
  /// Of processes whose results were gathered, on rank 0: a clock for each rank, as it was after the last run. Else none: there is one clock.
  std::vector<RankClock> getClocks() const;

  /// The list that `rank` runs in a variant.
  const program::List &getList(uint32_t variant, uint32_t rank) const;

  struct State;

private:
  static ExecutorStatus open(std::string_view bytes, const std::string &folder, std::shared_ptr<const FileBytes> file,
                             const ExecutorOptions &options, std::unique_ptr<Executor> &executor);
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_EXECUTOR_H
