//===- Kernel.cpp - the threads of a launch, in turn ----------------------===//
//
// Every thread of a block runs until it waits or ends. Then warps whose lanes have all come to one place meet, and when
// nothing else can go on, the block passes its barrier, if all threads stand at the same one. If they do not, they never will.
//
// Threads are not interleaved otherwise: a race is found by what was not ordered (Access.cpp), not by the order that happened. So
// one run of a kernel is enough, and a block costs little more than its threads one after the other.
//
//===----------------------------------------------------------------------===//
#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace cleave::emulation;

thread_local Block *cleave::emulation::running;

/// As CUDA's users write indices: (x,y,z).
static std::string nameTriple(uint32_t x, uint32_t y, uint32_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string Block::nameThread(uint32_t thread) const {
  const uint32_t *size = launch.block;
  return "thread " + nameTriple(thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]);
}

std::string Block::nameBlock(uint64_t number) const {
  const uint32_t *size = launch.grid;
  return "block " + nameTriple(number % size[0], number / size[0] % size[1], number / size[0] / size[1]);
}

/// The first finding is that of the launch.
void Block::fail(const std::string &what) {
  if (finding.empty())
    finding = "kernel \"" + std::string(kernel.name) + "\", " + nameBlock(blockStarts.size() - 1) + ", " + what;
}

/// The thread is not run again; what it holds is nothing that must be given back.
void Block::leave() {
  switchFiber(current->fiber, scheduler);
  __builtin_unreachable();
}

/// A fiber begins with a plain function: which block it belongs to, the host's thread knows.
static void beginThread() { running->runThread(); }

void Block::runThread() {
  kernel.entry(launch.parameters);
  current->state = ThreadState::Done;
  leave();
}

void Block::wait(ThreadState state, const Site *site) {
  current->state = state;
  current->site = site;
  switchFiber(current->fiber, scheduler);
}

/// The scheduler sees when all have come.
void Block::waitAtBarrier(const Site *site) { wait(ThreadState::AtBarrier, site); }

/// In the order of the table that kernels are compiled against (DeviceCalls.cpp). Threads are numbered with x first.
uint32_t Block::readRegister(uint32_t which) const {
  uint32_t id = getId();
  switch (which) {
  case 0:
    return id % launch.block[0];
  case 1:
    return id / launch.block[0] % launch.block[1];
  case 2:
    return id / launch.block[0] / launch.block[1];
  case 3:
  case 4:
  case 5:
    return at[which - 3];
  case 6:
  case 7:
  case 8:
    return launch.block[which - 6];
  case 9:
  case 10:
  case 11:
    return launch.grid[which - 9];
  case 12:
    return id % warpLanes;
  case 13:
    return id / warpLanes;
  default:
    return warpLanes;
  }
}

/// Until none is ready. A finding ends all.
void Block::runReady() {
  for (Thread &thread : threads) {
    if (thread.state != ThreadState::Ready)
      continue;
    current = &thread;
    switchFiber(scheduler, thread.fiber);
    if (!machine.stacks.isIntact(getId()))
      fail(nameThread(getId()) + ": its local variables need more than the " + std::to_string(Stacks::stackBytes) +
           " bytes of an emulated thread");
    if (!finding.empty())
      return;
  }
}

/// True if all threads stand at one barrier, and go on.
bool Block::passBarrier() {
  const Site *site = threads[0].site;
  for (const Thread &thread : threads)
    if (thread.state != ThreadState::AtBarrier || thread.site != site)
      return false;
  for (Thread &thread : threads)
    thread.state = ThreadState::Ready;
  lastBarrier = ++machine.now;
  return true;
}

/// Sites are numbered in the order of the kernel's code; with a location, that is what people look for.
static std::string nameWait(const Thread &thread) {
  std::string where = thread.state == ThreadState::AtBarrier ? "barrier " : "warp operation ";
  where += std::to_string(thread.site->number);
  return thread.site->source ? where + " (" + thread.site->source + ")" : where;
}

/// Some wait where the others never come.
void Block::reportStuck() {
  const Thread *first = nullptr;
  size_t with = 0, elsewhere = 0, done = 0;
  for (const Thread &thread : threads) {
    first = first || thread.state == ThreadState::Done ? first : &thread;
    if (thread.state == ThreadState::Done)
      ++done;
    else
      ++(thread.site == first->site ? with : elsewhere);
  }
  const Thread *other = nullptr;
  for (const Thread &thread : threads)
    if (thread.state != ThreadState::Done && thread.site != first->site)
      other = &thread;
  fail(nameThread(uint32_t(first - threads.data())) + ": divergence: " + std::to_string(with) + " of " +
       std::to_string(threads.size()) + " threads wait at " + nameWait(*first) + ", " + std::to_string(elsewhere) +
       " elsewhere" + (other ? " (one at " + nameWait(*other) + ")" : "") + ", and " + std::to_string(done) +
       " have left the kernel");
}

