//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// A digest of a weight must be cheap enough to take at every import, of files of hundreds of gigabytes: it reads the
// size and three blocks, at the start, in the middle and at the end. That finds a model that was trained on or exported
// anew, where all numbers differ; it is no protection against somebody who wants to deceive.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Digest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/xxhash.h"
#include <array>

using namespace llvm;

static constexpr size_t kBlock = 4096, kBlocks = 3;

std::string cleave::digestSample(const MappedFile &file, ArrayRef<char> bytes) {
  std::array<char, kBlocks * kBlock + sizeof(uint64_t)> sample;
  uint64_t size = bytes.size(), offset = file.getOffset(bytes);
  size_t sampled = std::min<uint64_t>(size, kBlocks * kBlock);
  if (size == sampled)
    file.copy(offset, {sample.data(), sampled});
  else
    for (size_t i = 0; i < kBlocks; ++i)
      // In 128 bits: `i` times a size may not fit 64.
      file.copy(offset + static_cast<unsigned __int128>(i) * (size - kBlock) / (kBlocks - 1),
                {sample.data() + i * kBlock, kBlock});
  support::endian::write64le(sample.data() + sampled, size);
  std::string digits = utohexstr(xxh3_64bits(StringRef(sample.data(), sampled + sizeof(uint64_t))), /*LowerCase=*/true);
  return std::string(16 - digits.size(), '0') + digits;
}
