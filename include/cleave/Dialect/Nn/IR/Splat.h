//===- Splat.h - constants of one number ------------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_IR_SPLAT_H
#define CLEAVE_DIALECT_NN_IR_SPLAT_H

#include "mlir/IR/Value.h"
#include <optional>

namespace cleave::nn {

/// The number in a floating-point constant whose elements are all equal, or nothing.
std::optional<double> getSplatNumber(mlir::Value value);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_SPLAT_H
