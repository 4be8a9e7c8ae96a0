//===- Kernels.cpp - modules of emulated kernels, and their launches ------===//
//
// A module is a shared library in memory. A launch copies the parameters; what their pointers lead to must lie in memory of
// the device, and what a kernel was compiled to have for itself must not overlap what it writes.
//
// What a kernel reads and writes as a whole is known before it runs: the bytes that its parameters say, written or not. Those are
// what other commands are held against, so a race between commands is found even where this launch happened not to touch the
// byte. What it does inside of them is checked when it runs (Access.cpp).
//
//===----------------------------------------------------------------------===//
#include "Entries.h"
#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::cuda;

static constexpr int defaultSharedBytes = 48 << 10, optinSharedBytes = 227 << 10;

/// The length of an ELF file, whose section headers come last.
static uint64_t getElfBytes(const unsigned char *image) {
  uint64_t at = 0;
  uint16_t size = 0, count = 0;
  memcpy(&at, image + 40, sizeof at);
  memcpy(&size, image + 58, sizeof size);
  memcpy(&count, image + 60, sizeof count);
  return at + uint64_t(size) * count;
}

/// The file stays open as long as the library: the loader knows libraries by their names, and this one's has its number.
static Result openImage(const void *image, ModuleHandle &module) {
  auto *bytes = static_cast<const unsigned char *>(image);
  constexpr uint16_t cuda = 190; // e_machine
  uint16_t machine = 0;
  bool isElf = memcmp(bytes, "\177ELF", 4) == 0;
  if (isElf)
    memcpy(&machine, bytes + 18, sizeof machine);
  if (!isElf || machine == cuda)
    return refuse("cuModuleLoadDataEx", Result::NoBinaryForGpu,
                  isElf ? "the image is for a GPU, not for the emulated one"
                        : "the image is not a module of emulated kernels");
  module.file = memfd_create("cleave-emulated", MFD_CLOEXEC);
  uint64_t size = getElfBytes(bytes);
  if (module.file < 0 || write(module.file, image, size) != ssize_t(size))
    return Result::OutOfMemory;
  module.library = dlopen(("/proc/self/fd/" + std::to_string(module.file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module.library)
    return refuse("cuModuleLoadDataEx", Result::InvalidImage, dlerror());
  module.module = static_cast<const emulation::Module *>(dlsym(module.library, emulation::moduleSymbol));
  if (!module.module || module.module->version != emulation::moduleVersion)
    return refuse("cuModuleLoadDataEx", Result::InvalidImage, "the image has no emulated kernels of this version");
  *module.module->hooks = &emulation::getHooks();
  return Result::Success;
}

/// In this order: the loader maps the file by its number.
static void closeImage(ModuleHandle &module) {
  if (module.library)
    dlclose(module.library);
  if (module.file >= 0)
    close(module.file);
}

namespace {
/// A launch, with copies of its parameters.
struct Prepared {
  emulation::Launch launch;
  std::vector<std::vector<char>> values;
  std::vector<void *> pointers;
};
} // namespace

/// As reports call an argument before there is a kernel that runs.
static std::string nameRange(const char *name, size_t parameter, const Touch &touch) {
  return std::string(name) + ": argument " + std::to_string(parameter) + " (" + std::to_string(touch.bytes) + " bytes)";
}

/// What the kernel's pointers lead to; an error where that is not the device's memory.
static Result findTouches(ContextHandle &device, const emulation::Kernel &kernel, void **parameters,
                          std::vector<Touch> &touches) {
  std::vector<std::pair<size_t, Touch>> pointers;
  for (size_t i = 0; i < kernel.parameterCount; ++i) {
    const emulation::Parameter &parameter = kernel.parameters[i];
    // What has no bytes may lie where memory ends.
    if (!(parameter.flags & emulation::parameterIsPointer) || (parameter.flags & emulation::parameterIsEmpty))
      continue;
    Touch touch{nullptr, parameter.pointee, (parameter.flags & emulation::parameterIsWritten) != 0};
    memcpy(&touch.from, parameters[i], sizeof touch.from);
    emulation::Range memory = findMemory(device, touch.from);
    if (touch.bytes == 0 && memory.base)
      touch.bytes = uint64_t(memory.base + memory.bytes - touch.from);
    if (!memory.base || touch.bytes > uint64_t(memory.base + memory.bytes - touch.from))
      return fail(device, Result::IllegalAddress,
                  nameRange(kernel.name, i, touch) + " is not all in memory of the device");
    pointers.push_back({i, touch});
    touches.push_back(touch);
  }
  for (auto [i, touch] : pointers)
    for (auto [j, other] : pointers) {
      bool isAlone = (kernel.parameters[i].flags & emulation::parameterIsAlone) && i != j;
      bool overlap = touch.from < other.from + other.bytes && other.from < touch.from + touch.bytes;
      if (isAlone && overlap && (touch.writes || other.writes))
        return fail(device, Result::LaunchFailed,
                    nameRange(kernel.name, i, touch) + " overlaps " + nameRange("", j, other).substr(2) +
                        ", which it was promised not to");
    }
  return Result::Success;
}

/// The number that a GPU gives for the same mistake, as far as it has one.
static Result chooseResult(const std::string &finding) {
  if (finding.find("out of bounds") != std::string::npos)
    return Result::IllegalAddress;
  return finding.find("misaligned") != std::string::npos ? Result::MisalignedAddress : Result::LaunchFailed;
}

/// What the driver refuses before a launch. Shared memory above 48 KB must have been asked for.
static Result checkShape(const FunctionHandle &function, const emulation::Launch &launch) {
  uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
  uint64_t most = function.kernel->maxThreads ? function.kernel->maxThreads : 1024;
  if (threads == 0 || threads > most || launch.block[2] > 64)
    return refuse("cuLaunchKernel", Result::InvalidValue,
                  std::string(function.kernel->name) + ": " + std::to_string(threads) +
                      " threads a block, it may have " + std::to_string(most));
  if (!launch.grid[0] || !launch.grid[1] || !launch.grid[2] || launch.grid[0] > 0x7fffffffu || launch.grid[1] > 65535 ||
      launch.grid[2] > 65535)
    return refuse("cuLaunchKernel", Result::InvalidValue, std::string(function.kernel->name) + ": no such grid");
  uint64_t limit = std::max<uint64_t>(function.dynamicLimit,
                                      uint64_t(defaultSharedBytes) -
                                          std::min<uint64_t>(function.kernel->sharedBytes, defaultSharedBytes));
  if (launch.dynamicBytes > limit)
    return refuse("cuLaunchKernel", Result::InvalidValue,
                  std::string(function.kernel->name) + ": " + std::to_string(launch.dynamicBytes) +
                      " bytes of dynamic shared memory, it may have " + std::to_string(limit));
  return Result::Success;
}

namespace cleave::cuda {
extern "C" {

/// There is nothing to compile, so options are left alone; a log is empty.
Result cuModuleLoadDataEx(Module *module, const void *image, unsigned options, JitOption *names, void **values) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device)
    return Result::InvalidContext;
  for (unsigned i = 0; i < options; ++i)
    if (names[i] == JitOption::ErrorLog && values[i])
      *static_cast<char *>(values[i]) = 0;
  auto made = std::make_unique<ModuleHandle>();
  if (Result result = openImage(image, *made); result != Result::Success) {
    closeImage(*made);
    return result;
  }
  Lock lock(device->mutex);
  *module = made.get();
  device->modules.push_back(std::move(made));
  return Result::Success;
}

/// Kernels of it may still wait in queues: they run first.
Result cuModuleUnload(Module module) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device || !module)
    return Result::InvalidHandle;
  Result result = waitFor(*device, [=] {
    return std::all_of(device->streams.begin(), device->streams.end(),
                       [](const auto &stream) { return stream->queue.empty(); });
  });
  Lock lock(device->mutex);
  closeImage(*module);
  device->modules.erase(std::remove_if(device->modules.begin(), device->modules.end(),
                                       [=](const auto &other) { return other.get() == module; }),
                        device->modules.end());
  return result;
}

