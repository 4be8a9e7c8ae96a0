//===- RankProcessesTest.cpp - NCCL among processes without devices -------===//
//
// A process per rank, as launchers start them, each with an emulated device of its own.
//
//===----------------------------------------------------------------------===//
#include "Devices.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave::cuda;

/// What the process of a rank ends with: 0, or the number of what failed.
static int runProcess(const NcclUniqueId &id, int number, int size, bool dies) {
  const Nccl &nccl = getNccl();
  UseDevice use(0);
  NcclComm comm = nullptr;
  if (nccl.ncclCommInitRankConfig(&comm, size, id, number, nullptr) != NcclResult::Success)
    return 1;
  DevicePointer memory = upload(std::vector<int32_t>{number + 1, 10 * number});
  Stream stream = makeStream();
  if (dies && number == 1)
    raise(SIGKILL);
  if (nccl.ncclAllReduce(pointer(memory), pointer(memory), 2, NcclType::I32, NcclReduction::Sum, comm, stream) !=
      NcclResult::Success)
    return 2;
  NcclResult error = NcclResult::Success;
  Result result = Result::NotReady;
  while (result == Result::NotReady && error == NcclResult::Success) {
    result = getDriver().cuStreamQuery(stream);
    nccl.ncclCommGetAsyncError(comm, &error);
  }
  if (dies)
    return error == NcclResult::RemoteError ? 0 : 3;
  if (result != Result::Success)
    return 4;
  nccl.ncclCommDestroy(comm);
  int terms = size * (size + 1) / 2;
  return download<int32_t>(memory, 2) == std::vector<int32_t>{terms, 10 * (terms - size)} ? 0 : 5;
}

static void runProcesses(int size, bool dies) {
  NcclUniqueId id = makeId();
  std::vector<pid_t> processes;
  for (int number = 0; number < size; ++number) {
    pid_t process = fork();
    if (process == 0)
      _exit(runProcess(id, number, size, dies));
    processes.push_back(process);
  }
  for (int number = 0; number < size; ++number) {
    int status = 0;
    // Whoever is not waited for still has a process: in the order of their ends.
    pid_t ended = waitpid(-1, &status, 0);
    if (dies && ended == processes[1])
      EXPECT_TRUE(WIFSIGNALED(status));
    else
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "exit code " << WEXITSTATUS(status);
  }
}

TEST(EmulatedNccl, RanksAreProcessesToo) {
  for (int size : {2, 4})
    runProcesses(size, false);
}

TEST(EmulatedNccl, AProcessThatDiesIsNoticed) { runProcesses(3, true); }
