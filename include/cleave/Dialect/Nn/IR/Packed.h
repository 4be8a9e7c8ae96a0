//===- Packed.h - bytes that hold smaller elements --------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_IR_PACKED_H
#define CLEAVE_DIALECT_NN_IR_PACKED_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace cleave::nn {

/// Of bytes that ops take apart into elements of 4 or 2 bits: the tensor that these are, `tensor<64x96xi4>`. Null for other values.
mlir::RankedTensorType getHeldType(mlir::Value bytes);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PACKED_H
