//===- Read.cpp - from untrusted bytes to a checked program ---------------===//
//
// Frame, tables, values, contents: each is looked at only when what it lies in is known to be sound.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

#include <algorithm>
#include <cstring>
#include <memory>

using namespace cleave::program;

static constexpr size_t kAlignment = 64, kPrefix = 4;

bool cleave::program::isProgram(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.substr(8, kIdentifier.size()) == kIdentifier;
}

// Of a file of n bytes at most n / 4 tables are visited and n bytes of vectors copied, whatever refers to whatever.
Result<Program> cleave::program::decodeProgram(std::string_view bytes) {
  if (!isProgram(bytes))
    return makeError("is no program file: there is no \"", kIdentifier, "\" at byte 8 (P1)");
  uint32_t length = flatbuffers::ReadScalar<uint32_t>(std::string(bytes.substr(0, kPrefix)).data());
  if (length > bytes.size() - kPrefix || length > FLATBUFFERS_MAX_BUFFER_SIZE - kPrefix)
    return makeError("is cut off: tables of ", length, " bytes in a file of ", bytes.size(), " (P1)");
  // Whoever gives the bytes need not have aligned them; a FlatBuffer must be.
  size_t tableBytes = length + kPrefix;
  std::unique_ptr<uint64_t[]> aligned(new uint64_t[tableBytes / sizeof(uint64_t) + 1]);
  std::memcpy(aligned.get(), bytes.data(), tableBytes);
  const auto *tables = reinterpret_cast<const uint8_t *>(aligned.get());
  flatbuffers::Verifier verifier(tables, tableBytes, /*max_depth=*/16, /*max_tables=*/length / 4);
  if (!file::VerifySizePrefixedProgramBuffer(verifier))
    return makeError("its tables are damaged (P1)");
  const file::Program &program = *file::GetSizePrefixedProgram(tables);
  if (program.version() == 0 || program.version() > kVersion)
    return makeError("is of version ", program.version(), ", expected 1 to ", kVersion, " (P2)");
  size_t dataStart = (tableBytes + kAlignment - 1) / kAlignment * kAlignment;
  return decodeTables(program, bytes.substr(std::min(dataStart, bytes.size())), length);
}

Result<Program> cleave::program::readProgram(std::string_view bytes) {
  Result<Program> program = decodeProgram(bytes);
  if (!program)
    return program;
  if (Status error = checkProgram(*program))
    return *error;
  return program;
}
