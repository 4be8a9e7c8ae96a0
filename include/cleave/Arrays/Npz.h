//===- Npz.h - numpy's archive of arrays ------------------------*- C++ -*-===//
//
// An .npz file is a zip archive with one .npy entry per array: a short header in Python syntax (element type, order,
// shape), then the elements. Read: versions 1 to 3, little-endian, both orders (Fortran order is turned into C order).
// Written: version 1, C order, stored uncompressed with fixed times, so that equal arrays give equal files.
//
// From bytes and to bytes, for the compiler and the runtime alike: where these come from is up to them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ARRAYS_NPZ_H
#define CLEAVE_ARRAYS_NPZ_H

#include "cleave/Program/Error.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cleave::arrays {

/// One array: row-major, little-endian elements.
struct NpyArray {
  /// numpy's letter and size without byte order: "f2", "f4", "f8", "i1".."i8", "u1".."u8", "b1", "V2", which is how
  /// numpy stores bfloat16, or "V1", elements of a byte that numpy has no name for. "b1" elements are 0 or 1.
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<char> data;

  /// Bytes of one element of `dtype`; nothing for an unknown one.
  static std::optional<int64_t> getElementBytes(std::string_view dtype);
};

/// Arrays by name, in the order of the archive. Names are those of numpy.load, without ".npy".
using NpzArrays = std::vector<std::pair<std::string, NpyArray>>;

/// The array named `name`, or null.
const NpyArray *findArray(const NpzArrays &arrays, std::string_view name);

/// Reads every array for which `wanted` holds (all, without it). Errors name the array: not a zip archive, a bad or
/// big-endian header, a type not listed above, a size other than the shape asks for, a wrong checksum, a name twice.
/// Memory is only taken for bytes that the archive really has. `headersOnly`: names, types and shapes (`data` stays empty).
program::Result<NpzArrays> readNpz(std::string_view bytes,
                                   const std::function<bool(std::string_view name)> &wanted = nullptr,
                                   bool headersOnly = false);

/// Takes the next bytes of a file. Returns whether it could.
using Sink = std::function<bool(const char *bytes, size_t count)>;

/// Writes the arrays in the given order. Errors: a name that is empty or twice, an unknown dtype, `data` that is not as long
/// as dtype and shape ask for. What `sink` could not take is its own affair: writing ends.
program::Status writeNpz(const NpzArrays &arrays, const Sink &sink);
/// The errors of `writeNpz`, before anything is written.
program::Status checkNpz(const NpzArrays &arrays);

/// One .npy file's bytes as an array, and back.
program::Result<NpyArray> parseNpy(std::string_view bytes);
std::string formatNpy(const NpyArray &array);

/// An array where it lies in a .npy file's bytes, which must stay.
struct NpyView {
  std::string dtype;
  std::vector<int64_t> shape;
  const char *data = nullptr;
};
/// As `parseNpy`, but elements are not looked at. An error where they are in Fortran order.
program::Result<NpyView> viewNpy(std::string_view bytes);

} // namespace cleave::arrays

#endif // CLEAVE_ARRAYS_NPZ_H
