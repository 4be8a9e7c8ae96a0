//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// A digest of a weight must be cheap enough to take at every import and every load, of files of hundreds of gigabytes: it
// reads the size and three blocks, at the start, in the middle and at the end. That finds a model that was trained on or
// exported anew, where all numbers differ; it is no protection against somebody who wants to deceive.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Digest.h"

#include <algorithm>
#include <array>
#include <cstdio>
#define XXH_INLINE_ALL
#include <xxhash.h>

static constexpr size_t kBlock = 4096, kBlocks = 3;

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
  for (size_t i = 0; i < sizeof(uint64_t); ++i)
    sample[sampled + i] = char(size >> 8 * i);
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(sample.data(), sampled + sizeof(uint64_t))));
  return digits;
}

uint64_t cleave::program::hashBytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
