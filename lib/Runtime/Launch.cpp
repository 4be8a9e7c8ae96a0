//===- Launch.cpp - which rank a launcher made this process ---------------===//
//
// One row per launcher: the names of its variables. Two of them say where rank 0 is, too: torchrun by a port, at which its own
// store may listen; Slurm by a list of nodes, of which the first is taken, and the number of the job, which makes a port.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Launch.h"
#include "cleave/Program/Error.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

using namespace cleave::runtime;
namespace program = cleave::program;

namespace {
struct Variables {
  const char *launcher, *rank, *size, *localRank, *localSize;
};
} // namespace

/// The innermost first.
static constexpr Variables kLaunchers[] = {
    {"cleave-run", "CLEAVE_RANK", "CLEAVE_RANKS", "CLEAVE_LOCAL_RANK", "CLEAVE_LOCAL_RANKS"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

static Status failFor(std::string detail) {
  Failure failure;
  failure.cause = Cause::Invalid;
  failure.detail = std::move(detail);
  return failure;
}

static bool isLauncher(const Variables &names, const char *launcher) {
  return names.launcher == std::string_view(launcher);
}

/// The variable's number, between `least` and `limit` - 1.
static Status readNumber(const GetEnv &getEnv, const char *name, int least, int limit, int &number) {
  const char *text = getEnv(name);
  char *end = nullptr;
  errno = 0;
  // A number begins with a digit: no blanks, no sign.
  long value = text && *text >= '0' && *text <= '9' ? std::strtol(text, &end, 10) : -1;
  if (end && !*end && errno == 0 && value >= least && value < limit) {
    number = int(value);
    return {};
  }
  return failFor(program::concat(name, " is ", text ? "'" + program::printable(text) + "'" : "not set",
                                 ", expected a number from ", least, " to ", limit - 1));
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
    status = readNumber(getEnv, "MASTER_PORT", 1, 65536, launch.port);
  if (status.isOk() && !launch.host.empty() && getText(getEnv, "TORCHELASTIC_USE_AGENT_STORE") == "True")
    launch.storePort = launch.port++;
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

/// One launcher's word; nothing where it says none.
static Status readOne(const GetEnv &getEnv, const Variables &names, std::optional<Launch> &launch) {
  // A Slurm job's batch script has a rank, too, and is no rank of anything: only its steps are.
  bool isSlurm = isLauncher(names, "srun");
  if (!getEnv(names.rank) || (isSlurm && !getEnv("SLURM_STEP_ID")))
    return {};
  const char *sizeName = isSlurm && getEnv("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : names.size;
  Launch found;
  found.launcher = names.launcher;
  Status status = readNumber(getEnv, sizeName, 1, INT_MAX, found.size);
  if (status.isOk())
    status = readNumber(getEnv, names.rank, 0, found.size, found.rank);
  int localSize = found.size;
  bool saysLocalSize = names.localSize && getEnv(names.localSize);
  if (status.isOk() && saysLocalSize)
    status = readNumber(getEnv, names.localSize, 1, found.size + 1, localSize);
  if (status.isOk() && getEnv(names.localRank))
    status = readNumber(getEnv, names.localRank, 0, localSize, found.localRank);
  found.isOneMachine =
      isSlurm ? getText(getEnv, "SLURM_STEP_NUM_NODES") == "1" : saysLocalSize && localSize == found.size;
  if (isLauncher(names, "torchrun") && status.isOk())
    status = readMaster(getEnv, found);
  else if (isSlurm)
    readSlurm(getEnv, found);
  else
    found.job = getText(getEnv, "PMIX_NAMESPACE");
  if (status.isOk())
    launch = found;
  return status;
}

/// How many ranks there are, and not which one this is: one of them would run all alone. (Slurm says so in its batch scripts.)
static Status checkHalf(const GetEnv &getEnv, const Variables &names) {
  int size = 0;
  if (!getEnv(names.size) || isLauncher(names, "srun"))
    return {};
  Status status = readNumber(getEnv, names.size, 1, INT_MAX, size);
  return status.isOk() && size > 1
             ? failFor(program::concat(names.size, " is ", size, ", and ", names.rank, " is not set"))
             : status;
}

/// Two launchers that both started this process say the same of it, or one of them is left over from somewhere else.
static Status compare(const Launch &one, const Variables &itsNames, const Launch &other, const Variables &otherNames) {
  if (one.rank == other.rank && one.size == other.size)
    return {};
  return failFor(program::concat(one.launcher, " says rank ", one.rank, " of ", one.size, " (", itsNames.rank, ", ",
                                 itsNames.size, "), ", other.launcher, " says rank ", other.rank, " of ", other.size,
                                 " (", otherNames.rank, ", ", otherNames.size,
                                 "); unset the variables of the one that did not start this process"));
}

/// PMIx is how Open MPI's and Slurm's processes learn of each other; it has no number of ranks in the environment.
static Status comparePmix(const GetEnv &getEnv, const Launch &launch, const Variables &names) {
  int rank = 0;
  bool isAsked = getEnv("PMIX_RANK") && (isLauncher(names, "mpirun") || isLauncher(names, "srun"));
  Status status = isAsked ? readNumber(getEnv, "PMIX_RANK", 0, launch.size, rank) : Status();
  if (!isAsked || !status.isOk() || rank == launch.rank)
    return status;
  return failFor(program::concat("PMIX_RANK is ", rank, ", and ", names.rank, " is ", launch.rank));
}

Status cleave::runtime::readLaunch(const GetEnv &getEnv, std::optional<Launch> &launch) {
  launch.reset();
  std::optional<Launch> first;
  const Variables *itsNames = nullptr;
  for (const Variables &names : kLaunchers) {
    // mpirun and torchrun work inside of Slurm's steps, which then are another's ranks.
    if (first && isLauncher(names, "srun") && !isLauncher(*itsNames, "srun"))
      continue;
    std::optional<Launch> found;
    Status status = readOne(getEnv, names, found);
    // Slurm sets PMI's variables for its own steps.
    bool isSlurms = first && found && isLauncher(names, "mpiexec") && getEnv("SLURM_STEP_ID") &&
                    getText(getEnv, names.rank) == getText(getEnv, "SLURM_PROCID");
    if (status.isOk() && first && found && !isSlurms)
      status = compare(*first, *itsNames, *found, names);
    if (status.isOk() && found && !first)
      status = comparePmix(getEnv, *found, names);
    if (!status.isOk())
      return status;
    if (found && !first) {
      first = found;
      itsNames = &names;
    }
    // Whoever runs `cleave-run --local` may be a rank of something else.
    if (first && isLauncher(*itsNames, "cleave-run"))
      break;
  }
  launch = first;
  for (const Variables &names : kLaunchers)
    if (Status status = first ? Status() : checkHalf(getEnv, names); !status.isOk())
      return status;
  return {};
}
