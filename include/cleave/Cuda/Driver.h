//===- Driver.h - what Cleave calls of the CUDA driver ----------*- C++ -*-===//
//
// Declarations of our own, so that nothing of NVIDIA's is needed to build or to test: the entries of the library as a list
// (names as the dynamic linker knows them, versions in them), and a table of function pointers made of that list. Who opens
// the library fills the table (Libraries.h); who stands in for a device defines functions of the same names, and the list
// declares them:
//
//   #define ENTRY(name, parameters) extern "C" Result name parameters;
//   CLEAVE_CUDA_DRIVER_ENTRIES(ENTRY)
//
// Numbers are those of the binary interface of CUDA 12 and 13; CleaveCudaTests holds them to NVIDIA's headers where these
// are found.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_DRIVER_H
#define CLEAVE_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>

namespace cleave::cuda {

using Device = int;
using DevicePointer = uint64_t;
using Context = struct ContextHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Graph = struct GraphHandle *;
using GraphExec = struct GraphExecHandle *;

/// CUresult.
enum class Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  SharedObjectInitFailed = 303,
  OperatingSystem = 304,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  ContextIsDestroyed = 709,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  LaunchFailed = 719,
  NotPermitted = 800,
  NotSupported = 801,
  SystemNotReady = 802,
  StreamCaptureUnsupported = 900,
  StreamCaptureInvalidated = 901,
  StreamCaptureMerge = 902,
  StreamCaptureUnmatched = 903,
  StreamCaptureUnjoined = 904,
  StreamCaptureIsolation = 905,
  StreamCaptureImplicit = 906,
  CapturedEvent = 907,
  Unknown = 999,
};

/// CUdevice_attribute.
enum class DeviceAttribute : int {
  MaxThreadsPerBlock = 1,
  MaxSharedMemoryPerBlock = 8,
  WarpSize = 10,
  ClockRate = 13, ///< kHz
  MultiprocessorCount = 16,
  PciBusId = 33,
  PciDeviceId = 34,
  MemoryClockRate = 36, ///< kHz
  MemoryBusWidth = 37,  ///< bits
  L2CacheSize = 38,
  PciDomainId = 50,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlockOptin = 97,
};

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  SharedBytes = 1,
  LocalBytes = 3,
  Registers = 4,
  MaxDynamicSharedBytes = 8,
};

/// CUjit_option, with values as pointers.
enum class JitOption : int { ErrorLog = 5, ErrorLogBytes = 6 };

/// CUstreamCaptureMode.
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };

constexpr unsigned kStreamNonBlocking = 1;  ///< CU_STREAM_NON_BLOCKING
constexpr unsigned kEventDefault = 0;       ///< CU_EVENT_DEFAULT
constexpr unsigned kEventDisableTiming = 2; ///< CU_EVENT_DISABLE_TIMING
constexpr unsigned kHostPortable = 1;       ///< CU_MEMHOSTALLOC_PORTABLE

/// CUmemorytype.
enum class MemoryType : int { Host = 1, Device = 2 };

/// CUuuid.
struct Uuid {
  char bytes[16];
};

/// CUDA_MEMCPY3D: a box of rows of bytes; pitches and heights in bytes and rows.
struct Copy3D {
  size_t sourceX = 0, sourceY = 0, sourceZ = 0, sourceLevel = 0;
  MemoryType sourceType = MemoryType::Device;
  const void *sourceHost = nullptr;
  DevicePointer sourceDevice = 0;
  void *sourceArray = nullptr;
  void *reserved0 = nullptr;
  size_t sourcePitch = 0, sourceHeight = 0;
  size_t targetX = 0, targetY = 0, targetZ = 0, targetLevel = 0;
  MemoryType targetType = MemoryType::Device;
  void *targetHost = nullptr;
  DevicePointer targetDevice = 0;
  void *targetArray = nullptr;
  void *reserved1 = nullptr;
  size_t targetPitch = 0, targetHeight = 0;
  size_t width = 0, height = 0, depth = 0;
};