/// By the name that the kernel has in its gpu.module.
Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  CLEAVE_ENTER();
  if (!module)
    return Result::InvalidHandle;
  for (uint32_t i = 0; i < module->module->kernelCount; ++i) {
    if (strcmp(module->module->kernels[i].name, name) != 0)
      continue;
    module->functions.push_back(std::make_unique<FunctionHandle>());
    module->functions.back()->kernel = &module->module->kernels[i];
    *function = module->functions.back().get();
    return Result::Success;
  }
  return Result::NotFound;
}

/// Shared memory and threads as they were compiled; registers and local memory are 0.
Result cuFuncGetAttribute(int *value, FunctionAttribute attribute, Function function) {
  CLEAVE_ENTER();
  if (!function)
    return Result::InvalidHandle;
  switch (attribute) {
  case FunctionAttribute::MaxThreadsPerBlock:
    *value = function->kernel->maxThreads ? int(function->kernel->maxThreads) : 1024;
    break;
  case FunctionAttribute::SharedBytes:
    *value = int(function->kernel->sharedBytes);
    break;
  case FunctionAttribute::MaxDynamicSharedBytes:
    *value = int(std::max<uint32_t>(function->dynamicLimit, defaultSharedBytes - function->kernel->sharedBytes));
    break;
  default: // registers and spills: there are none
    *value = 0;
  }
  return Result::Success;
}

/// Nothing but the limit of dynamic shared memory.
Result cuFuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
  CLEAVE_ENTER();
  if (!function)
    return Result::InvalidHandle;
  bool isLegal = attribute == FunctionAttribute::MaxDynamicSharedBytes && value >= 0 &&
                 value + int64_t(function->kernel->sharedBytes) <= optinSharedBytes;
  if (!isLegal)
    return Result::InvalidValue;
  function->dynamicLimit = uint32_t(value);
  return Result::Success;
}

/// Parameters are copied, so that the caller may use their memory again at once.
Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes, Stream handle, void **parameters,
                      void **extra) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream || !function || extra)
    return Result::InvalidValue;
  ContextHandle *device = stream->device;
  Lock lock(device->mutex);
  if (device->sticky != Result::Success)
    return device->sticky;
  const emulation::Kernel &kernel = *function->kernel;
  auto prepared = std::make_shared<Prepared>();
  prepared->launch = {&kernel, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, nullptr, {}};
  if (Result result = checkShape(*function, prepared->launch); result != Result::Success)
    return result;
  std::vector<Touch> touches;
  if (Result result = findTouches(*device, kernel, parameters, touches); result != Result::Success)
    return result;
  for (uint32_t i = 0; i < kernel.parameterCount; ++i) {
    auto *value = static_cast<const char *>(parameters[i]);
    prepared->values.emplace_back(value, value + kernel.parameters[i].bytes);
  }
  for (auto &value : prepared->values)
    prepared->pointers.push_back(value.data());
  prepared->launch.parameters = prepared->pointers.data();
  prepared->launch.findMemory = [device](const void *at) { return findMemory(*device, at); };
  return enqueue(*stream, std::string("kernel \"") + kernel.name + "\"", touches, [=]() -> Step {
    return [=] {
      std::string finding = emulation::run(prepared->launch);
      if (!finding.empty())
        fail(*device, chooseResult(finding), finding);
      return Progress::Done;
    };
  });
}

} // extern "C"
} // namespace cleave::cuda
