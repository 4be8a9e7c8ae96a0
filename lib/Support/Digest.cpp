//===- Digest.cpp - is a file still the one that was meant? ---------------===//
//
// The digest of the program file, of bytes of a mapped file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Digest.h"

#include "cleave/Program/Digest.h"

using namespace cleave;

/// Of a part of a file that begins at `start`.
static program::ReadBytes read(const MappedFile &file, uint64_t start) {
  return [&file, start](uint64_t offset, char *to, size_t count) {
    file.copy(start + offset, {to, count});
    return true;
  };
}

std::string cleave::digestSample(const MappedFile &file, llvm::ArrayRef<char> bytes) {
  return program::digestSample(bytes.size(), read(file, file.getOffset(bytes)));
}

std::vector<uint64_t> cleave::digestBlocks(const MappedFile &file, llvm::ArrayRef<char> bytes) {
  uint64_t start = file.getOffset(bytes);
  return program::digestBlocks(bytes.size(), read(file, start), [&file, start](uint64_t offset, uint64_t count) {
    return file.isHole(start + offset, count);
  });
}
