//===- RankThreads.h - a thread per rank ------------------------*- C++ -*-===//
//
// The caller is rank 0's thread; each further rank has one that stays. A job is handed out and handed in through two gates
// (Gate.h): who waits spins for a while, then sleeps.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_RANKTHREADS_H
#define CLEAVE_LIB_RUNTIME_RANKTHREADS_H

#include "Gate.h"
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace cleave::runtime {

class RankThreads {
public:
  /// Threads for `ranks`; with `pins`, each on a core of its own, where there are as many.
  RankThreads(size_t ranks, bool pins);
  /// Precondition: no job is under way.
  ~RankThreads();

  /// Calls `job` with 0 here, and with each other number on its thread. When its own is done it waits for the others, while
  /// `waits` returns true. Returns whether all are done: if not, this object must not be used, nor destroyed, any more.
  bool run(const std::function<void(size_t)> &job, const std::function<bool()> &waits);

private:
  void work(size_t local);

  std::vector<int> cores;
  const unsigned spins;
  Gate started, finished;
  uint64_t number = 0;
  bool isOver = false;
  const std::function<void(size_t)> *job = nullptr;
  std::vector<std::thread> threads;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_RANKTHREADS_H
