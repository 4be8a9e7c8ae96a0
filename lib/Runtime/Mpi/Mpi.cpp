//===- Mpi.cpp - ranks that are processes under mpirun --------------------===//
//
// MPI carries messages, and nothing else: an operation is one or two rounds, in each of which a member sends one message
// to each other one, and terms are combined here, in the order of the group, so that the bits are those of thread ranks.
//
//   small all_reduce   everybody's operand to all                    1 round
//   large all_reduce   share p of the operand to member p, combined; the share combined to all      2 rounds
//   the others         what member p needs to member p               1 round
//
// A message begins with what its sender is doing, so every operation is checked. Messages are taken by probing, whatever
// their size, so a wrong one is found and not cut off. Waiting is polling, with an eye on the watch (Watch.h), because MPI
// itself waits for ever for a rank that has stopped.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Mpi.h"
#include "Messages.h"
#include "cleave/Runtime/Launch.h"

#include "../Watch.h"
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mpi.h>
#include <mutex>
#include <sched.h>
#include <thread>

using namespace cleave::runtime;

/// Seconds without a sign of life after which a process has stopped, unless the options say otherwise.
static constexpr double kSilence = 5;
/// A message on its way may come after its sender's goodbye.
static constexpr double kGrace = 0.5;
/// Number and round are in the tag of a message, beside the group.
static constexpr uint64_t kGroups = 1 << 10, kNumbers = 1 << 19;

namespace {

class MpiCommunicator final : public Communicator {
public:
  MpiCommunicator(int rank, int size, const Options &options, MPI_Comm comm, bool endsMpi)
      : Communicator(rank, size, options), comm(comm), endsMpi(endsMpi), watch(rank, size, options) {
    enterWorld();
  }
  ~MpiCommunicator() override;

  /// Connects the watches of all ranks.
  Status begin();

private:
  /// One round of an operation: a message to and from each other member.
  struct Round {
    std::vector<Message> out, in;
    std::vector<MPI_Request> sends, receives;
    std::vector<bool> isProbed;
  };

  void join(const Group &) override {}
  Status post(const Pending &pending) override;
  Status complete(const Pending &pending) override;
  Status raise(const Failure &failure) override {
    watch.raise(failure);
    return watch.getFailure().get();
  }
  Status getFirstFailure() const override { return watch.getFailure().get(); }
  FlightLog &getLog() override { return watch.getLog(); }

  int getTag(const Pending &pending, unsigned number) const {
    return int((pending.group->id * kNumbers + pending.number % kNumbers) * 2 + number);
  }
  Round &getRound(const Pending &pending, unsigned number) {
    return rounds[{pending.group->id, pending.number * 2 + number}];
  }
  Status send(const Pending &pending, unsigned number, std::vector<Message> messages);
  Status receive(const Pending &pending, unsigned number);
  Status poll(const Pending &pending, Round &round, unsigned number, int &missing);
  Status checkMissing(const Pending &pending, int peer, int64_t began);
  Status checkMessage(const Pending &pending, uint32_t member, const Message &message);
  Status check(const Pending &pending, int code);

  MPI_Comm comm;
  const bool endsMpi;
  mutable Watch watch;
  /// Under way, by group, number and round.
  std::map<std::pair<GroupId, uint64_t>, Round> rounds;
};

} // namespace

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

/// Rank 0 says where its watch is, within the deadline.
Status MpiCommunicator::begin() {
  std::string address;
  if (rank == 0)
    if (Status status = watch.listen(address); !status.isOk())
      return status;
  char text[512] = {};
  std::strncpy(text, address.c_str(), sizeof(text) - 1);
  MPI_Request request;
  MPI_Ibcast(text, sizeof(text), MPI_CHAR, 0, comm, &request);
  int64_t deadline = getNow() + int64_t(options.deadline * 1e9);
  for (int isDone = 0; !isDone;) {
    MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
    if (isDone || getNow() < deadline) {
      sched_yield();
      continue;
    }
    Failure failure;
    failure.cause = Cause::Timeout;
    failure.rank = rank;
    failure.detail = "not all ranks have started MPI";
    return failure;
  }
  return watch.begin(text);
}