/// All return a Result, and without an error what was asked for in the first parameters.
#define CLEAVE_CUDA_DRIVER_ENTRIES(ENTRY)                                                                              \
  ENTRY(cuInit, (unsigned flags))                                                                                      \
  ENTRY(cuDriverGetVersion, (int *version))                                                                            \
  ENTRY(cuGetErrorName, (Result error, const char **name))                                                             \
  ENTRY(cuGetErrorString, (Result error, const char **text))                                                           \
  ENTRY(cuDeviceGetCount, (int *count))                                                                                \
  ENTRY(cuDeviceGet, (Device * device, int ordinal))                                                                   \
  ENTRY(cuDeviceGetName, (char *name, int bytes, Device device))                                                       \
  ENTRY(cuDeviceGetUuid_v2, (Uuid * uuid, Device device))                                                              \
  ENTRY(cuDeviceGetAttribute, (int *value, DeviceAttribute attribute, Device device))                                  \
  ENTRY(cuDeviceTotalMem_v2, (size_t *bytes, Device device))                                                           \
  ENTRY(cuDevicePrimaryCtxRetain, (Context * context, Device device))                                                  \
  ENTRY(cuDevicePrimaryCtxRelease_v2, (Device device))                                                                 \
  ENTRY(cuCtxSetCurrent, (Context context))                                                                            \
  ENTRY(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                                      \
  ENTRY(cuMemGetInfo_v2, (size_t *freeBytes, size_t *allBytes))                                                        \
  ENTRY(cuMemAlloc_v2, (DevicePointer * memory, size_t bytes))                                                         \
  ENTRY(cuMemFree_v2, (DevicePointer memory))                                                                          \
  ENTRY(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                                 \
  ENTRY(cuMemFreeHost, (void *memory))                                                                                 \
  ENTRY(cuMemcpyHtoDAsync_v2, (DevicePointer target, const void *source, size_t bytes, Stream stream))                 \
  ENTRY(cuMemcpyDtoHAsync_v2, (void *target, DevicePointer source, size_t bytes, Stream stream))                       \
  ENTRY(cuMemcpyDtoDAsync_v2, (DevicePointer target, DevicePointer source, size_t bytes, Stream stream))               \
  ENTRY(cuMemcpy3DAsync_v2, (const Copy3D *copy, Stream stream))                                                       \
  ENTRY(cuMemsetD8Async, (DevicePointer target, unsigned char byte, size_t bytes, Stream stream))                      \
  ENTRY(cuModuleLoadDataEx, (Module * module, const void *image, unsigned options, JitOption *names, void **values))   \
  ENTRY(cuModuleUnload, (Module module))                                                                               \
  ENTRY(cuModuleGetFunction, (Function * function, Module module, const char *name))                                   \
  ENTRY(cuFuncGetAttribute, (int *value, FunctionAttribute attribute, Function function))                              \
  ENTRY(cuFuncSetAttribute, (Function function, FunctionAttribute attribute, int value))                               \
  ENTRY(cuLaunchKernel,                                                                                                \
        (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,          \
         unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters, void **extra))                       \
  ENTRY(cuStreamCreateWithPriority, (Stream * stream, unsigned flags, int priority))                                   \
  ENTRY(cuStreamDestroy_v2, (Stream stream))                                                                           \
  ENTRY(cuStreamSynchronize, (Stream stream))                                                                          \
  ENTRY(cuStreamQuery, (Stream stream))                                                                                \
  ENTRY(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                                               \
  ENTRY(cuStreamBeginCapture_v2, (Stream stream, CaptureMode mode))                                                    \
  ENTRY(cuStreamEndCapture, (Stream stream, Graph * graph))                                                            \
  ENTRY(cuEventCreate, (Event * event, unsigned flags))                                                                \
  ENTRY(cuEventDestroy_v2, (Event event))                                                                              \
  ENTRY(cuEventRecord, (Event event, Stream stream))                                                                   \
  ENTRY(cuEventQuery, (Event event))                                                                                   \
  ENTRY(cuEventSynchronize, (Event event))                                                                             \
  ENTRY(cuEventElapsedTime, (float *milliseconds, Event start, Event end))                                             \
  ENTRY(cuGraphInstantiateWithFlags, (GraphExec * executable, Graph graph, unsigned long long flags))                  \
  ENTRY(cuGraphLaunch, (GraphExec executable, Stream stream))                                                          \
  ENTRY(cuGraphExecDestroy, (GraphExec executable))                                                                    \
  ENTRY(cuGraphDestroy, (Graph graph))

#define CLEAVE_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
/// libcuda.
struct Driver {
  CLEAVE_CUDA_DRIVER_ENTRIES(CLEAVE_CUDA_MEMBER)
};
#undef CLEAVE_CUDA_MEMBER

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_DRIVER_H
