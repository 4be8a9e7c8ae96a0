//===- Npz.h - numpy's archive of arrays ------------------------*- C++ -*-===//
//
// Reads and writes files of arrays; cleave/Arrays/Npz.h says which.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_NPZ_H
#define CLEAVE_SUPPORT_NPZ_H

#include "cleave/Arrays/Npz.h"
#include "cleave/Support/File.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace cleave {

using arrays::findArray;
using arrays::formatNpy;
using arrays::NpyArray;
using arrays::NpzArrays;

/// Reads every array for which `wanted` holds (all, without it). Errors name the file and the array: not a zip archive,
/// a bad or big-endian header, a type not listed above, a size other than the shape asks for, a wrong checksum, a name
/// twice. Memory is only taken for bytes that the archive really has.
llvm::Expected<NpzArrays> readNpz(llvm::StringRef path, llvm::function_ref<bool(llvm::StringRef)> wanted = nullptr);

/// The same from a file already mapped.
llvm::Expected<NpzArrays> readNpz(const MappedFile &file, llvm::function_ref<bool(llvm::StringRef)> wanted = nullptr);

/// Names, types and shapes without the elements (`data` stays empty).
llvm::Expected<NpzArrays> readNpzHeaders(llvm::StringRef path);

/// Writes the arrays in the given order. The file appears whole or not at all. Errors: a name that is empty or twice,
/// an unknown dtype, `data` that is not as long as dtype and shape ask for, the disk.
llvm::Error writeNpz(llvm::StringRef path, const NpzArrays &arrays);

/// One .npy file's bytes as an array.
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes);

} // namespace cleave

#endif // CLEAVE_SUPPORT_NPZ_H
