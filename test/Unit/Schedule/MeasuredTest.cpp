//===- MeasuredTest.cpp - when a run did what a schedule says -------------===//
#include "cleave/Schedule/Measured.h"
#include "cleave/Schedule/Generate.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace cleave::schedule;

namespace {

/// One command: device, action (empty: none), start and length in us.
std::string makeEvent(int pid, llvm::StringRef action, double ts, double dur, llvm::StringRef name = "launch k") {
  std::string args = action.empty() ? "" : llvm::formatv("\"action\": \"{0}\", ", action).str();
  return llvm::formatv("{{\"ph\": \"X\", \"name\": \"{0}\", \"pid\": {1}, \"tid\": 0, \"ts\": {2}, \"dur\": {3}, "
                       "\"args\": {{{4}\"node\": \"\"}}",
                       name, pid, ts, dur, args);
}

std::string makeTrace(llvm::ArrayRef<std::string> commands) {
  return "{\"traceEvents\": [" + llvm::join(commands, ",") + "]}";
}

Schedule makeRun(const char *name) { return cantFail(generate(name, {2, 2, 1, 1})); }

} // namespace

// Rank 0 takes 10 us for F, rank 1 5 us for F and I each; all else nothing. What stands in front of the first action does not count.
TEST(Measured, BeginsWithTheFirstAction) {
  Schedule table = makeRun("zb-h1");
  std::string text = makeTrace({makeEvent(0, "", 0, 100), makeEvent(0, "0F0", 100, 4), makeEvent(0, "0F0", 104, 6),
                                makeEvent(0, "0F1", 110, 10), makeEvent(1, "1F0", 112, 5), makeEvent(1, "1I0", 117, 5),
                                makeEvent(1, "1I0", 122, 50, "finish exchange"), makeEvent(0, "0W1", 190, 10)});
  llvm::Expected<Simulation> measured = readMeasured(text, table, "us");
  ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
  EXPECT_EQ(measured->makespan, 100);
  EXPECT_EQ(measured->busy, (std::vector<double>{30, 10}));
  EXPECT_EQ(measured->start, (std::vector<double>{0, 12}));
  // The wait for the other rank is a part of the action, and no work.
  EXPECT_EQ(measured->end, (std::vector<double>{100, 72}));
  EXPECT_EQ(measured->bubbleMakespan, 1 - 40. / 200);
  EXPECT_EQ(readMeasured(text, table, "ns")->makespan, 100e3);
}

// Of two devices of one row the first in the trace counts, and B is the I and W that it runs as.
TEST(Measured, JoinsWhatRunsAsOne) {
  Schedule table = makeRun("1f1b");
  llvm::Expected<Simulation> measured = readMeasured(makeTrace({makeEvent(2, "1F0", 0, 3), makeEvent(3, "1F0", 0, 30),
                                                                makeEvent(2, "1I0", 3, 2), makeEvent(2, "1W0", 7, 4)}),
                                                     table, "us");
  ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
  for (auto [action, time] : llvm::zip_equal(table.programs[1], measured->times[1]))
    if (action.kind == ActionKind::B && action.microbatch == 0) {
      EXPECT_EQ(time.start, 3);
      EXPECT_EQ(time.end, 11);
    }
  EXPECT_EQ(measured->busy, (std::vector<double>{0, 9}));
}

TEST(Measured, OtherTracesAreRefused) {
  Schedule table = makeRun("1f1b");
  auto refuse = [&](std::string text) { return llvm::toString(readMeasured(text, table, "us").takeError()); };
  EXPECT_EQ(refuse(makeTrace({makeEvent(0, "2F0", 0, 1)})),
            "'2F0' is not an action of 2 stages and 2 microbatches: the trace is of another program");
  EXPECT_EQ(refuse(makeTrace({makeEvent(0, "0F2", 0, 1)})),
            "'0F2' is not an action of 2 stages and 2 microbatches: the trace is of another program");
  EXPECT_NE(refuse(makeTrace({makeEvent(0, "", 0, 1)})).find("no command says which action"), std::string::npos);
  EXPECT_NE(refuse("{}").find("has no 'traceEvents'"), std::string::npos);
  EXPECT_FALSE(refuse("[").empty());
}
