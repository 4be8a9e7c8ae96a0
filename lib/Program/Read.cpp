//===- Read.cpp - from untrusted bytes to a checked program ---------------===//
//
// Frame, seal, tables, values, contents: each is looked at only when what it lies in is known to be sound. The seal is the digest of
// all that lies before the data, so that no number of a program is one that nobody wrote.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"
#include "cleave/Program/Content.h"
#include "cleave/Program/Digest.h"

#include <algorithm>
#include <cstring>
#include <memory>

using namespace cleave::program;

static constexpr size_t kAlignment = 64, kPrefix = 4;

bool cleave::program::isProgram(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.substr(8, kIdentifier.size()) == kIdentifier;
}

//===----------------------------------------------------------------------===//
// The seal
//===----------------------------------------------------------------------===//

static constexpr std::string_view kSealMark = "CLVPSEAL";
static constexpr size_t kSealBytes = kSealMark.size() + sizeof(uint64_t);

/// Eight little-endian bytes.
static std::string toBytes(uint64_t number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(number); ++i)
    bytes += char(number >> 8 * i);
  return bytes;
}

// The data have digests of their own, which stand in the tables; of them the seal knows how much there is.
std::string cleave::program::makeSeal(std::string_view head, uint64_t dataBytes) {
  return std::string(kSealMark) + toBytes(hashBytes(toBytes(hashBytes(head)) + toBytes(dataBytes)));
}

/// Takes the seal off the end of a file, where there is one.
static std::string_view takeSeal(std::string_view &bytes) {
  if (bytes.size() < kSealBytes || bytes.substr(bytes.size() - kSealBytes, kSealMark.size()) != kSealMark)
    return {};
  std::string_view seal = bytes.substr(bytes.size() - kSealBytes);
  bytes.remove_suffix(kSealBytes);
  return seal;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

// Of a file of n bytes at most n / 4 tables are visited and n bytes of vectors copied, whatever refers to whatever.
Result<Program> cleave::program::decodeProgram(std::string_view bytes, Verify verify) {
  if (std::string other = isProgram(bytes) ? "" : describeOther(bytes, Content::Program, "a program"); !other.empty())
    return makeError(other, " (P1)");
  if (!isProgram(bytes))
    return makeError("is not a program file: there is no \"", kIdentifier, "\" at byte 8 (P1)");
  uint32_t length = flatbuffers::ReadScalar<uint32_t>(std::string(bytes.substr(0, kPrefix)).data());
  if (length > bytes.size() - kPrefix || length > FLATBUFFERS_MAX_BUFFER_SIZE - kPrefix)
    return makeError("is cut off: tables of ", length, " bytes in a file of ", bytes.size(), " (P1)");
  std::string_view seal = takeSeal(bytes);
  size_t tableBytes = length + kPrefix, dataStart = (tableBytes + kAlignment - 1) / kAlignment * kAlignment;
  std::string_view head = bytes.substr(0, dataStart), data = bytes.substr(head.size());
  if (verify == Verify::Yes && !seal.empty() && seal != makeSeal(head, data.size()))
    return makeError("is damaged: its tables are not those that were written, by their digest (P1)");
  if (tableBytes > bytes.size())
    return makeError("its tables are damaged (P1)");
  // Whoever gives the bytes need not have aligned them; a FlatBuffer must be.
  std::unique_ptr<uint64_t[]> aligned(new uint64_t[tableBytes / sizeof(uint64_t) + 1]);
  std::memcpy(aligned.get(), bytes.data(), tableBytes);
  const auto *tables = reinterpret_cast<const uint8_t *>(aligned.get());
  flatbuffers::Verifier verifier(tables, tableBytes, /*max_depth=*/16, /*max_tables=*/length / 4);
  if (!file::VerifySizePrefixedProgramBuffer(verifier))
    return makeError("its tables are damaged (P1)");
  const file::Program &program = *file::GetSizePrefixedProgram(tables);
  if (program.version() == 0 || program.version() > kVersion)
    return makeError("is of version ", program.version(), ", expected 1 to ", kVersion, " (P2)");
  if (verify == Verify::Yes && program.sealed() && seal.empty())
    return makeError("is cut off, or has more bytes than were written: the seal at its end is not there (P1)");
  return decodeTables(program, data, length);
}

Result<Program> cleave::program::readProgram(std::string_view bytes, Verify verify) {
  Result<Program> program = decodeProgram(bytes, verify);
  if (!program)
    return program;
  if (Status error = checkProgram(*program))
    return *error;
  return program;
}
