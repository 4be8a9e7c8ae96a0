//===- ClockOffset.cpp - how far two clocks are apart ---------------------===//
//
// The bounds of all meetings together. Clocks that run at different rates would cross them by the time that meetings take, which is
// below what a message takes: the error is never negative.
//
//===----------------------------------------------------------------------===//
#include "ClockOffset.h"

#include <algorithm>
#include <cassert>

using namespace cleave::runtime;

ClockOffset cleave::runtime::measureOffset(const std::vector<MeetingTimes> &hub,
                                           const std::vector<MeetingTimes> &other) {
  assert(!hub.empty() && hub.size() == other.size() && "not the same meetings");
  int64_t least = other[0].sent - hub[0].received, most = other[0].received - hub[0].sent;
  for (size_t i = 1; i < hub.size(); ++i) {
    least = std::max(least, other[i].sent - hub[i].received);
    most = std::min(most, other[i].received - hub[i].sent);
  }
  // The middle without a sum, which clocks that began ages ago could overflow.
  int64_t width = most - least;
  ClockOffset clock = {least + width / 2, (width < 0 ? -width : width) / 2 + 1};
  // Processes of one machine have one clock, and no others agree so far: clocks count from when their machines began.
  if (least <= 0 && most >= 0)
    clock = {0, std::max(-least, most) + 1};
  return clock;
}
