//===- CudaGroups.h - what ranks do together, by NCCL -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H
#define CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H

#include "cleave/Cuda/Libraries.h"
#include "cleave/Runtime/Device.h"
#include <mutex>

namespace cleave::runtime {

/// What the ranks of a process know of each other before they meet.
struct CudaWorld {
  std::mutex mutex;
  std::optional<cuda::NcclUniqueId> id;
};

/// The communicators of one rank: that of all ranks, then one for each group, in the program's order, which is that of all
/// ranks. Nothing blocks: communicators are made, and polled until they are ready.
class CudaGroups {
public:
  /// `word` is four bytes of the device's memory, for barriers.
  CudaGroups(const cuda::Nccl &nccl, cuda::DevicePointer word) : nccl(nccl), word(word) {}
  ~CudaGroups();

  program::Status connect(CudaWorld &world, uint32_t size, uint32_t rank, const std::function<bool()> &isStopped);
  program::Status split(const std::vector<int> &members);
  /// Puts all of them into a stream, as one.
  program::Status meet(const std::vector<Operation> &operations, cuda::Stream stream);
  /// What went wrong on the way, if anything did.
  program::Status getError() const;
  void abort();

private:
  struct Group {
    cuda::NcclComm comm = nullptr;
    uint32_t size = 0, index = 0;
    bool isShared = false; ///< that of all ranks
  };
  program::Status describe(cuda::NcclResult result, const char *what) const;
  program::Status finish(cuda::NcclResult result, const char *what, cuda::NcclComm comm) const;
  cuda::NcclResult start(const Operation &operation, cuda::Stream stream) const;

  const cuda::Nccl &nccl;
  const cuda::DevicePointer word;
  std::function<bool()> isStopped;
  std::vector<Group> groups;
  uint32_t rank = 0;
};

/// Why NCCL cannot do this; nothing if it can.
program::Status checkNccl(const Operation &operation);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H
