//===- ThreadsTest.cpp - ranks that are threads ---------------------------===//
//
// The conformance suite on threads: every mesh, with and without delays, and the same bits whatever the timing.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Threads.h"
#include "Conformance.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace cleave::runtime;
using namespace cleave::runtime::test;

/// Runs the suite on every rank of `mesh`, and adds up what they saw. `outputs` becomes that of all ranks.
static Tally runOnThreads(const Mesh &mesh, Scope scope, std::function<void(int)> delay) {
  Options options;
  options.delay = std::move(delay);
  int size = getNumRanks(mesh);
  std::vector<std::unique_ptr<Communicator>> ranks = makeThreads(size, options);
  std::vector<Tally> tallies(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      checkConformance(*ranks[rank], mesh, scope, tallies[rank]);
      ranks[rank].reset();
    });
  Tally sum;
  for (int rank = 0; rank < size; ++rank) {
    threads[rank].join();
    sum.operations += tallies[rank].operations;
    sum.elements += tallies[rank].elements;
    sum.wrong += tallies[rank].wrong;
    sum.outputs = sum.outputs * 31 + tallies[rank].outputs;
    if (sum.error.empty())
      sum.error = tallies[rank].error;
  }
  std::printf("%s: %llu operations, %llu elements compared, %llu wrong\n", getName(mesh).c_str(),
              (unsigned long long)sum.operations, (unsigned long long)sum.elements, (unsigned long long)sum.wrong);
  return sum;
}

/// `operations` and `elements` hold how much is compared, so that nothing is left out unseen.
static void expectRight(const Mesh &mesh, Scope scope, uint64_t operations, uint64_t elements) {
  Tally tally = runOnThreads(mesh, scope, {});
  EXPECT_EQ(tally.error, "");
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_EQ(tally.operations, operations);
  EXPECT_EQ(tally.elements, elements);
}

TEST(Threads, OneRank) { expectRight({1}, Scope::Full, 1603, 1107375); }
TEST(Threads, TwoRanks) { expectRight({2}, Scope::Large, 3212, 8832504); }
TEST(Threads, FourRanks) { expectRight({4}, Scope::Large, 6424, 22208504); }
TEST(Threads, TwoByTwo) { expectRight({2, 2}, Scope::Full, 9220, 15645184); }
TEST(Threads, TwoByThree) { expectRight({2, 3}, Scope::Full, 13830, 31250424); }
TEST(Threads, EightRanks) { expectRight({8}, Scope::Brief, 3320, 38781776); }

TEST(Threads, SameBitsWhateverTheTiming) {
  Tally first = runOnThreads({2, 2}, Scope::Brief, {});
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Tally again = runOnThreads({2, 2}, Scope::Brief, makeDelays(seed));
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.operations, first.operations);
    EXPECT_EQ(again.outputs, first.outputs);
  }
}

// The receiver has what it wants before the sender, who is busy, waits for the end: six times, which is more than may be under way.
TEST(Threads, WhoOnlyReceivesNeedsNoBusySender) {
  Options options;
  options.deadline = 5;
  std::vector<std::unique_ptr<Communicator>> ranks = makeThreads(2, options);
  constexpr uint64_t size = 1 << 15;
  std::vector<Piece> pieces = {{0, 1, 1, size, 0, size, 0, size}};
  std::vector<std::vector<float>> sent(6), got(6);
  std::atomic<int> received{0};
  std::string error;
  std::thread receiver([&] {
    for (int i = 0; i < 6; ++i) {
      got[i].resize(size);
      if (Status status = ranks[1]->run(exchange(kWorld, ElementType::F32, nullptr, got[i].data(), pieces));
          !status.isOk())
        error = status.getMessage();
      received = i + 1;
    }
  });
  for (int i = 0; i < 6; ++i) {
    sent[i].assign(size, float(i + 1));
    Ticket ticket;
    EXPECT_TRUE(ranks[0]->start(exchange(kWorld, ElementType::F32, sent[i].data(), nullptr, pieces), ticket).isOk());
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    while (received <= i && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    EXPECT_EQ(received, i + 1) << "before the sender has waited";
    EXPECT_TRUE(ranks[0]->wait(ticket).isOk());
    EXPECT_EQ(got[i], sent[i]);
  }
  receiver.join();
  EXPECT_EQ(error, "");
}
