//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// A digest of a weight must be cheap enough to take at every import, of files of hundreds of gigabytes: it reads the
// size and three blocks, at the start, in the middle and at the end. That finds a model that was trained on or exported
// anew, where all numbers differ; it is no protection against somebody who wants to deceive.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Digest.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

static constexpr size_t kBlock = 4096, kBlocks = 3;

std::string cleave::digestSample(StringRef bytes) {
  SmallString<0> sample;
  sample.reserve(kBlocks * kBlock + sizeof(uint64_t));
  if (bytes.size() <= kBlocks * kBlock)
    sample = bytes;
  else
    for (size_t i = 0; i < kBlocks; ++i) {
      // In 128 bits: `i` times a size may not fit 64.
      size_t start = static_cast<unsigned __int128>(i) * (bytes.size() - kBlock) / (kBlocks - 1);
      sample += bytes.substr(start, kBlock);
    }
  char size[sizeof(uint64_t)];
  support::endian::write64le(size, bytes.size());
  sample.append(size, size + sizeof(size));
  std::string digits = utohexstr(xxh3_64bits(StringRef(sample)), /*LowerCase=*/true);
  return std::string(16 - digits.size(), '0') + digits;
}
