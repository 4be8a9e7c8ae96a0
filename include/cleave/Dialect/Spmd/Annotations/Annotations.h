//===- Annotations.h - the one road of a plan's annotations -----*- C++ -*-===//
//
//   plan ──read, checked (readPlan)──▶ Plan ──looked up, checked against tensors (placeAnnotations)──▶ spmd.pin, spmd.annotation
//        ──canonical form, which stops at pins──▶ ──spmd-annotate──▶ types
//
// The plan is read once: by the driver, which hands it to a pass, or by the pass whose options name it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_ANNOTATIONS_ANNOTATIONS_H
#define CLEAVE_DIALECT_SPMD_ANNOTATIONS_ANNOTATIONS_H

#include "cleave/Dialect/Spmd/IR/SpmdAttributes.h"
#include "cleave/Plan/ModuleWeights.h"
#include "cleave/Plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace cleave::spmd {

/// A plan as passes share it; null: there is none.
using PlanRef = std::shared_ptr<const Plan>;

/// Reads a plan; fails after an error at its place in the plan. Null if `source` names nothing.
mlir::FailureOr<PlanRef> readPlan(mlir::MLIRContext *context, const PlanSource &source);

/// Makes an error of what is wrong with a plan, at its place; fails.
llvm::LogicalResult emitError(mlir::MLIRContext *context, const PlanError &error);

/// Puts the annotations of `plan` where it holds until types can: on a value inside an `spmd.pin` in front of all its users, on
/// an argument or result of a function the attribute `spmd.annotation`. The mesh becomes the module's. Nothing is changed
/// where a rule is wrong, which is an error at its place.
llvm::LogicalResult placeAnnotations(mlir::ModuleOp module, const Plan &plan);

/// The weights of a model by the modules that read them, as import has noted it at each. Views of strings of the context.
ModuleWeights findModuleWeights(mlir::ModuleOp module);

/// All axes of a plan's mesh; and those inside of a stage, without the pipeline's. What is left without axes has one of size 1.
MeshAttr getMesh(mlir::MLIRContext *context, const Plan &plan);
MeshAttr getInnerMesh(mlir::MLIRContext *context, const Plan &plan);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_ANNOTATIONS_ANNOTATIONS_H
