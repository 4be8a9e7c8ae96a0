//===- CommandLog.cpp - the last commands of a rank -----------------------===//
//
// Words for what is in the ring. The oldest entry may just be written over, and is left out.
//
//===----------------------------------------------------------------------===//
#include "CommandLog.h"
#include "cleave/Program/Error.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cstdio>

using namespace cleave::runtime;

/// A thread that loses its core between two readings would note a moment that never was, by milliseconds: of a few tries the one between
/// whose looks at the counter least time went by.
Clock::Reading Clock::read() {
  Reading best = {};
  uint64_t least = UINT64_MAX;
  for (int tries = 0; tries < 4; ++tries) {
    uint64_t before = getTicks();
    int64_t now = getNow();
    uint64_t took = getTicks() - before;
    if (took < least)
      best = {before + took / 2, now};
    least = std::min(least, took);
  }
  return best;
}

double Clock::getRate() const {
  Reading now = read();
  uint64_t passed = now.ticks - began.ticks;
  return passed ? double(now.nanoseconds - began.nanoseconds) / double(passed) : 1;
}

int64_t Clock::getTime(uint64_t then, double rate) const {
  return began.nanoseconds + int64_t(double(int64_t(then - began.ticks)) * rate);
}

std::string cleave::runtime::describeCommand(const program::Program &program, uint32_t variant, uint32_t role,
                                             uint32_t command) {
  const program::Command &what = program.variants[variant].lists[role].commands[command];
  std::string text = program::concat("command ", command, ", ", program::getWord(what.action));
  if (const auto *launch = std::get_if<program::Launch>(&what.action))
    text += " " + program::printable(program.kernels[launch->kernel].name);
  return what.node < 0 ? text : text + ", of node " + program::quote(program.nodes[what.node]);
}

std::string CommandLog::describe(const Entry &entry) const {
  uint64_t what = entry.what.load(std::memory_order_relaxed);
  return describeCommand(program, uint32_t(what >> 32), role, uint32_t(what));
}

/// The command that the rank came to last, while it runs.
std::string CommandLog::getPlace() const {
  uint64_t number = count.load(std::memory_order_acquire);
  return number == 0 || isResting() ? "" : describe(ring[number % kEntries]);
}

/// A command is a sign of life.
int64_t CommandLog::getLastBeat() const {
  uint64_t number = count.load(std::memory_order_acquire);
  return number == 0 ? 0 : clock.getTime(ring[number % kEntries].ticks.load(std::memory_order_relaxed));
}

std::string CommandLog::getText(int64_t now) const {
  uint64_t end = count.load(std::memory_order_acquire);
  std::string text;
  for (uint64_t number = end < kEntries ? 1 : end - kEntries + 1; number <= end; ++number) {
    const Entry &entry = ring[number % kEntries];
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.6f s", double(clock.getTime(entry.ticks.load()) - now) * 1e-9);
    text += "  " + describe(entry) + ", began " + seconds + "\n";
  }
  return text;
}
