//===- State.h - devices that are not there ---------------------*- C++ -*-===//
//
// Nothing runs when it is enqueued. A host that waits or asks runs the heads of the queues of its device, one after the other,
// in a random order of streams that a seed fixes; when none of these can go on, those of the other devices. So an order that
// nothing enforces is not kept. Handles of the driver are pointers to these structs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_STATE_H
#define CLEAVE_LIB_EMULATION_CUDA_STATE_H

#include "Order.h"
#include "cleave/Cuda/Driver.h"
#include "cleave/Emulation/Kernel.h"
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>

namespace cleave::cuda {

/// What became of a command that was asked to go on.
enum class Progress { Done, Moved, Blocked };
/// A command that runs: called until it is done.
using Step = std::function<Progress()>;
/// Makes the step: when it is enqueued, and for captured commands at each launch of their graph.
using MakeStep = std::function<Step()>;

struct Command {
  std::string name;
  Step step;
};

/// A graph, or one that is being captured.
struct GraphHandle {
  struct Node {
    std::string name;
    MakeStep makeStep;
    std::vector<Touch> touches;
    std::vector<size_t> before; // nodes that it waits for
  };
  std::vector<Node> nodes;
  Accesses accesses;
  StreamHandle *origin = nullptr;
  std::string broken; // why it is invalid
};
using CaptureRef = std::shared_ptr<GraphHandle>;

struct GraphExecHandle {
  std::vector<GraphHandle::Node> nodes;
};

struct StreamHandle {
  ContextHandle *device = nullptr;
  uint32_t number = 0;
  std::deque<Command> queue;
  Clock clock;
  // While it is captured:
  CaptureRef capture;
  std::vector<size_t> frontier; // nodes that the next one waits for
  Clock clockBefore;
};

struct EventHandle {
  ContextHandle *device = nullptr;
  bool hasTime = true;
  uint64_t recorded = 0, done = 0;
  std::chrono::steady_clock::time_point time;
  Clock clock;
  CaptureRef capture;
  std::vector<size_t> frontier;
};

struct ModuleHandle {
  void *library = nullptr;
  int file = -1;
  const emulation::Module *module = nullptr;
  std::vector<std::unique_ptr<FunctionHandle>> functions;
};

struct FunctionHandle {
  const emulation::Kernel *kernel = nullptr;
  uint32_t dynamicLimit = 0;
};

/// A device is its primary context: there are no others.
struct ContextHandle {
  int ordinal = 0;
  int number = 0; // of the machine, where CUDA_VISIBLE_DEVICES leaves some out
  int retained = 0;
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<StreamHandle>> streams;
  std::vector<std::unique_ptr<ModuleHandle>> modules;
  StreamHandle *byDefault = nullptr;
  std::map<char *, uint64_t> memory; // bytes asked for, by address
  uint64_t bytesInUse = 0;
  std::map<const char *, uint64_t> windows; // of all communicators
  Result sticky = Result::Success;
  Clock host; // what the host has waited for
  Accesses accesses;
  std::mt19937 random;
};

/// All entries hold the lock of their device.
using Lock = std::lock_guard<std::recursive_mutex>;

// Device.cpp
int countDevices();
ContextHandle *getDevice(int ordinal);
/// Of this thread; null before cuCtxSetCurrent.
ContextHandle *getCurrent();
void setCurrent(ContextHandle *device);
StreamHandle *addStream(ContextHandle &device);
/// A stream, or the device's own where the handle is null.
StreamHandle *getStream(Stream stream);
/// An error that stays: what was found, in one line, on the error stream and in `getFindings`.
Result fail(ContextHandle &device, Result result, const std::string &why);
/// An error of this call alone.
Result refuse(const char *call, Result result, const std::string &why);
/// Puts a command into a stream, or into the graph that it is captured into.
Result enqueue(StreamHandle &stream, const std::string &name, const std::vector<Touch> &touches, MakeStep makeStep);
/// Runs what can run until `isDone`, or an error sticks.
Result waitFor(ContextHandle &device, const std::function<bool()> &isDone);
/// Lets the device go on by one command.
void poll(ContextHandle &device);
/// The allocation around an address, empty if there is none.
emulation::Range findMemory(ContextHandle &device, const void *at);
bool isDeviceMemory(ContextHandle &device, const void *from, uint64_t bytes);
/// Gives back all memory of a device; its addresses are not used again.
void freeMemory(ContextHandle &device);
/// Puts a whole graph into a stream.
Result launchGraph(StreamHandle &stream, const GraphExecHandle &graph);

// Script.cpp: what the environment asks for.
std::string getSetting(const char *name, const char *otherwise);
uint64_t getNumber(const char *name, uint64_t otherwise);
/// Seconds after which what does not move is a deadlock.
double getPatience();
struct Fault {
  int code = 0;       // 0: none
  bool hangs = false; // the command never ends
};
/// The fault that is planned for this call of an entry, counted per name.
Fault takeFault(const char *name, int device);
/// Success, or the error that is planned for this call.
Result enter(const char *name);
/// Begins every entry.
#define CLEAVE_ENTER()                                                                                                 \
  if (Result planned = enter(__func__); planned != Result::Success)                                                    \
  return planned

} // namespace cleave::cuda

extern "C" {
/// Lines of all that was found by this process, until they are forgotten. For tests, and for whoever reports an error.
const char *cleave_emulation_findings();
void cleave_emulation_forget();
}

#endif // CLEAVE_LIB_EMULATION_CUDA_STATE_H
