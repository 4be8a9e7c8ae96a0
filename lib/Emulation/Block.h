//===- Block.h - the block of threads that runs now -------------*- C++ -*-===//
//
// Time is a number that goes up at every barrier, wherever a warp meets to order its memory, and when a block begins. Each
// granule of an object that the kernel writes has a *shadow*: who wrote it last and when, who read it. Two accesses of
// different threads are ordered if the first lies before the last barrier of the block, or is of the same warp and lies
// before its last meeting. Between blocks nothing orders them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_BLOCK_H
#define CLEAVE_LIB_EMULATION_BLOCK_H

#include "Fiber.h"
#include "cleave/Emulation/Kernel.h"
#include <cstdlib>
#include <memory>
#include <vector>

namespace cleave::emulation {

using Time = uint32_t;
constexpr uint32_t warpLanes = 32;
constexpr uint32_t maxThreads = 1024;
constexpr uint32_t maxSharedBytes = 227 << 10;

struct Shadow {
  uint32_t writer, reader; // thread, with the flags below
  Time written, read;
};
constexpr uint32_t shadowThread = maxThreads - 1;
constexpr uint32_t shadowWarp = 1u << 29;   // several threads of one warp
constexpr uint32_t shadowMany = 1u << 30;   // threads of several warps
constexpr uint32_t shadowAtomic = 1u << 31; // by atomics alone

/// Memory in which races are looked for: an object, or several that overlap.
struct Region {
  const char *base = nullptr;
  uint64_t bytes = 0;
  uint32_t granule = 1;
  bool isShared = false;
  Shadow *shadows = nullptr;
};

/// An object of the kernel in this launch.
struct LiveObject {
  Range range;
  int region = -1; // none: it is only read
};

enum class ThreadState : uint8_t { Ready, AtBarrier, AtWarp, Done };

struct Thread {
  Fiber fiber;
  ThreadState state = ThreadState::Done;
  const Site *site = nullptr; // where it waits
  WarpKind kind = WarpKind::Sync;
  uint32_t mask = 0;
  const uint32_t *in = nullptr;
  uint32_t *out = nullptr;
};

/// A cp.async that is under way.
struct AsyncCopy {
  uint32_t thread, group;
  char *to;
  const char *from;
  uint32_t bytes, filled;
  const Site *store;
};

/// Shadows of a region. Pages that are never touched cost nothing.
struct ShadowMemory {
  std::unique_ptr<Shadow, decltype(&std::free)> memory{nullptr, std::free};
  size_t count = 0;
};

/// What is kept from launch to launch of a thread of the host.
struct Machine {
  Stacks stacks;
  std::vector<ShadowMemory> shadows;
  Time now = 0;
};

class Block {
public:
  Block(const Launch &launch, Machine &machine);
  /// All blocks of the launch, one after the other.
  std::string run();

  // What threads call.
  uint32_t readRegister(uint32_t which) const;
  void waitAtBarrier(const Site *site);
  void access(const char *at, const char *base, uint64_t bytes, const Site &site);
  void meetWarp(WarpKind kind, uint32_t mask, const uint32_t *in, uint32_t *out, const Site *site);
  void copyAsync(char *to, const char *from, uint32_t bytes, uint32_t filled, const Site &store, const Site &load);
  void commitCopies();
  void waitForCopies(uint32_t groups);
  char *getShared() { return shared.data(); }
  /// The body of every fiber.
  [[noreturn]] void runThread();

private:
  // Objects.cpp
  bool placeObjects();
  Range findArgument(const Object &object) const;
  void addRegion(unsigned object);
  bool takeShadows();
  LiveObject findObject(const char *at) const;
  std::string nameObject(const Site &site, const char *at) const;
  // Access.cpp
  void touch(const LiveObject &object, const char *at, uint64_t bytes, const Site &site);
  const char *findRace(const Shadow &shadow, const Region &region, const Site &site, bool &byWriter) const;
  void stamp(Shadow &shadow, const Site &site);
  bool isOrdered(uint32_t by, Time when) const;
  [[noreturn]] void failAccess(const Site &site, const Range &range, const char *at, uint64_t bytes,
                               const std::string &why);
  std::string nameOther(uint32_t by, Time when) const;
  void complete(const AsyncCopy &copy);
  // Warp.cpp
  bool meet(uint32_t firstThread);
  void exchange(Thread *lanes, uint32_t mask);
  // Kernel.cpp
  void wait(ThreadState state, const Site *site);
  void runBlock();
  bool passBarrier();
  void runReady();
  void reportStuck();
  void fail(const std::string &what);
  [[noreturn]] void leave();
  std::string nameThread(uint32_t thread) const;
  std::string nameBlock(uint64_t number) const;
  uint32_t getId() const { return uint32_t(current - threads.data()); }

  const Launch &launch;
  const Kernel &kernel;
  Machine &machine;
  std::vector<Thread> threads;
  Thread *current = nullptr;
  Fiber scheduler;
  std::vector<char> shared;
  std::vector<LiveObject> objects;
  std::vector<Region> regions;
  uint32_t at[3] = {0, 0, 0};
  std::vector<Time> blockStarts;
  Time launchStart = 0, lastBarrier = 0;
  Time lastMeeting[maxThreads / warpLanes] = {};
  std::vector<AsyncCopy> copies;
  std::vector<uint32_t> groups;  // committed, by thread
  std::vector<uint8_t> underWay; // copies into each 4 bytes of shared memory
  std::string finding;
};

/// That of this thread of the host.
extern thread_local Block *running;

} // namespace cleave::emulation

#endif // CLEAVE_LIB_EMULATION_BLOCK_H
