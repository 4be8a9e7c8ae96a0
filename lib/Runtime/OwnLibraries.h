//===- OwnLibraries.h - libcleave_mpi, _tcp and _cuda -----------*- C++ -*-===//
//
// What few callers need, or few machines have, lies in libraries of their own, which are opened by name: beside this library,
// where the system looks, or where a variable says.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_OWNLIBRARIES_H
#define CLEAVE_LIB_RUNTIME_OWNLIBRARIES_H

#include "cleave/Runtime/Communicator.h"
#include "cleave/Runtime/Device.h"

namespace cleave::runtime {

/// `openMpi` (Mpi.h) of libcleave_mpi, or of what CLEAVE_MPI_LIBRARY says; `openTcp` (Tcp.h) of libcleave_tcp, or of what
/// CLEAVE_TCP_LIBRARY says. Null, and a failure, where there is none.
std::unique_ptr<Communicator> openProcessLibrary(bool usesMpi, const Options &options, const std::string &rendezvous,
                                                 Status &status);

/// `openCuda` (Cuda.h) of libcleave_cuda, or of what CLEAVE_CUDA_RUNTIME says.
program::Result<std::vector<std::unique_ptr<Device>>> openCudaLibrary(uint32_t size, const std::vector<uint32_t> &ranks,
                                                                      bool isProcess);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_OWNLIBRARIES_H
