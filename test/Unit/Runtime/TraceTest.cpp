//===- TraceTest.cpp - what traces look like ------------------------------===//
//
// What files say of whole runs is the suite `traces`; here is what no single run has all of.
//
//===----------------------------------------------------------------------===//
#include "TraceWriter.h"

#include <gtest/gtest.h>
#include <set>

using namespace cleave::runtime;
namespace program = cleave::program;

// A color tells of one kind of command, and that a meeting moves on (startup) or is waited for (yellow) of none.
TEST(Trace, KindsHaveTheirOwnColors) {
  std::set<std::string> colors = {"startup", "yellow"};
  auto isNew = [&](const program::Action &action) { return colors.insert(getColor(action)).second; };
  EXPECT_TRUE(isNew(program::Launch()));
  EXPECT_TRUE(isNew(program::Matmul()));
  EXPECT_TRUE(isNew(program::Convolution()));
  EXPECT_TRUE(isNew(program::Attention()));
  EXPECT_TRUE(isNew(program::Copy()));
  EXPECT_TRUE(isNew(program::Exchange()));
  EXPECT_TRUE(isNew(program::Record()));
  EXPECT_TRUE(isNew(program::Wait()));
  EXPECT_TRUE(isNew(program::Loop()));
  EXPECT_TRUE(isNew(program::EndLoop()));
  // Those that have tensors: the first ones of the list.
  for (size_t kind = 0; kind < 4; ++kind) {
    program::Collective collective;
    collective.kind = program::CollectiveKind(kind);
    EXPECT_TRUE(isNew(collective)) << kind;
  }
}

// Of two ranks: pids are 0 and 1, and no thread is called so. Ends are rounded each by itself: from 1.4 to 2.6 ns is from 1 to 3.
TEST(Trace, ThreadsAreNumberedBehindRanksAndEndsMeet) {
  TraceWriter writer(2);
  writer.addBar({0, 0, "a", "launch", "", 1.4e-9, 2.6e-9}, "");
  writer.addBar({1, 2, "b", "launch", "", 2.6e-9, 1.0000004e-3}, "");
  std::string text = writer.format();
  EXPECT_NE(text.find("\"pid\": 0, \"tid\": 2, \"ts\": 0.001, \"dur\": 0.002"), std::string::npos) << text;
  EXPECT_NE(text.find("\"pid\": 1, \"tid\": 7, \"ts\": 0.003, \"dur\": 999.997"), std::string::npos) << text;
}

// Who waits for 33 ms has what is sent 10 us before the end: the arrow does not go back in time, and ends within the bar.
TEST(Trace, ArrowsEndWhereWhatWaitsEnds) {
  TraceWriter writer(2);
  writer.addArrow({0, 0, "exchange", "exchange", "", 32.99e-3, 33.5e-3}, {1, 0, "finish", "exchange", "", 0, 33e-3}, 8);
  std::string text = writer.format();
  EXPECT_NE(text.find("\"ts\": 32990.000"), std::string::npos) << text;
  EXPECT_NE(text.find("\"ts\": 32999.999"), std::string::npos) << text;
}
