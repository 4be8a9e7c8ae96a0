//===- Crash.h - a kernel that crashes is a failure -------------*- C++ -*-===//
//
// While kernels of a rank run, its thread has a guard: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT jump back to it. Kernels hold no
// locks and own nothing, so nothing is lost by that. Signals outside of kernels do what they did before.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_CRASH_H
#define CLEAVE_LIB_RUNTIME_CRASH_H

#include <csetjmp>
#include <csignal>
#include <string>

namespace cleave::runtime {

struct CrashGuard {
  sigjmp_buf jump;
  /// Whether a kernel runs.
  volatile sig_atomic_t isArmed = 0;
  int signal = 0;
  void *address = nullptr;

  /// `SIGSEGV at 0x10`
  std::string describe() const;
};

/// The guard of this thread; null: none.
extern thread_local CrashGuard *currentGuard;

/// Gives this thread, once, a stack for its signal handlers: a kernel may have used up its own.
void useAlternateStack();

/// Installs the handlers, and takes them away again when the last one that asked for them is gone.
class CrashHandlers {
public:
  CrashHandlers();
  ~CrashHandlers();
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CRASH_H
