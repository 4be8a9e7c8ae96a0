//===- OwnLibraries.cpp - libraries that are opened by name ---------------===//
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

Result<void *> cleave::runtime::openOwn(const std::string &word, const char *variable, bool sharesSymbols) {
  const char *given = std::getenv(variable);
  void *library = dlopen(given ? given : concat("libcleave_", word, ".so").c_str(),
                         RTLD_NOW | (sharesSymbols ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library) {
    const char *why = dlerror();
    return cleave::program::makeError(why ? why : "it cannot be opened");
  }
  auto *version = reinterpret_cast<const char *(*)()>(dlsym(library, concat("cleave_", word, "_version").c_str()));
  void *open = dlsym(library, concat("cleave_", word, "_open").c_str());
  if (!version || !open || std::strcmp(version(), CLEAVE_VERSION) != 0)
    return cleave::program::makeError("it is of version ", version ? version() : "unknown",
                                      ", expected " CLEAVE_VERSION);
  return open;
}

Result<std::vector<std::unique_ptr<Device>>> cleave::runtime::openCudaLibrary(uint32_t size,
                                                                              const std::vector<uint32_t> &ranks,
                                                                              bool isProcess,
                                                                              const std::string &library) {
  using Devices = Result<std::vector<std::unique_ptr<Device>>>;
  using Open = void (*)(uint32_t, const std::vector<uint32_t> &, bool, const std::string &, Devices &);
  Result<void *> open = openOwn("cuda", "CLEAVE_CUDA_RUNTIME", /*sharesSymbols=*/false);
  if (!open)
    return cleave::program::makeError("programs for CUDA need libcleave_cuda: ", open.getError().message);
  Devices devices = std::vector<std::unique_ptr<Device>>();
  reinterpret_cast<Open>(*open)(size, ranks, isProcess, library, devices);
  return devices;
}
