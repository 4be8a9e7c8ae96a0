//===- File.h - program files: written, read, checked -----------*- C++ -*-===//
//
//   0            4                     n + 4       rounded up to 64
//   | n, 4 bytes | tables, n bytes     | zeros     | data: code, embedded weights, each at a multiple of 64 | seal, 16 bytes
//
// The tables are a FlatBuffer (lib/Program/Program.fbs) of at most 2 GiB; data may be of any size. All is little-endian.
// docs/program-file.md specifies it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_FILE_H
#define CLEAVE_PROGRAM_FILE_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"

namespace cleave::program {

/// What a program file has at byte 8.
inline constexpr std::string_view kIdentifier = "CLVP";

/// Whether the first bytes say that this is a program file.
bool isProgram(std::string_view bytes);

/// The bytes of a program file: equal programs, equal bytes. Nothing is checked.
std::string writeProgram(const Program &program);

/// Whether digests are held against what is there: of the tables by whoever reads them, of code and weights by who loads these.
enum class Verify : bool { No, Yes };

/// A program from untrusted bytes, which it refers into. What comes back has passed every check, P1 to P33.
Result<Program> readProgram(std::string_view bytes, Verify verify = Verify::Yes);

/// P5 to P32, the checks of what is in a program; linear in its size, and in ranks times commands (P5).
Status checkProgram(const Program &program);

/// P1 to P4 alone: whether the bytes can be read at all.
Result<Program> decodeProgram(std::string_view bytes, Verify verify = Verify::Yes);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_FILE_H
