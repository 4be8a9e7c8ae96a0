//===- PlaceStates.h - from the states of a plan to attributes --*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLACESTATES_H
#define CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLACESTATES_H

#include "cleave/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

/// Says on results which argument they are the next value of. Fails, with the reason in `error`, where tensors are not
/// there or do not fit.
llvm::LogicalResult placeStates(mlir::ModuleOp module, const Plan &plan, PlanError &error);

/// Lets what is annotated of an argument or result hold for the other one of a state. Fails after an error.
llvm::LogicalResult shareAnnotations(mlir::ModuleOp module);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_DIALECT_SPMD_ANNOTATIONS_PLACESTATES_H
