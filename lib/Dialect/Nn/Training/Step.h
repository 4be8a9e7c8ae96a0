//===- Step.h - what the passes of a step share -----------------*- C++ -*-===//
//
// The passes that make a step of training (docs/training.md) find its function, and give it arguments and results, in one way.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H
#define CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::nn {

using spmd::PlanRef;

/// The plan of an option, with a section `train`, or null after an error at `module`.
PlanRef readTrainPlan(mlir::ModuleOp module, llvm::StringRef file, llvm::StringRef section);

/// An error at a place of the plan.
mlir::InFlightDiagnostic emitErrorAt(mlir::MLIRContext *context, const spmd::PlanPlace &place);

/// The function that is trained: `main`, or the only one. Null after an error.
mlir::func::FuncOp findStep(mlir::ModuleOp module);

/// Of op results, the node of what is made from here on: no name of the model's tensors is used twice.
mlir::Location makeStepLoc(mlir::MLIRContext *context, llvm::StringRef node, llvm::StringRef tensor = {});

/// Appends an argument, or a result, that has a name, and a role or a state.
mlir::Value addArgument(mlir::func::FuncOp func, mlir::RankedTensorType type, llvm::StringRef name,
                        llvm::StringRef role);
void addResult(mlir::func::FuncOp func, mlir::Value value, llvm::StringRef name, llvm::StringRef state = {});

/// Where a state of what `begins` says (an attribute of a parameter) stands in the tensor `name` of a checkpoint (Begins.h); null where it is
/// all of that tensor.
mlir::Attribute makeOrigin(mlir::ModuleOp module, mlir::Attribute begins, llvm::StringRef name);

/// What a step calls a loaded tensor: its parameter, and for a part of one where that begins, as in `qkv[0, 768]`.
std::string getTensorName(LoadOp load);

/// The ends of the names of an adapter's two factors.
inline constexpr llvm::StringLiteral kLoraA = ".lora_A", kLoraB = ".lora_B";

/// Whether one of `patterns` picks the name.
bool isPicked(llvm::ArrayRef<spmd::PlanPattern> patterns, llvm::StringRef name);

/// A loss of rank 0, in f32 or f64.
struct ComposedLoss {
  /// The mean over its positions; where there is a factor, the sum over those that count, divided by the number of all.
  mlir::Value value;
  /// All positions by those that count; null: the value is the mean.
  mlir::Value factor;
};
/// The result of a step between its outline and its update that is `ComposedLoss::factor`.
inline constexpr llvm::StringLiteral kLossFactor = "factor(loss)";

/// A loss, whose value is null after an error at its place in the plan.
/// \param value the tensor that it is of; \param labels null for those that the model gives.
/// \param factorsCount the number of positions that count is kept out of the value: it is known behind all microbatches.
ComposedLoss composeLoss(Composer &f, const spmd::PlanLoss &loss, mlir::Value value, mlir::Value labels,
                         bool factorsCount);
/// The type of the labels that go with it; null after an error.
mlir::RankedTensorType getLabelType(mlir::MLIRContext *context, const spmd::PlanLoss &loss, mlir::Value value);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H
