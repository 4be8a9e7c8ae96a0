//===- Limits.h - how large tensors of a model may be -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_LIMITS_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_LIMITS_H

#include <cstddef>

namespace cleave::onnx {

/// Most dims of a tensor, as numpy has it. A program may have more (P6 of docs/program-file.md): compiling splits dims in two.
inline constexpr size_t kMostDims = 64;

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_LIMITS_H
