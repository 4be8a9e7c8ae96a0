//===- Digest.h - is a file still the one that was meant? -------*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_DIGEST_H
#define CLEAVE_SUPPORT_DIGEST_H

#include "cleave/Support/File.h"
#include <string>
#include <vector>

namespace cleave {

/// The digest of `bytes`, a part of `file`, as program files have it (cleave/Program/Digest.h).
std::string digestSample(const MappedFile &file, llvm::ArrayRef<char> bytes);

/// The digest of each block of `bytes`, a part of `file`, as program files have them. Holes of the file cost nothing.
std::vector<uint64_t> digestBlocks(const MappedFile &file, llvm::ArrayRef<char> bytes);

} // namespace cleave

#endif // CLEAVE_SUPPORT_DIGEST_H