/// From the first thread's first step to the last one's end, or to a finding.
void Block::runBlock() {
  for (size_t i = 0; i < threads.size(); ++i) {
    machine.stacks.start(threads[i].fiber, i, beginThread);
    threads[i].state = ThreadState::Ready;
  }
  // Nothing is left from the block before: what is read and was not written is a NaN.
  memset(shared.data(), 0xff, shared.size());
  lastBarrier = ++machine.now;
  blockStarts.push_back(lastBarrier);
  std::fill(std::begin(lastMeeting), std::end(lastMeeting), lastBarrier);
  while (true) {
    runReady();
    if (!finding.empty())
      return;
    bool moved = false;
    for (uint32_t first = 0; first < threads.size(); first += warpLanes)
      moved |= meet(first);
    if (!finding.empty())
      return;
    if (moved || passBarrier())
      continue;
    bool areDone = std::all_of(threads.begin(), threads.end(),
                               [](const Thread &thread) { return thread.state == ThreadState::Done; });
    return areDone ? void() : reportStuck();
  }
}

Block::Block(const Launch &launch, Machine &machine)
    : launch(launch), kernel(*launch.kernel), machine(machine),
      threads(size_t(launch.block[0]) * launch.block[1] * launch.block[2]),
      shared(kernel.sharedBytes + launch.dynamicBytes), groups(threads.size()), underWay(shared.size() / 4 + 1) {}

/// In the order of a launch's grid, x first. Precondition: the limits of a launch hold.
std::string Block::run() {
  if (!machine.stacks.reserve(threads.size()))
    return "kernel \"" + std::string(kernel.name) + "\": no memory for " + std::to_string(threads.size()) + " threads";
  running = this;
  launchStart = ++machine.now;
  if (!placeObjects())
    finding = "kernel \"" + std::string(kernel.name) + "\": no memory to look for races in";
  else
    for (at[2] = 0; at[2] < launch.grid[2]; ++at[2])
      for (at[1] = 0; at[1] < launch.grid[1]; ++at[1])
        for (at[0] = 0; at[0] < launch.grid[0] && finding.empty(); ++at[0]) {
          runBlock();
          copies.clear();
        }
  running = nullptr;
  return finding;
}

/// Times have 32 bits: long before they run out, shadows begin anew.
static Machine &getMachine() {
  static thread_local Machine machine;
  if (machine.now > 1u << 30) {
    machine.shadows.clear();
    machine.now = 0;
  }
  return machine;
}

/// What a driver refuses is said first: a kernel cannot be told from one that does nothing if it never ran.
std::string cleave::emulation::run(const Launch &launch) {
  uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
  uint64_t limit = launch.kernel->maxThreads ? launch.kernel->maxThreads : maxThreads;
  std::string name = "kernel \"" + std::string(launch.kernel->name) + "\": ";
  if (threads == 0 || threads > limit)
    return name + "launched with " + std::to_string(threads) + " threads a block, it may have " + std::to_string(limit);
  if (uint64_t(launch.kernel->sharedBytes) + launch.dynamicBytes > maxSharedBytes)
    return name + "needs " + std::to_string(uint64_t(launch.kernel->sharedBytes) + launch.dynamicBytes) +
           " bytes of shared memory, there are " + std::to_string(maxSharedBytes);
  return Block(launch, getMachine()).run();
}

const Hooks &cleave::emulation::getHooks() {
  static const Hooks hooks = {
      [](uint32_t which) { return running->readRegister(which); },
      [](const Site *site) { running->waitAtBarrier(site); },
      [](const void *at, const void *base, const Site *site) {
        running->access(static_cast<const char *>(at), static_cast<const char *>(base), site->bytes, *site);
      },
      [](const void *at, const void *base, uint64_t bytes, const Site *site) {
        running->access(static_cast<const char *>(at), static_cast<const char *>(base), bytes, *site);
      },
      [](uint64_t offset) -> void * { return running->getShared() + offset; },
      [](WarpKind kind, uint32_t mask, const uint32_t *in, uint32_t *out, const Site *site) {
        running->meetWarp(kind, mask, in, out, site);
      },
      [](void *to, const void *from, uint32_t bytes, uint32_t filled, const Site *store, const Site *load) {
        running->copyAsync(static_cast<char *>(to), static_cast<const char *>(from), bytes, filled, *store, *load);
      },
      [] { running->commitCopies(); },
      [](uint32_t groups) { running->waitForCopies(groups); }};
  return hooks;
}
