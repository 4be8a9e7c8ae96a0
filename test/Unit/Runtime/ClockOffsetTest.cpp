//===- ClockOffsetTest.cpp - how far two clocks are apart -----------------===//
//
// Clocks and messages that are made up, so that what must come out is known.
//
//===----------------------------------------------------------------------===//
#include "ClockOffset.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace cleave::runtime;

namespace {
/// What two ranks note of one meeting in true time, where each message takes as long as is said.
struct Meeting {
  int64_t hubSends, otherSends, toOther, toHub;

  MeetingTimes ofHub() const { return {hubSends, std::max(hubSends, otherSends + toHub)}; }
  /// By a clock that is ahead by `offset`.
  MeetingTimes ofOther(int64_t offset) const {
    return {otherSends + offset, std::max(otherSends, hubSends + toOther) + offset};
  }
};
} // namespace

// Whatever messages take, and however much longer one way than the other, the error holds; the quickest meeting counts.
TEST(ClockOffset, IsWithinItsError) {
  std::mt19937_64 draw(1);
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(draw); };
  for (int64_t offset : {int64_t(0), int64_t(5000), int64_t(-123456789), int64_t(1) << 60}) {
    for (int repeat = 0; repeat < 100; ++repeat) {
      std::vector<MeetingTimes> hub, other;
      int64_t now = 0, quickest = INT64_MAX;
      for (size_t i = 0; i < kClockMeetings; ++i) {
        Meeting meeting{now + upTo(2000), now + upTo(2000), 1 + upTo(100000), 1 + upTo(1000)};
        hub.push_back(meeting.ofHub());
        other.push_back(meeting.ofOther(offset));
        quickest = std::min(quickest, hub[i].received - hub[i].sent + other[i].received - other[i].sent);
        now += 200000;
      }
      ClockOffset clock = measureOffset(hub, other);
      EXPECT_LE(std::abs(clock.offset - offset), clock.error);
      // Where the bounds allow none at all their whole width is unknown, and else half of it.
      EXPECT_LE(clock.error, quickest + 1);
    }
  }
}

// Processes of one machine have one clock, whose times are not touched.
TEST(ClockOffset, OfOneClockIsNone) {
  Meeting first{100, 130, 900, 20}, second{2000, 1990, 15, 300};
  ClockOffset clock = measureOffset({first.ofHub(), second.ofHub()}, {first.ofOther(0), second.ofOther(0)});
  EXPECT_EQ(clock.offset, 0);
  EXPECT_GT(clock.error, 0);
}

// One machine began a second after the other: the messages of a single meeting say so.
TEST(ClockOffset, IsTheMiddleOfWhatMessagesAllow) {
  Meeting meeting{1000, 1000, 40, 60};
  ClockOffset clock = measureOffset({meeting.ofHub()}, {meeting.ofOther(1000000000)});
  // The hub's message says at most a second and 40, the other's at least a second less 60.
  EXPECT_EQ(clock.offset, 1000000000 - 10);
  EXPECT_EQ(clock.error, 51);
}
