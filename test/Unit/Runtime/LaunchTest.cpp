//===- LaunchTest.cpp - which rank a launcher made this process -----------===//
//
// The environments are those that mpirun (Open MPI 4.1), srun and torchrun set.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Launch.h"

#include <gtest/gtest.h>
#include <map>

using namespace cleave::runtime;

using Environment = std::map<std::string, const char *>;

static Status read(const Environment &environment, std::optional<Launch> &launch) {
  return readLaunch(
      [&](const char *name) {
        auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second;
      },
      launch);
}

static void expectRank(const Environment &environment, const char *launcher, int rank, int size, int localRank) {
  std::optional<Launch> launch;
  Status status = read(environment, launch);
  ASSERT_TRUE(status.isOk()) << status.getMessage();
  ASSERT_TRUE(launch);
  EXPECT_STREQ(launch->launcher, launcher);
  EXPECT_EQ(launch->rank, rank);
  EXPECT_EQ(launch->size, size);
  EXPECT_EQ(launch->localRank, localRank);
}

TEST(Launch, ReadsEachLauncher) {
  Environment mpirun = {
      {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
  expectRank(mpirun, "mpirun", 3, 4, 1);
  Environment srun = {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "2"}, {"SLURM_STEP_ID", "0"}};
  expectRank(srun, "srun", 5, 8, 2);
  expectRank({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "mpiexec", 1, 2, 0);
  // mpirun inside of a Slurm step, which has a rank of its own.
  mpirun.insert(srun.begin(), srun.end());
  expectRank(mpirun, "mpirun", 3, 4, 1);
}

TEST(Launch, ReadsWhereRankZeroIs) {
  std::optional<Launch> launch;
  Environment torchrun = {
      {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
  expectRank(torchrun, "torchrun", 2, 4, 0);
  ASSERT_TRUE(read(torchrun, launch).isOk());
  EXPECT_EQ(launch->host, "node7");
  EXPECT_EQ(launch->port, 29500);
}

// A batch script of Slurm is no rank, and neither is a shell.
TEST(Launch, FindsNone) {
  std::optional<Launch> launch;
  ASSERT_TRUE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, launch).isOk());
  EXPECT_FALSE(launch);
  ASSERT_TRUE(read({}, launch).isOk());
  EXPECT_FALSE(launch);
}

TEST(Launch, RefusesWhatMakesNoSense) {
  std::optional<Launch> launch;
  EXPECT_EQ(read({{"RANK", "4"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is '4', expected a number from 0 to 3 (invalid)");
  EXPECT_EQ(read({{"RANK", "1"}}, launch).getMessage(),
            "rank 0: WORLD_SIZE is not set, expected a number from 1 to 2147483646 (invalid)");
  EXPECT_EQ(read({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is '1x', expected a number from 0 to 3 (invalid)");
  EXPECT_EQ(read({{"RANK", " 1"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is ' 1', expected a number from 0 to 3 (invalid)");
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, launch).getMessage(),
            "rank 0: WORLD_SIZE is '0', expected a number from 1 to 2147483646 (invalid)");
  EXPECT_EQ(read({{"RANK", "99999999999999999999"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is '99999999999999999999', expected a number from 0 to 3 (invalid)");
  // What is set may hold anything, and is printed.
  EXPECT_EQ(read({{"RANK", "\x1b[2J"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is '\"\\x1B[2J\"', expected a number from 0 to 3 (invalid)");
  EXPECT_EQ(
      read({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, launch).getMessage(),
      "rank 0: LOCAL_RANK is '2', expected a number from 0 to 1 (invalid)");
  EXPECT_EQ(read({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}, launch).getMessage(),
            "rank 0: MASTER_PORT is not set, expected a number from 1 to 65535 (invalid)");
  EXPECT_FALSE(launch);
}

// One of several ranks would run all alone.
TEST(Launch, RefusesAWorldWithoutARank) {
  std::optional<Launch> launch;
  EXPECT_EQ(read({{"WORLD_SIZE", "4"}}, launch).getMessage(), "rank 0: WORLD_SIZE is 4, and RANK is not set (invalid)");
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_SIZE", "2"}}, launch).getMessage(),
            "rank 0: OMPI_COMM_WORLD_SIZE is 2, and OMPI_COMM_WORLD_RANK is not set (invalid)");
  EXPECT_EQ(read({{"WORLD_SIZE", "x"}}, launch).getMessage(),
            "rank 0: WORLD_SIZE is 'x', expected a number from 1 to 2147483646 (invalid)");
  // A world of one is as none; and another launcher's word is enough.
  ASSERT_TRUE(read({{"WORLD_SIZE", "1"}}, launch).isOk());
  EXPECT_FALSE(launch);
  expectRank({{"WORLD_SIZE", "4"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}, "mpiexec", 1, 4, 0);
}

TEST(Launch, RefusesContradictions) {
  std::optional<Launch> launch;
  EXPECT_EQ(
      read({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, launch)
          .getMessage(),
      "rank 0: mpirun says rank 0 of 2 (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), torchrun says rank 3 of 8 (RANK, "
      "WORLD_SIZE); unset the variables of the one that did not start this process (invalid)");
  EXPECT_FALSE(read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"RANK", "1"}, {"WORLD_SIZE", "4"}}, launch).isOk());
  EXPECT_EQ(
      read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}}, launch).getMessage(),
      "rank 0: PMIX_RANK is 1, and OMPI_COMM_WORLD_RANK is 0 (invalid)");
  EXPECT_FALSE(launch);
  // Who agrees contradicts nobody.
  expectRank({{"OMPI_COMM_WORLD_RANK", "1"},
              {"OMPI_COMM_WORLD_SIZE", "2"},
              {"PMIX_RANK", "1"},
              {"RANK", "1"},
              {"WORLD_SIZE", "2"}},
             "mpirun", 1, 2, 0);
  // torchrun inside of a step of Slurm, which sets PMI's variables for its own, too.
  Environment step = {
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  expectRank(step, "srun", 1, 2, 0);
  step.insert({{"RANK", "5"}, {"WORLD_SIZE", "8"}});
  expectRank(step, "torchrun", 5, 8, 0);
  // cleave-run --local inside of anything.
  step.insert({{"CLEAVE_RANK", "2"}, {"CLEAVE_RANKS", "3"}});
  expectRank(step, "cleave-run", 2, 3, 0);
}

TEST(Launch, KnowsWhereAllRanksAreOnOneMachine) {
  std::optional<Launch> launch;
  Environment all = {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}};
  ASSERT_TRUE(read(all, launch).isOk());
  EXPECT_TRUE(launch->isOneMachine);
  all["LOCAL_WORLD_SIZE"] = "2";
  ASSERT_TRUE(read(all, launch).isOk());
  EXPECT_FALSE(launch->isOneMachine);
}
