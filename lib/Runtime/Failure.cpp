//===- Failure.cpp - what went wrong among ranks --------------------------===//
//
// Words of failures, and the place where ranks leave the first one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Failure.h"

#include <cstdio>

using namespace cleave::runtime;

const char *cleave::runtime::getName(Cause cause) {
  static constexpr const char *kNames[] = {"timeout",  "stopped", "left",    "died",
                                           "mismatch", "invalid", "aborted", "system"};
  return kNames[static_cast<unsigned>(cause)];
}

std::string Failure::getMessage() const {
  std::string text = "rank " + std::to_string(rank) + ": ";
  if (!operation.empty())
    text += operation + ": ";
  return text + detail + " (" + getName(cause) + ")";
}

bool FirstFailure::raise(Failure failure, const std::function<void(Failure &)> &ifFirst) {
  std::lock_guard<std::mutex> lock(mutex);
  if (first)
    return false;
  if (ifFirst)
    ifFirst(failure);
  first = std::make_shared<const Failure>(std::move(failure));
  raised.store(true, std::memory_order_release);
  return true;
}

Status FirstFailure::get() const {
  if (!isRaised())
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  return first;
}

std::string cleave::runtime::formatSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g s", seconds);
  return text;
}
