//===- Elements.h - tensors' elements as ONNX has them ----------*- C++ -*-===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_ELEMENTS_H
#define CLEAVE_LIB_EXPORT_ONNX_ELEMENTS_H

#include "cleave/Reference/Tensor.h"
#include <string>

namespace cleave::onnx {

/// True for integers of 4 and 2 bits.
bool isSmallInteger(mlir::Type elementType);
/// A tensor's type in exported graphs: without its encoding, and with bytes for small integers.
mlir::RankedTensorType getStoredType(mlir::Type type);
/// Gives small integers, of whose bytes the low bits alone are set, their sign; leaves all others.
void encodeSigns(llvm::MutableArrayRef<char> bytes, mlir::Type elementType);
/// Elements of that type as `raw_data` and external data have them: little-endian, row-major, bool as a byte.
std::string encodeElements(const reference::Tensor &tensor);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_ELEMENTS_H
