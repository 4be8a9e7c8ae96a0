//===- Threads.h - ranks that are threads of one process --------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_THREADS_H
#define CLEAVE_RUNTIME_THREADS_H

#include "cleave/Runtime/Communicator.h"

namespace cleave::runtime {

/// The communicators of `size` ranks, by rank; each is used, and destroyed, by one thread at a time. A rank that is not
/// needed any more destroys its own: only then can others tell that it has left. Preconditions: size >= 1.
std::vector<std::unique_ptr<Communicator>> makeThreads(int size, const Options &options);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_THREADS_H
