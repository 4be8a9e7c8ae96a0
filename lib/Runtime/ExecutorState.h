//===- ExecutorState.h - what an executor holds -----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_EXECUTORSTATE_H
#define CLEAVE_LIB_RUNTIME_EXECUTORSTATE_H

#include "CommandLog.h"
#include "Crash.h"
#include "Memory.h"
#include "RankThreads.h"
#include "Tensors.h"
#include "Weights.h"
#include "cleave/Runtime/Executor.h"

namespace cleave::runtime {

/// A command that was done, or a part of it, in ticks; of a queue in its marks until all is done.
struct TimedStep {
  uint32_t stream, command;
  Part part;
  uint64_t begin, end;
  uint64_t laterRuns = 0, laterTicks = 0; ///< of those that are kept in sum alone
};

/// One rank of this process.
struct LocalRank {
  uint32_t rank = 0, role = 0;
  Device *device = nullptr;
  Queue *queue = nullptr; ///< the device's, if it has one
  RankMemory *memory = nullptr;
  std::shared_ptr<CommandLog> log;
  std::unique_ptr<Communicator> communicator;
  /// By groups and by pieces of the program.
  std::vector<GroupId> groups, pieceGroups;
  /// By variant.
  std::vector<BoundList> lists;
  /// Meetings that are started and not waited for, oldest first: their first steps. Empty on devices with queues.
  std::vector<const Step *> open;
  /// Of each loop of the list that runs, how many iterations it has behind it.
  std::vector<int64_t> iterations;
  /// Of lists that have run on a device with a queue: the whole list as one graph, made at its second run.
  std::vector<std::optional<uint32_t>> graphs;
  std::vector<bool> hasRun;
  std::vector<std::vector<TensorBox>> inputs, outputs;
  /// Of so many commands, in all iterations of all loops together, times are kept one by one; of later ones as a sum for each command.
  static constexpr size_t kMostTimes = 1 << 15;
  std::vector<TimedStep> times;
  /// How many of them are in ticks by now, and when the host began with those that are not.
  size_t readTimes = 0;
  uint64_t marksBegan = 0;
  /// So many may there be before they are added up.
  size_t mostTimes = 0;
  /// Of the last call, where it was a graph and somebody asks.
  std::optional<double> deviceSeconds;
  CrashGuard guard;
};

/// What all processes have told rank 0 of the last run.
struct Gathered {
  std::vector<Event> events; ///< in the time of rank 0
  std::vector<RankClock> clocks;
  std::vector<uint64_t> peakBytes; ///< by rank
  double loadSeconds = 0;
  std::vector<LibraryUse> libraries;
  WindowUse windows;
};
/// Another rank's, added to what is known.
void addUse(std::vector<LibraryUse> &all, const LibraryUse &use);
void addUse(WindowUse &all, const WindowUse &use);

/// A state that is written into a checkpoint: which input of the program it is, and where its elements lie in the file.
struct SavedState {
  uint32_t input = 0;
  uint64_t offset = 0;
  std::vector<int64_t> strides; ///< of the tensor that it is of, in elements
  std::string tensor;           ///< which that is
};

struct Executor::State {
  ~State();

  ExecutorOptions options;
  program::Program program;
  Clock clock;
  /// One for all ranks of this process, or, with queues, one for each.
  std::vector<std::unique_ptr<Device>> devices;
  /// By device and kernel.
  std::vector<std::vector<KernelEntry>> kernels;
  std::optional<Memory> memory;
  std::vector<LocalRank> ranks;
  std::unique_ptr<RankThreads> threads;
  std::optional<CrashHandlers> handlers;
  /// Where weights are: what states begin as may be read again. The file of the program, where it is one, while there are such states.
  std::string folder;
  std::shared_ptr<const FileBytes> file;
  /// Of programs without a file: what states begin as, of weights that stand in the program.
  std::vector<std::string> keptWeights;
  /// Set at the first failure: ranks look at it before every command.
  std::atomic<bool> isStopped{false};
  /// A rank did not come back: nothing may be taken from under it.
  bool isAbandoned = false;

  /// What a run is about. Here, so that a rank that does not come back finds it.
  struct Call {
    std::string entry;
    uint32_t variant = 0;
    /// By tensor of the variant: null for states that are not given, and outputs that are not wanted (or go to rank 0).
    std::vector<const char *> inputs;
    std::vector<char *> outputs;
    std::vector<bool> isWanted;
    /// By local rank.
    std::vector<Status> statuses;
  };
  std::unique_ptr<Call> call;
  std::function<void(size_t)> job;

