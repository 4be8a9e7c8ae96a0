//===- OpenMpi.h - the communicator of libcleave_mpi ------------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_OPENMPI_H
#define CLEAVE_LIB_RUNTIME_OPENMPI_H

#include "cleave/Runtime/Communicator.h"

namespace cleave::runtime {

/// `openMpi` (Mpi.h) of libcleave_mpi, which is opened by name: beside this library, where the system looks, or what
/// CLEAVE_MPI_LIBRARY says. Null, and a failure, where there is none.
std::unique_ptr<Communicator> openMpiLibrary(const Options &options, Status &status);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_OPENMPI_H
