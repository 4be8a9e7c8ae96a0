//===- NpyHeader.h - the text in front of an array --------------*- C++ -*-===//
//
// What a .npy file says before its elements, apart from them: inside an archive the two are read one after the other, and
// memory for the elements is only taken once both have been compared.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_ARRAYS_NPYHEADER_H
#define CLEAVE_LIB_ARRAYS_NPYHEADER_H

#include "cleave/Arrays/Npz.h"

namespace cleave::arrays {

/// A parsed header; `array.data` is empty until the elements have been read into it.
struct NpyHeader {
  NpyArray array;
  bool isFortranOrder = false;
  uint64_t dataStart = 0; ///< where the elements start in the file
  uint64_t dataBytes = 0; ///< how many bytes they have
};

/// Text of a file as it may stand in a message: in quotes, control characters as \xNN, and so what is no UTF-8; at most 200
/// bytes of it.
std::string quote(std::string_view text);

/// Parses the header that `bytes` starts with. Errors: it is none, it is longer than `bytes`, it has another type or
/// layout than Npz.h lists.
program::Result<NpyHeader> parseNpyHeader(std::string_view bytes);

/// After `array.data` has been read: turns it into C order and checks bools.
program::Status finishNpy(NpyHeader &header);

/// Everything in a version 1 file before the elements. Precondition: `checkNpy`.
std::string formatNpyHeader(const NpyArray &array);

/// What a caller of the writer can get wrong.
program::Status checkNpy(const NpyArray &array);

/// Bytes that dtype and shape ask for; nothing if the dtype is unknown, a dim is negative or the product overflows.
std::optional<uint64_t> countNpyBytes(const NpyArray &array);

} // namespace cleave::arrays

#endif // CLEAVE_LIB_ARRAYS_NPYHEADER_H
