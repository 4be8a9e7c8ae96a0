//===- OwnLibraries.cpp - libcleave_mpi, _tcp and _cuda -------------------===//
//
// They are of the same build as this library, and say so: objects go between them.
//
//===----------------------------------------------------------------------===//
#include "OwnLibraries.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace cleave::runtime;
using cleave::program::concat;
using cleave::program::Result;

/// `cleave_KIND_open` of the library, if `cleave_KIND_version` is ours.
static Result<void *> openOwn(const std::string &kind, const char *variable, int visibility) {
  const char *given = std::getenv(variable);
  void *library = dlopen(given ? given : concat("libcleave_", kind, ".so").c_str(), RTLD_NOW | visibility);
  if (!library) {
    const char *why = dlerror();
    return cleave::program::makeError(why ? why : "it cannot be opened");
  }
  auto *version = reinterpret_cast<const char *(*)()>(dlsym(library, concat("cleave_", kind, "_version").c_str()));
  void *open = dlsym(library, concat("cleave_", kind, "_open").c_str());
  if (!version || !open || std::strcmp(version(), CLEAVE_VERSION) != 0)
    return cleave::program::makeError("it is of version ", version ? version() : "unknown",
                                      ", expected " CLEAVE_VERSION);
  return open;
}

/// Open MPI's own plugins look for its symbols in all that is loaded.
std::unique_ptr<Communicator> cleave::runtime::openProcessLibrary(bool usesMpi, const Options &options,
                                                                  const std::string &rendezvous, Status &status) {
  using Open = Communicator *(*)(const Options &, const std::string &, Status &);
  const char *kind = usesMpi ? "mpi" : "tcp";
  Result<void *> open =
      openOwn(kind, usesMpi ? "CLEAVE_MPI_LIBRARY" : "CLEAVE_TCP_LIBRARY", usesMpi ? RTLD_GLOBAL : RTLD_LOCAL);
  if (open)
    return std::unique_ptr<Communicator>(reinterpret_cast<Open>(*open)(options, rendezvous, status));
  Failure failure;
  failure.cause = Cause::System;
  failure.detail = (usesMpi ? "ranks under MPI need libcleave_mpi: " : "ranks without MPI need libcleave_tcp: ") +
                   open.getError().message;
  status = failure;
  return nullptr;
}

Result<std::vector<std::unique_ptr<Device>>>
cleave::runtime::openCudaLibrary(uint32_t size, const std::vector<uint32_t> &ranks, bool isProcess) {
  using Devices = Result<std::vector<std::unique_ptr<Device>>>;
  using Open = void (*)(uint32_t, const std::vector<uint32_t> &, bool, Devices &);
  Result<void *> open = openOwn("cuda", "CLEAVE_CUDA_RUNTIME", RTLD_LOCAL);
  if (!open)
    return cleave::program::makeError("programs for CUDA need libcleave_cuda: ", open.getError().message);
  Devices devices = std::vector<std::unique_ptr<Device>>();
  reinterpret_cast<Open>(*open)(size, ranks, isProcess, devices);
  return devices;
}
