//===- FaultsTest.cpp - what happens when a rank does not play along ------===//
//
// Each case runs ranks as threads, lets one of them go wrong, and asks of all others: have they ended in time, with one
// and the same failure, which names the rank, the operation and the cause?
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Threads.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace cleave::runtime;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using Body = std::function<Status(Communicator &communicator)>;

/// Ranks as threads, and how they ended.
struct Ranks {
  /// Runs `body` on every rank. Each leaves when it is done.
  Ranks(int size, const Options &options, const Body &body) : statuses(size) {
    auto begin = std::chrono::steady_clock::now();
    auto communicators = makeThreads(size, options);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        statuses[rank] = body(*communicators[rank]);
        communicators[rank].reset();
      });
    for (std::thread &thread : threads)
      thread.join();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  /// All but `wrong`, if any, have ended with one failure of this cause.
  void expectAll(Cause cause, testing::Matcher<std::string> message, int wrong = -1) {
    std::string first;
    for (size_t rank = 0; rank < statuses.size(); ++rank) {
      if (int(rank) == wrong)
        continue;
      ASSERT_FALSE(statuses[rank].isOk()) << rank;
      EXPECT_EQ(statuses[rank].getFailure().cause, cause) << statuses[rank].getMessage();
      EXPECT_THAT(statuses[rank].getMessage(), message);
      first = first.empty() ? statuses[rank].getMessage() : first;
      EXPECT_EQ(statuses[rank].getMessage(), first);
    }
  }

  std::vector<Status> statuses;
  double seconds;
};

/// Operands that stay when a rank has failed.
struct Operands {
  alignas(64) float input[8][1024] = {}, output[8][8192] = {};
};

Options withDeadline(double seconds) {
  Options options;
  options.deadline = seconds;
  return options;
}

Operation sum(Operands &operands, Communicator &communicator, uint64_t count) {
  int rank = communicator.getRank();
  return allReduce(kWorld, Reduction::Sum, ElementType::F32, operands.input[rank], operands.output[rank], count);
}

} // namespace

//===----------------------------------------------------------------------===//
// Ranks that do not come
//===----------------------------------------------------------------------===//

// A parked thread gives no sign of life. It gets the failure, too, when it goes on.
TEST(Faults, StoppedRankIsNamed) {
  Operands operands;
  Options options = withDeadline(60);
  options.silence = 0.3;
  std::promise<void> release;
  std::atomic<int> waiting{3};
  Ranks ranks(4, options, [&](Communicator &communicator) {
    if (Status status = communicator.run(barrier(kWorld)); !status.isOk())
      return status;
    if (communicator.getRank() == 2) {
      release.get_future().wait();
      return communicator.run(sum(operands, communicator, 256));
    }
    Status status = communicator.run(sum(operands, communicator, 256));
    if (--waiting == 0)
      release.set_value();
    return status;
  });
  ranks.expectAll(Cause::Stopped, AllOf(HasSubstr(": all_reduce sum f32[256], number 2 in group 0 {0, 1, 2, 3}: rank 2 "
                                                  "has given no sign of life for 0.3"),
                                        HasSubstr("the last that it came to is barrier, number 1 in group 0")));
  EXPECT_LT(ranks.seconds, 2);
}

