//===- Mpi.cpp - ranks that are processes under mpirun --------------------===//
//
// MPI carries messages, and nothing else; what they hold is made and read in Processes.cpp. They are taken by probing, whatever
// their size, so a wrong one is found and not cut off. MPI itself waits for ever for a rank that has stopped, so nothing here
// waits for MPI.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Mpi.h"
#include "../Processes.h"
#include "cleave/Runtime/Launch.h"

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <mutex>
#include <sched.h>
#include <thread>

using namespace cleave::runtime;

/// Number and round are in the tag of a message, beside the group.
static constexpr uint64_t kGroups = 1 << 10, kNumbers = 1 << 19;

namespace {

class MpiCommunicator final : public ProcessCommunicator {
public:
  MpiCommunicator(int rank, int size, const Options &options, MPI_Comm comm, bool endsMpi)
      : ProcessCommunicator(rank, size, options), comm(comm), endsMpi(endsMpi) {
    enterWorld();
  }
  ~MpiCommunicator() override;

  /// Connects the watches of all ranks.
  Status begin(Reach reach);

private:
  struct MpiSending final : Sending {
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct MpiReceiving final : Receiving {
    MPI_Request request = MPI_REQUEST_NULL;
    bool isProbed = false;
  };

  std::unique_ptr<Sending> send(int peer, Key key, Message message, std::string &error) override;
  std::unique_ptr<Receiving> expect(int peer, Key key) override;
  void move(Sending &sending, std::string &error) override;
  void move(Receiving &receiving, std::string &error) override;
  static int getTag(Key key) { return int((key.group * kNumbers + key.number % kNumbers) * 2 + key.round); }

  MPI_Comm comm;
  const bool endsMpi;
};

} // namespace

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

/// Rank 0 says where its watch is, and the secret, within the deadline.
Status MpiCommunicator::begin(Reach reach) {
  std::string address;
  if (rank == 0)
    if (Status status = watch.listen(getAddress(reach), address); !status.isOk())
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
  cleave::program::Thread thread;
  cleave::program::Status error = thread.start([start] {
    int level;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    std::lock_guard<std::mutex> lock(start->mutex);
    start->isDone = true;
    start->changed.notify_one();
  });
  if (error)
    return false;
  thread.detach();
  std::unique_lock<std::mutex> lock(start->mutex);
  return start->changed.wait_for(lock, std::chrono::duration<double>(deadline), [&] { return start->isDone; });
}

std::unique_ptr<Communicator> cleave::runtime::openMpi(const Options &given, Status &status) {
  Options options = given;
  options.silence = options.silence > 0 ? options.silence : kProcessSilence;
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
  status = communicator->begin(launch && launch->isOneMachine ? Reach::Machine : Reach::Anybody);
  return status.isOk() ? std::move(communicator) : nullptr;
}

// For who opens this library by name.
extern "C" {
const char *cleave_mpi_version() { return CLEAVE_VERSION; }
Communicator *cleave_mpi_open(const Options &options, const std::string &, Status &status) {
  return openMpi(options, status).release();
}
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// True for success; else what MPI says.
static bool check(int code, std::string &error) {
  if (code == MPI_SUCCESS)
    return true;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  error.assign(text, size_t(length));
  return false;
}

/// MPI sends from where the message lies. Messages of one tag come in their order.
std::unique_ptr<ProcessCommunicator::Sending> MpiCommunicator::send(int peer, Key key, Message message,
                                                                    std::string &error) {
  auto sending = std::make_unique<MpiSending>();
  sending->peer = peer;
  sending->key = key;
  sending->message = std::move(message);
  if (key.group >= kGroups)
    error = "more groups than tags of MPI can tell apart";
  else if (sending->message.size() > INT_MAX)
    error = "a message of more than 2 GB";
  else
    check(MPI_Isend(sending->message.data(), int(sending->message.size()), MPI_BYTE, peer, getTag(key), comm,
                    &sending->request),
          error);
  return sending;
}

std::unique_ptr<ProcessCommunicator::Receiving> MpiCommunicator::expect(int peer, Key key) {
  auto receiving = std::make_unique<MpiReceiving>();
  receiving->peer = peer;
  receiving->key = key;
  return receiving;
}

void MpiCommunicator::move(Sending &itsSending, std::string &error) {
  int isSent = 0;
  if (check(MPI_Test(&static_cast<MpiSending &>(itsSending).request, &isSent, MPI_STATUS_IGNORE), error))
    itsSending.isSent = isSent;
}

/// A message is looked for before there is room for it: only then is known how long it is.
void MpiCommunicator::move(Receiving &itsReceiving, std::string &error) {
  auto &receiving = static_cast<MpiReceiving &>(itsReceiving);
  if (!receiving.isProbed) {
    int isThere = 0, size = 0;
    MPI_Message message;
    MPI_Status found;
    if (!check(MPI_Improbe(receiving.peer, getTag(receiving.key), comm, &isThere, &message, &found), error) || !isThere)
      return;
    MPI_Get_count(&found, MPI_BYTE, &size);
    if (std::optional<std::string> tooLarge = findTooLarge(receiving.peer, uint64_t(size))) {
      error = std::move(*tooLarge);
      return;
    }
    receiving.isProbed = true;
    receiving.message = takeSpare();
    receiving.message.resize(size_t(size));
    if (!check(MPI_Imrecv(receiving.message.data(), size, MPI_BYTE, &message, &receiving.request), error))
      return;
  }
  int isReceived = 0;
  if (check(MPI_Test(&receiving.request, &isReceived, MPI_STATUS_IGNORE), error))
    receiving.isThere = isReceived;
}
