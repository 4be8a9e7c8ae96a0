//===- OpenMpi.cpp - the communicator of libcleave_mpi --------------------===//
//
// Nothing but libcleave_mpi links MPI. It is of the same build as this library: objects go between them.
//
//===----------------------------------------------------------------------===//
#include "OpenMpi.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace cleave::runtime;

static Status failToOpen(const std::string &why) {
  Failure failure;
  failure.cause = Cause::System;
  failure.detail = "ranks under MPI need libcleave_mpi: " + why;
  return failure;
}

std::unique_ptr<Communicator> cleave::runtime::openMpiLibrary(const Options &options, Status &status) {
  const char *given = std::getenv("CLEAVE_MPI_LIBRARY");
  // Open MPI's own plugins look for its symbols in all that is loaded.
  void *library = dlopen(given ? given : "libcleave_mpi.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char *why = dlerror();
    status = failToOpen(why ? why : "it cannot be opened");
    return nullptr;
  }
  auto *version = reinterpret_cast<const char *(*)()>(dlsym(library, "cleave_mpi_version"));
  auto *open = reinterpret_cast<Communicator *(*)(const Options &, Status &)>(dlsym(library, "cleave_mpi_open"));
  if (!version || !open || std::strcmp(version(), CLEAVE_VERSION) != 0) {
    status = failToOpen(std::string("it is of version ") + (version ? version() : "unknown") + ", expected " +
                        CLEAVE_VERSION);
    return nullptr;
  }
  return std::unique_ptr<Communicator>(open(options, status));
}