// One that lives, and says so, but does not come, is late.
TEST(Faults, LateRankIsNamed) {
  Operands operands;
  Options options = withDeadline(0.4);
  options.silence = 0.2;
  std::atomic<int> waiting{2};
  Ranks ranks(3, options, [&](Communicator &communicator) {
    while (communicator.getRank() == 1 && waiting > 0) {
      communicator.beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    Status status = communicator.run(sum(operands, communicator, 1024));
    --waiting;
    return status;
  });
  ranks.expectAll(Cause::Timeout, HasSubstr("rank 1 did not come within 0.4 s; it has not come to any operation"));
  EXPECT_LT(ranks.seconds, 2.4);
}

// No deadline is needed for one that has left, whether it left behind small operations or large ones.
TEST(Faults, RankThatLeavesEarlyIsNamed) {
  for (uint64_t count : {16, 8192}) {
    std::vector<float> input(count), output(4 * count);
    Ranks ranks(4, withDeadline(60), [&](Communicator &communicator) {
      float *own = output.data() + communicator.getRank() * count;
      Operation operation = allReduce(kWorld, Reduction::Sum, ElementType::F32, input.data(), own, count);
      Status status = communicator.run(operation);
      return communicator.getRank() == 3 ? status : communicator.run(operation);
    });
    EXPECT_TRUE(ranks.statuses[3].isOk());
    ranks.expectAll(Cause::Left, HasSubstr("number 2 in group 0 {0, 1, 2, 3}: rank 3 has left"), 3);
    EXPECT_LT(ranks.seconds, 2);
  }
}

// Each waits in a group of its own for the other: the message says where the other is.
TEST(Faults, CrossedGroupsEnd) {
  Ranks ranks(3, withDeadline(0.3), [&](Communicator &communicator) {
    GroupId pair = 0;
    if (Status status =
            communicator.split(communicator.getRank() == 2 ? std::vector<int>{2} : std::vector<int>{0, 1}, pair);
        !status.isOk())
      return status;
    return communicator.run(barrier(communicator.getRank() == 1 ? pair : kWorld));
  });
  ranks.expectAll(Cause::Timeout, testing::AnyOf(HasSubstr("rank 1 did not come within 0.3 s; the last that it came to "
                                                           "is barrier, number 1 in group 1 {0, 1}"),
                                                 HasSubstr("rank 0 did not come within 0.3 s; the last that it came to "
                                                           "is barrier, number 1 in group 0 {0, 1, 2}")));
  EXPECT_LT(ranks.seconds, 2.3);
}

TEST(Faults, FailureOfAKernelIsThatOfAll) {
  Ranks ranks(4, withDeadline(60), [&](Communicator &communicator) {
    if (communicator.getRank() == 1)
      return communicator.fail(Cause::Aborted, "kernel softmax of node /enc/Softmax found a NaN");
    return communicator.run(barrier(kWorld));
  });
  ranks.expectAll(Cause::Aborted, testing::StrEq("rank 1: kernel softmax of node /enc/Softmax found a NaN (aborted)"));
  EXPECT_LT(ranks.seconds, 2);
}

//===----------------------------------------------------------------------===//
// Ranks that do something else
//===----------------------------------------------------------------------===//

// Of kind, reduction, type, count and parts.
TEST(Faults, DifferentCallsAreFound) {
  Operands operands;
  float *in = operands.input[0], *out = operands.output[0];
  Operation common = allGather(kWorld, ElementType::F32, in, out, Tiling::inner(2, 8, 3));
  struct {
    Operation others, own;
    const char *message;
  } cases[] = {
      {common, barrier(kWorld), "called barrier instead"},
      {common, allGather(kWorld, ElementType::I32, in, out, common.to), "called all_gather i32[16] instead"},
      {common, allGather(kWorld, ElementType::F32, in, out, Tiling::inner(2, 7, 3)),
       "called all_gather f32[14] instead"},
      {common, allGather(kWorld, ElementType::F32, in, out, Tiling::contiguous(16)),
       "called all_gather f32[16] with parts that lie otherwise"},
      {allReduce(kWorld, Reduction::Sum, ElementType::F32, in, out, 8),
       allReduce(kWorld, Reduction::Max, ElementType::F32, in, out, 8), "called all_reduce max f32[8] instead"},
      // One is small, the other is not.
      {allReduce(kWorld, Reduction::Sum, ElementType::F32, in, out, 8),
       allReduce(kWorld, Reduction::Sum, ElementType::F32, in, out, 8000), "called all_reduce sum f32[8000] instead"},
  };
  for (auto &test : cases) {
    Ranks ranks(3, withDeadline(60), [&](Communicator &communicator) {
      return communicator.run(communicator.getRank() == 2 ? test.own : test.others);
    });
    // The odd one may notice first, and say what the others did.
    ranks.expectAll(Cause::Mismatch, testing::AnyOf(HasSubstr(std::string("rank 2 ") + test.message),
                                                    HasSubstr("rank 2: " + describe(test.own))));
    EXPECT_LT(ranks.seconds, 2);
  }
}

TEST(Faults, ExchangesThatDoNotMatchAreFound) {
  Operands operands;
  std::vector<Piece> sends = {{0, 1, 1, 12, 0, 12, 0, 12}}, expects = {{0, 1, 1, 10, 0, 10, 0, 10}};
  Ranks ranks(2, withDeadline(60), [&](Communicator &communicator) {
    return communicator.run(exchange(kWorld, ElementType::F32, operands.input[0], operands.output[0],
                                     communicator.getRank() == 0 ? sends : expects));
  });
  ranks.expectAll(Cause::Mismatch, HasSubstr("rank 1: exchange f32, number 1 in group 0 {0, 1}: rank 0 sends 12 "
                                             "elements in 1 pieces, expected 10 elements in 1 pieces"));
  EXPECT_LT(ranks.seconds, 2);
}

// Two ranks start operations of two groups, large enough for two barriers each, and wait for them in different orders: who
// waits does its share of the others meanwhile.
TEST(Faults, OrdersOfWaitingMayDiffer) {
  constexpr uint64_t kCount = 8192;
  std::vector<float> input[2] = {std::vector<float>(kCount, 1), std::vector<float>(kCount, 2)};
  std::vector<float> output[2][3];
  for (auto &rank : output)
    for (std::vector<float> &one : rank)
      one.resize(kCount);
  Ranks ranks(2, withDeadline(5), [&](Communicator &communicator) {
    int rank = communicator.getRank();
    GroupId other = 0;
    Status status = communicator.split({0, 1}, other);
    Ticket tickets[3];
    const GroupId groups[3] = {kWorld, other, other};
    for (int i = 0; i < 3 && status.isOk(); ++i)
      status = communicator.start(
          allReduce(groups[i], Reduction::Sum, ElementType::F32, input[rank].data(), output[rank][i].data(), kCount),
          tickets[i]);
    for (int i : rank == 0 ? std::vector<int>{0, 1, 2} : std::vector<int>{1, 2, 0})
      if (status.isOk())
        status = communicator.wait(tickets[i]);
    return status;
  });
  for (int rank : {0, 1}) {
    EXPECT_TRUE(ranks.statuses[rank].isOk()) << ranks.statuses[rank].getMessage();
    for (const std::vector<float> &one : output[rank])
      EXPECT_EQ(one, std::vector<float>(kCount, 3));
  }
  EXPECT_LT(ranks.seconds, 2);
}

TEST(Faults, DifferentGroupsAreFound) {
  Ranks ranks(3, withDeadline(60), [&](Communicator &communicator) {
    GroupId group = 0;
    Status status =
        communicator.split(communicator.getRank() == 1 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2}, group);
    return status.isOk() ? communicator.run(barrier(group)) : status;
  });
  ranks.expectAll(Cause::Mismatch, HasSubstr("rank 0 has other members in this group"));
  EXPECT_LT(ranks.seconds, 2);
}

