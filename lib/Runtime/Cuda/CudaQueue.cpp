//===- CudaQueue.cpp - what is issued now and done later ------------------===//
//
// A graph is what the streams get between two points. It begins on stream 0, from which the others fork, and ends there:
//
//   stream 0   begin ── record fork ── kernels .. ── wait join ── end
//   stream 1               wait fork ── collectives .. ── record join
//
//===----------------------------------------------------------------------===//
#include "CudaDevice.h"

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;
using program::makeError;

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

program::Status CudaDevice::connect(Communicator &peers) {
  enter();
  program::Result<char *> word = allocate(4, 4, program::Memory::Device, false);
  if (!word)
    return word.getError();
  groups = std::make_unique<CudaGroups>(*nccl, reinterpret_cast<cuda::DevicePointer>(*word));
  // Not its place on a bus, which a part of a device shares with the others. Zeros are nobody's.
  cuda::Uuid uuid = {};
  if (!isShared)
    keep(driver.cuDeviceGetUuid_v2(&uuid, device), "say which it is");
  return groups->connect(peers, uuid);
}

program::Status CudaDevice::split(Communicator &peers, const std::vector<int> &members) {
  enter();
  return groups->split(peers, members);
}

program::Status CudaDevice::check(const Operation &operation) {
  groups->note(operation);
  return checkNccl(operation);
}

program::Status CudaDevice::share(Communicator &peers) {
  enter();
  return groups ? groups->share(peers, arenas) : program::kGood;
}

std::vector<LibraryUse> CudaDevice::getLibraries() const { return libraries->getUses(); }

WindowUse CudaDevice::getWindows() const { return groups ? groups->getWindows() : WindowUse(); }

void CudaDevice::meet(const std::vector<Operation> &operations, uint32_t stream) {
  enter();
  if (!failed)
    keep(groups->meet(operations, getStream(stream)));
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// What is put into `second` from here on runs after what is in `first`.
void CudaDevice::order(cuda::Stream first, cuda::Stream second) {
  keep(driver.cuEventRecord(fork, first), "record an event");
  keep(driver.cuStreamWaitEvent(second, fork, 0), "wait for an event");
}

void CudaDevice::beginGraph() {
  enter();
  // Ranks that are threads of one process keep graphs at the same time.
  keep(driver.cuStreamBeginCapture_v2(getStream(0), cuda::CaptureMode::ThreadLocal), "begin a graph");
  for (size_t i = 1; i < streams.size(); ++i)
    if (streams[i])
      order(streams[0], streams[i]);
  follows.assign(streams.size(), true);
}

program::Result<uint32_t> CudaDevice::endGraph() {
  enter();
  for (size_t i = 1; i < streams.size(); ++i)
    if (streams[i])
      order(streams[i], streams[0]);
  cuda::Graph graph = nullptr;
  cuda::GraphExec executable = nullptr;
  if (keep(driver.cuStreamEndCapture(streams[0], &graph), "end a graph")) {
    keep(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), "make a graph executable");
    keep(driver.cuGraphDestroy(graph), "give back a graph");
  }
  if (failed)
    return *failed;
  graphs.push_back(executable);
  return uint32_t(graphs.size() - 1);
}

void CudaDevice::replay(uint32_t graph) {
  enter();
  keep(driver.cuGraphLaunch(graphs[graph], getStream(0)), "launch a graph");
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

uint32_t CudaDevice::mark(uint32_t stream) {
  enter();
  keep(driver.cuEventRecord(getEvent(marks, marked, cuda::kEventDefault), getStream(stream)), "record an event");
  return marked++;
}

/// Half a microsecond is what the driver tells apart.
program::Result<double> CudaDevice::measure(uint32_t from, uint32_t to) {
  enter();
  float milliseconds = 0;
  keep(driver.cuEventElapsedTime(&milliseconds, marks[from], marks[to]), "tell the time between events");
  if (failed)
    return *failed;
  return double(milliseconds) * 1e-3;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

program::Result<bool> CudaDevice::poll() {
  enter();
  bool isDone = true;
  for (cuda::Stream stream : streams) {
    cuda::Result result = stream && !failed ? driver.cuStreamQuery(stream) : cuda::Result::Success;
    if (result == cuda::Result::NotReady)
      isDone = false;
    else
      keep(result, "go on");
  }
  if (groups && !failed)
    keep(groups->getError());
  if (failed)
    return *failed;
  return isDone;
}

void CudaDevice::abort() {
  enter();
  if (!failed)
    failed = makeError("the device was stopped");
  if (groups)
    groups->abort();
}
