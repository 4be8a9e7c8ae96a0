//===- CudaGroups.h - what ranks do together, by NCCL -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H
#define CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H

#include "cleave/Cuda/Libraries.h"
#include "cleave/Runtime/Communicator.h"
#include "cleave/Runtime/Device.h"

namespace cleave::runtime {

/// Memory of NCCL's own, which may become a window.
struct Arena {
  char *memory;
  uint64_t bytes;
};
/// A collective that was bound.
struct Noted {
  GroupId group;
  uint64_t bytes;
  const void *input, *output;
};

/// The communicators of one rank: that of all ranks, then one for each group, in the program's order, which is that of all
/// ranks. Nothing blocks: communicators are made, and polled until they are ready. NCCL itself waits for ever for ranks that do
/// not come; so these meet, by other means, behind every call that begins to make one, and who is missing then is named.
class CudaGroups {
public:
  /// `word` is four bytes of the device's memory, for barriers.
  CudaGroups(const cuda::Nccl &nccl, cuda::DevicePointer word) : nccl(nccl), word(word) {}
  ~CudaGroups();

  /// `device` is zeros where ranks may share it.
  program::Status connect(Communicator &peers, const cuda::Uuid &device);
  program::Status split(Communicator &peers, const std::vector<int> &members);
  /// A collective that will be done.
  void note(const Operation &operation);
  /// All have been noted: registers the arenas for those that gain most, on all ranks or none.
  program::Status share(Communicator &peers, const std::vector<Arena> &arenas);
  WindowUse getWindows() const;
  /// Puts all of them into a stream, as one.
  program::Status meet(const std::vector<Operation> &operations, cuda::Stream stream);
  /// What went wrong on the way, if anything did.
  program::Status getError();
  void abort();

private:
  struct Group {
    cuda::NcclComm comm = nullptr;
    uint32_t size = 0, index = 0;
    bool isShared = false; ///< that of all ranks
    std::vector<int> members;
  };
  program::Status describe(cuda::NcclResult result, const char *what) const;
  program::Status finish(cuda::NcclResult result, const char *what, cuda::NcclComm comm, int64_t deadline) const;
  program::Status meetAll(Communicator &peers, cuda::NcclResult result, const char *what, cuda::NcclComm comm) const;
  program::Status registerArena(cuda::NcclComm comm, const Arena &arena);
  cuda::NcclResult start(const Operation &operation, cuda::Stream stream) const;

  const cuda::Nccl &nccl;
  const cuda::DevicePointer word;
  Communicator *peers = nullptr;
  std::vector<Noted> notes;
  std::vector<std::pair<cuda::NcclComm, cuda::NcclWindow>> windows;
  uint64_t windowGroup = 0;
  /// Why there are no windows.
  std::string why;
  std::vector<Group> groups;
  uint32_t rank = 0;
  /// When another rank was first seen to have given up; 0: never.
  int64_t lostAt = 0;
};

/// Why NCCL cannot do this; nothing if it can.
program::Status checkNccl(const Operation &operation);

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CUDA_CUDAGROUPS_H
