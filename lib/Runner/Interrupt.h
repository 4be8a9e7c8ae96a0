//===- Interrupt.h - SIGINT and SIGTERM end a run ---------------*- C++ -*-===//
//
// A thread of its own waits for the signals, and looks after the launcher. While a program runs, the first one fails it, so that all
// ranks come back; if they do not within two seconds, at a second signal, or where nothing runs yet, the process ends there. Nothing is
// half-written at any time.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNNER_INTERRUPT_H
#define CLEAVE_LIB_RUNNER_INTERRUPT_H

#include "cleave/Program/Thread.h"
#include "cleave/Runner/Runner.h"
#include "cleave/Runtime/Executor.h"
#include <mutex>

namespace cleave::runner {

class Interrupt {
public:
  /// `hasLauncher`: the end of the parent process is a signal, too. Precondition: this is the only thread. Others inherit
  /// that the signals are not theirs.
  explicit Interrupt(bool hasLauncher);
  ~Interrupt();

  /// While `executor` is set, a signal fails it. Null: it ends the process.
  void watch(runtime::Executor *executor);
  /// The signal that came; 0: none.
  int getSignal() const { return signal.load(); }

private:
  void wait();

  const int parent;
  std::mutex mutex;
  runtime::Executor *executor = nullptr;
  std::atomic<int> signal{0};
  std::atomic<bool> isOver{false};
  program::Thread thread;
};

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_INTERRUPT_H
