//===- PackedTensor.h - elements that share bytes ---------------*- C++ -*-===//
//
// ONNX stores two elements of 4 bits, or four of 2, in a byte, low bits first, over the ends of rows. The evaluator has a byte for each;
// a parameter stays as it is in its file, and is taken apart by ops of the program.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_PACKEDTENSOR_H
#define CLEAVE_LIB_IMPORT_ONNX_PACKEDTENSOR_H

#include "cleave/Onnx/TensorData.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/IR/Builders.h"

namespace cleave::onnx {

class NodeContext;

/// How many elements share a byte. Precondition: the type is supported.
int64_t countPerByte(const TensorData &data);

/// The elements, one by one.
reference::Tensor toTensor(mlir::MLIRContext *context, const TensorData &data);

/// Elements that share bytes, as bytes: row by row where rows fill theirs, else all in one row.
TensorData toBytes(TensorData data);

/// Elements of `type` out of bytes that `perByte` of them share, by existing ops: each byte is shifted as often as it has elements.
/// The result has location `last`.
mlir::Value unpack(mlir::OpBuilder &builder, mlir::Location last, mlir::Value bytes, mlir::RankedTensorType type,
                   int64_t perByte);

/// Bytes [.., m] as the 8 / bits numbers in each, by the same ops: [.., m * 8 / bits] without sign; of 8 bits the bytes.
mlir::Value unpackBits(NodeContext &node, mlir::Value bytes, int64_t bits);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_PACKEDTENSOR_H
