//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// Two digests: one of a sample, the size and three blocks at the start, in the middle and at the end, which costs nothing at
// any size and tells that a file was exported anew; and one of each block of a megabyte, which covers every byte. Blocks
// are read and hashed side by side, at the speed of the memory that the file lies in.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Digest.h"

#include "cleave/Program/Thread.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace cleave::program;

static constexpr size_t kBlock = 4096, kBlocks = 3;
static_assert(kBlock * kBlocks == kSampledFully);

std::string cleave::program::formatDigest(uint64_t digest) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(digest));
  return digits;
}

/// Eight little-endian bytes.
static void put(char *to, uint64_t number) {
  for (size_t i = 0; i < sizeof(number); ++i)
    to[i] = char(number >> 8 * i);
}

std::string cleave::program::digestSample(uint64_t size, const ReadBytes &read) {
  std::array<char, kBlocks * kBlock + sizeof(uint64_t)> sample;
  size_t sampled = std::min<uint64_t>(size, kBlocks * kBlock);
  bool isRead = true;
  if (size == sampled)
    isRead = sampled == 0 || read(0, sample.data(), sampled);
  else
    for (size_t i = 0; i < kBlocks; ++i)
      // In 128 bits: `i` times a size may not fit 64.
      isRead = isRead && read(static_cast<unsigned __int128>(i) * (size - kBlock) / (kBlocks - 1),
                              sample.data() + i * kBlock, kBlock);
  if (!isRead)
    return "";
  put(sample.data() + sampled, size);
  return formatDigest(XXH3_64bits(sample.data(), sampled + sizeof(uint64_t)));
}

uint64_t cleave::program::hashBytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Threads cost more than a few blocks do, and more than these read no faster.
static constexpr uint64_t kBlocksPerThread = 4, kMostThreads = 8;

/// Calls `digest` with the number of each block, from several threads. Where the system has no more of these, fewer do all.
static void overBlocks(uint64_t blocks, const std::function<void(uint64_t)> &digest) {
  std::atomic<uint64_t> next{0};
  auto work = [&] {
    for (uint64_t block = next++; block < blocks; block = next++)
      digest(block);
  };
  uint64_t wanted = std::min({blocks / kBlocksPerThread, kMostThreads, uint64_t(countCores())});
  std::vector<Thread> helpers;
  for (uint64_t i = 1; i < wanted; ++i) {
    Thread helper;
    if (helper.start(work))
      break;
    helpers.push_back(std::move(helper));
  }
  work();
  for (Thread &helper : helpers)
    helper.join();
}

/// Of so many zeros, at most a block. Equal layers have blocks of few sizes, and a file that was never written to has many of each.
static uint64_t digestZeros(uint64_t bytes) {
  static std::mutex mutex;
  static std::map<uint64_t, uint64_t> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = known.try_emplace(bytes);
  if (isNew)
    entry->second = hashBytes(std::string(bytes, '\0'));
  return entry->second;
}

std::vector<uint64_t> cleave::program::digestBlocks(uint64_t size, const ReadBytes &read, const IsHole &isHole) {
  std::vector<uint64_t> digests(countBlocks(size));
  std::atomic<bool> isRead{true};
  auto getBytes = [&](uint64_t block) { return std::min(kDigestBlock, size - block * kDigestBlock); };
  // One question where all of it is a hole, instead of one for each block.
  if (isHole && size > 0 && isHole(0, size)) {
    for (uint64_t block = 0; block < digests.size(); ++block)
      digests[block] = digestZeros(getBytes(block));
    return digests;
  }
  overBlocks(digests.size(), [&](uint64_t block) {
    uint64_t offset = block * kDigestBlock, bytes = getBytes(block);
    if (isHole && isHole(offset, bytes)) {
      digests[block] = digestZeros(bytes);
      return;
    }
    std::unique_ptr<char[]> buffer(new char[bytes]);
    if (isRead && read(offset, buffer.get(), bytes))
      digests[block] = XXH3_64bits(buffer.get(), bytes);
    else
      isRead = false;
  });
  if (!isRead)
    digests.clear();
  return digests;
}

std::vector<uint64_t> cleave::program::digestBlocks(std::string_view bytes) {
  std::vector<uint64_t> digests(countBlocks(bytes.size()));
  overBlocks(digests.size(),
             [&](uint64_t block) { digests[block] = hashBytes(bytes.substr(block * kDigestBlock, kDigestBlock)); });
  return digests;
}

std::string cleave::program::digestBlocks(const std::vector<uint64_t> &blocks) {
  std::vector<char> bytes(blocks.size() * sizeof(uint64_t));
  for (size_t i = 0; i < blocks.size(); ++i)
    put(bytes.data() + i * sizeof(uint64_t), blocks[i]);
  return formatDigest(XXH3_64bits(bytes.data(), bytes.size()));
}
