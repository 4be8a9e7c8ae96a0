//===- Crash.cpp - a kernel that crashes is a failure ---------------------===//
//
// What was there before is put back when the last user has gone, and is what happens to signals that are not ours.
//
//===----------------------------------------------------------------------===//
#include "Crash.h"

#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>

using namespace cleave::runtime;

thread_local CrashGuard *cleave::runtime::currentGuard = nullptr;

static constexpr struct {
  int number;
  const char *name;
} kSignals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
static constexpr size_t kCount = std::size(kSignals);
static struct sigaction previous[kCount];
static std::mutex mutex;
static int users = 0;

std::string CrashGuard::describe() const {
  char text[64] = "a signal";
  for (const auto &entry : kSignals)
    if (entry.number == signal && signal == SIGABRT)
      std::snprintf(text, sizeof(text), "%s", entry.name);
    else if (entry.number == signal)
      std::snprintf(text, sizeof(text), "%s at %p", entry.name, address);
  return text;
}

namespace {
/// For the life of a thread.
struct AlternateStack {
  static constexpr size_t kBytes = 1 << 16;
  AlternateStack() : memory(new char[kBytes]) {
    stack_t stack = {};
    stack.ss_sp = memory.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &before);
  }
  ~AlternateStack() { sigaltstack(&before, nullptr); }
  std::unique_ptr<char[]> memory;
  stack_t before = {};
};
} // namespace

void cleave::runtime::useAlternateStack() { static thread_local AlternateStack stack; }

/// Where no kernel of ours runs, the old disposition is put back, and the instruction that failed is tried again.
static void handle(int signal, siginfo_t *info, void *) {
  CrashGuard *guard = currentGuard;
  if (guard && guard->isArmed) {
    guard->isArmed = 0;
    guard->signal = signal;
    guard->address = info->si_addr;
    siglongjmp(guard->jump, 1);
  }
  for (size_t i = 0; i < kCount; ++i)
    if (kSignals[i].number == signal)
      sigaction(signal, &previous[i], nullptr);
}

CrashHandlers::CrashHandlers() {
  std::lock_guard<std::mutex> lock(mutex);
  if (users++ > 0)
    return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kCount; ++i)
    sigaction(kSignals[i].number, &action, &previous[i]);
}

CrashHandlers::~CrashHandlers() {
  std::lock_guard<std::mutex> lock(mutex);
  if (--users == 0)
    for (size_t i = 0; i < kCount; ++i)
      sigaction(kSignals[i].number, &previous[i], nullptr);
}
