//===- RankKindTest.cpp - the registry of communicators -------------------===//
//
// What is offered, what a launcher's processes get, and the numbers that callers in C know.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/RankKind.h"
#include "cleave/runtime.h"

#include <gtest/gtest.h>

using namespace cleave::runtime;

static_assert(int(RankKind::Threads) == CLEAVE_RANKS_THREADS && int(RankKind::Mpi) == CLEAVE_RANKS_MPI &&
              int(RankKind::Tcp) == CLEAVE_RANKS_TCP && kNumRankKinds == CLEAVE_RANKS_TCP + 1);

TEST(RankKind, IsFoundByItsWord) {
  EXPECT_EQ(findRankKind("threads"), RankKind::Threads);
  EXPECT_EQ(findRankKind("mpi"), RankKind::Mpi);
  EXPECT_EQ(findRankKind("tcp"), RankKind::Tcp);
  EXPECT_EQ(findRankKind("gpus"), std::nullopt);
  EXPECT_EQ(findRankKind(""), std::nullopt);
  EXPECT_EQ(listRankKinds(), "threads, mpi or tcp");
  EXPECT_EQ(describeRankKinds(), "threads; or this process is one rank of several: mpi, tcp (without MPI)");
}

TEST(RankKind, FollowsFromTheLauncher) {
  auto pick = [](const char *launcher, bool hasRendezvous, bool hasPmix) {
    Launch launch;
    launch.launcher = launcher;
    return pickRankKind(launch, hasRendezvous,
                        [&](const char *name) { return hasPmix && name == std::string("PMIX_RANK") ? "0" : nullptr; });
  };
  EXPECT_EQ(pick("mpirun", false, false), RankKind::Mpi);
  EXPECT_EQ(pick("mpiexec", false, false), RankKind::Mpi);
  EXPECT_EQ(pick("srun", false, true), RankKind::Mpi);
  EXPECT_EQ(pick("srun", false, false), RankKind::Tcp);
  EXPECT_EQ(pick("torchrun", false, true), RankKind::Tcp);
  EXPECT_EQ(pick("cleave-run", false, false), RankKind::Tcp);
  // Whoever says where to meet needs no MPI.
  EXPECT_EQ(pick("mpirun", true, false), RankKind::Tcp);
}

TEST(RankKind, OpensThreadsHere) {
  Status status;
  std::vector<std::unique_ptr<Communicator>> ranks = openRanks(RankKind::Threads, 3, {}, "", status);
  EXPECT_TRUE(status.isOk());
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[2]->getRank(), 2);
  EXPECT_EQ(ranks[2]->getSize(), 3);
}

TEST(RankKind, SaysWhichLibraryIsMissing) {
  for (RankKind kind : {RankKind::Mpi, RankKind::Tcp}) {
    const RankKindTraits &traits = getTraits(kind);
    setenv(traits.variable, "/nowhere/lib.so", 1);
    Status status;
    EXPECT_TRUE(openRanks(kind, 2, {}, "", status).empty());
    unsetenv(traits.variable);
    ASSERT_FALSE(status.isOk());
    std::string expected = std::string(traits.processes) + " need libcleave_" + traits.word + ": /nowhere/lib.so: ";
    EXPECT_EQ(status.getFailure().detail.substr(0, expected.size()), expected);
  }
}
