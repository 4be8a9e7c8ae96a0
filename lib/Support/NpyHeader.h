//===- NpyHeader.h - one array in numpy's format ----------------*- C++ -*-===//
//
// What Npz.cpp needs of an array's bytes: header and elements apart, so that an archive's entry can be checked before
// memory is taken for it, and written without being copied together.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SUPPORT_NPYHEADER_H
#define CLEAVE_LIB_SUPPORT_NPYHEADER_H

#include "cleave/Support/Npz.h"

namespace cleave {

/// A parsed header; `array.data` is empty until the elements have been read into it.
struct NpyHeader {
  NpyArray array;
  bool isFortranOrder = false;
  uint64_t dataStart = 0; ///< where the elements start in the file
  uint64_t dataBytes = 0; ///< how many bytes they have
};

/// Parses the header that `bytes` starts with. Errors: it is none, it is longer than `bytes`, it has another type or
/// layout than Npz.h lists.
llvm::Expected<NpyHeader> parseNpyHeader(llvm::StringRef bytes);

/// After `array.data` has been read: turns it into C order and checks bools.
llvm::Error finishNpy(NpyHeader &header);

/// Everything in a version 1 file before the elements. Precondition: `checkNpy`.
std::string formatNpyHeader(const NpyArray &array);

/// What a caller of the writer can get wrong.
llvm::Error checkNpy(const NpyArray &array);

/// Bytes that dtype and shape ask for; nothing if the dtype is unknown, a dim is negative or the product overflows.
std::optional<uint64_t> countNpyBytes(const NpyArray &array);

} // namespace cleave

#endif // CLEAVE_LIB_SUPPORT_NPYHEADER_H
