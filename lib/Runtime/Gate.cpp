//===- Gate.cpp - a barrier that may be left for a while ------------------===//
//
// Who opens stores the epoch and then reads the sleepers; who goes to sleep counts itself and then reads the epoch. Both in
// one order of all, so at least one of them sees the other, and nobody sleeps at an open gate.
//
//===----------------------------------------------------------------------===//
#include "Gate.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace cleave::runtime;

static void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Gate::arrive(uint64_t number) {
  std::atomic<uint32_t> &count = counts[number % kDepth];
  if (count.fetch_add(1, std::memory_order_acq_rel) + 1 != members)
    return;
  count.store(0, std::memory_order_relaxed);
  epoch.store(uint32_t(number));
  if (sleepers.load())
    syscall(SYS_futex, &epoch, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Gate::spin(uint64_t number, unsigned times) const {
  for (unsigned i = 0; i < times; ++i) {
    if (isOpen(number))
      return true;
    pauseProcessor();
  }
  return isOpen(number);
}

void Gate::sleep(uint64_t number, unsigned milliseconds) {
  timespec timeout = {time_t(milliseconds / 1000), long(milliseconds % 1000) * 1000000};
  sleepers.fetch_add(1);
  uint32_t seen = epoch.load();
  if (int32_t(seen - uint32_t(number)) < 0)
    syscall(SYS_futex, &epoch, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}
