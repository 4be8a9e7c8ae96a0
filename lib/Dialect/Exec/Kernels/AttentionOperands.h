//===- AttentionOperands.h - what stands in front of attention --*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONOPERANDS_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONOPERANDS_H

#include "Movement.h"

namespace cleave::exec {

/// `value` without the factors of one number that stand in front of its movement; `factor` is multiplied by them.
mlir::Value dropFactor(mlir::OpBuilder &builder, mlir::Value value, double &factor);

/// Where the heads (dim 1) of `value`, [batch, heads, .., ..], are fewer heads, each repeated as often as the others one
/// after the other: the value of these alone. Else null.
mlir::Value dropRepeats(mlir::OpBuilder &builder, mlir::Value value);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONOPERANDS_H
