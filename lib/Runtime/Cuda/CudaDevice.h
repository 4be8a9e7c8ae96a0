//===- CudaDevice.h - one of NVIDIA's devices -------------------*- C++ -*-===//
//
// One rank's device: memory, code, streams and events of the driver, and NCCL for what ranks do together. Calls that fail
// after something was issued leave their error here, until `poll` is asked.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_CUDA_CUDADEVICE_H
#define CLEAVE_LIB_RUNTIME_CUDA_CUDADEVICE_H

#include "CudaGroups.h"
#include "CudaLibraries.h"
#include "Staging.h"

namespace cleave::runtime {

class CudaDevice final : public Device, public Queue {
public:
  /// `nccl`: null where ranks never meet. `isShared`: other ranks may have the same device.
  CudaDevice(const cuda::Driver &driver, const cuda::Nccl *nccl, bool isShared)
      : driver(driver), nccl(nccl), isShared(isShared) {}
  ~CudaDevice() override;
  /// Precondition of everything else.
  program::Status open(int ordinal);

  // CudaDevice.cpp
  Queue *getQueue() override { return this; }
  std::optional<std::string> findMissing(const program::Target &target) const override;
  program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory memory, bool isMet) override;
  uint64_t getFreeBytes() const override;
  program::Result<uint32_t> load(const program::Object &object, const std::string &name) override;
  program::Result<KernelEntry> find(uint32_t code, const std::string &entry) override;
  void launch(const BoundLaunch &launch, uint32_t stream) override;
  std::optional<uint32_t> prepare(const program::Program &program, const program::Action &action,
                                  const CallAddresses &addresses) override;
  void call(uint32_t prepared, uint32_t stream) override;
  std::vector<LibraryUse> getLibraries() const override;
  WindowUse getWindows() const override;
  void record(uint32_t event, uint32_t stream) override;
  void wait(uint32_t event, uint32_t stream) override;

  // CudaCopies.cpp
  void copy(const BoxCopy &box, const char *source, char *target, uint32_t stream) override;
  void upload(const BoxCopy &box, const char *source, char *target) override;
  void download(const BoxCopy &box, const char *source, char *target) override;

  // CudaLoading.cpp
  program::Status fill(const std::vector<Filling> &fillings, const ReadBox &readBox) override;

  // CudaQueue.cpp
  program::Status connect(Communicator &peers) override;
  program::Status split(Communicator &peers, const std::vector<int> &members) override;
  program::Status check(const Operation &operation) override;
  program::Status share(Communicator &peers) override;
  void meet(const std::vector<Operation> &operations, uint32_t stream) override;
  void beginGraph() override;
  program::Result<uint32_t> endGraph() override;
  void replay(uint32_t graph) override;
  uint32_t mark(uint32_t stream) override;
  void clearMarks() override { marked = 0; }
  program::Result<double> measure(uint32_t from, uint32_t to) override;
  const program::Status &getFailure() const override { return failed; }
  program::Result<bool> poll() override;
  void abort() override;

private:
  char *allocateShared(uint64_t bytes, uint64_t alignment);
  /// The driver's calls are about the context of the thread that makes them.
  void enter() const;
  /// Keeps the first error. False if this is one.
  bool keep(cuda::Result result, const char *what);
  bool keep(const program::Status &status);
  cuda::Stream getStream(uint32_t number);
  /// Of `list`, made where it is not there yet.
  cuda::Event getEvent(std::vector<cuda::Event> &list, uint32_t number, unsigned flags);
  cuda::DevicePointer getWorkspace(uint32_t stream);
  void order(cuda::Stream first, cuda::Stream second);
  bool isOnHost(const char *address) const;
  /// An end of a copy, and which of both memories it is in.
  struct End {
    cuda::DevicePointer address;
    bool isOnHost;

    End operator+(int64_t bytes) const { return {address + uint64_t(bytes), isOnHost}; }
  };
  bool copyPitched(const BoxCopy &box, size_t level, End source, End target, cuda::Stream stream);
  void copyRun(End source, End target, uint64_t bytes, cuda::Stream stream);
  void copyFrom(const BoxCopy &box, size_t level, End source, End target, cuda::Stream stream);

  const cuda::Driver &driver;
  const cuda::Nccl *nccl;
  const bool isShared;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  bool isEmulated = false;
  int major = 0, minor = 0;

  std::vector<cuda::DevicePointer> blocks;
  struct HostBlock {
    void *memory;
    uint64_t bytes;
  };
  std::vector<HostBlock> hostBlocks;
  /// Of NCCL's memory.
  std::vector<Arena> arenas;
  std::vector<cuda::Module> modules;
  std::vector<cuda::Stream> streams;
  /// By stream: whether it comes after what was uploaded last, which stream 0 does.
  std::vector<bool> follows;
  std::vector<cuda::Event> events, marks;
  uint32_t marked = 0;
  std::vector<cuda::GraphExec> graphs;
  cuda::Event fork = nullptr;
  std::unique_ptr<Staging> staging;
  std::unique_ptr<CudaGroups> groups;
  std::unique_ptr<CudaLibraries> libraries = std::make_unique<CudaLibraries>();
  /// By stream: memory of the calls of libraries, which are done one after the other there.
  struct Workspace {
    cuda::DevicePointer memory = 0;
    uint64_t bytes = 0;
  };
  std::vector<Workspace> workspaces;
  /// For tensors that move over themselves.
  cuda::DevicePointer bounce = 0;
  uint64_t bounceBytes = 0;
  program::Status failed;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CUDA_CUDADEVICE_H
