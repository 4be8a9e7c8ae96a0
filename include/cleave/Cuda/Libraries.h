//===- Libraries.h - the device behind a symbol table -----------*- C++ -*-===//
//
// The CUDA driver, cuBLASLt and NCCL are opened by name when a program asks for a device, and never closed:
//
//   CLEAVE_CUDA_LIBRARY    nothing but this: a library that has all entries (the emulated device), or a folder of libraries
//   `setLibrary`           else nothing but what the program that opens them says, the same way
//   else, in this order    the dynamic linker's way; $CUDA_HOME and $CUDA_PATH (lib64, lib); /usr/local/cuda/lib64;
//                          packages of pip (.../site-packages/nvidia/*/lib) of $VIRTUAL_ENV, of the user, of the system
//
// What is missing is one line with the names that were tried.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_LIBRARIES_H
#define CLEAVE_CUDA_LIBRARIES_H

#include "cleave/Cuda/Blas.h"
#include "cleave/Cuda/Dnn.h"
#include "cleave/Cuda/Driver.h"
#include "cleave/Cuda/Nccl.h"
#include "cleave/Program/Error.h"

namespace cleave::cuda {

/// What stands for CUDA's libraries in this process, where the variable says nothing. Without effect on those that are open. May be called from
/// any thread.
void setLibrary(const std::string &path);

/// The entries of a library, the same table on every call; an error says which names were tried, or which entry the library
/// lacks. May be called from any thread.
program::Result<const Driver *> openDriver();
/// These are an error, too, where CLEAVE_CUDA_WITHOUT names them (`cublasLt,cudnn`): programs run without.
program::Result<const Blas *> openBlas();
program::Result<const Dnn *> openDnn();
program::Result<const Nccl *> openNccl();

/// `CUDA_ERROR_OUT_OF_MEMORY: out of memory` where the driver knows the number, else `CUDA error 2`.
std::string describe(const Driver &driver, Result error);
/// `ncclRemoteError`, `NCCL error 9`.
std::string describe(NcclResult error);
/// `CUBLAS_STATUS_NOT_SUPPORTED`, `cuBLAS status 99`.
std::string describe(BlasStatus status);
/// `CUDNN_STATUS_NOT_SUPPORTED`, `cuDNN status 99`.
std::string describe(DnnStatus status);

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_LIBRARIES_H
