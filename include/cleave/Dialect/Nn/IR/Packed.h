//===- Packed.h - bytes that hold smaller elements --------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_IR_PACKED_H
#define CLEAVE_DIALECT_NN_IR_PACKED_H

#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"

namespace cleave::nn {

using spmd::PackedTensor;

/// Of bytes that ops take apart into elements of 4 or 2 bits: what these are. Nothing for other values, and where ops disagree.
std::optional<PackedTensor> getPacked(mlir::Value bytes);

/// The type alone; null for other values.
mlir::RankedTensorType getHeldType(mlir::Value bytes);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_PACKED_H
