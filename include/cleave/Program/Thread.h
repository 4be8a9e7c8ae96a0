//===- Thread.h - a thread that may not be had ------------------*- C++ -*-===//
//
// The standard library's threads throw where the system has none left (`ulimit -u`, a container's limit), and nothing of ours
// may throw. Here that is a value:
//
//   Thread thread;
//   if (Status error = thread.start([&] { work(); }))
//     return error;
//   thread.join();
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_THREAD_H
#define CLEAVE_PROGRAM_THREAD_H

#include "cleave/Program/Error.h"
#include <functional>
#include <pthread.h>

namespace cleave::program {

/// Precondition of the destructor and of assignment: nothing runs, it has been joined, or detached.
class Thread {
public:
  Thread() = default;
  Thread(Thread &&other) noexcept : handle(other.handle), isRunning(std::exchange(other.isRunning, false)) {}
  Thread &operator=(Thread &&other) noexcept;

  /// `cannot start a thread: Resource temporarily unavailable`, and nothing runs.
  Status start(std::function<void()> job);
  /// Whether something has been started that nobody has waited for.
  bool isJoinable() const { return isRunning; }
  /// Waits until it is done; nothing where nothing was started.
  void join();
  void detach();

private:
  pthread_t handle = {};
  bool isRunning = false;
};

/// How many threads can run at once.
unsigned countCores();

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_THREAD_H
