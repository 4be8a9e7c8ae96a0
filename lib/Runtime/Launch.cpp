//===- Launch.cpp - which rank a launcher made this process ---------------===//
//
// One row per launcher: the names of its variables. Two of them say where rank 0 is, too: torchrun by a port, at which its own
// store may listen; Slurm by a list of nodes, of which the first is taken, and the number of the job, which makes a port.
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
    {"cleave-run", "CLEAVE_RANK", "CLEAVE_RANKS", "CLEAVE_LOCAL_RANK"},
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

static std::string getText(const GetEnv &getEnv, const char *name) {
  const char *text = getEnv(name);
  return text ? text : "";
}

/// The first of `gpu[03-07,9],other`: `gpu03`. Brackets hold ranges of numbers; of each the first counts.
static std::string getFirstNode(const std::string &list) {
  std::string node;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      node += list[i];
      continue;
    }
    size_t end = list.find_first_of("-,]", i), close = list.find(']', i);
    node += list.substr(i + 1, end == std::string::npos ? end : end - i - 1);
    i = close == std::string::npos ? list.size() - 1 : close;
  }
  return node;
}

/// Where rank 0 of torchrun is. Who starts ranks by hand may set these variables, too.
static Status readMaster(const GetEnv &getEnv, Launch &launch) {
  launch.job = getText(getEnv, "TORCHELASTIC_RUN_ID") + " " + getText(getEnv, "TORCHELASTIC_RESTART_COUNT");
  launch.hint = " (in MASTER_ADDR and MASTER_PORT)";
  launch.host = getText(getEnv, "MASTER_ADDR");
  Status status;
  if (!launch.host.empty())
    status = readNumber(getEnv, "MASTER_PORT", 65536, launch.port);
  // torchrun's agent listens there itself.
  launch.port += getText(getEnv, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  return status;
}

/// Ports below those that systems give to anybody, 16 for each of a thousand jobs.
static void readSlurm(const GetEnv &getEnv, Launch &launch) {
  std::string job = getText(getEnv, "SLURM_JOB_ID");
  launch.job = job + "." + getText(getEnv, "SLURM_STEP_ID");
  launch.hint = " (in SLURM_STEP_NODELIST)";
  launch.host = getFirstNode(getText(getEnv, "SLURM_STEP_NODELIST"));
  launch.port = 15000 + int(std::strtoul(job.c_str(), nullptr, 10) % 1000) * 16;
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
    std::string launcher = names.launcher;
    if (launcher == "torchrun" && status.isOk())
      status = readMaster(getEnv, found);
    else if (launcher == "srun")
      readSlurm(getEnv, found);
    else
      found.job = getText(getEnv, "PMIX_NAMESPACE");
    if (status.isOk())
      launch = found;
    return status;
  }
  return {};
}
