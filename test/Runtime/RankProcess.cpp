//===- RankProcess.cpp - one rank of a test among processes ---------------===//
//
//   MpiRanks conformance MESH full|brief|large SEED     the conformance suite; prints what it compared
//   MpiRanks fault NAME RANK RECORD_FOLDER              `RANK` goes wrong in the way `NAME`; the others must end with a failure
//
// MpiRanks is started by mpirun; TcpRanks is the same without MPI, and started by whoever sets CLEAVE_RANK. A failure is printed as one line, and the exit code is 3.
//
//===----------------------------------------------------------------------===//
#include "../Unit/Runtime/Conformance.h"
#include "cleave/Runtime/Mpi.h"
#include "cleave/Runtime/Tcp.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;
using namespace cleave::runtime::test;

/// One write, so that lines of several ranks do not mix.
static void print(const std::string &line) { (void)!write(STDOUT_FILENO, (line + "\n").data(), line.size() + 1); }

/// Without ending MPI, which would wait for the others.
[[noreturn]] static void endWith(const Status &status) {
  print("FAILURE " + status.getMessage());
  _exit(3);
}

static std::unique_ptr<Communicator> openRank(const Options &options, Status &status) {
#ifdef CLEAVE_TEST_TCP
  return openTcp(options, "", status);
#else
  return openMpi(options, status);
#endif
}

static Mesh parseMesh(const char *text) {
  Mesh mesh;
  for (char *at = const_cast<char *>(text); *at; at += *at == 'x')
    mesh.push_back(int(std::strtol(at, &at, 10)));
  return mesh;
}

static int runConformance(const char *meshText, const std::string &scopeText, uint64_t seed) {
  Options options;
  options.delay = seed ? makeDelays(seed) : nullptr;
  Status status;
  std::unique_ptr<Communicator> communicator = openRank(options, status);
  if (!status.isOk())
    endWith(status);
  Scope scope = scopeText == "brief" ? Scope::Brief : scopeText == "full" ? Scope::Full : Scope::Large;
  Tally tally;
  checkConformance(*communicator, parseMesh(meshText), scope, tally);
  char line[256];
  std::snprintf(line, sizeof(line), "TALLY %d %llu %llu %llu %016llx", communicator->getRank(),
                (unsigned long long)tally.operations, (unsigned long long)tally.elements,
                (unsigned long long)tally.wrong, (unsigned long long)tally.outputs);
  print(line);
  if (!tally.error.empty()) {
    print("ERROR " + tally.error);
    _exit(4);
  }
  return 0;
}

static int runFault(const std::string &name, int culprit, const char *recordFolder) {
  Options options;
  options.deadline = 1.5;
  options.silence = 1;
  options.recordFolder = recordFolder;
  Status status;
  std::unique_ptr<Communicator> communicator = openRank(options, status);
  if (!status.isOk())
    endWith(status);
  std::vector<float> input(4096, 1), output(4 * 4096);
  Operation sum = allReduce(kWorld, Reduction::Sum, ElementType::F32, input.data(), output.data(), 4096);
  Operation gather = allGather(kWorld, ElementType::F32, input.data(), output.data(), Tiling::contiguous(64));
  std::map<std::string, Operation> calls = {
      {"kind", barrier(kWorld)},
      {"count", allReduce(kWorld, Reduction::Sum, ElementType::F32, input.data(), output.data(), 100)},
      {"type", allReduce(kWorld, Reduction::Sum, ElementType::I32, input.data(), output.data(), 4096)},
      {"reduction", allReduce(kWorld, Reduction::Max, ElementType::F32, input.data(), output.data(), 4096)},
  };
  status = communicator->run(gather);
  if (status.isOk() && communicator->getRank() == culprit) {
    if (name == "stop")
      raise(SIGSTOP);
    if (name == "kill")
      raise(SIGKILL);
    if (name == "exit")
      _exit(0);
    if (name == "leave")
      return 0;
    if (name == "late") // for ever, if nobody ends it
      std::this_thread::sleep_for(std::chrono::seconds(60));
    if (name == "fail")
      status = communicator->fail(Cause::Aborted, "kernel softmax of node /enc/Softmax found a NaN");
    if (calls.count(name))
      status = communicator->run(calls[name]);
  }
  if (status.isOk())
    status = communicator->run(sum);
  if (!status.isOk())
    endWith(status);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && !std::strcmp(argv[1], "conformance"))
    return runConformance(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10));
  if (argc == 5 && !std::strcmp(argv[1], "fault"))
    return runFault(argv[2], std::atoi(argv[3]), argv[4]);
  return 2;
}
