//===- RankThreads.h - a thread per rank ------------------------*- C++ -*-===//
//
// The caller is rank 0's thread; each further rank has one that stays. A job is handed out and handed in through two gates
// (Gate.h): who waits spins for a while, then sleeps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_RANKTHREADS_H
#define CLEAVE_LIB_RUNTIME_RANKTHREADS_H

#include "Gate.h"
#include "cleave/Program/Thread.h"
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace cleave::runtime {

class RankThreads {
public:
  /// For `ranks`; with `pins`, each thread on a core of its own, where there are as many.
  RankThreads(size_t ranks, bool pins);
  /// Starts the threads; an error where the system has too few. Once, before the first job.
  program::Status start();
  /// Precondition: no job is under way.
  ~RankThreads();

  /// Calls `job` with 0 here, and with each other number on its thread. When its own is done it waits for the others, while
  /// `waits` returns true. Returns whether all are done: if not, this object must not be used, nor destroyed, any more.
  bool run(const std::function<void(size_t)> &job, const std::function<bool()> &waits);
  /// Memory ran out in a job, which its rank then left where it was. What it was doing is of no use any more.
  bool isExhausted() const { return exhausted.load(); }

private:
  void work(size_t local);
  void call(const std::function<void(size_t)> &itsJob, size_t local);

  std::vector<int> cores;
  const size_t ranks;
  const unsigned spins;
  Gate started, finished;
  uint64_t number = 0;
  bool isOver = false;
  std::atomic<bool> exhausted{false};
  const std::function<void(size_t)> *job = nullptr;
  std::vector<program::Thread> threads;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_RANKTHREADS_H
