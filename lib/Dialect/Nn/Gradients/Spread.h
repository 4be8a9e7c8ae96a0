//===- Spread.h - elements put apart and turned around ----------*- C++ -*-===//
//
// What reads every s-th element (slices, windows) hands its gradient back with zeros between.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_GRADIENTS_SPREAD_H
#define CLEAVE_LIB_DIALECT_NN_GRADIENTS_SPREAD_H

#include "cleave/Dialect/Nn/Gradients/GradientBuilder.h"

namespace cleave::nn {

/// One dim turned around.
mlir::Value flip(Composer &f, mlir::Value value, int64_t dim);
/// `step - 1` zeros between the elements of a dim of at least one: [a, b] of step 3 is [a, 0, 0, b].
mlir::Value spreadDim(Composer &f, mlir::Value value, int64_t dim, int64_t step);
/// So many zeros more at the ends of a dim; elements fewer where an amount is negative.
mlir::Value padDim(Composer &f, mlir::Value value, int64_t dim, int64_t low, int64_t high);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_GRADIENTS_SPREAD_H
