//===- Interrupt.cpp - SIGINT and SIGTERM end a run -----------------------===//
//
// The same thread ends a process whose ranks do not come back from a failure: one may hang in a kernel for ever.
//
//===----------------------------------------------------------------------===//
#include "Interrupt.h"
#include "cleave/Runtime/Files.h"

#include <csignal>
#include <cstdio>
#include <ctime>
#include <unistd.h>

using namespace cleave::runner;
using namespace cleave::runtime;

static constexpr int64_t kGrace = 2000000000;

/// What ends a program from outside, politely.
static sigset_t getSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

Interrupt::Interrupt(bool hasLauncher) : parent(hasLauncher ? getppid() : -1) {
  sigset_t set = getSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // Without it nobody would look after the signals, which are blocked now.
  if (program::Status error = thread.start([this] { wait(); })) {
    std::fprintf(stderr, "cleave-run: error: %s\n", error->message.c_str());
    _exit(kBadInput);
  }
}

Interrupt::~Interrupt() {
  isOver.store(true);
  thread.join();
}

/// Behind the lock: the thread is not in the middle of failing an executor that goes away.
void Interrupt::watch(Executor *which) {
  std::lock_guard<std::mutex> lock(mutex);
  executor = which;
}

/// The signal of a launcher that is gone: nobody would wait for this process any more.
static constexpr int kOrphan = SIGHUP;

static const char *getName(int signal) {
  return signal == SIGINT    ? "interrupted by SIGINT"
         : signal == SIGTERM ? "interrupted by SIGTERM"
                             : "the launcher is gone";
}

/// Looks up every 20 ms. An executor is only asked while `watch` has it.
void Interrupt::wait() {
  sigset_t set = getSignals();
  int64_t failedAt = 0;
  while (!isOver.load()) {
    timespec tick = {0, 20000000};
    int came = sigtimedwait(&set, nullptr, &tick);
    if (parent >= 0 && getppid() != parent)
      came = kOrphan;
    std::lock_guard<std::mutex> lock(mutex);
    // Once more is enough. (A launcher passes signals on that have come to its ranks already, and ends them itself.)
    bool isAgain = came > 0 && signal.load() && parent < 0;
    if (came > 0 && !signal.exchange(came) && executor)
      executor->fail(Cause::Aborted, getName(came));
    bool isRunning = executor != nullptr;
    if (isRunning && executor->hasFailed() && !failedAt)
      failedAt = getNow();
    bool isStuck = isRunning && failedAt && (isAgain || getNow() - failedAt > kGrace);
    if (!isStuck && (isRunning || !signal.load()))
      continue;
    std::string why = isRunning ? executor->getFailure() : std::string(getName(signal.load()));
    std::fprintf(stderr, "cleave-run: error: %s\n", why.c_str());
    discardUnfinished();
    _exit(signal.load() ? 128 + signal.load() : kRunFault);
  }
}
