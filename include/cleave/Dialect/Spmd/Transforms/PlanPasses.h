//===- PlanPasses.h - passes that follow a plan -----------------*- C++ -*-===//
//
// As the driver makes them: with a plan that has been read, instead of options that name it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_PLANPASSES_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_PLANPASSES_H

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "mlir/Pass/Pass.h"

namespace cleave::spmd {

std::unique_ptr<mlir::Pass> createPinAnnotations(PlanRef plan);
std::unique_ptr<mlir::Pass> createAnnotate(PlanRef plan);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_PLANPASSES_H
