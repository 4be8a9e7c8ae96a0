//===- Digest.h - is a file still the one that was meant? -------*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_DIGEST_H
#define CLEAVE_SUPPORT_DIGEST_H

#include "cleave/Support/File.h"
#include <string>

namespace cleave {

/// A digest of some of `bytes`, a part of `file`: 16 hexadecimal digits. A model of terabytes must import in
/// milliseconds, so no more than 12 KiB are read: all of up to 12 KiB; of more, three blocks of 4 KiB, one at the start,
/// one in the middle (at byte (size - 4096) / 2, rounded down) and one at the end. The digest is XXH3 (64 bits) of these,
/// one behind the other, followed by the size as eight little-endian bytes.
///
/// What it is good for: a matrix that was trained on, quantised, transposed or moved differs all over, and is found
/// out. What it cannot do: a change of a few elements may lie between the blocks, and it is no defence against
/// somebody who wants to deceive.
std::string digestSample(const MappedFile &file, llvm::ArrayRef<char> bytes);

} // namespace cleave

#endif // CLEAVE_SUPPORT_DIGEST_H
