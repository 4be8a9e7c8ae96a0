//===- Memory.cpp - memory of devices and what goes in and out ------------===//
//
//   | no access | 0xff ... | bytes asked for |   no access
//                          ^ multiple of 256 ^ less than 256 bytes away
//
// What nobody wrote is NaN, what runs over the end faults, and so does memory that was freed: its addresses are not used again.
//
//===----------------------------------------------------------------------===//
#include "Entries.h"
#include "State.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace cleave::cuda;

static constexpr uint64_t page = 4096, alignment = 256;

/// To the next multiple.
static uint64_t roundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
/// The setting is in MiB.
static uint64_t getAllBytes() { return getNumber("CLEAVE_EMULATION_MEMORY", 16384) << 20; }

/// The allocation that begins last before the address, if it reaches that far.
cleave::emulation::Range cleave::cuda::findMemory(ContextHandle &device, const void *at) {
  auto *address = const_cast<char *>(static_cast<const char *>(at));
  auto next = device.memory.upper_bound(address);
  if (next == device.memory.begin())
    return {};
  --next;
  return address < next->first + next->second ? emulation::Range{next->first, next->second} : emulation::Range{};
}

bool cleave::cuda::isDeviceMemory(ContextHandle &device, const void *from, uint64_t bytes) {
  emulation::Range range = findMemory(device, from);
  return range.base && bytes <= uint64_t(range.base + range.bytes - static_cast<const char *>(from));
}

/// From here on whoever touches it faults.
static void wall(char *base, uint64_t bytes) {
  uint64_t used = roundUp(bytes, alignment), pages = roundUp(used, page);
  mmap(base + used - pages, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void cleave::cuda::freeMemory(ContextHandle &device) {
  for (auto [base, bytes] : device.memory)
    wall(base, bytes);
  device.memory.clear();
  device.bytesInUse = 0;
}

/// Host memory that a device can reach by itself. Copies of other memory are staged.
namespace {
struct Pinned {
  std::mutex mutex;
  std::map<const char *, uint64_t> blocks;
  bool holds(const void *at, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    auto *address = static_cast<const char *>(at);
    auto next = blocks.upper_bound(address);
    return next != blocks.begin() && address + bytes <= std::prev(next)->first + std::prev(next)->second;
  }
};
} // namespace

/// Of the process: pinned memory is portable, every device may use it.
static Pinned &getPinned() {
  static Pinned pinned;
  return pinned;
}

namespace cleave::cuda {
extern "C" {

/// What was asked for counts, not pages: the same on every machine.
Result cuMemGetInfo_v2(size_t *freeBytes, size_t *allBytes) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device)
    return Result::InvalidContext;
  Lock lock(device->mutex);
  *allBytes = getAllBytes();
  *freeBytes = *allBytes - std::min<uint64_t>(*allBytes, device->bytesInUse);
  return Result::Success;
}

/// Pages are written once, so that NaN is what a kernel finds; not while a stream is captured, as the driver has it.
Result cuMemAlloc_v2(DevicePointer *memory, size_t bytes) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device)
    return Result::InvalidContext;
  if (bytes == 0)
    return Result::InvalidValue;
  Lock lock(device->mutex);
  for (auto &stream : device->streams)
    if (stream->capture)
      return refuse(__func__, Result::StreamCaptureUnsupported, "a stream is captured");
  if (bytes > getAllBytes() || device->bytesInUse + bytes > getAllBytes())
    return Result::OutOfMemory;
  uint64_t used = roundUp(bytes, alignment), pages = roundUp(used, page);
  void *mapped = mmap(nullptr, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return Result::OutOfMemory;
  char *inside = static_cast<char *>(mapped) + page;
  mprotect(inside, pages, PROT_READ | PROT_WRITE);
  memset(inside, 0xff, pages);
  char *base = inside + pages - used;
  device->memory[base] = bytes;
  device->bytesInUse += bytes;
  *memory = reinterpret_cast<DevicePointer>(base);
  return Result::Success;
}

/// Waits for the device, as the driver does, which is why a missing synchronization before it does no harm.
Result cuMemFree_v2(DevicePointer memory) {
  CLEAVE_ENTER();
  ContextHandle *device = getCurrent();
  if (!device)
    return Result::InvalidContext;
  if (memory == 0)
    return Result::Success;
  // As the driver does: what still runs may use it.
  Result result = waitFor(*device, [&] {
    for (auto &stream : device->streams)
      if (!stream->queue.empty())
        return false;
    return true;
  });
  Lock lock(device->mutex);
  auto found = device->memory.find(reinterpret_cast<char *>(memory));
  if (found == device->memory.end())
    return refuse(__func__, Result::InvalidValue, "memory that was not allocated, or has been freed");
  wall(found->first, found->second);
  device->bytesInUse -= found->second;
  device->memory.erase(found);
  return result;
}

/// Memory of the host; what makes it pinned is that it is listed.
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  CLEAVE_ENTER();
  *memory = aligned_alloc(page, roundUp(std::max<size_t>(bytes, 1), page));
  if (!*memory)
    return Result::OutOfMemory;
  std::lock_guard<std::mutex> lock(getPinned().mutex);
  getPinned().blocks[static_cast<char *>(*memory)] = bytes;
  return Result::Success;
}

