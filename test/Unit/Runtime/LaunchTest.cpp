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
            "rank 0: WORLD_SIZE is not set, expected a number from 0 to 2147483646 (invalid)");
  EXPECT_EQ(read({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, launch).getMessage(),
            "rank 0: RANK is '1x', expected a number from 0 to 3 (invalid)");
  EXPECT_FALSE(launch);
}