// What a rank can see by itself is refused before anybody waits.
TEST(Faults, ImpossibleOperationsAreRefused) {
  Operands operands;
  float *in = operands.input[0], *out = operands.output[0];
  char *odd = reinterpret_cast<char *>(in) + 2;
  Tiling overlapping = {2, 8, 4, 16};
  std::vector<Piece> outside = {{0, 5, 1, 1, 0, 0, 0, 0}},
                     huge = {{0, 0, uint64_t(1) << 40, 1, 0, uint64_t(1) << 40, 0, 1}};
  std::vector<Piece> onSent = {{0, 0, 1, 4, 0, 0, 3, 0}}, between = {{0, 0, 2, 1, 0, 4, 2, 4}};
  std::pair<Operation, const char *> cases[] = {
      {allReduce(kWorld, Reduction::Sum, ElementType::I1, in, out, 4), "cannot combine i1 by sum"},
      {allReduce(kWorld, Reduction::Sum, ElementType::F32, odd, out, 4), "an operand is not aligned to its elements"},
      {allReduce(kWorld, Reduction::Sum, ElementType::F32, nullptr, out, 4), "an operand is missing"},
      {allReduce(kWorld, Reduction::Sum, ElementType::F32, in, out, uint64_t(1) << 60), "an operand is too large"},
      {makeOperation(OperationKind::AllToAll, kWorld, Reduction::None, ElementType::F32, in, in, 0,
                     Tiling::contiguous(2), Tiling::contiguous(2)),
       "all_to_all cannot be done in place"},
      {allGather(kWorld, ElementType::F32, in, out, overlapping), "parts of 16 elements do not lie as said"},
      {exchange(kWorld, ElementType::F32, in, out, outside), "piece 0 goes from member 0 to 5 of a group of 1"},
      {exchange(kWorld, ElementType::F32, in, out, huge), "piece 0 is too large"},
      {exchange(kWorld, ElementType::F32, in, in, onSent), "a piece comes to where another one is sent from"},
      {exchange(kWorld, ElementType::F32, in, in, between), "a piece comes to where another one is sent from"},
      {exchange(kWorld, ElementType::F32, in + 1, in, onSent), "a piece comes to where another one is sent from"},
      {barrier(7), "no group 7 for barrier"},
  };
  for (auto &test : cases) {
    Ranks ranks(1, withDeadline(60), [&](Communicator &communicator) { return communicator.run(test.first); });
    ranks.expectAll(Cause::Invalid, HasSubstr(test.second));
  }
}

