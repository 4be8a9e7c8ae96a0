//===- CudaDevice.cpp - one of NVIDIA's devices ---------------------------===//
//
// Memory, code, streams and events. Addresses of the device's memory are passed about as pointers of the host, which nobody
// follows. Streams and events are made when they are first used, which is before anything is kept as a graph.
//
//===----------------------------------------------------------------------===//
#include "CudaDevice.h"
#include "cleave/Runtime/Cuda.h"
#include "cleave/Runtime/Launch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;
using program::concat;
using program::kGood;
using program::makeError;
using program::quote;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// How many devices this process sees. Kernels are loaded with their modules: one that is loaded at its first launch waits for the
/// device, which may wait for another rank, which waits for this one.
static program::Result<int> countDevices(const cuda::Driver &driver) {
  int count = 0;
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  cuda::Result result = driver.cuInit(0);
  if (result == cuda::Result::Success)
    result = driver.cuDeviceGetCount(&count);
  if (result != cuda::Result::Success)
    return makeError("CUDA cannot be used: ", cuda::describe(driver, result));
  return count;
}

/// NCCL from 2.30.3 lets ranks share a device where it is told so; before, those that it takes for other hosts.
static bool areDevicesShared() {
  const char *shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return (shares && std::strcmp(shares, "1") == 0) || std::getenv("NCCL_HOSTID");
}

/// The first of this process's devices, of `count`. Where a launcher shows each process its own, local ranks say nothing.
static program::Result<int> pickFirst(int count, const std::vector<uint32_t> &ranks, bool isProcess) {
  if (count == 0 || (uint32_t(count) < ranks.size() && !areDevicesShared()))
    return makeError("the program is for ", ranks.size(), " CUDA devices, ", count, " are visible");
  std::optional<Launch> launch;
  if (!isProcess || count == 1 || !readLaunch([](const char *name) { return std::getenv(name); }, launch).isOk() ||
      !launch)
    return 0;
  if (launch->localRank >= count && !areDevicesShared())
    return makeError("this is local rank ", launch->localRank, " of its machine, where ", count,
                     " CUDA devices are visible");
  return launch->localRank;
}

program::Result<std::vector<std::unique_ptr<Device>>> cleave::runtime::openCuda(uint32_t size,
                                                                                const std::vector<uint32_t> &ranks,
                                                                                bool isProcess,
                                                                                const std::string &library) {
  if (!library.empty())
    cuda::setLibrary(library);
  program::Result<const cuda::Driver *> driver = cuda::openDriver();
  if (!driver)
    return driver.getError();
  program::Result<int> count = countDevices(**driver);
  if (!count)
    return count.getError();
  program::Result<int> first = pickFirst(*count, ranks, isProcess);
  if (!first)
    return first.getError();
  program::Result<const cuda::Nccl *> nccl = static_cast<const cuda::Nccl *>(nullptr);
  if (size > 1)
    nccl = cuda::openNccl();
  if (!nccl)
    return nccl.getError();
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t local = 0; local < ranks.size(); ++local) {
    auto device = std::make_unique<CudaDevice>(**driver, *nccl, areDevicesShared());
    if (program::Status error = device->open((*first + int(local)) % *count))
      return *error;
    devices.push_back(std::move(device));
  }
  return devices;
}

// For who opens this library by name.
extern "C" {
const char *cleave_cuda_version() { return CLEAVE_VERSION; }
void cleave_cuda_open(uint32_t size, const std::vector<uint32_t> &ranks, bool isProcess, const std::string &library,
                      program::Result<std::vector<std::unique_ptr<Device>>> &devices) {
  devices = openCuda(size, ranks, isProcess, library);
}
}

/// The communication stream comes first where both could run.
static constexpr uint32_t kComputeStream = 0;

