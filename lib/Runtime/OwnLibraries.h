//===- OwnLibraries.h - libraries that are opened by name -------*- C++ -*-===//
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

/// `cleave_WORD_open` of libcleave_WORD, or of the library that the variable names, if `cleave_WORD_version` is ours; else why not.
program::Result<void *> openOwn(const std::string &word, const char *variable, bool sharesSymbols);

/// `openCuda` (Cuda.h), of what stands for CUDA's libraries in `library`, of libcleave_cuda, or of what CLEAVE_CUDA_RUNTIME says.
program::Result<std::vector<std::unique_ptr<Device>>> openCudaLibrary(uint32_t size, const std::vector<uint32_t> &ranks,
                                                                      bool isProcess, const std::string &library);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_OWNLIBRARIES_H
