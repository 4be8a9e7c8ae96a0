//===- Communicator.h - one rank among others -------------------*- C++ -*-===//
//
// Each rank has a communicator. It starts operations, each in a group of ranks, does something else, and waits for them:
//
//   rank 0   start(all_reduce) ── kernel ── advance ── kernel ── advance ── wait ▶ output
//   rank 1   start(all_reduce) ── kernel ── advance ── kernel ── advance ── wait ▶ output
//
// What holds for all kinds:
// * Members of a group start the same operations in the same order, and wait in the order in which they started. Up to
//   `kMaxPending` operations of a group may be under way. In which order a rank waits for those of several groups is its own.
// * From `start` until `wait` returns the operands belong to the operation: others read the input and write the output.
// * Nothing has a thread of its own: what has been started moves in `start`, `advance` and `wait`, and may be done before it is
//   waited for. Who never calls `advance` gets the same results, later.
// * Results are the same bits on every run: terms combine in the order of the group; f16 and bf16 in f32, rounded once.
// * Every wait ends: by a deadline, by the silence of a rank, or by the failure of another. The first failure is that of
//   all ranks, and of every later call. After one, operands must stay where they are until all ranks have left, because a
//   rank that was late may still look at them.
//
// A new kind of communicator implements `join`, `post`, `complete` and, where it can, `advance`; numbers, checks and the flight recorder are here.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMMUNICATOR_H
#define CLEAVE_RUNTIME_COMMUNICATOR_H

#include "cleave/Runtime/Failure.h"
#include "cleave/Runtime/FlightRecorder.h"
#include "cleave/Runtime/Operation.h"
#include <deque>
#include <functional>

namespace cleave::runtime {

struct Options {
  /// Seconds that an operation may take from the moment of waiting for it.
  double deadline = 60;
  /// Seconds that a rank may give no sign of life. Thread ranks give one with every operation and `beat`, so it must
  /// exceed the longest kernel; processes give them from a thread of their own, always. 0: the deadline for threads, 5 for processes.
  double silence = 0;
  /// The folder that gets `flight-recorder.txt` when a rank fails. Empty: none.
  std::string recordFolder;
  /// Bytes of operands in the largest message that one process may send another until `expectMessages` says otherwise.
  uint64_t largestMessage = uint64_t(1) << 30;
  /// A digest of what the ranks run, which processes prove to each other when they meet.
  uint64_t program = 0;
  /// Tests only: called with the rank before and inside operations.
  std::function<void(int rank)> delay;
};

/// An operation under way.
struct Ticket {
  GroupId group = kWorld;
  uint64_t number = 0;
};

/// How many operations of a group may be started and not waited for.
constexpr uint64_t kMaxPending = 32;

class Communicator {
public:
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  /// Leaves: a rank that then waits for this one fails.
  virtual ~Communicator();

  int getRank() const { return rank; }
  int getSize() const { return size; }

  /// Makes groups. All ranks call it equally often and in one order, each with the members of its own group by index;
  /// with no members a rank is in none (`group` is then not to be used). Groups of one call share no rank.
  Status split(const std::vector<int> &members, GroupId &group);
  /// Starts an operation and returns at once.
  Status start(const Operation &operation, Ticket &ticket);
  /// Moves what has been started on as far as it goes without waiting: between kernels, where something is under way. Fails as `wait` does,
  /// but for deadlines, which begin there.
  virtual Status advance() { return {}; }
  /// Returns when the output is there and the operands belong to the caller again.
  Status wait(Ticket ticket);
  Status run(const Operation &operation);
  /// No message of another process has more bytes of operands from now on: a longer one is a failure, and nobody takes memory for
  /// it. All ranks say so before the next operation of any.
  virtual void expectMessages(uint64_t) {}
  /// A sign of life between operations: before every kernel.
  virtual void beat() {}
  /// What the rank does between operations: failures and the flight recorder say where it is.
  void setWork(std::shared_ptr<const Work> work) { getLog().setWork(std::move(work)); }
  /// Whether a rank has failed, as far as this one knows.
  bool hasFailed() const { return !getFirstFailure().isOk(); }
  double getDeadline() const { return options.deadline; }
  /// Goes because of an error that is no failure of a rank: one that all have found, or soon will. Who still waits for this rank then
  /// fails with `why`. Returns when all have gone, one has failed, or the deadline is over; nothing may be started any more.
  virtual void leave(const std::string &why) { (void)why; }
  /// Fails on behalf of something outside of communication, for all ranks. Returns the first failure, which may be another.
  Status fail(Cause cause, std::string detail);

protected:
  struct Group;
  struct Pending {
    Operation operation;
    const Group *group = nullptr;
    /// From 1, per group.
    uint64_t number = 0;
    uint64_t digest = 0;
    uint64_t logEntry = 0;
  };
  struct Group {
    GroupId id = kWorld;
    /// Ranks by index; this rank's own index.
    std::vector<int> members;
    uint32_t index = 0;
    uint64_t started = 0, finished = 0;
    /// By number.
    std::array<Pending, kMaxPending> pending;
  };

  Communicator(int rank, int size, Options options);
  /// Enters the group of all ranks: the last thing that the constructor of a class that can `join` does.
  void enterWorld();

  /// Called once for each group before its first operation.
  virtual void join(const Group &group) = 0;
  /// Publishes the operand. Does not wait.
  virtual Status post(const Pending &pending) = 0;
  virtual Status complete(const Pending &pending) = 0;
  /// Makes `failure` that of all ranks, unless there was one. Returns the first.
  virtual Status raise(const Failure &failure) = 0;
  /// Success, or the first failure of any rank.
  virtual Status getFirstFailure() const = 0;
  /// What this rank has done lately.
  virtual FlightLog &getLog() = 0;

  /// A failure in `pending`, raised.
  Status fail(const Pending &pending, Cause cause, int peer, std::string detail);
  /// The operation as failures name it, with number and group, and where the rank is in its work.
  std::string name(const Pending &pending);
  void delay() const {
    if (options.delay)
      options.delay(rank);
  }

  const int rank, size;
  const Options options;

private:
  void addGroup(std::vector<int> members);

  /// By id; those that this rank is in none of have no members. They stay where they are.
  std::deque<Group> groups;
};

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_COMMUNICATOR_H
