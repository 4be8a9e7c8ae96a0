//===- Local.h - a process for each rank, on this machine -------*- C++ -*-===//
//
// What torchrun and mpirun do on one machine, for who has neither: start, wait, pass signals on, leave nothing behind.
//
#ifndef CLEAVE_LIB_RUNNER_LOCAL_H
#define CLEAVE_LIB_RUNNER_LOCAL_H

#include "cleave/Runner/Runner.h"

namespace cleave::runner {

/// Starts this program once more for each rank, waits for all, and returns the exit code of the whole. When one fails the
/// others get some seconds to say so; none is left behind. What several say alike is printed once.
int runLocal(const RunOptions &options);

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_LOCAL_H
