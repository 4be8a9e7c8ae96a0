//===- OnnxFunctions.h - ops that ONNX defines by a function ----*- C++ -*-===//
//
// Bodies come from the onnx package when building (python/tools/extract_functions.py): one serialized model that holds
// every function body which depends on nothing but opset and attributes. Its `overload` is the op's since-version.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_ONNXFUNCTIONS_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_ONNXFUNCTIONS_H

#include "cleave/Onnx/Model.h"

namespace cleave::onnx {

/// The body of an op of a domain (empty: ONNX's own) at an opset of that; null if it has none.
const FunctionProto *findOnnxFunction(llvm::StringRef domain, llvm::StringRef opType, int64_t opset);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_ONNXFUNCTIONS_H
