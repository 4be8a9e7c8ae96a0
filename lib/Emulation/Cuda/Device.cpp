//===- Device.cpp - queues of commands, and who runs them -----------------===//
//
// A command that cannot go on yet (a wait for an event, a collective whose other ranks have not come) leaves its stream where
// it is, and another is tried. If nothing moves in this process for CLEAVE_EMULATION_PATIENCE seconds, the heads of all
// streams are printed: that is a deadlock, and the waiting device fails.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

using namespace cleave::cuda;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {
constexpr int maxDevices = 64;

/// What all devices share.
struct World {
  World() {
    for (int number : listVisible()) {
      int ordinal = int(devices.size());
      devices.push_back(std::make_unique<ContextHandle>());
      devices.back()->ordinal = ordinal;
      devices.back()->number = number;
      devices.back()->random.seed(uint32_t(getNumber("CLEAVE_EMULATION_SEED", 1) * maxDevices + uint64_t(ordinal)));
    }
  }
  /// Numbers of CUDA_VISIBLE_DEVICES, up to the first that there is not; else all.
  static std::vector<int> listVisible() {
    int count = int(std::min<uint64_t>(getNumber("CLEAVE_EMULATION_DEVICES", maxDevices), maxDevices));
    std::vector<int> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (!visible)
      return numbers;
    numbers.clear();
    for (char *end; *visible; visible = *end == ',' ? end + 1 : end) {
      long number = std::strtol(visible, &end, 10);
      if (end == visible || number < 0 || number >= count)
        break;
      numbers.push_back(int(number));
    }
    return numbers;
  }
  std::vector<std::unique_ptr<ContextHandle>> devices;
  std::atomic<uint32_t> streams{0};
  std::atomic<int> busy{0};          // commands that run now
  std::atomic<int64_t> lastMoved{0}; // nanoseconds of the steady clock
  std::mutex mutex;
  std::string findings;
};
} // namespace

/// Made by the first call, which reads the environment.
static World &getWorld() {
  static World world;
  return world;
}

/// Nanoseconds of a clock that never goes back.
static int64_t getNow() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

static thread_local ContextHandle *current = nullptr;

/// Fixed for the life of the process.
int cleave::cuda::countDevices() { return int(getWorld().devices.size()); }
ContextHandle *cleave::cuda::getDevice(int ordinal) {
  return ordinal >= 0 && ordinal < countDevices() ? getWorld().devices[size_t(ordinal)].get() : nullptr;
}
ContextHandle *cleave::cuda::getCurrent() { return current; }
void cleave::cuda::setCurrent(ContextHandle *device) { current = device; }

/// Numbers are of the whole process, so that clocks can be compared between devices.
StreamHandle *cleave::cuda::addStream(ContextHandle &device) {
  device.streams.push_back(std::make_unique<StreamHandle>());
  device.streams.back()->device = &device;
  device.streams.back()->number = getWorld().streams++;
  return device.streams.back().get();
}

