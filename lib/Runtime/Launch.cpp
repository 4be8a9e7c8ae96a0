//===- Launch.cpp - which rank a launcher made this process ---------------===//
//
// One row per launcher: the names of its variables.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Launch.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

using namespace cleave::runtime;

namespace {
struct Variables {
  const char *launcher, *rank, *size, *localRank;
};
} // namespace

static constexpr Variables kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
};

/// The variable's number, between 0 and `limit` - 1.
static Status readNumber(const GetEnv &getEnv, const char *name, int limit, int &number) {
  const char *text = getEnv(name);
  char *end = nullptr;
  errno = 0;
  long value = text ? std::strtol(text, &end, 10) : 0;
  if (text && *text && !*end && errno == 0 && value >= 0 && value < limit) {
    number = int(value);
    return {};
  }
  Failure failure;
  failure.cause = Cause::Invalid;
  failure.detail = std::string(name) + " is " + (text ? "'" + std::string(text) + "'" : "not set") +
                   ", expected a number from 0 to " + std::to_string(limit - 1);
  return failure;
}

Status cleave::runtime::readLaunch(const GetEnv &getEnv, std::optional<Launch> &launch) {
  launch.reset();
  for (const Variables &names : kLaunchers) {
    // A Slurm job's batch script has a rank, too, and is no rank of anything: only its steps are.
    bool isStep = names.launcher != std::string("srun") || getEnv("SLURM_STEP_ID");
    if (!getEnv(names.rank) || !isStep)
      continue;
    Launch found;
    found.launcher = names.launcher;
    Status status = readNumber(getEnv, names.size, INT_MAX, found.size);
    if (status.isOk())
      status = readNumber(getEnv, names.rank, found.size, found.rank);
    if (status.isOk() && getEnv(names.localRank))
      status = readNumber(getEnv, names.localRank, found.size, found.localRank);
    if (status.isOk() && getEnv("MASTER_ADDR") && names.launcher == std::string("torchrun")) {
      found.host = getEnv("MASTER_ADDR");
      status = readNumber(getEnv, "MASTER_PORT", 65536, found.port);
    }
    if (status.isOk())
      launch = found;
    return status;
  }
  return {};
}
