//===- Staging.cpp - between the host's memory and the device's -----------===//
//
// A block belongs to the device until the event behind its last copy has happened.
//
//===----------------------------------------------------------------------===//
#include "Staging.h"

#include <algorithm>
#include <cstring>

using namespace cleave::runtime;
using namespace cleave::cuda;
using cleave::program::kGood;
using cleave::program::makeError;
using cleave::program::Status;

/// Large enough that a copy's start does not count.
static constexpr uint64_t kBlock = uint64_t{4} << 20;

Status Staging::check(Result result) const {
  if (result == Result::Success)
    return kGood;
  return makeError("cannot copy between host and device: ", describe(driver, result));
}

Status Staging::open() {
  for (Block &block : blocks) {
    void *memory = nullptr;
    if (Status error = check(driver.cuMemHostAlloc(&memory, kBlock, kHostPortable)))
      return error;
    block.memory = static_cast<char *>(memory);
    if (Status error = check(driver.cuEventCreate(&block.isFree, kEventDisableTiming)))
      return error;
  }
  return kGood;
}

Staging::~Staging() {
  for (Block &block : blocks) {
    if (block.isFree)
      (void)driver.cuEventDestroy_v2(block.isFree);
    if (block.memory)
      (void)driver.cuMemFreeHost(block.memory);
  }
}

Status Staging::upload(DevicePointer target, const char *source, uint64_t bytes, Stream stream) {
  for (uint64_t at = 0; at < bytes; at += kBlock) {
    Block &block = blocks[next++ % 2];
    uint64_t count = std::min(kBlock, bytes - at);
    // An event that was never recorded has happened.
    if (Status error = check(driver.cuEventSynchronize(block.isFree)))
      return error;
    std::memcpy(block.memory, source + at, count);
    if (Status error = check(driver.cuMemcpyHtoDAsync_v2(target + at, block.memory, count, stream)))
      return error;
    if (Status error = check(driver.cuEventRecord(block.isFree, stream)))
      return error;
  }
  return kGood;
}

/// The device fills one block while the other is emptied.
Status Staging::download(char *target, DevicePointer source, uint64_t bytes, Stream stream) {
  uint64_t fetched = 0;
  for (uint64_t emptied = 0; emptied < bytes;) {
    for (; fetched < bytes && fetched < emptied + 2 * kBlock; fetched += kBlock) {
      Block &block = blocks[fetched / kBlock % 2];
      uint64_t count = std::min(kBlock, bytes - fetched);
      // An upload may still have it.
      if (Status error = check(driver.cuEventSynchronize(block.isFree)))
        return error;
      if (Status error = check(driver.cuMemcpyDtoHAsync_v2(block.memory, source + fetched, count, stream)))
        return error;
      if (Status error = check(driver.cuEventRecord(block.isFree, stream)))
        return error;
    }
    Block &block = blocks[emptied / kBlock % 2];
    if (Status error = check(driver.cuEventSynchronize(block.isFree)))
      return error;
    uint64_t count = std::min(kBlock, bytes - emptied);
    std::memcpy(target + emptied, block.memory, count);
    emptied += count;
  }
  return kGood;
}