Result cuMemFreeHost(void *memory) {
  CLEAVE_ENTER();
  {
    std::lock_guard<std::mutex> lock(getPinned().mutex);
    if (!getPinned().blocks.erase(static_cast<char *>(memory)))
      return refuse("cuMemFreeHost", Result::InvalidValue, "memory that was not allocated, or has been freed");
  }
  free(memory);
  return Result::Success;
}

} // extern "C"
} // namespace cleave::cuda

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// A command that is done at once when its turn comes.
static MakeStep makeOnce(std::function<void()> work) {
  return [work]() -> Step {
    return [work] {
      work();
      return Progress::Done;
    };
  };
}

/// As findings and deadlocks call the command.
static std::string nameCopy(const char *what, uint64_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

namespace cleave::cuda {
extern "C" {

/// Captured copies read the host's memory at each launch, pinned or not.
Result cuMemcpyHtoDAsync_v2(DevicePointer target, const void *source, size_t bytes, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  Lock lock(stream->device->mutex);
  auto *to = reinterpret_cast<char *>(target);
  if (!isDeviceMemory(*stream->device, to, bytes))
    return refuse(__func__, Result::InvalidValue, "the target is not all in memory of the device");
  std::vector<Touch> touches{{to, bytes, true}};
  if (getPinned().holds(source, bytes) || stream->capture)
    return enqueue(*stream, nameCopy("copy to the device", bytes), touches,
                   makeOnce([=] { memcpy(to, source, bytes); }));
  auto *from = static_cast<const char *>(source);
  auto staged = std::make_shared<std::vector<char>>(from, from + bytes);
  return enqueue(*stream, nameCopy("copy to the device", bytes), touches,
                 makeOnce([=] { memcpy(to, staged->data(), bytes); }));
}

/// Of a stream that is captured nothing is waited for.
Result cuMemcpyDtoHAsync_v2(void *target, DevicePointer source, size_t bytes, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  ContextHandle &device = *stream->device;
  auto done = std::make_shared<bool>(false);
  Clock clock;
  bool isStaged = !getPinned().holds(target, bytes) && !stream->capture;
  {
    Lock lock(device.mutex);
    auto *from = reinterpret_cast<const char *>(source);
    if (!isDeviceMemory(device, from, bytes))
      return refuse(__func__, Result::InvalidValue, "the source is not all in memory of the device");
    Result result = enqueue(*stream, nameCopy("copy to the host", bytes), {{from, bytes, false}}, makeOnce([=] {
      memcpy(target, from, bytes);
      *done = true;
    }));
    if (result != Result::Success)
      return result;
    clock = stream->clock;
  }
  if (!isStaged)
    return Result::Success;
  // Into memory that is not pinned the driver copies before it returns: the host has waited.
  Result result = waitFor(device, [=] { return *done; });
  Lock lock(device.mutex);
  join(device.host, clock);
  device.accesses.forget(device.host);
  return result;
}

/// Ends that overlap have no defined result, so they are refused.
Result cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source, size_t bytes, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  Lock lock(stream->device->mutex);
  auto *to = reinterpret_cast<char *>(target);
  auto *from = reinterpret_cast<const char *>(source);
  if (!isDeviceMemory(*stream->device, to, bytes) || !isDeviceMemory(*stream->device, from, bytes))
    return refuse(__func__, Result::InvalidValue, "an end is not all in memory of the device");
  if (to < from + bytes && from < to + bytes)
    return refuse(__func__, Result::InvalidValue, "source and target overlap");
  return enqueue(*stream, nameCopy("copy", bytes), {{from, bytes, false}, {to, bytes, true}},
                 makeOnce([=] { memcpy(to, from, bytes); }));
}

/// A fill is a command like any other.
Result cuMemsetD8Async(DevicePointer target, unsigned char byte, size_t bytes, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream)
    return Result::InvalidContext;
  Lock lock(stream->device->mutex);
  auto *to = reinterpret_cast<char *>(target);
  if (!isDeviceMemory(*stream->device, to, bytes))
    return refuse(__func__, Result::InvalidValue, "the target is not all in memory of the device");
  return enqueue(*stream, nameCopy("fill", bytes), {{to, bytes, true}}, makeOnce([=] { memset(to, byte, bytes); }));
}

/// Row by row, each looked up and ordered by itself: between rows others may write.
Result cuMemcpy3DAsync_v2(const Copy3D *copy, Stream handle) {
  CLEAVE_ENTER();
  StreamHandle *stream = getStream(handle);
  if (!stream || !copy)
    return Result::InvalidValue;
  ContextHandle &device = *stream->device;
  Lock lock(device.mutex);
  bool isFromDevice = copy->sourceType == MemoryType::Device, isToDevice = copy->targetType == MemoryType::Device;
  auto *source =
      isFromDevice ? reinterpret_cast<const char *>(copy->sourceDevice) : static_cast<const char *>(copy->sourceHost);
  auto *target = isToDevice ? reinterpret_cast<char *>(copy->targetDevice) : static_cast<char *>(copy->targetHost);
  Copy3D box = *copy;
  bool isFlat = box.depth <= 1;
  if (box.sourcePitch < box.width || (!isFlat && box.sourceHeight < box.height) ||
      (!isFlat && box.targetHeight < box.height) || box.targetPitch < box.width)
    return refuse(__func__, Result::InvalidValue, "a pitch or height is less than the box");
  std::vector<Touch> touches;
  std::vector<std::pair<const char *, char *>> rows;
  for (size_t z = 0; z < box.depth; ++z)
    for (size_t y = 0; y < box.height; ++y) {
      const char *from =
          source + ((box.sourceZ + z) * box.sourceHeight + box.sourceY + y) * box.sourcePitch + box.sourceX;
      char *to = target + ((box.targetZ + z) * box.targetHeight + box.targetY + y) * box.targetPitch + box.targetX;
      if ((isFromDevice && !isDeviceMemory(device, from, box.width)) ||
          (isToDevice && !isDeviceMemory(device, to, box.width)))
        return refuse(__func__, Result::InvalidValue, "a row is not all in memory of the device");
      if (isFromDevice)
        touches.push_back({from, box.width, false});
      if (isToDevice)
        touches.push_back({to, box.width, true});
      rows.push_back({from, to});
    }
  size_t width = box.width;
  return enqueue(*stream, nameCopy("copy", width * rows.size()), touches, makeOnce([=] {
    for (auto [from, to] : rows)
      memmove(to, from, width);
  }));
}

} // extern "C"
} // namespace cleave::cuda
