//===- Cuda.h - NVIDIA's devices --------------------------------*- C++ -*-===//
//
// Lies in a library of its own, libcleave_cuda, which opens the driver and NCCL by name (cleave/Cuda/Libraries.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_CUDA_H
#define CLEAVE_RUNTIME_CUDA_H

#include "cleave/Runtime/Device.h"

namespace cleave::runtime {

/// A device for each of these ranks, all in this process; `size` ranks meet. The r-th of them gets the r-th device
/// that is visible; a process that is one rank of several (`isProcess`) gets that of its local rank, or the only one that it sees. An error if
/// there are too few (NCCL wants one for each), unless NCCL_MULTI_RANK_GPU_ENABLE says that ranks may share. `library`: as
/// ExecutorOptions::cudaLibrary.
program::Result<std::vector<std::unique_ptr<Device>>> openCuda(uint32_t size, const std::vector<uint32_t> &ranks,
                                                               bool isProcess = false, const std::string &library = "");

/// Whether code for `architecture` runs on a device of compute capability `major`.`minor`: `sm_90` on it and on all that came later, as PTX;
/// `sm_90a` on 9.0 alone; `sm_100f` on those of its family, 10.0 and later ones before 11.0.
bool runsOn(const std::string &architecture, int major, int minor);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_CUDA_H
