//===- StepRoles.h - what the arguments of a step are -----------*- C++ -*-===//
//
// A step of training is one function, whose arguments say what each is for:
//
//   func.func @main(%x: .. {nn.name = "x", nn.role = "batch"}, %w: .. {nn.name = "w", nn.role = "parameter", nn.begins = @w},
//                   %m: .. {nn.name = "m(w)", nn.role = "optimizer"}, %n: tensor<i64> {nn.name = "count", nn.role = "count"})
//
//   batch       given at each call                     running   statistics of batch norms
//   parameter   a weight, which the step changes       count     steps done
//   optimizer   moments of a weight, its f32 master    scale     of f16's loss, and the steps since it changed
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_STEPROLES_H
#define CLEAVE_DIALECT_SPMD_IR_STEPROLES_H

#include "cleave/Dialect/Spmd/IR/Names.h"

namespace cleave::spmd {

/// Of an argument; where memory is planned, of the op that says where it lies. One of the words above.
inline constexpr llvm::StringLiteral kRoleAttr = "nn.role";
inline constexpr llvm::StringLiteral kBatchRole = "batch", kParameterRole = "parameter", kRunningRole = "running",
                                     kCountRole = "count", kScaleRole = "scale";

/// Of a load: what it reads is not trained, since it holds numbers that no weight has (masks of minus infinity).
inline constexpr llvm::StringLiteral kFixedAttr = "nn.fixed";

/// Of a pin that stands for a Dropout node of a model that is trained: the share of elements (f64) that training passes over.
inline constexpr llvm::StringLiteral kDropoutAttr = "nn.dropout";
/// Of a batch norm of such a model: how much running statistics keep of what they were (f64).
inline constexpr llvm::StringLiteral kMomentumAttr = "nn.momentum";

/// Whether an argument is a parameter: by its role, or by `nn.parameter`, which functions have that are no steps.
inline bool isParameter(mlir::func::FuncOp func, unsigned index) {
  auto role = func.getArgAttrOfType<mlir::StringAttr>(index, kRoleAttr);
  return (role && role.getValue() == kParameterRole) || func.getArgAttr(index, kParameterAttr);
}

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_STEPROLES_H
