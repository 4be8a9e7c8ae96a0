//===- SliceRange.h - slices that are one range -----------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_NN_IR_SLICERANGE_H
#define CLEAVE_DIALECT_NN_IR_SLICERANGE_H

#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include <optional>

namespace cleave::nn {

/// Where the result of a slice begins in its operand, in elements, if it is one range of these; nothing where there are gaps, or no
/// elements.
std::optional<int64_t> getRangeStart(SliceOp op);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_SLICERANGE_H