StreamHandle *cleave::cuda::getStream(Stream stream) {
  if (stream || !current)
    return stream;
  if (!current->byDefault)
    current->byDefault = addStream(*current);
  return current->byDefault;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Prints what was found, unless the device has failed before.
Result cleave::cuda::fail(ContextHandle &device, Result result, const std::string &why) {
  Lock own(device.mutex);
  // What follows from the first error is no finding of its own.
  if (device.sticky != Result::Success)
    return device.sticky;
  device.sticky = result;
  std::string line = "device " + std::to_string(device.ordinal) + ": " + why + "\n";
  fprintf(stderr, "emulated CUDA: %s", line.c_str());
  std::lock_guard<std::mutex> lock(getWorld().mutex);
  getWorld().findings += line;
  return result;
}

/// Prints why; the device goes on.
Result cleave::cuda::refuse(const char *call, Result result, const std::string &why) {
  fprintf(stderr, "emulated CUDA: %s: %s\n", call, why.c_str());
  std::lock_guard<std::mutex> lock(getWorld().mutex);
  getWorld().findings += std::string(call) + ": " + why + "\n";
  return result;
}

/// The text stays valid until this thread asks again.
const char *cleave_emulation_findings() {
  static thread_local std::string copy;
  std::lock_guard<std::mutex> lock(getWorld().mutex);
  copy = getWorld().findings;
  return copy.c_str();
}

void cleave_emulation_forget() {
  std::lock_guard<std::mutex> lock(getWorld().mutex);
  getWorld().findings.clear();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// Behind the last node of its stream, and behind those of events that it waited for.
static void addNode(StreamHandle &stream, const std::string &name, const std::vector<Touch> &touches,
                    MakeStep makeStep) {
  GraphHandle &graph = *stream.capture;
  graph.nodes.push_back({name, std::move(makeStep), touches, stream.frontier});
  stream.frontier = {graph.nodes.size() - 1};
}

/// The order of the checks is that of the driver: an error that sticks comes first.
Result cleave::cuda::enqueue(StreamHandle &stream, const std::string &name, const std::vector<Touch> &touches,
                             MakeStep makeStep) {
  ContextHandle &device = *stream.device;
  if (device.sticky != Result::Success)
    return device.sticky;
  join(stream.clock, device.host);
  stream.clock.resize(std::max<size_t>(stream.clock.size(), stream.number + 1));
  ++stream.clock[stream.number];
  Accesses &accesses = stream.capture ? stream.capture->accesses : device.accesses;
  for (const std::string &found : accesses.add(name, stream.number, stream.clock, touches))
    return fail(device, Result::LaunchFailed, found);
  if (stream.capture)
    addNode(stream, name, touches, std::move(makeStep));
  else
    stream.queue.push_back({name, makeStep()});
  return Result::Success;
}

namespace {
/// A launch of a graph: its nodes in a random order that its edges allow. Lives until the last node of a graph that was launched has run.
struct GraphLaunch {
  std::vector<GraphHandle::Node> nodes;
  std::vector<Step> steps;
  std::vector<bool> isDone;
  size_t done = 0;

  bool isReady(size_t node) const {
    return !isDone[node] && std::all_of(nodes[node].before.begin(), nodes[node].before.end(),
                                        [&](size_t other) { return isDone[other]; });
  }
  Progress run(std::mt19937 &random) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (isReady(i))
        ready.push_back(i);
    std::shuffle(ready.begin(), ready.end(), random);
    for (size_t node : ready) {
      Progress progress = steps[node]();
      if (progress == Progress::Blocked)
        continue;
      if (progress == Progress::Done) {
        isDone[node] = true;
        ++done;
      }
      return done == nodes.size() ? Progress::Done : Progress::Moved;
    }
    return nodes.empty() ? Progress::Done : Progress::Blocked;
  }
};
} // namespace

/// To other streams a graph is one command that touches all that its nodes touch.
Result cleave::cuda::launchGraph(StreamHandle &stream, const GraphExecHandle &graph) {
  std::vector<Touch> touches;
  for (const GraphHandle::Node &node : graph.nodes)
    touches.insert(touches.end(), node.touches.begin(), node.touches.end());
  auto makeStep = [&]() -> Step {
    auto run = std::make_shared<GraphLaunch>();
    run->nodes = graph.nodes;
    run->isDone.resize(graph.nodes.size());
    for (const GraphHandle::Node &node : graph.nodes)
      run->steps.push_back(node.makeStep());
    ContextHandle *device = stream.device;
    return [run, device] { return run->run(device->random); };
  };
  return enqueue(stream, "a graph of " + std::to_string(graph.nodes.size()) + " commands", touches, makeStep);
}

/// Asks heads of streams in a random order until one moves. Precondition: the device is locked.
static bool runOne(ContextHandle &device) {
  std::vector<StreamHandle *> order;
  for (auto &stream : device.streams)
    if (!stream->queue.empty())
      order.push_back(stream.get());
  std::shuffle(order.begin(), order.end(), device.random);
  World &world = getWorld();
  for (StreamHandle *stream : order) {
    if (device.sticky != Result::Success)
      return false;
    ++world.busy;
    Progress progress = stream->queue.front().step();
    --world.busy;
    if (progress == Progress::Blocked)
      continue;
    world.lastMoved = getNow();
    if (progress == Progress::Done)
      stream->queue.pop_front();
    return true;
  }
  return false;
}

/// GPUs go on without their hosts: those whose lock is free may move too.
static bool runOthers(ContextHandle &device) {
  for (auto &other : getWorld().devices) {
    if (other.get() == &device || !other->mutex.try_lock())
      continue;
    bool moved = runOne(*other);
    other->mutex.unlock();
    if (moved)
      return true;
  }
  return false;
}

/// Devices that are busy are passed over: what they do is no deadlock.
static std::string nameHeads() {
  std::string heads;
  for (auto &device : getWorld().devices) {
    if (!device->mutex.try_lock())
      continue;
    for (auto &stream : device->streams)
      if (!stream->queue.empty())
        heads += (heads.empty() ? "" : "; ") + std::string("device ") + std::to_string(device->ordinal) + " stream " +
                 std::to_string(stream->number) + " at " + stream->queue.front().name;
    device->mutex.unlock();
  }
  return heads;
}

/// Fails the device if nothing has moved for too long.
static void checkPatience(ContextHandle &device, int64_t since) {
  World &world = getWorld();
  int64_t last = std::max(since, world.lastMoved.load());
  if (world.busy == 0 && double(getNow() - last) > getPatience() * 1e9)
    fail(device, Result::LaunchTimeout, "nothing moves: " + nameHeads());
}

/// The lock is held for one command at a time: ranks that are threads take turns.
Result cleave::cuda::waitFor(ContextHandle &device, const std::function<bool()> &isDone) {
  int64_t since = getNow();
  while (true) {
    {
      Lock lock(device.mutex);
      if (device.sticky != Result::Success)
        return device.sticky;
      if (isDone())
        return Result::Success;
      if (runOne(device))
        continue;
    }
    if (runOthers(device))
      continue;
    checkPatience(device, since);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

/// One command for each question: who only asks sees the device move, and slowly.
void cleave::cuda::poll(ContextHandle &device) {
  bool isIdle = true;
  {
    Lock lock(device.mutex);
    for (auto &stream : device.streams)
      isIdle &= stream->queue.empty();
    if (isIdle || runOne(device))
      return;
  }
  if (!runOthers(device)) {
    static thread_local int64_t since = getNow();
    checkPatience(device, since);
  }
}