  double loadSeconds = 0, runSeconds = 0;
  uint32_t variant = 0;
  uint64_t runBegan = 0;
  /// When all ranks had come to the call: what events of processes are told from.
  uint64_t eventsBegan = 0;
  /// Of processes: bytes of operands in the largest message of the program.
  uint64_t largestMessage = 0;
  std::optional<Gathered> gathered;
  /// Of outputs in terms: by output of the variant, the terms.
  std::vector<std::vector<std::vector<char>>> terms;

  // Open.cpp
  ExecutorStatus open(std::string_view bytes, const std::string &folder, std::shared_ptr<const FileBytes> file);
  // Run.cpp
  ExecutorStatus run(const std::vector<Argument> &inputs, std::vector<Value> &outputs,
                     const std::vector<std::string> &wanted, const std::string &entry);
  void fail(Cause cause, const std::string &detail);
  bool isHub() const { return ranks.front().rank == 0; }
  bool areProcesses() const { return getTraits(options.ranks).areProcesses(); }

  // States.cpp
  ExecutorStatus resetStates();
  ExecutorStatus saveStates(const std::string &path, const std::map<std::string, std::string> &metadata);
  ExecutorStatus loadStates(const std::string &path, bool onlyParameters, std::map<std::string, std::string> *metadata);

  // Together.cpp
  uint64_t findLargestMessage(const LocalRank &rank) const;
  Status compareClocks(std::vector<std::pair<uint64_t, uint64_t>> &ticks);

private:
  std::vector<uint64_t> digestCall(const std::vector<Argument> &inputs, const Call &call) const;
  ExecutorStatus compareCalls(const std::vector<Argument> &inputs, const Call &call, ExecutorStatus own);

  ExecutorStatus pickTarget(const Device &device, uint32_t &target) const;
  program::Status checkCode(const program::Object &object) const;
  ExecutorStatus loadCode(Device &device, std::vector<KernelEntry> &entries);
  ExecutorStatus loadCode();
  ExecutorStatus openRanks(std::string_view bytes);
  ExecutorStatus comparePrograms(std::string_view bytes);
  ExecutorStatus openDevices();
  ExecutorStatus makeDevices();
  ExecutorStatus loadWeights();
  program::Status checkWeights(WeightFiles &files, bool ofStates) const;
  program::Status fillWeights(const WeightFiles &files, bool ofStates);
  void keepBeginnings();
  program::Status writeStates(int file, const std::vector<SavedState> &saved);
  /// What rank 0 says, to all processes; the same text where there is one.
  Status tellAll(std::string &text);
  ExecutorStatus checkExhausted() const;
  ExecutorStatus agree(ExecutorStatus status);
  ExecutorStatus bindRanks();
  ExecutorStatus runRanks(void (State::*job)(LocalRank &));
  void shareMemory(LocalRank &rank);
  void splitGroups(LocalRank &rank);

  ExecutorStatus pickVariant(const std::vector<Argument> &inputs, Call &call) const;
  ExecutorStatus checkValues(const Call &call) const;
  ExecutorStatus checkInput(const Argument &input, Call &call) const;
  std::string describeShapes(const Argument &input) const;
  ExecutorStatus prepareOutputs(std::vector<Value> &outputs, const std::vector<std::string> &wanted, Call &call);
  Status runRank(LocalRank &rank, Call &call);
  template <bool kKeepsTimes> Status runSteps(LocalRank &rank, const BoundList &list);
  Status runStep(LocalRank &rank, const BoundList &list, const Step &step);
  Status runMeeting(LocalRank &rank, const BoundList &list, const Step &step);
  Status advance(LocalRank &rank);
  Status runLoop(LocalRank &rank, const BoundList &list, const Step &step, size_t &next);
  Status runList(LocalRank &rank);
  Status replay(LocalRank &rank, uint32_t graph);
  Status settle(LocalRank &rank);
  Status readMarks(LocalRank &rank);
  Status addUpTimes(LocalRank &rank);
  Status failDevice(LocalRank &rank, const std::string &detail);
  Status failReported(LocalRank &rank, const Report &report);
  Status readReports(LocalRank &rank);
  ExecutorStatus checkIndices(const Call &call) const;
  Status look(LocalRank &rank, const BoundList &list, const Step &step);
  Status gather(LocalRank &rank, Call &call);
  char *getWhole(Call &call, uint32_t output, uint32_t term);
  void combineTerms(Call &call);
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_EXECUTORSTATE_H
