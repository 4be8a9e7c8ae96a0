//===- Nccl.h - what Cleave calls of NCCL -----------------------*- C++ -*-===//
//
// As Driver.h, for NCCL from 2.18 on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_NCCL_H
#define CLEAVE_CUDA_NCCL_H

#include "cleave/Cuda/Driver.h"
#include <climits>

namespace cleave::cuda {

using NcclComm = struct NcclCommHandle *;
using NcclWindow = struct NcclWindowHandle *;

/// ncclResult_t.
enum class NcclResult : int {
  Success = 0,
  UnhandledCudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

/// ncclDataType_t.
enum class NcclType : int {
  I8 = 0,
  UI8 = 1,
  I32 = 2,
  UI32 = 3,
  I64 = 4,
  UI64 = 5,
  F16 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
};

/// ncclRedOp_t.
enum class NcclReduction : int { Sum = 0, Prod = 1, Max = 2, Min = 3 };

/// ncclUniqueId.
struct NcclUniqueId {
  char bytes[128];
};

constexpr int kNcclUndefined = INT_MIN; ///< NCCL_CONFIG_UNDEF_INT
constexpr int kNcclNoColor = -1;        ///< NCCL_SPLIT_NOCOLOR: the rank is in no group
constexpr int kNcclWindowSymmetric = 1; ///< NCCL_WIN_COLL_SYMMETRIC
constexpr size_t kNcclWindowAlignment = 4096;

/// ncclConfig_t as of 2.18; later versions read as much of it as `bytes` says.
struct NcclConfig {
  size_t bytes = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = kNcclUndefined;
  int clusterSize = kNcclUndefined;
  int minBlocks = kNcclUndefined;
  int maxBlocks = kNcclUndefined;
  const char *network = nullptr;
  int splitShare = kNcclUndefined;
};

/// All return an NcclResult.
#define CLEAVE_CUDA_NCCL_ENTRIES(ENTRY)                                                                                \
  ENTRY(ncclGetVersion, (int *version))                                                                                \
  ENTRY(ncclGetUniqueId, (NcclUniqueId * id))                                                                          \
  ENTRY(ncclCommInitRankConfig, (NcclComm * comm, int ranks, NcclUniqueId id, int rank, NcclConfig *config))           \
  ENTRY(ncclCommSplit, (NcclComm comm, int color, int key, NcclComm *part, NcclConfig *config))                        \
  ENTRY(ncclCommFinalize, (NcclComm comm))                                                                             \
  ENTRY(ncclCommDestroy, (NcclComm comm))                                                                              \
  ENTRY(ncclCommAbort, (NcclComm comm))                                                                                \
  ENTRY(ncclCommGetAsyncError, (NcclComm comm, NcclResult * error))                                                    \
  ENTRY(ncclGroupStart, ())                                                                                            \
  ENTRY(ncclGroupEnd, ())                                                                                              \
  ENTRY(ncclAllReduce, (const void *input, void *output, size_t count, NcclType type, NcclReduction reduction,         \
                        NcclComm comm, Stream stream))                                                                 \
  ENTRY(ncclReduceScatter, (const void *input, void *output, size_t outputCount, NcclType type,                        \
                            NcclReduction reduction, NcclComm comm, Stream stream))                                    \
  ENTRY(ncclAllGather,                                                                                                 \
        (const void *input, void *output, size_t inputCount, NcclType type, NcclComm comm, Stream stream))             \
  ENTRY(ncclSend, (const void *input, size_t count, NcclType type, int peer, NcclComm comm, Stream stream))            \
  ENTRY(ncclRecv, (void *output, size_t count, NcclType type, int peer, NcclComm comm, Stream stream))

/// Those that only later versions have: memory that all ranks may address (2.19), symmetric windows (2.27).
#define CLEAVE_CUDA_NCCL_LATER_ENTRIES(ENTRY)                                                                          \
  ENTRY(ncclMemAlloc, (void **memory, size_t bytes))                                                                   \
  ENTRY(ncclMemFree, (void *memory))                                                                                   \
  ENTRY(ncclCommWindowRegister, (NcclComm comm, void *memory, size_t bytes, NcclWindow *window, int flags))            \
  ENTRY(ncclCommWindowDeregister, (NcclComm comm, NcclWindow window))

#define CLEAVE_CUDA_MEMBER(name, parameters) NcclResult(*name) parameters = nullptr;
/// libnccl. The later entries are null where the library lacks them.
struct Nccl {
  CLEAVE_CUDA_NCCL_ENTRIES(CLEAVE_CUDA_MEMBER)
  CLEAVE_CUDA_NCCL_LATER_ENTRIES(CLEAVE_CUDA_MEMBER)
};
#undef CLEAVE_CUDA_MEMBER

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_NCCL_H
