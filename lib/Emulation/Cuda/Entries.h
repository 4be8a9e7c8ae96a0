//===- Entries.h - the functions that the library exports -------*- C++ -*-===//
//
// Declared by the lists that callers fill their tables from, so a definition of another type does not compile.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_ENTRIES_H
#define CLEAVE_LIB_EMULATION_CUDA_ENTRIES_H

#include "cleave/Cuda/Blas.h"
#include "cleave/Cuda/Dnn.h"
#include "cleave/Cuda/Driver.h"
#include "cleave/Cuda/Nccl.h"

namespace cleave::cuda {
extern "C" {
#define CLEAVE_ENTRY(name, parameters) Result name parameters;
CLEAVE_CUDA_DRIVER_ENTRIES(CLEAVE_ENTRY)
#undef CLEAVE_ENTRY
#define CLEAVE_ENTRY(name, parameters) BlasStatus name parameters;
CLEAVE_CUDA_BLAS_ENTRIES(CLEAVE_ENTRY)
#undef CLEAVE_ENTRY
#define CLEAVE_ENTRY(name, parameters) DnnStatus name parameters;
CLEAVE_CUDA_DNN_ENTRIES(CLEAVE_ENTRY)
#undef CLEAVE_ENTRY
#define CLEAVE_ENTRY(name, parameters) NcclResult name parameters;
CLEAVE_CUDA_NCCL_ENTRIES(CLEAVE_ENTRY)
CLEAVE_CUDA_NCCL_LATER_ENTRIES(CLEAVE_ENTRY)
#undef CLEAVE_ENTRY
}
} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_ENTRIES_H