program::Status CudaDevice::open(int ordinal) {
  char name[256] = "";
  auto call = [&](cuda::Result result) -> program::Status {
    if (result == cuda::Result::Success)
      return kGood;
    return makeError("CUDA device ", ordinal, " cannot be used: ", cuda::describe(driver, result));
  };
  if (program::Status error = call(driver.cuDeviceGet(&device, ordinal)))
    return error;
  if (program::Status error = call(driver.cuDeviceGetName(name, sizeof(name), device)))
    return error;
  isEmulated = std::strstr(name, "emulated");
  if (program::Status error =
          call(driver.cuDeviceGetAttribute(&major, cuda::DeviceAttribute::ComputeCapabilityMajor, device)))
    return error;
  if (program::Status error =
          call(driver.cuDeviceGetAttribute(&minor, cuda::DeviceAttribute::ComputeCapabilityMinor, device)))
    return error;
  if (program::Status error = call(driver.cuDevicePrimaryCtxRetain(&context, device)))
    return error;
  enter();
  staging = std::make_unique<Staging>(driver);
  if (program::Status error = staging->open())
    return error;
  return call(driver.cuEventCreate(&fork, cuda::kEventDisableTiming));
}

/// In the opposite order. What cannot be given back goes with the context.
CudaDevice::~CudaDevice() {
  if (!context)
    return;
  enter();
  groups.reset();
  libraries.reset();
  for (cuda::GraphExec graph : graphs)
    (void)driver.cuGraphExecDestroy(graph);
  for (const std::vector<cuda::Event> *list : {&events, &marks})
    for (cuda::Event event : *list)
      if (event)
        (void)driver.cuEventDestroy_v2(event);
  if (fork)
    (void)driver.cuEventDestroy_v2(fork);
  staging.reset();
  for (cuda::Stream stream : streams)
    if (stream)
      (void)driver.cuStreamDestroy_v2(stream);
  for (cuda::Module module : modules)
    (void)driver.cuModuleUnload(module);
  for (cuda::DevicePointer block : blocks)
    (void)driver.cuMemFree_v2(block);
  for (const Arena &arena : arenas)
    (void)nccl->ncclMemFree(arena.memory);
  for (const HostBlock &block : hostBlocks)
    (void)driver.cuMemFreeHost(block.memory);
  (void)driver.cuDevicePrimaryCtxRelease_v2(device);
}

/// Not remembered by thread: a context may get the address of one that is gone. What fails here, the next call will tell.
void CudaDevice::enter() const { (void)driver.cuCtxSetCurrent(context); }

bool CudaDevice::keep(const program::Status &status) {
  if (status && !failed)
    failed = status;
  return !status;
}

bool CudaDevice::keep(cuda::Result result, const char *what) {
  if (result == cuda::Result::Success)
    return true;
  return keep(makeError("the device cannot ", what, ": ", cuda::describe(driver, result)));
}

//===----------------------------------------------------------------------===//
// Targets and code
//===----------------------------------------------------------------------===//

bool cleave::runtime::runsOn(const std::string &architecture, int major, int minor) {
  if (architecture.rfind("sm_", 0) != 0)
    return false;
  size_t digits = 3, most = 3 + 4; // more are no number of a device
  while (digits < std::min(architecture.size(), most) && architecture[digits] >= '0' && architecture[digits] <= '9')
    ++digits;
  int number = std::atoi(architecture.c_str() + 3);
  std::string suffix = architecture.substr(digits);
  if (digits == 3 || !(suffix.empty() || suffix == "a" || suffix == "f"))
    return false;
  if (suffix == "a")
    return number == 10 * major + minor;
  if (suffix == "f")
    return number / 10 == major && number % 10 <= minor;
  return number <= 10 * major + minor;
}

/// The emulated device has code of its own.
std::optional<std::string> CudaDevice::findMissing(const program::Target &target) const {
  if (target.device != program::Device::Cuda)
    return concat("it is for a device of kind ", program::getWord(target.device));
  std::string own = isEmulated ? "emulated" : concat("sm_", major, minor);
  const std::string &wanted = target.architecture;
  if (wanted == own || (!isEmulated && runsOn(wanted, major, minor)))
    return std::nullopt;
  return concat("it is for ", quote(wanted), ", this device is ", own);
}

