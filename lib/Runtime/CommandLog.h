//===- CommandLog.h - the last commands of a rank ---------------*- C++ -*-===//
//
// Each command costs three stores and a look at the processor's counter: a few nanoseconds. What counts mean in seconds,
// and what commands are called, is found out when somebody asks.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_COMMANDLOG_H
#define CLEAVE_LIB_RUNTIME_COMMANDLOG_H

#include "cleave/Program/Program.h"
#include "cleave/Runtime/FlightRecorder.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cleave::runtime {

/// A counter that all cores share, and that runs evenly.
inline uint64_t getTicks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return uint64_t(getNow());
#endif
}

/// Ticks as times of `getNow`: two readings of both, far enough apart, give the rate.
class Clock {
public:
  Clock() : began(read()) {}
  /// The time at which the counter was, or will be, at `then`.
  int64_t getTime(uint64_t then) const { return getTime(then, getRate()); }
  /// The same at a rate that was read once: times that are compared with each other need one.
  int64_t getTime(uint64_t then, double rate) const;
  /// Nanoseconds of a tick.
  double getRate() const;

private:
  struct Reading {
    uint64_t ticks;
    int64_t nanoseconds;
  };
  /// Both at one moment.
  static Reading read();

  const Reading began;
};

/// `command 12, launch gelu, of node '/act/Gelu'`
std::string describeCommand(const program::Program &program, uint32_t variant, uint32_t role, uint32_t command);

class CommandLog final : public Work {
public:
  static constexpr uint64_t kEntries = 64;

  CommandLog(const program::Program &program, const Clock &clock, uint32_t role)
      : program(program), clock(clock), role(role) {}

  /// The rank comes to a command. Owner only, as are all that are not const.
  void begin(uint32_t variant, uint32_t command) {
    uint64_t number = count.load(std::memory_order_relaxed) + 1;
    Entry &entry = ring[number % kEntries];
    entry.ticks.store(getTicks(), std::memory_order_relaxed);
    entry.what.store(uint64_t(variant) << 32 | command, std::memory_order_relaxed);
    count.store(number, std::memory_order_release);
  }
  /// Between runs.
  void rest() { isAtRest.store(true, std::memory_order_release); }
  void work() { isAtRest.store(false, std::memory_order_release); }

  std::string getPlace() const override;
  std::string getText(int64_t now) const override;
  int64_t getLastBeat() const override;
  bool isResting() const { return isAtRest.load(std::memory_order_acquire); }

private:
  struct Entry {
    std::atomic<uint64_t> ticks{0}, what{0};
  };
  std::string describe(const Entry &entry) const;

  const program::Program &program;
  const Clock &clock;
  const uint32_t role;
  Entry ring[kEntries];
  std::atomic<uint64_t> count{0};
  std::atomic<bool> isAtRest{true};
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_COMMANDLOG_H