TEST(Faults, PiecesMayComeBesideWhatIsSent) {
  Operands operands;
  float *data = operands.input[0];
  std::vector<Piece> beside = {{0, 0, 1, 4, 0, 0, 4, 0}};
  for (int i = 0; i < 8; ++i)
    data[i] = float(i);
  Ranks ranks(1, withDeadline(60), [&](Communicator &communicator) {
    return communicator.run(exchange(kWorld, ElementType::F32, data, data, beside));
  });
  EXPECT_TRUE(ranks.statuses.front().isOk());
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(data[i], float(i % 4));
}

TEST(Faults, WaitingOutOfOrderIsRefused) {
  Operands operands;
  Ranks ranks(1, withDeadline(60), [&](Communicator &communicator) {
    Ticket first, second;
    (void)communicator.start(sum(operands, communicator, 8), first);
    (void)communicator.start(sum(operands, communicator, 8), second);
    return communicator.wait(second);
  });
  ranks.expectAll(Cause::Invalid, HasSubstr("waited for operation 2 of group 0 out of order"));
}

TEST(Faults, TooManyAtOnceAreRefused) {
  Operands operands;
  Ranks ranks(1, withDeadline(60), [&](Communicator &communicator) {
    Ticket ticket;
    Status status;
    for (uint64_t i = 0; i <= kMaxPending && status.isOk(); ++i)
      status = communicator.start(sum(operands, communicator, 8), ticket);
    return status;
  });
  ranks.expectAll(Cause::Invalid, HasSubstr("number 33 in group 0 {0}: 32 operations of the group are under way"));
}

//===----------------------------------------------------------------------===//
// The flight recorder
//===----------------------------------------------------------------------===//

namespace {
struct Folder {
  Folder() : path(testing::TempDir() + "record-XXXXXX") { EXPECT_TRUE(mkdtemp(path.data())); }
  ~Folder() { (void)!std::system(("rm -rf '" + path + "'").c_str()); }

