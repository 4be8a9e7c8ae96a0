//===- CudaCopies.cpp - copies of boxes by the driver ---------------------===//
//
// The driver copies runs, and rows of rows with pitches (two dims outside of a run); of boxes with more dims, or with
// strides that are no pitches, it gets one call for each part. Programs have few such copies: what moves much is a kernel.
//
//===----------------------------------------------------------------------===//
#include "CudaDevice.h"

#include <algorithm>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;

static cuda::DevicePointer toDevice(const char *address) { return reinterpret_cast<cuda::DevicePointer>(address); }

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

/// Bytes from the first to behind the last of a box's source, or target.
static uint64_t getSpan(const BoxCopy &box, int64_t BoxCopy::Dim::*stride) {
  uint64_t bytes = box.run;
  for (const BoxCopy::Dim &dim : box.dims)
    bytes += uint64_t((dim.size - 1) * (dim.*stride));
  return bytes;
}

/// The same box with one side packed.
static BoxCopy pack(const BoxCopy &box, int64_t BoxCopy::Dim::*side) {
  BoxCopy packed = box;
  int64_t stride = int64_t(box.run);
  for (size_t i = packed.dims.size(); i-- > 0; stride *= packed.dims[i].size)
    packed.dims[i].*side = stride;
  return packed;
}

static bool isPacked(const BoxCopy &box, int64_t BoxCopy::Dim::*side) {
  BoxCopy packed = pack(box, side);
  return std::equal(box.dims.begin(), box.dims.end(), packed.dims.begin(),
                    [&](const BoxCopy::Dim &a, const BoxCopy::Dim &b) { return a.*side == b.*side; });
}

//===----------------------------------------------------------------------===//
// On the device
//===----------------------------------------------------------------------===//

/// In memory of the host that the program has asked for.
bool CudaDevice::isOnHost(const char *address) const {
  return std::any_of(hostBlocks.begin(), hostBlocks.end(), [&](const HostBlock &block) {
    const char *begin = static_cast<const char *>(block.memory);
    return begin <= address && address < begin + block.bytes;
  });
}

/// One call for the last one or two dims, if their strides are pitches. False if they are not.
bool CudaDevice::copyPitched(const BoxCopy &box, size_t level, End source, End target, cuda::Stream stream) {
  size_t left = box.dims.size() - level;
  const BoxCopy::Dim &rows = box.dims.back();
  if (left == 0 || left > 2 || rows.source < int64_t(box.run) || rows.target < int64_t(box.run))
    return false;
  cuda::Copy3D copy;
  if (source.isOnHost) {
    copy.sourceType = cuda::MemoryType::Host;
    copy.sourceHost = reinterpret_cast<const void *>(source.address);
  } else {
    copy.sourceDevice = source.address;
  }
  if (target.isOnHost) {
    copy.targetType = cuda::MemoryType::Host;
    copy.targetHost = reinterpret_cast<void *>(target.address);
  } else {
    copy.targetDevice = target.address;
  }
  copy.sourcePitch = size_t(rows.source);
  copy.targetPitch = size_t(rows.target);
  copy.width = box.run;
  copy.height = size_t(rows.size);
  copy.depth = 1;
  if (left == 2) {
    const BoxCopy::Dim &planes = box.dims[level];
    auto isPitch = [&](int64_t plane, int64_t row) { return plane % row == 0 && plane / row >= rows.size; };
    if (!isPitch(planes.source, rows.source) || !isPitch(planes.target, rows.target))
      return false;
    copy.sourceHeight = size_t(planes.source / rows.source);
    copy.targetHeight = size_t(planes.target / rows.target);
    copy.depth = size_t(planes.size);
  }
  keep(driver.cuMemcpy3DAsync_v2(&copy, stream), "copy rows");
  return true;
}

