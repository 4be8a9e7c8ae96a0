//===- Digest.h - is a file still the one that was meant? -------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_DIGEST_H
#define CLEAVE_PROGRAM_DIGEST_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::program {

/// Reads `bytes` at `offset`. Returns whether they are there.
using ReadBytes = std::function<bool(uint64_t offset, char *to, size_t bytes)>;

/// A digest of some of `size` bytes: 16 hexadecimal digits; empty if they could not be read. No more than 12 KiB are read: all
/// of up to 12 KiB; of more, three blocks of 4 KiB, one at the start, one in the middle (at byte (size - 4096) / 2, rounded
/// down) and one at the end. The digest is XXH3 (64 bits) of these, one behind the other, followed by the size as eight
/// little-endian bytes.
///
/// It tells at once, of a file of any size, that a model was trained on, quantized, transposed or moved. A change of a few
/// elements it may miss: that is what `digestBlocks` is for. Neither is a defense against somebody who wants to deceive.
std::string digestSample(uint64_t size, const ReadBytes &read);

/// Of so many bytes the sample is all.
inline constexpr uint64_t kSampledFully = 12288;

/// A block of a weight has a digest of its own, so that who reads a part verifies what it reads, and nothing else.
inline constexpr uint64_t kDigestBlock = uint64_t{1} << 20;

/// How many blocks `size` bytes are; the last one may be shorter.
inline constexpr uint64_t countBlocks(uint64_t size) { return size / kDigestBlock + (size % kDigestBlock != 0); }

/// Whether the file system knows that `bytes` at `offset` are zeros that nobody wrote: they are not read.
using IsHole = std::function<bool(uint64_t offset, uint64_t bytes)>;

/// XXH3 of each block of `size` bytes, by several threads where there is much to read: `read` and `isHole` are called from any.
/// Empty if they could not be read, or there are none.
std::vector<uint64_t> digestBlocks(uint64_t size, const ReadBytes &read, const IsHole &isHole = {});
std::vector<uint64_t> digestBlocks(std::string_view bytes);

/// Of all bytes, as 16 hexadecimal digits: XXH3 of the digests of all blocks, eight little-endian bytes each, one behind the
/// other.
std::string digestBlocks(const std::vector<uint64_t> &blocks);

/// XXH3 of all bytes.
uint64_t hashBytes(std::string_view bytes);

/// Sixteen hexadecimal digits.
std::string formatDigest(uint64_t digest);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_DIGEST_H
