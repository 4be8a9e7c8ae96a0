//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// The digest of the program file, of bytes of a mapped file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Digest.h"

#include "cleave/Program/Digest.h"

std::string cleave::digestSample(const MappedFile &file, llvm::ArrayRef<char> bytes) {
  uint64_t start = file.getOffset(bytes);
  return program::digestSample(bytes.size(), [&](uint64_t offset, char *to, size_t count) {
    file.copy(start + offset, {to, count});
    return true;
  });
}
