//===- Context.cpp - devices, what they are like, and names of errors -----===//
//
// A device looks like an H100, or like what CLEAVE_EMULATION_ARCH says; it is as new as the driver of CUDA 13.0.
//
//===----------------------------------------------------------------------===//
#include "Entries.h"
#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <unistd.h>

using namespace cleave::cuda;

/// `sm_90` is 90.
static int getArchitecture() {
  std::string text = getSetting("CLEAVE_EMULATION_ARCH", "sm_90");
  return std::atoi(text.c_str() + std::min<size_t>(text.size(), 3));
}

namespace {
struct ErrorName {
  Result result;
  const char *name, *text;
};
} // namespace

static constexpr ErrorName errorNames[] = {
    {Result::Success, "CUDA_SUCCESS", "no error"},
    {Result::InvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {Result::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {Result::NotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {Result::NoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {Result::InvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {Result::InvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {Result::InvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {Result::NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {Result::InvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {Result::NotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {Result::NotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {Result::IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {Result::LaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {Result::LaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {Result::MisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {Result::LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {Result::StreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {Result::StreamCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {Result::StreamCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capture sequence contains a fork that was not joined to the primary stream"},
    {Result::StreamCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {Result::CapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
};

/// Null for what the emulated device never returns.
static const ErrorName *findName(Result error) {
  auto found = std::find_if(std::begin(errorNames), std::end(errorNames),
                            [=](const ErrorName &name) { return name.result == error; });
  return found == std::end(errorNames) ? nullptr : found;
}

/// The last user of a context takes all that is in it along.
static void clear(ContextHandle &device) {
  freeMemory(device);
  device.streams.clear();
  device.byDefault = nullptr;
  device.sticky = Result::Success;
  device.accesses = {};
  device.host.clear();
}

namespace cleave::cuda {
extern "C" {

/// Nothing is set up here: devices are made when they are first asked for.
Result cuInit(unsigned) {
  CLEAVE_ENTER();
  return countDevices() ? Result::Success : Result::NoDevice;
}

/// 13.0: entries are those of CUDA 12 and 13.
Result cuDriverGetVersion(int *version) {
  *version = 13000;
  return enter(__func__);
}

/// The driver's words, so that messages read as on a GPU. Never planned to fail: it reports what did.
Result cuGetErrorName(Result error, const char **name) {
  const ErrorName *found = findName(error);
  *name = found ? found->name : nullptr;
  return found ? Result::Success : Result::InvalidValue;
}

/// Likewise.
Result cuGetErrorString(Result error, const char **text) {
  const ErrorName *found = findName(error);
  *text = found ? found->text : nullptr;
  return found ? Result::Success : Result::InvalidValue;
}

Result cuDeviceGetCount(int *count) {
  *count = countDevices();
  return enter(__func__);
}

Result cuDeviceGet(Device *device, int ordinal) {
  CLEAVE_ENTER();
  *device = ordinal;
  return getDevice(ordinal) ? Result::Success : Result::InvalidDevice;
}

/// Says that it is emulated, so that no measurement is taken for a GPU's.
Result cuDeviceGetName(char *name, int bytes, Device device) {
  CLEAVE_ENTER();
  snprintf(name, size_t(bytes), "emulated sm_%d", getArchitecture());
  return getDevice(device) ? Result::Success : Result::InvalidDevice;
}

/// The same in every process of this boot of this host, as that of a device is.
Result cuDeviceGetUuid_v2(Uuid *uuid, Device device) {
  CLEAVE_ENTER();
  ContextHandle *context = getDevice(device);
  if (!context)
    return Result::InvalidDevice;
  char host[256] = {}, boot[64] = {};
  gethostname(host, sizeof host - 1);
  if (FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r")) {
    (void)!fgets(boot, sizeof boot, file);
    fclose(file);
  }
  uint64_t words[2] = {std::hash<std::string>()(std::string(host) + boot), uint64_t(context->number)};
  memcpy(uuid->bytes, words, sizeof words);
  return Result::Success;
}

Result cuDeviceTotalMem_v2(size_t *bytes, Device device) {
  CLEAVE_ENTER();
  *bytes = getNumber("CLEAVE_EMULATION_MEMORY", 16384) << 20;
  return getDevice(device) ? Result::Success : Result::InvalidDevice;
}

/// Of an H100. An attribute that is not here is an error: a 0 would be believed.
Result cuDeviceGetAttribute(int *value, DeviceAttribute attribute, Device device) {
  CLEAVE_ENTER();
  if (!getDevice(device))
    return Result::InvalidDevice;
  static const std::map<DeviceAttribute, int> values = {{DeviceAttribute::MaxThreadsPerBlock, 1024},
                                                        {DeviceAttribute::MaxSharedMemoryPerBlock, 48 << 10},
                                                        {DeviceAttribute::WarpSize, 32},
                                                        {DeviceAttribute::ClockRate, 1980000},
                                                        {DeviceAttribute::MultiprocessorCount, 132},
                                                        {DeviceAttribute::MemoryClockRate, 2619000},
                                                        {DeviceAttribute::MemoryBusWidth, 5120},
                                                        {DeviceAttribute::L2CacheSize, 50 << 20},
                                                        {DeviceAttribute::PciDomainId, 0},
                                                        {DeviceAttribute::PciDeviceId, 0},
                                                        {DeviceAttribute::MaxSharedMemoryPerBlockOptin, 227 << 10}};
  int architecture = getArchitecture();
  auto found = values.find(attribute);
  if (attribute == DeviceAttribute::ComputeCapabilityMajor)
    *value = architecture / 10;
  else if (attribute == DeviceAttribute::ComputeCapabilityMinor)
    *value = architecture % 10;
  else if (attribute == DeviceAttribute::PciBusId)
    *value = device + 1;
  else if (found != values.end())
    *value = found->second;
  else
    return refuse(__func__, Result::InvalidValue, "attribute " + std::to_string(int(attribute)) + " is not emulated");
  return Result::Success;
}

/// Counted; there is one context per device, which all threads share.
Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  CLEAVE_ENTER();
  *context = getDevice(device);
  if (!*context)
    return Result::InvalidDevice;
  Lock lock((*context)->mutex);
  ++(*context)->retained;
  return Result::Success;
}

/// The last one takes memory, streams and errors along: so a test begins anew.
Result cuDevicePrimaryCtxRelease_v2(Device device) {
  CLEAVE_ENTER();
  ContextHandle *context = getDevice(device);
  if (!context)
    return Result::InvalidDevice;
  Lock lock(context->mutex);
  if (context->retained == 0)
    return Result::InvalidContext;
  if (--context->retained == 0)
    clear(*context);
  return Result::Success;
}

/// Of this thread of the host.
Result cuCtxSetCurrent(Context context) {
  CLEAVE_ENTER();
  setCurrent(context);
  return Result::Success;
}

/// As a GPU's; priorities change nothing here, since any order may come.
Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CLEAVE_ENTER();
  *least = 0;
  *greatest = -5;
  return Result::Success;
}

} // extern "C"
} // namespace cleave::cuda
