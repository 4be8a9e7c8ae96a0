//===- Mpi.h - ranks that are processes under mpirun ------------*- C++ -*-===//
//
// Lies in a library of its own, libcleave_mpi, which is built where MPI is found; nothing else links MPI.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_MPI_H
#define CLEAVE_RUNTIME_MPI_H

#include "cleave/Runtime/Communicator.h"

namespace cleave::runtime {

/// The communicator of this process, one rank of those that a launcher started; null, and a failure, if MPI and the
/// launcher do not agree on who that is, or a rank does not come. Starts MPI, and ends it with the communicator unless
/// there was a failure: then the process must exit, with another code than 0, without ending MPI.
std::unique_ptr<Communicator> openMpi(const Options &options, Status &status);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_MPI_H
