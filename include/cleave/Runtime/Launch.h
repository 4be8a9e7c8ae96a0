//===- Launch.h - which rank a launcher made this process -------*- C++ -*-===//
//
// Launchers tell the processes that they start who they are in the environment, each under names of its own. What all of them
// say is here; nothing is asked of anybody.
//
#ifndef CLEAVE_RUNTIME_LAUNCH_H
#define CLEAVE_RUNTIME_LAUNCH_H

#include "cleave/Runtime/Failure.h"
#include <functional>
#include <optional>

namespace cleave::runtime {

/// What a launcher says in the environment of each process that it starts.
struct Launch {
  /// `cleave-run` (--local), `mpirun`, `srun`, `torchrun`, or `mpiexec` of another MPI.
  const char *launcher = nullptr;
  int rank = 0, size = 1;
  /// Among the processes on this machine; 0 where the launcher does not say.
  int localRank = 0;
  /// Whether the launcher says that all ranks are processes of this machine.
  bool isOneMachine = false;
  /// What tells this start of ranks from others, as far as the launcher names it.
  std::string job;
  /// Where rank 0 can be reached, if the launcher says so (torchrun, srun): at this port, or one of the next.
  std::string host;
  int port = 0;
  /// Where torchrun's agent has its store; 0: there is none.
  int storePort = 0;
  /// Where the launcher would say it: `, as MASTER_ADDR would`.
  const char *hint = "";
};

/// Reads a variable of the environment; null where it is not set.
using GetEnv = std::function<const char *(const char *name)>;

/// Finds out which rank this process is: nothing where no launcher started it. Fails where what is set makes no sense: numbers
/// that are none or out of range, a rank without a number of ranks (and, where that is above 1, the other way round), two
/// launchers that say different things. Only a step of Slurm may have another launcher inside, whose word counts then; and
/// `cleave-run --local` inside of any goes before all.
Status readLaunch(const GetEnv &getEnv, std::optional<Launch> &launch);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_LAUNCH_H