  std::string read(const std::string &name) const {
    std::stringstream text;
    text << std::ifstream(path + "/" + name).rdbuf();
    return text.str();
  }
  std::string path;
};
} // namespace

/// Lines of a rank's part of a record.
static int countLines(const std::string &text, const std::string &from, const std::string &to) {
  size_t begin = text.find(from), end = to.empty() ? text.size() - 1 : text.find(to, begin);
  return int(std::count(text.begin() + begin, text.begin() + end, '\n')) - 1;
}

// After 100 operations the last 64 are there; ranks that wait are waiting for the last.
TEST(FlightRecorder, KeepsTheLastOperationsOfEveryRank) {
  Folder folder;
  Operands operands;
  Options options = withDeadline(60);
  options.recordFolder = folder.path + "/record";
  Ranks ranks(2, options, [&](Communicator &communicator) {
    Status status;
    for (int i = 1; i <= 100 && status.isOk(); ++i)
      status = communicator.run(sum(operands, communicator, i));
    return communicator.getRank() == 1 ? status : communicator.run(barrier(kWorld));
  });
  std::string text = folder.read("record/flight-recorder.txt");
  EXPECT_THAT(text,
              testing::StartsWith("rank 0: barrier, number 101 in group 0 {0, 1}: rank 1 has left; the last that "
                                  "it came to is all_reduce sum f32[100], number 100 in group 0 {0, 1} (left)\n"));
  EXPECT_EQ(countLines(text, "\nrank 0, last sign", "\nrank 1, last"), 64);
  EXPECT_EQ(countLines(text, "\nrank 1, last sign", ""), 64);
  EXPECT_THAT(text, testing::ContainsRegex("group 0 .0, 1., number 100: all_reduce sum f32.100., started -[0-9.]+ s, "
                                           "waited -[0-9.]+ s, done -[0-9.]+ s\n"));
  EXPECT_THAT(text, testing::ContainsRegex("number 101: barrier, started -[0-9.]+ s, waited -[0-9.]+ s\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("number 36:")));
}

// What cannot be written is said, and nothing is left behind.
TEST(FlightRecorder, SaysWhyItCannotBeWritten) {
  Folder folder;
  std::ofstream(folder.path + "/file") << "in the way";
  Options options = withDeadline(60);
  options.recordFolder = folder.path + "/file";
  Ranks ranks(1, options, [&](Communicator &communicator) { return communicator.run(barrier(9)); });
  ranks.expectAll(Cause::Invalid,
                  AllOf(HasSubstr("no group 9 for barrier; cannot write "), HasSubstr("Not a directory")));
  EXPECT_EQ(folder.read("file"), "in the way");
}

// An older record stays what it was until the new one takes its name; what could not take it is not left behind.
TEST(FlightRecorder, IsCompleteOrNotThere) {
  Folder folder;
  Options options = withDeadline(60);
  options.recordFolder = folder.path;
  std::string path = folder.path + "/flight-recorder.txt";
  std::ofstream(path) << "older";
  std::ifstream older(path);
  Ranks(1, options, [&](Communicator &communicator) { return communicator.run(barrier(9)); });
  EXPECT_THAT(folder.read("flight-recorder.txt"), testing::StartsWith("rank 0: no group 9"));
  std::stringstream kept;
  kept << older.rdbuf();
  EXPECT_EQ(kept.str(), "older");
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkdir(path.c_str(), 0777), 0);
  Ranks ranks(1, options, [&](Communicator &communicator) { return communicator.run(barrier(9)); });
  ranks.expectAll(Cause::Invalid, HasSubstr("cannot write " + path));
  ASSERT_EQ(rmdir(path.c_str()), 0);
  EXPECT_EQ(rmdir(folder.path.c_str()), 0) << "something was left behind";
}