/// A cubin is for one generation of devices; its load fails elsewhere, and PTX, which follows it, is taken.
program::Result<uint32_t> CudaDevice::load(const program::Object &object, const std::string &name) {
  enter();
  std::string image(object.code); // text ends with a zero
  char log[2048] = "";
  cuda::JitOption options[] = {cuda::JitOption::ErrorLog, cuda::JitOption::ErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  cuda::Module module = nullptr;
  cuda::Result result = driver.cuModuleLoadDataEx(&module, image.c_str(), 2, options, values);
  if (result != cuda::Result::Success)
    return makeError("the device cannot load the ", program::getWord(object.format), " code of ", quote(name), ": ",
                     cuda::describe(driver, result), log[0] ? ": " : "", log);
  modules.push_back(module);
  return uint32_t(modules.size() - 1);
}

program::Result<KernelEntry> CudaDevice::find(uint32_t code, const std::string &entry) {
  enter();
  cuda::Function function = nullptr;
  cuda::Result result = driver.cuModuleGetFunction(&function, modules[code], entry.c_str());
  if (result != cuda::Result::Success)
    return makeError("the code has no ", quote(entry), ": ", cuda::describe(driver, result));
  return KernelEntry(function);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

uint64_t CudaDevice::getFreeBytes() const {
  enter();
  size_t free = 0, all = 0;
  return driver.cuMemGetInfo_v2(&free, &all) == cuda::Result::Success ? free : 0;
}

/// NCCL's memory, which begins at a multiple of 4096 bytes. Null where it has none, or gives none: the driver's will do.
char *CudaDevice::allocateShared(uint64_t bytes, uint64_t alignment) {
  void *memory = nullptr;
  bool isThere = bytes > 0 && nccl && nccl->ncclMemAlloc && nccl->ncclMemFree &&
                 alignment <= cuda::kNcclWindowAlignment &&
                 nccl->ncclMemAlloc(&memory, bytes) == cuda::NcclResult::Success;
  if (!isThere)
    return nullptr;
  uint64_t whole = (bytes + cuda::kNcclWindowAlignment - 1) / cuda::kNcclWindowAlignment * cuda::kNcclWindowAlignment;
  arenas.push_back({static_cast<char *>(memory), whole});
  keep(driver.cuMemsetD8Async(reinterpret_cast<cuda::DevicePointer>(memory), 0, bytes, getStream(kComputeStream)),
       "clear memory");
  follows.assign(streams.size(), false);
  return static_cast<char *>(memory);
}

/// The driver's own alignment is 256 bytes; what asks for more leaves some out in front.
program::Result<char *> CudaDevice::allocate(uint64_t bytes, uint64_t alignment, program::Memory memory, bool isMet) {
  enter();
  if (char *shared = isMet && memory == program::Memory::Device ? allocateShared(bytes, alignment) : nullptr)
    return shared;
  constexpr uint64_t own = 256;
  uint64_t size = std::max<uint64_t>(bytes, 1) + (alignment > own ? alignment : 0);
  auto align = [&](uint64_t address) { return (address + alignment - 1) / alignment * alignment; };
  if (memory == program::Memory::Host) {
    void *block = nullptr;
    cuda::Result result = driver.cuMemHostAlloc(&block, size, cuda::kHostPortable);
    if (result == cuda::Result::Success) {
      std::memset(block, 0, size);
      hostBlocks.push_back({block, size});
      return reinterpret_cast<char *>(align(reinterpret_cast<uint64_t>(block)));
    }
    return makeError("the host cannot give ", bytes,
                     " bytes that a device reaches, in which values wait: ", cuda::describe(driver, result));
  }
  cuda::DevicePointer block = 0;
  cuda::Result result = driver.cuMemAlloc_v2(&block, size);
  if (result == cuda::Result::Success) {
    blocks.push_back(block);
    result = driver.cuMemsetD8Async(block, 0, size, getStream(kComputeStream));
    follows.assign(streams.size(), false);
  }
  if (result == cuda::Result::Success)
    return reinterpret_cast<char *>(align(block));
  return makeError("the device cannot give ", bytes, " bytes that the program plans with, ", getFreeBytes(),
                   " are free: ", cuda::describe(driver, result));
}

//===----------------------------------------------------------------------===//
// Streams, events, kernels
//===----------------------------------------------------------------------===//

cuda::Stream CudaDevice::getStream(uint32_t number) {
  if (streams.size() <= number) {
    streams.resize(number + 1);
    follows.resize(number + 1);
  }
  if (!streams[number]) {
    int least = 0, greatest = 0;
    keep(driver.cuCtxGetStreamPriorityRange(&least, &greatest), "tell priorities");
    keep(driver.cuStreamCreateWithPriority(&streams[number], cuda::kStreamNonBlocking,
                                           number == kComputeStream ? least : greatest),
         "make a stream");
  }
  if (number != kComputeStream && !follows[number]) {
    follows[number] = true;
    order(getStream(kComputeStream), streams[number]);
  }
  return streams[number];
}

cuda::Event CudaDevice::getEvent(std::vector<cuda::Event> &list, uint32_t number, unsigned flags) {
  if (list.size() <= number)
    list.resize(number + 1);
  if (!list[number])
    keep(driver.cuEventCreate(&list[number], flags), "make an event");
  return list[number];
}

void CudaDevice::record(uint32_t event, uint32_t stream) {
  enter();
  keep(driver.cuEventRecord(getEvent(events, event, cuda::kEventDisableTiming), getStream(stream)), "record an event");
}

void CudaDevice::wait(uint32_t event, uint32_t stream) {
  enter();
  keep(driver.cuStreamWaitEvent(getStream(stream), getEvent(events, event, cuda::kEventDisableTiming), 0),
       "wait for an event");
}

/// What a kernel may have of shared memory without being asked for more.
static constexpr uint32_t kSharedBytes = 48 << 10;

/// The driver wants the address of each parameter: addresses of tensors lie in the list of arguments, integers elsewhere.
void CudaDevice::launch(const BoundLaunch &launch, uint32_t stream) {
  enter();
  const program::Kernel &kernel = *launch.kernel;
  auto function = static_cast<cuda::Function>(launch.entry);
  std::vector<void *> parameters;
  size_t addresses = kernel.parameters.size() + (launch.report ? 1 : 0);
  for (size_t i = 0; i < addresses; ++i)
    parameters.push_back(&launch.arguments[i]);
  for (size_t i = 0; i < kernel.scalars; ++i)
    parameters.push_back(launch.arguments[addresses + i]);
  if (kernel.sharedBytes > kSharedBytes)
    keep(driver.cuFuncSetAttribute(function, cuda::FunctionAttribute::MaxDynamicSharedBytes, int(kernel.sharedBytes)),
         "give a kernel its shared memory");
  cuda::Result result =
      driver.cuLaunchKernel(function, kernel.grid.x, kernel.grid.y, kernel.grid.z, kernel.block.x, kernel.block.y,
                            kernel.block.z, kernel.sharedBytes, getStream(stream), parameters.data(), nullptr);
  if (result != cuda::Result::Success)
    keep(makeError("the device cannot launch ", quote(kernel.name), ": ", cuda::describe(driver, result)));
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

std::optional<uint32_t> CudaDevice::prepare(const program::Program &program, const program::Action &action,
                                            const CallAddresses &addresses) {
  enter();
  return libraries->prepare(program, action, addresses);
}

/// As large as the largest call wants, which is known before the first one: a program is prepared as a whole.
cuda::DevicePointer CudaDevice::getWorkspace(uint32_t stream) {
  if (workspaces.size() <= stream)
    workspaces.resize(stream + 1);
  Workspace &own = workspaces[stream];
  uint64_t bytes = libraries->getWorkspace();
  if (own.bytes < bytes) {
    program::Result<char *> memory = allocate(bytes, 256, program::Memory::Device, false);
    if (memory)
      own = {reinterpret_cast<cuda::DevicePointer>(*memory), bytes};
    else
      keep(memory.getError());
  }
  return own.memory;
}

void CudaDevice::call(uint32_t prepared, uint32_t number) {
  enter();
  cuda::Stream stream = getStream(number);
  cuda::DevicePointer workspace = getWorkspace(number);
  if (failed)
    return;
  if (program::Status error = libraries->get(prepared).enqueue(stream, workspace))
    keep(makeError("a library cannot compute: ", error->message));
}
