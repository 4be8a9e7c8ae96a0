//===- Digest.h - is a file still the one that was meant? -------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_DIGEST_H
#define CLEAVE_PROGRAM_DIGEST_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cleave::program {

/// Reads `bytes` at `offset`. Returns whether they are there.
using ReadBytes = std::function<bool(uint64_t offset, char *to, size_t bytes)>;

/// A digest of some of `size` bytes: 16 hexadecimal digits; empty if they could not be read. A model of terabytes must import
/// in milliseconds, so no more than 12 KiB are read: all of up to 12 KiB; of more, three blocks of 4 KiB, one at the start,
/// one in the middle (at byte (size - 4096) / 2, rounded down) and one at the end. The digest is XXH3 (64 bits) of these,
/// one behind the other, followed by the size as eight little-endian bytes.
///
/// What it is good for: a matrix that was trained on, quantised, transposed or moved differs all over, and is found
/// out. What it cannot do: a change of a few elements may lie between the blocks, and it is no defence against
/// somebody who wants to deceive.
std::string digestSample(uint64_t size, const ReadBytes &read);

/// XXH3 of all bytes.
uint64_t hashBytes(std::string_view bytes);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_DIGEST_H
