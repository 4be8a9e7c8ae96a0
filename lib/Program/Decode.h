//===- Decode.h - from the tables of a file to values -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_PROGRAM_DECODE_H
#define CLEAVE_LIB_PROGRAM_DECODE_H

#include "Program_generated.h"

#include "cleave/Program/File.h"

namespace cleave::program {

/// A program from tables that FlatBuffers' verifier has passed, and the data behind them. `budget`: the bytes that strings
/// and vectors may have together. Errors: P1, P3, P4.
Result<Program> decodeTables(const file::Program &table, std::string_view data, size_t budget);

} // namespace cleave::program

#endif // CLEAVE_LIB_PROGRAM_DECODE_H