/// The host's end is memory that the driver has given, so that it does not wait. Of no copy both ends are there (P20).
void CudaDevice::copyRun(End source, End target, uint64_t bytes, cuda::Stream stream) {
  cuda::Result result;
  if (source.isOnHost)
    result = driver.cuMemcpyHtoDAsync_v2(target.address, reinterpret_cast<const void *>(source.address), bytes, stream);
  else if (target.isOnHost)
    result = driver.cuMemcpyDtoHAsync_v2(reinterpret_cast<void *>(target.address), source.address, bytes, stream);
  else
    result = driver.cuMemcpyDtoDAsync_v2(target.address, source.address, bytes, stream);
  keep(result, "copy");
}

void CudaDevice::copyFrom(const BoxCopy &box, size_t level, End source, End target, cuda::Stream stream) {
  if (level == box.dims.size())
    return copyRun(source, target, box.run, stream);
  if (copyPitched(box, level, source, target, stream))
    return;
  const BoxCopy::Dim &dim = box.dims[level];
  for (int64_t i = 0; i < dim.size; ++i)
    copyFrom(box, level + 1, source + i * dim.source, target + i * dim.target, stream);
}

/// A tensor that moves over itself goes by way of other memory.
void CudaDevice::copy(const BoxCopy &box, const char *source, char *target, uint32_t number) {
  uint64_t bytes = box.getBytes();
  if (bytes == 0)
    return;
  enter();
  End from{toDevice(source), isOnHost(source)}, to{toDevice(target), isOnHost(target)};
  cuda::Stream stream = getStream(number);
  bool overlaps = from.address < to.address + getSpan(box, &BoxCopy::Dim::target) &&
                  to.address < from.address + getSpan(box, &BoxCopy::Dim::source);
  if (!overlaps)
    return copyFrom(box, 0, from, to, stream);
  if (bounceBytes < bytes) {
    program::Result<char *> memory = allocate(bytes, 1, program::Memory::Device, false);
    if (!memory) {
      keep(memory.getError());
      return;
    }
    bounce = toDevice(*memory);
    bounceBytes = bytes;
  }
  End between{bounce, /*isOnHost=*/false};
  copyFrom(pack(box, &BoxCopy::Dim::target), 0, from, between, stream);
  copyFrom(pack(box, &BoxCopy::Dim::source), 0, between, to, stream);
}

//===----------------------------------------------------------------------===//
// Between host and device
//===----------------------------------------------------------------------===//

/// Calls `fn` for each run of a box.
template <typename Fn> static void overRuns(const BoxCopy &box, size_t level, const char *source, char *target, Fn fn) {
  if (level == box.dims.size())
    return fn(source, target);
  const BoxCopy::Dim &dim = box.dims[level];
  for (int64_t i = 0; i < dim.size; ++i)
    overRuns(box, level + 1, source + i * dim.source, target + i * dim.target, fn);
}

/// What is in one piece on the device is put together on the host first.
void CudaDevice::upload(const BoxCopy &box, const char *source, char *target) {
  uint64_t bytes = box.getBytes();
  if (bytes == 0)
    return;
  enter();
  cuda::Stream stream = getStream(0);
  follows.assign(streams.size(), false);
  if (!isPacked(box, &BoxCopy::Dim::target)) {
    overRuns(box, 0, source, target,
             [&](const char *from, char *to) { keep(staging->upload(toDevice(to), from, box.run, stream)); });
    return;
  }
  std::vector<char> packed;
  if (!box.dims.empty()) {
    packed.resize(bytes);
    copyBox(box, source, packed.data());
    source = packed.data();
  }
  keep(staging->upload(toDevice(target), source, bytes, stream));
}

void CudaDevice::download(const BoxCopy &box, const char *source, char *target) {
  uint64_t bytes = box.getBytes();
  if (bytes == 0)
    return;
  enter();
  cuda::Stream stream = getStream(0);
  if (!isPacked(box, &BoxCopy::Dim::source)) {
    overRuns(box, 0, source, target,
             [&](const char *from, char *to) { keep(staging->download(to, toDevice(from), box.run, stream)); });
    return;
  }
  if (box.dims.empty()) {
    keep(staging->download(target, toDevice(source), bytes, stream));
    return;
  }
  std::vector<char> packed(bytes);
  keep(staging->download(packed.data(), toDevice(source), bytes, stream));
  copyBox(box, packed.data(), target);
}
