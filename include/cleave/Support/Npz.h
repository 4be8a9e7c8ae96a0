//===- Npz.h - numpy's archive of arrays ------------------------*- C++ -*-===//
//
// An .npz file is a zip archive with one .npy entry per array: a short header in Python syntax (element type, order,
// shape), then the elements. Read: versions 1 to 3, little-endian, both orders (Fortran order is turned into C order).
// Written: version 1, C order, stored uncompressed with fixed times, so that equal arrays give equal files.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_NPZ_H
#define CLEAVE_SUPPORT_NPZ_H

#include "cleave/Support/File.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave {

/// One array: row-major, little-endian elements.
struct NpyArray {
  /// numpy's letter and size without byte order: "f2", "f4", "f8", "i1".."i8", "u1".."u8", "b1", or "V2", which is how
  /// numpy stores bfloat16. "b1" elements are 0 or 1.
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<char> data;

  /// Bytes of one element of `dtype`; nothing for an unknown one.
  static std::optional<int64_t> getElementBytes(llvm::StringRef dtype);
};

/// Arrays by name, in the order of the archive. Names are those of numpy.load, without ".npy".
using NpzArrays = std::vector<std::pair<std::string, NpyArray>>;

/// The array named `name`, or null.
const NpyArray *findArray(const NpzArrays &arrays, llvm::StringRef name);

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

/// One .npy file's bytes as an array, and back.
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes);
std::string formatNpy(const NpyArray &array);

} // namespace cleave

#endif // CLEAVE_SUPPORT_NPZ_H