MpiCommunicator::~MpiCommunicator() {
  // Ending MPI waits for all ranks, and mpirun itself may hang if one of them then fails: so only when none can fail any more.
  watch.leave();
  if (endsMpi && !watch.getFailure().isRaised())
    MPI_Finalize();
}

/// MPI waits for ever for a process that never starts it. So it is started by a thread of its own, which is left behind at the
/// deadline.
static bool startMpi(double deadline) {
  struct Start {
    std::mutex mutex;
    std::condition_variable changed;
    bool isDone = false;
  };
  auto start = std::make_shared<Start>();
  std::thread([start] {
    int level;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    std::lock_guard<std::mutex> lock(start->mutex);
    start->isDone = true;
    start->changed.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(start->mutex);
  return start->changed.wait_for(lock, std::chrono::duration<double>(deadline), [&] { return start->isDone; });
}

std::unique_ptr<Communicator> cleave::runtime::openMpi(const Options &given, Status &status) {
  Options options = given;
  options.silence = options.silence > 0 ? options.silence : kSilence;
  std::optional<Launch> launch;
  status = readLaunch([](const char *name) { return std::getenv(name); }, launch);
  if (!status.isOk())
    return nullptr;
  int isStarted = 0, rank, size;
  MPI_Initialized(&isStarted);
  if (!isStarted && !startMpi(options.deadline)) {
    Failure failure;
    failure.cause = Cause::Timeout;
    failure.rank = launch ? launch->rank : 0;
    failure.detail = "not all ranks have started MPI";
    status = failure;
    return nullptr;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (launch && (launch->rank != rank || launch->size != size)) {
    Failure failure;
    failure.cause = Cause::Invalid;
    failure.rank = launch->rank;
    failure.detail = std::string(launch->launcher) + " started rank " + std::to_string(launch->rank) + " of " +
                     std::to_string(launch->size) + ", but MPI says " + std::to_string(rank) + " of " +
                     std::to_string(size) + "; is it a launcher of this MPI (srun --mpi=pmix)?";
    status = failure;
    return nullptr;
  }
  // Messages of whoever else uses MPI in this process stay apart.
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  auto communicator = std::make_unique<MpiCommunicator>(rank, size, options, comm, !isStarted);
  status = communicator->begin();
  return status.isOk() ? std::move(communicator) : nullptr;
}

// For who opens this library by name.
extern "C" {
const char *cleave_mpi_version() { return CLEAVE_VERSION; }
Communicator *cleave_mpi_open(const Options &options, Status &status) { return openMpi(options, status).release(); }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Status MpiCommunicator::post(const Pending &pending) {
  if (pending.group->id >= kGroups)
    return fail(pending, Cause::Invalid, -1, "more groups than tags of MPI can tell apart");
  return send(pending, 0,
              packFirst(pending.operation, pending.digest, pending.group->members.size(), pending.group->index));
}

/// A second round can only begin when the first one is combined, so it is sent here; the deadline holds for each.
Status MpiCommunicator::complete(const Pending &pending) {
  uint64_t members = pending.group->members.size();
  if (Status status = receive(pending, 0); !status.isOk())
    return status;
  std::vector<Message> messages = std::move(getRound(pending, 0).in);
  rounds.erase({pending.group->id, pending.number * 2});
  unpackFirst(pending.operation, messages, pending.group->index);
  if (!hasSecondRound(pending.operation))
    return {};
  Status status = send(pending, 1, packSecond(pending.operation, pending.digest, members, pending.group->index));
  if (status.isOk())
    status = receive(pending, 1);
  if (!status.isOk())
    return status;
  unpackSecond(pending.operation, getRound(pending, 1).in, pending.group->index);
  rounds.erase({pending.group->id, pending.number * 2 + 1});
  return {};
}

/// Turns an error of MPI into a failure.
Status MpiCommunicator::check(const Pending &pending, int code) {
  if (code == MPI_SUCCESS)
    return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(pending, Cause::System, -1, std::string(text, length));
}

/// Sends a round's messages, beginning with the next member, so that not all send to the same one at once.
Status MpiCommunicator::send(const Pending &pending, unsigned number, std::vector<Message> messages) {
  Round &round = getRound(pending, number);
  uint32_t members = uint32_t(messages.size());
  round.in.resize(members);
  round.in[pending.group->index] = messages[pending.group->index];
  round.out = std::move(messages);
  round.sends.assign(members, MPI_REQUEST_NULL);
  round.receives.assign(members, MPI_REQUEST_NULL);
  round.isProbed.assign(members, false);
  round.isProbed[pending.group->index] = true;
  for (uint32_t i = 1; i < members; ++i) {
    uint32_t member = (pending.group->index + i) % members;
    const Message &message = round.out[member];
    if (message.size() > INT_MAX)
      return fail(pending, Cause::Invalid, -1, "a message of more than 2 GB");
    delay();
    Status status =
        check(pending, MPI_Isend(message.data(), int(message.size()), MPI_BYTE, pending.group->members[member],
                                 getTag(pending, number), comm, &round.sends[member]));
    if (!status.isOk())
      return status;
  }
  return {};
}

/// Gets all messages of a round, and its own sent.
Status MpiCommunicator::receive(const Pending &pending, unsigned number) {
  Round &round = getRound(pending, number);
  int64_t began = getNow(), looked = began;
  for (uint64_t turn = 1;; ++turn) {
    int missing = -1;
    if (Status status = poll(pending, round, number, missing); !status.isOk())
      return status;
    if (missing < 0)
      return {};
    if (watch.getFailure().isRaised())
      return watch.getFailure().get();
    if (turn % 64)
      continue;
    sched_yield();
    int64_t now = getNow();
    // Who has waited for long lets others have the core.
    if (now - began > 5000000)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (now - looked < 10000000)
      continue;
    looked = now;
    if (Status status = checkMissing(pending, pending.group->members[missing], began); !status.isOk())
      return status;
  }
}

/// Moves everything on once. `missing`: a member that the round still needs; -1 if none.
Status MpiCommunicator::poll(const Pending &pending, Round &round, unsigned number, int &missing) {
  for (uint32_t member = 0; member < round.in.size(); ++member) {
    int peer = pending.group->members[member];
    if (!round.isProbed[member]) {
      int isThere = 0, size = 0;
      MPI_Message message;
      MPI_Status found;
      Status status = check(pending, MPI_Improbe(peer, getTag(pending, number), comm, &isThere, &message, &found));
      if (!status.isOk())
        return status;
      if (!isThere) {
        missing = int(member);
        continue;
      }
      MPI_Get_count(&found, MPI_BYTE, &size);
      round.isProbed[member] = true;
      round.in[member].resize(size);
      status = check(pending, MPI_Imrecv(round.in[member].data(), size, MPI_BYTE, &message, &round.receives[member]));
      if (!status.isOk())
        return status;
    }
    int isSent = 0, isReceived = 1;
    bool wasComplete = round.receives[member] == MPI_REQUEST_NULL;
    Status status = check(pending, MPI_Test(&round.sends[member], &isSent, MPI_STATUS_IGNORE));
    if (status.isOk())
      status = check(pending, MPI_Test(&round.receives[member], &isReceived, MPI_STATUS_IGNORE));
    if (status.isOk() && isReceived && !wasComplete)
      status = checkMessage(pending, member, round.in[member]);
    if (!status.isOk())
      return status;
    if (!isSent || !isReceived)
      missing = int(member);
  }
  return {};
}

/// Fails if `peer`, whom a round waits for, has left or is late. Who is silent or gone the watch finds out.
Status MpiCommunicator::checkMissing(const Pending &pending, int peer, int64_t began) {
  std::string who = "rank " + std::to_string(peer);
  if (watch.getSecondsSinceLeft(peer) > kGrace)
    return fail(pending, Cause::Left, peer, who + " has left");
  if (double(getNow() - began) * 1e-9 < options.deadline)
    return {};
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.3g s", options.deadline);
  return fail(pending, Cause::Timeout, peer, who + " did not come within " + seconds);
}

Status MpiCommunicator::checkMessage(const Pending &pending, uint32_t member, const Message &message) {
  std::optional<std::string> mistake =
      findMismatch(pending.operation, pending.digest, member, pending.group->index, message);
  if (!mistake)
    return {};
  int peer = pending.group->members[member];
  return fail(pending, Cause::Mismatch, peer, "rank " + std::to_string(peer) + " " + *mistake);
}
