//===- Floats.h - floats of checkpoints and of models -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_FLOATS_H
#define CLEAVE_LIB_EXPORT_ONNX_FLOATS_H

#include "cleave/Arrays/Safetensors.h"
#include "cleave/Support/File.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace cleave::onnx {

/// The element type of programs that an ONNX type is; nothing of those that are not trained.
std::optional<program::Element> findFloat(int32_t dataType);

/// The same of integers that a step counts in; nothing of all else.
std::optional<program::Element> findInteger(int32_t dataType);

/// One float after the other, each rounded once, to even.
std::string castFloats(llvm::StringRef bytes, program::Element from, program::Element to);
std::vector<double> toDoubles(llvm::StringRef bytes, program::Element from);
std::string fromDoubles(llvm::ArrayRef<double> numbers, program::Element to);

/// A checkpoint that is mapped, and what is in it: of its elements those of one tensor are taken at a time.
struct Checkpoint {
  std::shared_ptr<const MappedFile> file;
  arrays::Safetensors contents;

  llvm::StringRef getBytes() const { return file->getBytes(); }
};
llvm::Expected<Checkpoint> openCheckpoint(llvm::StringRef path);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_FLOATS_H
