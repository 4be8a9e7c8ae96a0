//===- Packed.h - bytes that hold smaller elements --------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_IR_PACKED_H
#define CLEAVE_DIALECT_NN_IR_PACKED_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace cleave::nn {

/// Bytes as the tensor of 4 or 2 bits that they hold: as many dims, the last one larger.
struct PackedTensor {
  /// `tensor<64x96xi4>`.
  mlir::RankedTensorType type;
  /// How many elements share a byte.
  int64_t perByte = 1;
  /// For each dim how many elements share a scale; 1 where each has its own, or none has.
  llvm::SmallVector<int64_t> blocks;
};

/// Of bytes that ops take apart into elements of 4 or 2 bits: what these are. Nothing for other values, and where ops disagree.
std::optional<PackedTensor> getPacked(mlir::Value bytes);

/// The type alone; null for other values.
mlir::RankedTensorType getHeldType(mlir::Value bytes);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PACKED_H
