//===- RankThreads.cpp - a thread per rank --------------------------------===//
//
// Cores are those that this process may use, in their order. The caller's thread is bound only while a job runs.
//
//===----------------------------------------------------------------------===//
#include "RankThreads.h"
#include "cleave/Program/Exhaustion.h"

#include <cassert>
#include <sched.h>

using namespace cleave::runtime;

static constexpr unsigned kSpins = 4000, kSpinsIfCrowded = 200, kTickMilliseconds = 20;

/// Those that this process may use, which a container or `taskset` makes fewer than there are.
static std::vector<int> getCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  return cores;
}

/// Only an annotation: a system that refuses changes no result.
static void bindTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

/// Whether cores are kept is up to `pins`; how long to spin is not.
RankThreads::RankThreads(size_t ranks, bool pins)
    : cores(getCores()), ranks(ranks), spins(ranks <= cores.size() ? kSpins : kSpinsIfCrowded), started(1),
      finished(uint32_t(ranks - 1)) {
  if (!pins || ranks > cores.size() || ranks == 1)
    cores.clear();
}

cleave::program::Status RankThreads::start() {
  for (size_t local = 1; local < ranks; ++local)
    if (program::Status error = threads.emplace_back().start([this, local] { work(local); }))
      return program::makeError("one of ", ranks, " ranks: ", error->message);
  return program::kGood;
}

RankThreads::~RankThreads() {
  assert((threads.empty() || number == 0 || finished.isOpen(number)) && "a job is under way");
  isOver = true;
  started.arrive(++number);
  for (program::Thread &thread : threads)
    thread.join();
}

/// Others are told that the rank is done, and why is asked behind it.
void RankThreads::call(const std::function<void(size_t)> &itsJob, size_t local) {
  if (!program::completes([&] { itsJob(local); }))
    exhausted.store(true);
}

/// One thread: waits for the next job until there is none.
void RankThreads::work(size_t local) {
  if (!cores.empty())
    bindTo(cores[local]);
  for (uint64_t next = 1;; ++next) {
    if (!started.spin(next, spins))
      while (!started.isOpen(next))
        started.sleep(next, 1000);
    if (isOver)
      return;
    call(*job, local);
    finished.arrive(next);
  }
}

/// The caller takes its own share first, and looks after the others only then.
bool RankThreads::run(const std::function<void(size_t)> &itsJob, const std::function<bool()> &waits) {
  if (threads.empty()) {
    call(itsJob, 0);
    return true;
  }
  cpu_set_t before;
  bool isBound = !cores.empty() && sched_getaffinity(0, sizeof(before), &before) == 0;
  if (isBound)
    bindTo(cores.front());
  job = &itsJob;
  started.arrive(++number);
  call(itsJob, 0);
  bool isDone = finished.spin(number, spins);
  while (!isDone && waits()) {
    finished.sleep(number, kTickMilliseconds);
    isDone = finished.isOpen(number);
  }
  if (isBound)
    sched_setaffinity(0, sizeof(before), &before);
  return isDone;
}
