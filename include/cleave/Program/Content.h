//===- Content.h - what a file is, by its bytes -----------------*- C++ -*-===//
//
// Files are exchanged on command lines: a plan where a model is expected, a model for a plan. Whoever cannot read a file says what
// it is instead, so that nobody looks for an error in it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_CONTENT_H
#define CLEAVE_PROGRAM_CONTENT_H

#include <string>
#include <string_view>

namespace cleave::program {

enum class Content {
  Unknown,
  Onnx,
  Mlir,
  Program,
  Plan,
  Cluster,
  Npz,
  Npy,
  Schedule,
  Torch,
  Safetensors,
  Hdf5,
  Gzip,
  Library,
  Utf16
};

/// Told by the first bytes.
Content findContent(std::string_view bytes);

/// `an ONNX model`; empty for what is not known.
std::string_view describe(Content content);

/// `it is a plan, not a model`, where the content is known and is none of `expected`; else empty.
std::string describeOther(std::string_view bytes, Content expected, std::string_view what);

/// For a path that begins with `~`, which the shell has not replaced, and that is not there: what to write. Else empty.
std::string hintAtHome(std::string_view path);

/// Text without the mark that some editors put in front of it.
std::string_view dropByteOrderMark(std::string_view text);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_CONTENT_H
