//===- ProgressTest.cpp - the line that says what takes so long -----------===//
//
// On a terminal of the test's own: what is shown, when, and that it goes away.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runner/Progress.h"

#include <algorithm>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

using cleave::runner::Progress;
using testing::StartsWith;

namespace {
/// Both ends of a terminal, so many columns wide.
struct Terminal {
  explicit Terminal(unsigned short columns) {
    winsize size = {24, columns, 0, 0};
    if (openpty(&ours, &theirs, nullptr, nullptr, &size) != 0)
      ADD_FAILURE() << "no terminal";
  }
  ~Terminal() {
    close(ours);
    close(theirs);
  }
  /// What comes within so many milliseconds.
  std::string read(int milliseconds) const {
    char text[4096];
    pollfd poll = {ours, POLLIN, 0};
    if (::poll(&poll, 1, milliseconds) <= 0)
      return "";
    ssize_t count = ::read(ours, text, sizeof(text));
    return {text, size_t(std::max<ssize_t>(count, 0))};
  }
  int ours = -1, theirs = -1;
};
} // namespace

TEST(Progress, IsALineThatComesAndGoes) {
  Terminal terminal(80);
  Progress progress(terminal.theirs, 0.05);
  EXPECT_EQ(terminal.read(300), "");
  progress.say("loading");
  EXPECT_THAT(terminal.read(2000), StartsWith("\rloading, "));
  progress.say("");
  std::string rest;
  for (std::string more = terminal.read(300); !more.empty(); more = terminal.read(300))
    rest += more;
  EXPECT_THAT(rest, testing::EndsWith("\r\033[K"));
}

TEST(Progress, IsQuietAtFirst) {
  Terminal terminal(80);
  Progress progress(terminal.theirs, 60);
  progress.say("loading");
  EXPECT_EQ(terminal.read(500), "");
}

TEST(Progress, IsNoWiderThanTheTerminal) {
  Terminal terminal(20);
  Progress progress(terminal.theirs, 0.01);
  progress.say("a line that does not fit into twenty columns");
  EXPECT_EQ(terminal.read(2000), "\ra line that does no\033[K");
}

TEST(Progress, IsForTerminals) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  {
    Progress progress(ends[1], 0.01);
    progress.say("loading");
    usleep(300000);
  }
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  close(ends[0]);
  close(ends[1]);
}

TEST(Progress, TellsWhatIsLoaded) {
  EXPECT_EQ(cleave::runner::formatLoading(1200000, 340000000), "loading weights, 1.2 of 340.0 MB");
}
