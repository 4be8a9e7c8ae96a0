//===- Safetensors.h - tensors by name in one file --------------*- C++ -*-===//
//
// The format that checkpoints of models are exchanged in:
//
//   0        8                       8 + n
//   | n      | JSON, n bytes         | elements, tensor behind tensor, without gaps
//             {"w": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}, .., "__metadata__": {"step": "7"}}
//
// Little-endian and row-major. What is in the file is known from its beginning, so each rank reads and writes its own parts.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ARRAYS_SAFETENSORS_H
#define CLEAVE_ARRAYS_SAFETENSORS_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"
#include <functional>
#include <map>

namespace cleave::arrays {

struct SafeTensor {
  std::string name;
  program::Element element = program::Element::F32;
  std::vector<int64_t> shape;
  uint64_t offset = 0, bytes = 0; ///< in the file
};

struct Safetensors {
  std::vector<SafeTensor> tensors;
  std::map<std::string, std::string> metadata;
  uint64_t fileBytes = 0;

  /// Null if there is none of that name.
  const SafeTensor *find(std::string_view name) const;
};

/// Puts the bytes of a file at `offset` into memory, all of them.
using ReadBytes = std::function<program::Status(uint64_t offset, char *to, size_t bytes)>;

/// What is in a file of `fileBytes` bytes. Errors: it is no file of this kind, a type that programs do not have, bytes that are not those
/// of the shape, or not in the file, a name twice.
program::Result<Safetensors> readSafetensors(const ReadBytes &read, uint64_t fileBytes);

/// Says where in a file the tensors lie, largest elements first, so that each is aligned to its elements, and gives the bytes before
/// them.
std::string layOutSafetensors(Safetensors &file);

} // namespace cleave::arrays

#endif // CLEAVE_ARRAYS_SAFETENSORS_H
