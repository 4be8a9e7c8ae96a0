//===- ClockOffset.h - how far two clocks are apart -------------*- C++ -*-===//
//
// Processes note what their clocks say before and behind a meeting of all. What a rank says before it a message takes along, which the
// other has behind it:
//
//   hub     s0 ────────────▶ e0        s + offset <= e'   for the hub's message to the other: offset <= e' - s
//             ╲           ╱            s' - offset <= e   for the other's to the hub:         offset >= s' - e
//   other    s'0 ───────▶ e'0
//
// Each meeting narrows the offset from both sides, and no delay of either widens it: the middle is right within half of what is left; none
// at all is right where that is allowed, which it is of processes on one machine.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_CLOCKOFFSET_H
#define CLEAVE_LIB_RUNTIME_CLOCKOFFSET_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cleave::runtime {

/// How often processes meet for it: the one that was disturbed least counts.
constexpr size_t kClockMeetings = 16;

/// A meeting by a rank's clock, in nanoseconds: when it began to send, and when it had what all others sent.
struct MeetingTimes {
  int64_t sent, received;
};

/// Nanoseconds: a clock is ahead of another by `offset`, give or take `error`.
struct ClockOffset {
  int64_t offset, error;
};

/// How far the clock of `other` is ahead of the hub's. Precondition: the same meetings, one or more, in one order.
ClockOffset measureOffset(const std::vector<MeetingTimes> &hub, const std::vector<MeetingTimes> &other);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CLOCKOFFSET_H
