//===- Windows.h - attributes of convolutions and pools ---------*- C++ -*-===//
//
// Strides, dilations, paddings and `auto_pad` mean the same for all ops that slide a window.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_WINDOWS_H
#define CLEAVE_LIB_IMPORT_ONNX_WINDOWS_H

#include "NodeContext.h"

namespace cleave::onnx {

/// One entry per spatial dim each.
struct Window {
  Ints kernel, strides, dilations, padsLow, padsHigh;
  /// SAME_UPPER, SAME_LOWER, VALID or NOTSET.
  llvm::StringRef autoPad;

  int64_t getExtent(size_t i) const { return dilations[i] * (kernel[i] - 1) + 1; }
};

/// Reads the attributes, except `kernel_shape`, that all these ops have. Nothing after an error.
std::optional<Window> readWindow(NodeContext &node, Shape kernel);

/// Sets the paddings that `auto_pad` asks for, so that an input of these spatial extents gives ceil(n / stride)
/// results.
void padAutomatically(Window &window, Shape spatial);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_WINDOWS_H
